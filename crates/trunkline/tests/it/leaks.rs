//! SEC-2: credentials written by hand in places where people write them, also by mistake.

use trunkline::config;
use trunkline_testkit::invariants;

/// Texts with `Hunter2` as the credential, by what is remarkable about them. Most were found by
/// somebody who tried to make one show.
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
fn options_and_what_comes_of_secrets_print_nothing() {
    let options = config::LoadOptions {
        overrides: Some(config::Overrides::Text("Hunter2".to_owned())),
        ..config::LoadOptions::default()
    };
    assert!(!format!("{options:?}").contains("Hunter2"));
}
