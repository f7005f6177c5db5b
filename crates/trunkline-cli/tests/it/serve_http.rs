//! `trunkline serve` over HTTP: output, errors, and shutdown.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::gateway::{INITIALIZE, LISTEN, Serving, post, post_as, tools_at};
use crate::support::listening_server::free_port;
use crate::support::processes::{
    LONGEST_START, children, marked, marker, send, wait_until, wait_until_gone,
};
use crate::support::program::Folder;

/// A demo server with a marker on its processes.
pub(crate) fn demo(server: &str, marker: &str) -> Value {
    let program = env!("CARGO_BIN_EXE_trunkline");
    json!({ "command": program, "args": ["demo-server", server], "env": { "MARKER": marker } })
}

/// Both demo servers, two agents and a bundle.
fn both(marker: &str) -> Folder {
    let config = json!({
        "mcpServers": { "words": demo("words", marker), "numbers": demo("numbers", marker) },
        "agents": { "reader": { "tools": ["words_*"] }, "two words": { "tools": ["numbers_add"] } },
        "bundles": { "sums": { "serverId": "numbers", "mode": "direct", "allowTools": ["add"] } },
    });
    Folder::new().file("trunkline.json", config.to_string())
}

#[test]
fn endpoint_is_on_stdout_and_instructions_on_stderr() {
    let folder = both(&marker());
    let serving = Serving::start(&folder, &[]);
    let url = serving.url();
    assert!(url.starts_with("http://127.0.0.1:") && url.ends_with("/mcp"), "{url}");
    serving.wait_for("For the configuration of a client:");
    let sums = format!("{url}/bundles/sums");
    let other = format!("{url}/agents/two%20words");
    for part in [
        &format!("Serving 2 servers at {url}; Ctrl-C ends it."),
        &format!("agent reader: {url}/agents/reader"),
        &format!("agent two words: {other}"),
        &format!("bundle sums: {sums}"),
    ] {
        serving.wait_for(part);
    }
    let entry = format!(r#""trunkline": {{ "type": "http", "url": "{url}" }}"#);
    serving.wait_for(&entry);
    assert!(tools_at(&folder, url, None).contains(&"words_shout".to_owned()));
    assert_eq!(tools_at(&folder, &sums, None), ["numbers_add"]);
    assert_eq!(tools_at(&folder, &other, None), ["numbers_add"]);
}

#[test]
fn programs_get_one_object_with_all_addresses() {
    let folder = both(&marker());
    let serving = Serving::start(&folder, &["--format", "json", "--quiet"]);
    let json: Value = serde_json::from_str(&serving.line).unwrap();
    let url = json["url"].as_str().unwrap();
    assert_eq!(json["scopes"]["agents"]["reader"], format!("{url}/agents/reader"));
    assert_eq!(json["scopes"]["bundles"]["sums"], format!("{url}/bundles/sums"));
    assert_eq!(post(url, &[], INITIALIZE).0, 200);
    let (code, all) = serving.ended_by("TERM");
    assert_eq!((code, all.lines().count()), (Some(0), 1), "{all}");
}

#[test]
fn every_signal_that_asks_for_it_ends_it_well_with_its_servers() {
    for signal in ["INT", "TERM", "HUP"] {
        let marker = marker();
        let folder = both(&marker);
        let serving = Serving::start(&folder, &[]);
        assert!(!tools_at(&folder, serving.url(), None).is_empty());
        assert!(!marked(&marker).is_empty());
        let (code, all) = serving.ended_by(signal);
        assert_eq!(code, Some(0), "{all}");
        wait_until_gone(&marker);
    }
}

#[test]
fn servers_start_when_they_are_needed_unless_they_are_to_start_at_once() {
    let [eager, lazy] = [marker(), marker()];
    let mut at_once = demo("words", &eager);
    at_once["connect"] = json!("eager");
    let servers = json!({ "words": at_once, "numbers": demo("numbers", &lazy) });
    let config = json!({ "mcpServers": servers }).to_string();
    let folder = Folder::new().file("trunkline.json", config);
    let serving = Serving::start(&folder, &[]);
    wait_until("the eager server runs", LONGEST_START, || !marked(&eager).is_empty());
    assert_eq!(marked(&lazy), Vec::<String>::new());
    assert!(tools_at(&folder, serving.url(), None).contains(&"numbers_add".to_owned()));
    assert!(!marked(&lazy).is_empty());
}

#[test]
fn a_disabled_server_starts_no_process() {
    let mut disabled = demo("words", "never");
    disabled["connect"] = json!("eager");
    disabled["enabled"] = json!(false);
    let config = json!({ "mcpServers": { "off": disabled } }).to_string();
    let folder = Folder::new().file("trunkline.json", config);
    let serving = Serving::start(&folder, &[]);
    assert_eq!(post(serving.url(), &[], INITIALIZE).0, 200);
    assert_eq!(children(serving.process_id()), []);
}

#[test]
fn address_in_use_is_reported_with_a_hint() {
    let folder = Folder::new();
    let first = Serving::start(&folder, &[]);
    let address = first.url().split('/').nth(2).unwrap();
    let run = folder.run(&["serve", "--listen", address]);
    assert_eq!((run.code, run.output.as_str()), (1, ""), "{run}");
    assert!(run.messages.contains(&format!("cannot listen on {address}")), "{run}");
    assert!(run.messages.contains("`--listen 127.0.0.1:0` takes a port that is free"), "{run}");
}

#[test]
fn addresses_that_others_reach_are_refused_without_tokens() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[2001:db8::1]:0"] {
        let run = Folder::new().run(&["serve", "--listen", address]);
        assert_eq!((run.code, run.output.as_str()), (1, ""), "{run}");
        assert!(run.messages.contains("can be reached by others"), "{run}");
        assert!(run.messages.contains("--tokens"), "{run}");
    }
}

#[test]
fn invalid_address_is_reported_with_an_example() {
    let run = Folder::new().run(&["serve", "--listen", "everywhere"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.messages.contains("such as 127.0.0.1:7420"), "{run}");
    let folder = Folder::new();
    let serving = Serving::start_with(&folder, &["--listen", "localhost:0"]);
    assert!(serving.url().starts_with("http://127.0.0.1:"), "{}", serving.url());
}

#[test]
fn serve_without_servers_is_an_error() {
    let folder = Folder::new();
    let serving = Serving::start(&folder, &[]);
    serving.wait_for("No configuration found, so there are no servers.");
    serving.wait_for("Serving 0 servers");
    assert_eq!(tools_at(&folder, serving.url(), None), Vec::<String>::new());
    let folder = Folder::new().file("trunkline.json", r#"{ "mcpServers": {} }"#);
    let serving = Serving::start(&folder, &[]);
    serving.wait_for("Serving 0 servers");
    assert_eq!(post(serving.url(), &[], INITIALIZE).0, 200);
}

#[test]
fn problems_of_the_configuration_are_shown_and_the_rest_is_served() {
    let servers = json!({ "words": demo("words", &marker()), "broken": {} });
    let config = json!({ "mcpServers": servers }).to_string();
    let folder = Folder::new().file("trunkline.json", config);
    let serving = Serving::start(&folder, &["--access", "read-only"]);
    serving.wait_for("error[no-command-or-url]");
    assert_eq!(tools_at(&folder, serving.url(), None), ["words_count_words", "words_shout"]);
}

#[test]
fn serve_continues_when_stdout_is_closed() {
    let folder = Folder::new();
    let port = free_port();
    let mut command = folder.command(&["serve", "--listen", &format!(":{port}")]);
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop((process.stdout.take(), process.stderr.take()));
    wait_until("it listens", LONGEST_START, || TcpStream::connect(("127.0.0.1", port)).is_ok());
    assert_eq!(post(&format!("http://127.0.0.1:{port}/mcp"), &[], INITIALIZE).0, 200);
    send("TERM", process.id());
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

#[test]
fn foreign_hosts_and_origins_are_rejected_unless_allowed() {
    let folder = Folder::new();
    let options = ["--allow-host", "tools.example", "--allow-origin", "https://app.example"];
    let serving = Serving::start(&folder, &options);
    let status = |headers: &[(&str, &str)]| post(serving.url(), headers, INITIALIZE).0;
    assert_eq!(status(&[("origin", "https://app.example")]), 200);
    assert_eq!(status(&[("origin", "https://evil.example")]), 403);
    let elsewhere = |name: &str| post_as(serving.url(), name, INITIALIZE);
    assert_eq!(elsewhere("tools.example"), 200);
    assert_eq!(elsewhere("evil.example"), 403);
}

#[test]
fn subscription_is_completed_when_a_signal_ends_the_gateway() {
    let marker = marker();
    let serving = Serving::start(&both(&marker), &[]);
    let authority = serving.url().split('/').nth(2).unwrap();
    let mut stream = TcpStream::connect(authority).unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: subscriptions/listen\r\nContent-Length: {}\r\n\r\n{LISTEN}",
        LISTEN.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = BufReader::new(stream);
    let mut line = String::new();
    while !line.contains("subscriptions/acknowledged") {
        line.clear();
        assert!(answer.read_line(&mut line).unwrap() > 0, "it has ended");
    }
    assert_eq!(serving.ended_by("TERM").0, Some(0));
    let mut rest = String::new();
    answer.read_to_string(&mut rest).unwrap();
    assert!(rest.contains(r#""id":7,"result":{"resultType":"complete""#), "{rest}");
    wait_until_gone(&marker);
}
