//! SEC-2: literal credentials in places where people write them, also by mistake.

use trunkline::config;
use trunkline_testkit::invariants;

/// Texts that contain the credential `Hunter2`, with a description each. Most are adversarial.
const TEXTS: &[(&str, &str)] = &[
    (
        "args mcp-remote --header",
        r##"{"mcpServers":{"a":{"command":"npx","args":["mcp-remote","https://x/mcp","--header","Authorization: Bearer Hunter2"]}}}"##,
    ),
    (
        "args --header=",
        r##"{"mcpServers":{"a":{"command":"npx","args":["--header=X-Api-Key: Hunter2"]}}}"##,
    ),
    ("command line w/ --token", r##"{"mcpServers":{"a":{"command":"npx srv --token Hunter2"}}}"##),
    ("command env prefix", r##"{"mcpServers":{"a":{"command":"TOKEN=Hunter2 npx srv"}}}"##),
    ("sh -c", r##"{"mcpServers":{"a":{"command":"sh","args":["-c","npx srv --token Hunter2"]}}}"##),
    (
        "docker -e PASS",
        r##"{"mcpServers":{"a":{"command":"docker","args":["run","-e","MYSQL_PASS=Hunter2"]}}}"##,
    ),
    (
        "docker -e X=sk-",
        r##"{"mcpServers":{"a":{"command":"docker","args":["run","-e","OPENAI=sk-Hunter2"]}}}"##,
    ),
    (
        "conn string",
        r##"{"mcpServers":{"a":{"command":"x","args":["Server=h;User Id=sa;Password=Hunter2;"]}}}"##,
    ),
    (
        "accesstoken flag",
        r##"{"mcpServers":{"a":{"command":"x","args":["--accesstoken","Hunter2"]}}}"##,
    ),
    ("token2 flag", r##"{"mcpServers":{"a":{"command":"x","args":["--apitoken=Hunter2"]}}}"##),
    ("url ref + query", r##"{"mcpServers":{"a":{"url":"${BASE}/mcp?x=1&api_key=Hunter2"}}}"##),
    (
        "url token=lit ref lit",
        r##"{"mcpServers":{"a":{"url":"https://h/mcp?token=${A}Hunter2"}}}"##,
    ),
    ("url userinfo with ref", r##"{"mcpServers":{"a":{"url":"https://${U}:Hunter2@h/mcp"}}}"##),
    (
        "arg --token=ref+lit",
        r##"{"mcpServers":{"a":{"command":"x","args":["--token=${A}Hunter2"]}}}"##,
    ),
    (
        "args after --token with ref",
        r##"{"mcpServers":{"a":{"command":"x","args":["--token","${A:-Hunter2}"]}}}"##,
    ),
    ("url fragment", r##"{"mcpServers":{"a":{"url":"https://h/mcp#access_token=Hunter2"}}}"##),
    ("url no scheme userinfo", r##"{"mcpServers":{"a":{"url":"user:Hunter2@h/mcp"}}}"##),
    ("url no scheme query", r##"{"mcpServers":{"a":{"url":"h.com/mcp?a=1&token=Hunter2"}}}"##),
    ("url ws", r##"{"mcpServers":{"a":{"url":"ws:user:Hunter2@h/mcp"}}}"##),
    ("misspelt env", r##"{"mcpServers":{"a":{"command":"x","evn":{"DB_CONN":"Hunter2"}}}}"##),
    ("Env case", r##"{"mcpServers":{"a":{"command":"x","Env":{"DB_CONN":"Hunter2"}}}}"##),
    (
        "header sing",
        r##"{"mcpServers":{"a":{"url":"https://x","header":{"X-Custom":"Hunter2"}}}}"##,
    ),
    (
        "headers string",
        r##"{"mcpServers":{"a":{"url":"https://x","headers":"X-Api-Key: Hunter2"}}}"##,
    ),
    ("env string", r##"{"mcpServers":{"a":{"command":"x","env":"Hunter2"}}}"##),
    ("args string", r##"{"mcpServers":{"a":{"command":"x","args":"--token Hunter2"}}}"##),
    (
        "header set syntax",
        r##"{"mcpServers":{"a":{"url":"https://x","headers":{"Authorization: Bearer Hunter2"}}}}"##,
    ),
    (
        "header name w value",
        r##"{"mcpServers":{"a":{"url":"https://x","headers":{"Authorization: Bearer Hunter2":""}}}}"##,
    ),
    ("env TOKEN=x key", r##"{"mcpServers":{"a":{"command":"x","env":{"TOKEN=Hunter2":""}}}}"##),
    ("env TOKEN=x set", r##"{"mcpServers":{"a":{"command":"x","env":{"TOKEN=Hunter2"}}}}"##),
    (
        "unescaped quote in env",
        r##"{"mcpServers":{"a":{"command":"x","env":{"TOKEN":"ab"Hunter2"}}}}"##,
    ),
    (
        "unescaped quote in apiKey",
        r##"{"mcpServers":{"a":{"command":"x","apiKey":"ab"Hunter2"}}}"##,
    ),
    (
        "notion json in env + error on line",
        r##"{"mcpServers":{"a":{"comand":"x","env":{"OPENAPI_MCP_HEADERS":"{\"Authorization\": \"Bearer Hunter2\"}"}}}}"##,
    ),
    ("braces password", r##"{"mcpServers":{"a":{"comand":"x","env":{"P":"{Hunter2}"}}}}"##),
    ("bad ref in env", r##"{"mcpServers":{"a":{"command":"x","env":{"P":"a${Hunter2 !}"}}}}"##),
    ("foreign ref", r##"{"mcpServers":{"a":{"command":"x","env":{"P":"$HUNTER2"}}}}"##),
    (
        "transport url",
        r##"{"mcpServers":{"a":{"command":"x","transport":"https://u:Hunter2@h/mcp"}}}"##,
    ),
    ("type", r##"{"mcpServers":{"a":{"command":"x","type":"sk-Hunter2"}}}"##),
    ("comment same line", r##"{"mcpServers":{"a":{"comand":"x" /* "TOKEN": "Hunter2" */}}}"##),
    (
        "line comment",
        r##"{"mcpServers":{"a":{"comand":"x" // "TOKEN": "Hunter2"
}}}"##,
    ),
    (
        "multiline env = ",
        r##"{"mcpServers":{"a":{"command":"x","env":{"K":"MIIB
Hunter2=="}}}}"##,
    ),
    (
        "multiline env //",
        r##"{"mcpServers":{"a":{"command":"x","env":{"K":"MIIB
ab//Hunter2"}}}}"##,
    ),
    (
        "multiline env #",
        r##"{"mcpServers":{"a":{"command":"x","env":{"K":"MIIB
ab#Hunter2"}}}}"##,
    ),
    (
        "multiline apiKey",
        r##"{"mcpServers":{"a":{"command":"x","apiKey":"MIIB
Hunter2"}}}"##,
    ),
    ("unquoted #", r##"{"mcpServers":{"a":{"command":"x","env":{"K": ab#Hunter2}}}}"##),
    (
        "unquoted ://",
        r##"{"mcpServers":{"a":{"command":"x","env":{"K": postgres://u:Hunter2@h/db }}}}"##,
    ),
    (
        "input default",
        r##"{"inputs":[{"id":"x","default":"Hunter2","password":true,"bogus":1}],"servers":{"a":{"command":"x"}}}"##,
    ),
    (
        "input default key",
        r##"{"inputs":[{"id":"x","defualt":"Hunter2","password":true}],"servers":{"a":{"command":"x"}}}"##,
    ),
    ("unknown key val", r##"{"mcpServers":{"a":{"command":"x","DB_PASS":"Hunter2"}}}"##),
    (
        "oauth",
        r##"{"mcpServers":{"a":{"url":"https://x","oauth":{"clientId":"x","clientSecret":"Hunter2"}}}}"##,
    ),
    (
        "auth",
        r##"{"mcpServers":{"a":{"url":"https://x","auth":{"CLIENT_ID":"x","CLIENT_SECRET":"Hunter2"}}}}"##,
    ),
    ("tokens array", r##"{"mcpServers":{"a":{"url":"https://x","tokens":["Hunter2"]}}}"##),
    (
        "command object",
        r##"{"context_servers":{"a":{"comand":1,"command":{"path":"x","args":["--token","Hunter2"],"env":{"A":"Hunter2"}}}}}"##,
    ),
    (
        "nested transport",
        r##"{"servers":{"a":{"comand":1,"transport":{"type":"stdio","command":"x","env":{"A":"Hunter2"}}}}}"##,
    ),
    ("default in url", r##"{"mcpServers":{"a":{"comand":1,"url":"https://h/${X:-Hunter2}"}}}"##),
    (
        "default in cwd",
        r##"{"mcpServers":{"a":{"comand":1,"command":"x","cwd":"${X:-Hunter2}"}}}"##,
    ),
    (
        "args -H split",
        r##"{"mcpServers":{"a":{"command":"npx","args":["-H","X-Api-Key: Hunter2"]}}}"##,
    ),
    (
        "url pw with slash",
        r##"{"mcpServers":{"a":{"command":"x","args":["postgres://u:Hun/Hunter2@h/db"]}}}"##,
    ),
    (
        "key=value pairs",
        r##"{"mcpServers":{"a":{"command":"x","args":["host=h password=Hunter2 db=x"]}}}"##,
    ),
    ("json arg", r##"{"mcpServers":{"a":{"command":"x","args":["{\"apiKey\":\"Hunter2\"}"]}}}"##),
    (
        "smithery --config",
        r##"{"mcpServers":{"a":{"command":"npx","args":["-y","@smithery/cli","run","x","--config","{\"githubToken\":\"Hunter2\"}"]}}}"##,
    ),
    (
        "smithery --key",
        r##"{"mcpServers":{"a":{"command":"npx","args":["-y","@smithery/cli","run","x","--key","Hunter2"]}}}"##,
    ),
    (
        "array command",
        r##"{"mcp":{"s":{"type":"locl","command":["npx","-y","srv","--api-key","hunter2"]}}}"##,
    ),
    (
        "array command hint",
        r##"{"mcpServers":{"s":{"command":["npx","--token","hunter2"],"foo":1}}}"##,
    ),
    ("array in array", r##"{"mcpServers":{"s":{"command":["npx",["--token","hunter2"]]}}}"##),
    (
        "nested array command",
        r##"{"mcpServers":{"s":{"transport":{"type":"stdio","command":["npx","--key","hunter2"],"foo":1}}}}"##,
    ),
    (
        "sh -c with address",
        r##"{"mcpServers":{"s":{"command":"bash","args":["-c","API_KEY=hunter2 npx -y mcp-remote https://example.com/mcp"]}}}"##,
    ),
    (
        "command with address",
        r##"{"mcpServers":{"s":{"command":"API_KEY=hunter2 npx mcp-remote https://example.com/mcp"}}}"##,
    ),
    (
        "jdbc",
        r##"{"mcpServers":{"s":{"command":"java","args":["jdbc:sqlserver://localhost;user=sa;password=hunter2;"]}}}"##,
    ),
    (
        "servicebus",
        r##"{"mcpServers":{"s":{"command":"x","args":["Endpoint=sb://ns.example.net/;SharedAccessKey=hunter2"]}}}"##,
    ),
    (
        "pg dsn",
        r##"{"mcpServers":{"s":{"command":"x","args":["postgresql://host/db password=hunter2"]}}}"##,
    ),
    (
        "url with header",
        r##"{"mcpServers":{"s":{"url":"https://example.com/mcp --header Authorization:hunter2"}}}"##,
    ),
    (
        "url ampersand",
        r##"{"mcpServers":{"s":{"url":"https://example.com/mcp&api_key=hunter2"}}}"##,
    ),
    ("url semicolon", r##"{"mcpServers":{"s":{"url":"https://example.com/mcp;token=hunter2"}}}"##),
    ("url escaped", r##"{"mcpServers":{"s":{"url":"https://h/mcp%3Fapi_key=hunter2"}}}"##),
    ("url bare query", r##"{"mcpServers":{"s":{"url":"https://h/mcp?hunter2"}}}"##),
    ("url bare pair", r##"{"mcpServers":{"s":{"url":"https://h/mcp?key=a&hunter2"}}}"##),
    (
        "cwd address",
        r##"{"mcpServers":{"s":{"command":"x","cwd":"https://h/;password=hunter2"}}}"##,
    ),
    (
        "curl as url",
        r##"{"mcpServers":{"s":{"url":"curl -H 'X-Key: hunter2' https://example.com/mcp"}}}"##,
    ),
    ("ipv6 port", r##"{"mcpServers":{"s":{"url":"https://[::1]:hunter2/mcp"}}}"##),
    ("shell default", r##"{"mcpServers":{"s":{"command":"npx","env":{"A":"${TOKEN-hunter2}"}}}}"##),
    (
        "shell default in url",
        r##"{"mcpServers":{"s":{"url":"https://h/mcp/${TOKEN=hunter2}/x"}}}"##,
    ),
    (
        "digit first arg",
        r##"{"mcpServers":{"s":{"command":"npx","args":["--password","2hunter2" "x"]}}}"##,
    ),
    (
        "unquoted digit arg",
        r##"{"mcpServers":{"s":{"command":"npx","args":["--password",72hunter2]}}}"##,
    ),
    (
        "zed object",
        r##"{"context_servers":{"s":{"command":{"path":"npx","args":["--password","2hunter2"]},"timeout":"x"}}}"##,
    ),
    ("env digit", r##"{"mcpServers":{"s":{"command":"x","env":"7hunter2"}}}"##),
    ("unknown key name", r##"{"mcpServers":{"s":{"command":"x","API_KEY=hunter2":true}}}"##),
    ("env name colon", r##"{"mcpServers":{"s":{"command":"x","env":{"API_KEY: hunter2":""}}}}"##),
    (
        "env name export",
        r##"{"mcpServers":{"s":{"command":"x","env":{"export API_KEY hunter2":""}}}}"##,
    ),
    (
        "swapped",
        r##"{"mcpServers":{"s":{"command":"x","env":{"ghp_hunter2hunter2":"GITHUB_TOKEN"}}}}"##,
    ),
    ("agents address", r##"{"agents":"https://u:hunter2@h/x"}"##),
    (
        "auth provider",
        r##"{"mcpServers":{"s":{"url":"https://x/","authProviderId":"Bearer hunter2"}}}"##,
    ),
    (
        "bracketed credential",
        r##"{"mcpServers":{"s":{"command":"x","env":{"T":"${ghp_hunter2hunter2}"}}}}"##,
    ),
    (
        "zed default",
        r##"{"context_servers":{"s":{"command":"npx","args":["${TOKEN:-hunter2}"]}}}"##,
    ),
    ("escaped dollar", r##"{"mcpServers":{"s":{"command":"npx","args":["$${hunter2}"]}}}"##),
    (
        "flag with equals",
        r##"{"mcpServers":{"s":{"command":"npx","args":["--token=","hunter2"]}}}"##,
    ),
    (
        "split header",
        r##"{"mcpServers":{"s":{"command":"npx","args":["--header","X-Api-Key:","hunter2"]}}}"##,
    ),
    (
        "split bearer",
        r##"{"mcpServers":{"s":{"command":"npx","args":["--header","Authorization:","Bearer","hunter2"]}}}"##,
    ),
    ("key as value", r##"{"mcpServers":{"s":{"command":"x","env":{"API_KEY": "hunter2": "x"}}}}"##),
    ("args object", r##"{"mcpServers":{"s":{"command":"x","args":{"type":"hunter2"}}}}"##),
    ("timeout word", r##"{"mcpServers":{"s":{"command":"x","timeout":"hunter2"}}}"##),
];

#[test]
fn no_credential_shows_wherever_it_was_written() {
    let mut leaks = Vec::new();
    for (what, text) in TEXTS {
        let shown = invariants::everything_shown(&config::parse("mcp.json", text));
        if let Some(line) = shown.lines().find(|line| line.to_lowercase().contains("hunter2")) {
            leaks.push(format!("{what}: {line}"));
        }
    }
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}

#[test]
fn a_key_pasted_over_several_lines_is_one_mistake_and_does_not_show() {
    let text = "{ \"mcpServers\": {\n \"first\": { \"command\": \"x\" },\n \"a\": { \"command\": \"x\", \"env\": { \"KEY\": \"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj=\n-----END PRIVATE KEY-----\\n\"\n } },\n \"other\": { \"command\": \"y\" }\n} }";
    let loaded = config::parse("mcp.json", text);
    let shown = invariants::everything_shown(&loaded);
    assert!(!shown.contains("MIIE") && !shown.contains("BKcw"), "{shown}");
    assert_eq!(loaded.diagnostics.len(), 1, "{shown}");
    assert_eq!(loaded.diagnostics[0].server.as_ref().unwrap().as_str(), "a");
    let usable: Vec<_> = loaded.config.servers().map(|server| server.name.as_str()).collect();
    assert_eq!(usable, ["first", "other"]);
}

#[test]
fn debug_output_of_options_has_no_secrets() {
    let options = config::LoadOptions {
        overrides: Some(config::Overrides::Text("Hunter2".to_owned())),
        ..config::LoadOptions::default()
    };
    assert!(!format!("{options:?}").contains("Hunter2"));
}

#[test]
fn a_configuration_in_the_place_of_a_path_does_not_show() {
    struct Nothing;
    impl config::Environment for Nothing {
        fn variable(&self, name: &str) -> Option<std::ffi::OsString> {
            (name == "TRUNKLINE_CONFIG").then(|| r#"{"env":{"A":"hunter2"}}"#.into())
        }
        fn read(&self, _: &std::path::Path) -> std::io::Result<Vec<u8>> {
            Err(std::io::ErrorKind::NotFound.into())
        }
    }
    let options = config::LoadOptions {
        places: config::SearchPath::trunkline(None),
        ..config::LoadOptions::default()
    };
    let loaded = config::load(&Nothing, &options);
    assert!(!invariants::everything_shown(&loaded).contains("hunter2"));
}

#[test]
fn long_keys_in_deep_brackets_cost_nothing_extra() {
    let text = format!("{{\"mcpServers\":{{}},\"{}\":{}", "k".repeat(100_000), "[".repeat(100_000));
    assert!(config::parse("x", &text).has_errors(false));
    invariants::everything_shown(&config::parse("x", &text));
}
