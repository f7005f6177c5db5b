//! CFG-1, CFG-2, CFG-3: entries of every host are interpreted as that host does.

use std::time::Duration;

use trunkline::config::{
    self, Access, Backoff, Config, LoadedConfig, RemoteTransport, Restart, Server, Severity,
    StartPolicy, Stdio, ToolMode, Transport, Trust,
};
use trunkline_testkit::samples::{self, Sample};

fn load(sample: Sample) -> Config {
    usable(config::parse(sample.file, sample.text))
}

fn parse(text: &str) -> Config {
    usable(config::parse("mcp.json", text))
}

fn usable(loaded: LoadedConfig) -> Config {
    let report: String =
        loaded.diagnostics.iter().map(|found| found.render(config::ColorStyle::Plain)).collect();
    assert!(!loaded.has_errors(false), "{report}");
    loaded.config
}

fn server<'c>(config: &'c Config, name: &str) -> &'c Server {
    config.server(name).unwrap_or_else(|| panic!("no server {name}"))
}

fn stdio(server: &Server) -> &Stdio {
    match &server.transport {
        Transport::Stdio(stdio) => stdio,
        Transport::Remote(_) => panic!("{} is remote", server.name),
    }
}

/// The transport and the URL of a remote server.
fn remote(server: &Server) -> (RemoteTransport, String) {
    match &server.transport {
        Transport::Remote(remote) => (remote.protocol, remote.url.redacted()),
        Transport::Stdio(_) => panic!("{} is a program", server.name),
    }
}

fn command_line(server: &Server) -> Vec<&str> {
    let stdio = stdio(server);
    let words = std::iter::once(&stdio.command).chain(&stdio.args);
    words.map(|word| word.as_literal().unwrap()).collect()
}

#[test]
fn samples_of_every_host_have_the_servers_their_hosts_see() {
    for sample in samples::ALL {
        let loaded = config::parse(sample.file, sample.text);
        let bad = loaded.diagnostics.iter().filter(|found| found.severity == Severity::Error);
        assert_eq!(bad.count(), 0, "{}: {:?}", sample.file, loaded.diagnostics);
        let names: Vec<_> = loaded.config.servers().map(|server| server.name.as_str()).collect();
        assert_eq!(names, sample.servers, "{}", sample.file);
    }
}

#[test]
fn boocode() {
    let config = load(samples::BOOCODE);
    let context7 = server(&config, "context7");
    let (protocol, url) = remote(context7);
    assert_eq!(protocol, RemoteTransport::Streamable);
    assert_eq!(url, "https://mcp.context7.com/mcp");
    assert!(context7.enabled);
    let codecontext = server(&config, "codecontext");
    assert_eq!(command_line(codecontext), ["/usr/local/bin/codecontext", "--mcp"]);
    let (name, value) = &stdio(codecontext).env[0];
    assert_eq!((&**name, value.as_ref().unwrap().as_literal()), ("WORKSPACE", Some("/opt")));
    assert!(!codecontext.enabled);
}

#[test]
fn toolloop() {
    let config = load(samples::TOOLLOOP);
    let repo = server(&config, "repo");
    assert_eq!(repo.trust, Trust::Trusted);
    assert_eq!(remote(repo).0, RemoteTransport::Streamable);
    let (name, bundle) = config.bundles().next().unwrap();
    assert_eq!((name.as_str(), bundle.server.as_str()), ("repoRead", "repo"));
    assert_eq!(bundle.mode, ToolMode::Direct);
    assert_eq!(bundle.tools.allow, Some(vec!["readFile".into(), "search".into()]));
}

#[test]
fn toolloop_transports_of_all_kinds() {
    let config = parse(
        r#"{ "servers": {
        "sse": { "trust": "untrusted", "allowTools": ["a"],
                 "transport": { "type": "sse", "url": "http://x/sse", "authProviderId": "corp" } },
        "stdio": { "transport": { "type": "stdio", "command": "srv", "args": ["-v"], "cwd": "/w",
                                  "env": { "A": "b" } } } } }"#,
    );
    let sse = server(&config, "sse");
    assert_eq!(remote(sse).0, RemoteTransport::Sse);
    assert_eq!(sse.auth_provider.as_deref(), Some("corp"));
    assert_eq!(sse.trust, Trust::Untrusted);
    let program = server(&config, "stdio");
    assert_eq!(command_line(program), ["srv", "-v"]);
    assert_eq!(stdio(program).cwd.as_ref().unwrap().as_literal(), Some("/w"));
}

#[test]
fn dispatch() {
    let config = load(samples::DISPATCH);
    assert_eq!(command_line(server(&config, "freecad")), ["uvx", "freecad-mcp"]);
    assert_eq!(remote(server(&config, "remote-freecad")).0, RemoteTransport::Streamable);
    let config = load(samples::DISPATCH_OPENCODE);
    assert_eq!(command_line(server(&config, "freecad")), ["uvx", "freecad-mcp"]);
}

#[test]
fn opencode_in_both_shapes() {
    let config = load(samples::OPENCODE);
    let fs = server(&config, "fs");
    assert_eq!(command_line(fs), ["npx", "-y", "@modelcontextprotocol/server-everything"]);
    assert_eq!(stdio(fs).env[0].1.as_ref().unwrap().masked(), "{env:K}");
    let timeouts = fs.behaviour.timeouts;
    let bound = Duration::from_secs(30);
    assert_eq!((timeouts.call, timeouts.handshake, timeouts.list), (bound, bound, bound));
    assert_eq!(remote(server(&config, "jira")).0, RemoteTransport::Detect);

    let config = load(samples::OPENCODE_V2);
    let fs = server(&config, "fs").behaviour.timeouts;
    assert_eq!((fs.handshake, fs.call), (Duration::from_secs(20), Duration::from_secs(40)));
    let off = server(&config, "off");
    assert!(!off.enabled);
    assert_eq!(off.behaviour.timeouts.call, Duration::from_secs(5));
}

#[test]
fn an_opencode_server_may_be_called_servers() {
    let config = parse(r#"{ "mcp": { "servers": { "type": "local", "command": ["srv"] } } }"#);
    assert_eq!(command_line(server(&config, "servers")), ["srv"]);
}

#[test]
fn zed_in_both_shapes() {
    let config = load(samples::ZED);
    assert_eq!(remote(server(&config, "remote")).0, RemoteTransport::Streamable);
    let config = load(samples::ZED_OLD);
    let object = server(&config, "object");
    assert_eq!(command_line(object), ["npx", "-y", "srv"]);
    assert_eq!(&*stdio(object).env[0].0, "K");
    assert_eq!(object.behaviour.timeouts.call, Duration::from_secs(90));
    let custom = server(&config, "custom");
    assert!(!custom.enabled);
    assert_eq!(custom.behaviour.timeouts.call, Duration::from_secs(30));
}

#[test]
fn addresses_under_every_key() {
    assert_eq!(remote(server(&load(samples::WINDSURF), "remote")).0, RemoteTransport::Detect);
    assert_eq!(remote(server(&load(samples::CURSOR), "remote")).0, RemoteTransport::Detect);
    assert_eq!(remote(server(&load(samples::MCPORTER), "linear")).0, RemoteTransport::Detect);
    let config = parse(r#"{ "mcpServers": { "g": { "httpUrl": "https://example.com/mcp" } } }"#);
    assert_eq!(remote(server(&config, "g")).0, RemoteTransport::Streamable);
}

#[test]
fn every_word_for_a_transport() {
    for (word, protocol) in [
        ("http", RemoteTransport::Streamable),
        ("streamableHttp", RemoteTransport::Streamable),
        ("streamable-http", RemoteTransport::Streamable),
        ("streamable_http", RemoteTransport::Streamable),
        ("remote", RemoteTransport::Detect),
        ("sse", RemoteTransport::Sse),
    ] {
        for key in ["type", "transport", "transportType"] {
            let text =
                format!(r#"{{"mcpServers":{{"s":{{"{key}":"{word}","url":"http://x/"}}}}}}"#);
            assert_eq!(remote(server(&parse(&text), "s")).0, protocol, "{key} {word}");
        }
    }
    for word in ["stdio", "local"] {
        let text = format!(r#"{{"servers":{{"s":{{"type":"{word}","command":"x"}}}}}}"#);
        assert_eq!(command_line(server(&parse(&text), "s")), ["x"]);
    }
}

#[test]
fn tool_lists_under_every_key() {
    let windsurf = load(samples::WINDSURF);
    assert_eq!(server(&windsurf, "github").tools.deny, ["delete_repo".into()]);
    assert_eq!(server(&load(samples::ROO), "srv").tools.deny, ["drop".into()]);
    assert_eq!(server(&load(samples::GEMINI), "py").tools.allow, Some(vec!["search".into()]));
    assert_eq!(
        server(&load(samples::MCPORTER), "linear").tools.allow,
        Some(vec!["list_issues".into()])
    );
    assert_eq!(server(&load(samples::COPILOT), "srv").tools.allow, None);
}

#[test]
fn a_timeout_is_in_the_unit_of_the_host_it_was_written_for() {
    let call = |sample, name| server(&load(sample), name).behaviour.timeouts.call;
    assert_eq!(call(samples::CLINE, "srv"), Duration::from_secs(60));
    assert_eq!(call(samples::ROO, "srv"), Duration::from_secs(60));
    assert_eq!(call(samples::GEMINI, "py"), Duration::from_secs(15));
    assert_eq!(call(samples::AMAZON_Q, "git"), Duration::from_secs(120));
    let text = r#"{ "mcpServers": { "s": { "command": "x", "timeout": "90s" } } }"#;
    assert_eq!(server(&parse(text), "s").behaviour.timeouts.call, Duration::from_secs(90));
}

#[test]
fn gemini_switches_servers_in_another_place() {
    let config = parse(
        r#"{ "mcpServers": { "a": { "command": "x" }, "b": { "command": "x" }, "c": { "command": "x" } },
             "mcp": { "allowed": ["a", "b"], "excluded": ["b"] } }"#,
    );
    let enabled: Vec<_> = config.servers().map(|server| server.enabled).collect();
    assert_eq!(enabled, [true, false, false]);
}

#[test]
fn null_removes_a_variable_and_numbers_are_taken_as_text() {
    let config = parse(
        r#"{ "servers": { "s": { "command": "x", "env": { "A": null, "B": 1.50, "C": true } } } }"#,
    );
    let env = &stdio(server(&config, "s")).env;
    assert!(env[0].1.is_none());
    assert_eq!(env[1].1.as_ref().unwrap().as_literal(), Some("1.50"));
    assert_eq!(env[2].1.as_ref().unwrap().as_literal(), Some("true"));
}

#[test]
fn defaults_are_those_of_the_requirements() {
    let config = parse(r#"{ "mcpServers": { "s": { "command": "x" } } }"#);
    let server = server(&config, "s");
    let behaviour = &server.behaviour;
    assert!(server.enabled);
    assert_eq!(server.trust, Trust::Trusted);
    assert_eq!(behaviour.access, Access::ReadWrite);
    assert_eq!(behaviour.connect, StartPolicy::Lazy);
    assert_eq!(behaviour.restart, Restart::OnFailure(Backoff::default()));
    assert_eq!(behaviour.concurrency, None);
    assert_eq!(behaviour.idle_timeout, None);
    assert_eq!(behaviour.max_result_bytes, 5 * 1024 * 1024);
    assert_eq!(behaviour.timeouts.question, Duration::from_secs(600));
    assert_eq!(behaviour.timeouts.shutdown, Duration::from_secs(5));
    assert_eq!(behaviour.timeouts.grace, Duration::from_secs(2));
    assert_eq!(&*config.naming().separator, "_");
    assert_eq!(config.naming().max_length, 64);
    assert!(config.naming().describe_server);
}

#[test]
fn settings_hold_for_all_servers_and_can_differ_for_one() {
    let config = parse(
        r#"{ "access": "read-write", "connect": "eager", "separator": "__", "concurrency": 4,
             "restart": { "policy": "on-failure", "limit": 2, "delay": "1s" },
             "timeouts": { "call": "2m", "question": "1h", "grace": 0 }, "toolsTtlMs": 60000, "idleTimeout": "10m",
             "maxResultBytes": "1MiB",
             "mcpServers": {
               "plain": { "command": "x" },
               "own": { "command": "x", "access": "read-only-strict", "connect": "lazy",
                        "restart": "never", "timeouts": { "call": 1500 }, "concurrency": 1,
                        "maxResultBytes": 1000, "prefix": "" } } }"#,
    );
    let plain = &server(&config, "plain").behaviour;
    assert_eq!((plain.access, plain.connect), (Access::ReadWrite, StartPolicy::Eager));
    let Restart::OnFailure(backoff) = plain.restart else { panic!("not restarted") };
    assert_eq!((backoff.limit, backoff.delay), (2, Duration::from_secs(1)));
    assert_eq!(plain.timeouts.call, Duration::from_secs(120));
    assert_eq!(plain.timeouts.question, Duration::from_secs(3600));
    assert_eq!(plain.timeouts.grace, Duration::ZERO);
    assert_eq!(plain.tools_ttl, Duration::from_secs(60));
    assert_eq!(plain.idle_timeout, Some(Duration::from_secs(600)));
    assert_eq!((plain.concurrency, plain.max_result_bytes), (Some(4), 1024 * 1024));
    let own = server(&config, "own");
    assert_eq!(own.prefix.as_deref(), Some(""));
    assert_eq!(own.behaviour.access, Access::ReadOnlyStrict);
    assert_eq!(own.behaviour.restart, Restart::Never);
    assert_eq!(own.behaviour.timeouts.call, Duration::from_millis(1500));
    assert_eq!(own.behaviour.timeouts.grace, Duration::ZERO);
    assert_eq!(own.behaviour.max_result_bytes, 1000);
    assert_eq!(&*config.naming().separator, "__");
}

#[test]
fn agents_in_files_or_by_name() {
    let config = parse(r#"{ "agents": ["AGENTS.md", ".agents"] }"#);
    assert_eq!(config.agents().files, ["AGENTS.md".into(), ".agents".into()]);
    let config = parse(r#"{ "agents": "AGENTS.md" }"#);
    assert_eq!(config.agents().files, ["AGENTS.md".into()]);
    let config = parse(
        r#"{ "agents": { "list": { "tools": ["view_file", "!web_*"] }, "text": { "tools": "a, b" },
                         "map": { "tools": { "gh_*": false, "x": true } }, "all": {} } }"#,
    );
    let tools = |name: &str| {
        let tools = config.agents().named[name].tools.as_ref()?;
        Some(tools.iter().map(|it| it.pattern.as_str()).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(tools("list").as_deref(), Some("view_file !web_*"));
    assert_eq!(tools("text").as_deref(), Some("a b"));
    assert_eq!(tools("map").as_deref(), Some("!gh_* x"));
    assert_eq!(tools("all"), None);
}

#[test]
fn unknown_keys_are_kept_as_they_were_written() {
    let config = parse(
        r#"{ "mcpServers": { "s": { "command": "x", "custom": { "n": 12345678901234567890 } } } }"#,
    );
    let kept = &server(&config, "s").unknown[0];
    assert_eq!(&*kept.key, "custom");
    assert_eq!(kept.json.expose(), r#"{ "n": 12345678901234567890 }"#);
}

#[test]
fn the_settings_of_whole_hosts_are_understood() {
    let vscode = parse(
        r#"{ "mcp": { "inputs": [{ "id": "gh", "type": "promptString" }],
                      "servers": { "a": { "type": "http", "url": "https://x/", "headers": { "A": "${input:gh}" } } } } }"#,
    );
    assert!(vscode.server("a").is_some());
    let opencode = parse(r#"{ "mcp": { "timeout": { "startup": 1000 } } }"#);
    assert_eq!(opencode.servers().len(), 0);
    assert_eq!(opencode.defaults().timeouts.handshake, Duration::from_secs(1));
    let gemini =
        parse(r#"{ "mcpServers": { "a": { "command": "x" } }, "mcp": { "serverCommand": "y" } }"#);
    assert_eq!(gemini.servers().len(), 1);
}

#[test]
fn a_long_timeout_beside_cline_markers_is_in_milliseconds() {
    let text =
        r#"{ "mcpServers": { "a": { "command": "x", "autoApprove": ["r"], "timeout": 60000 } } }"#;
    assert_eq!(server(&parse(text), "a").behaviour.timeouts.call, Duration::from_secs(60));
}

#[test]
fn zed_fills_nothing_in() {
    let config = parse(
        r#"{ "context_servers": { "s": { "command": "sh", "args": ["-c", "echo ${x[0]}"] } } }"#,
    );
    assert_eq!(command_line(server(&config, "s")), ["sh", "-c", "echo ${x[0]}"]);
}
