//! CON-16: Trunkline never starts itself recursively, neither as a process nor by its own URL.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use trunkline::config::MAX_NESTED_PROCESSES;

use crate::serve_http::demo;
use crate::support::gateway::{Serving, post, tools_at};
use crate::support::listening_server::free_port;
use crate::support::processes::{LONGEST_START, wait_until};
use crate::support::program::{Folder, Run};

/// Processes after which the script refuses to start another one, whatever the program does.
const HARD_STOP: usize = 6;

/// Processes per start of a server that ends at once: one for each protocol era.
const MAX_STARTS: usize = 2;

/// The entry of the README, with a `trunkline` on PATH that counts its starts.
#[test]
fn the_entry_for_clients_in_a_discovered_file_does_not_start_itself() {
    let wrapper = format!(
        "#!/bin/sh\necho started >> starts.txt\n\
         if [ $(wc -l < starts.txt) -gt {HARD_STOP} ]; then exit 1; fi\n\
         exec {} \"$@\"\n",
        env!("CARGO_BIN_EXE_trunkline")
    );
    let entry = json!({ "command": "trunkline", "args": ["serve", "--stdio"] });
    let config = json!({ "mcpServers": { "trunkline": entry, "words": demo("words", "beside") } });
    let folder = Folder::new().file(".mcp.json", config.to_string()).file("bin/trunkline", wrapper);
    let program = folder.project().join("bin/trunkline");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let run = folder.finish(folder.command(&["tools"]).env("PATH", &path));
    assert!(starts(&folder) <= MAX_STARTS, "{} starts: {run}", starts(&folder));
    assert!(run.messages.contains("server `trunkline`"), "{run}");
    assert!(run.messages.contains("it would start itself without end"), "{run}");
    assert!(run.messages.contains("remove the server that runs `trunkline` from it"), "{run}");
    assert!(run.output.contains("words_"), "{run}");
}

/// A server that runs the program with a configuration, through a script that counts its starts.
fn nested(config: &str) -> Value {
    nested_by("exec", config)
}

/// The same, with the command that the shell uses to run the program.
fn nested_by(runner: &str, config: &str) -> Value {
    let script = format!(
        "echo started >> starts.txt\n\
         if [ $(wc -l < starts.txt) -gt {HARD_STOP} ]; then exit 1; fi\n\
         {runner} {} serve --stdio --config {config}",
        env!("CARGO_BIN_EXE_trunkline")
    );
    json!({ "command": "sh", "args": ["-c", script] })
}

fn starts(folder: &Folder) -> usize {
    fs::read_to_string(folder.project().join("starts.txt")).map_or(0, |text| text.lines().count())
}

fn tools(folder: &Folder, config: &str) -> Run {
    let mut command = folder.command(&["tools", "--config", config, "--verbose"]);
    folder.finish(command.env("PATH", std::env::var_os("PATH").unwrap()))
}

#[test]
fn a_configuration_does_not_start_itself_and_its_neighbours_are_there() {
    let servers = json!({ "me": nested("mcp.json"), "words": demo("words", "neighbour") });
    let folder = Folder::new().file("mcp.json", json!({ "mcpServers": servers }).to_string());
    let run = tools(&folder, "mcp.json");
    assert!(starts(&folder) <= MAX_STARTS, "{run}");
    assert!(run.messages.contains("it would start itself without end"), "{run}");
    assert!(run.messages.contains("mcp.json"), "{run}");
    assert!(run.output.contains("words_"), "{run}");
}

/// Regression: behind a proxy without inherited variables, or `env -i`, it started itself
/// recursively.
#[cfg(target_os = "linux")]
#[test]
fn a_configuration_is_recognised_without_the_variable() {
    let cleared = "env -i PATH=\"$PATH\" HOME=\"$HOME\"";
    for runner in [format!("exec {cleared}"), format!("{cleared} sh -c '\"$@\"; exit $?' -")] {
        let servers = json!({
            "me": nested_by(&runner, "mcp.json"), "words": demo("words", "neighbour"),
        });
        let folder = Folder::new().file("mcp.json", json!({ "mcpServers": servers }).to_string());
        let run = tools(&folder, "mcp.json");
        assert!(starts(&folder) <= MAX_STARTS, "{runner}: {run}");
        assert!(run.messages.contains("server `me`"), "{runner}: {run}");
        assert!(run.messages.contains("it would start itself without end"), "{runner}: {run}");
        assert!(run.output.contains("words_"), "{runner}: {run}");
    }
}

/// A configuration that is copied before each start is always another one: only the depth limits
/// it.
#[cfg(target_os = "linux")]
#[test]
fn processes_above_are_counted_without_the_variable() {
    let script = format!(
        "n=$(cat depth.txt 2>/dev/null || echo 0)\n\
         if [ $n -gt 20 ]; then exit 1; fi\n\
         echo $((n + 1)) > depth.txt\n\
         cp mcp.json copy$n.json\n\
         exec env -i PATH=\"$PATH\" HOME=\"$HOME\" {} serve --stdio --config copy$n.json",
        env!("CARGO_BIN_EXE_trunkline")
    );
    let entry = json!({ "command": "sh", "args": ["-c", script] });
    let config = json!({ "mcpServers": { "next": entry } });
    let folder = Folder::new().file("mcp.json", config.to_string());
    let run = tools(&folder, "mcp.json");
    let depth = fs::read_to_string(folder.project().join("depth.txt")).unwrap();
    let depth: usize = depth.trim().parse().unwrap();
    assert!(depth <= MAX_NESTED_PROCESSES + MAX_STARTS, "{depth} starts: {run}");
}

/// Regression: a link to the file counted as another file, and one level too many was started.
#[test]
fn a_link_to_a_configuration_is_the_same_configuration() {
    let link = |folder: &Folder, is_hard: bool| {
        let [file, link] = ["mcp.json", "link.json"].map(|name| folder.project().join(name));
        match is_hard {
            true => fs::hard_link(file, link),
            false => std::os::unix::fs::symlink(file, link),
        }
    };
    for is_hard in [false, true] {
        let servers = json!({ "me": nested("link.json"), "words": demo("words", "neighbour") });
        let folder = Folder::new().file("mcp.json", json!({ "mcpServers": servers }).to_string());
        link(&folder, is_hard).unwrap();
        let run = tools(&folder, "mcp.json");
        assert!(starts(&folder) <= MAX_STARTS, "{is_hard}: {run}");
        assert!(run.messages.contains("server `me`"), "{is_hard}: {run}");
        assert!(run.messages.contains("it would start itself without end"), "{is_hard}: {run}");
        assert!(run.output.contains("words_"), "{is_hard}: {run}");
    }
}

#[test]
fn two_configurations_do_not_start_each_other_without_end() {
    let with = |config: &str| json!({ "mcpServers": { "other": nested(config) } }).to_string();
    let folder = Folder::new().file("a.json", with("b.json")).file("b.json", with("a.json"));
    let run = tools(&folder, "a.json");
    assert!(starts(&folder) <= 1 + MAX_STARTS, "{run}");
}

#[test]
fn another_configuration_may_be_nested() {
    let inner = json!({ "mcpServers": { "words": demo("words", "inner") } }).to_string();
    let outer = json!({ "mcpServers": { "inner": nested("inner.json") } }).to_string();
    let folder = Folder::new().file("inner.json", inner).file("outer.json", outer);
    let run = tools(&folder, "outer.json");
    assert!(run.output.contains("inner_words_"), "{run}");
    assert_eq!(starts(&folder), 1, "{run}");
}

#[test]
fn a_gateway_finds_itself_behind_its_own_address() {
    let address = format!("127.0.0.1:{}", free_port());
    let itself = json!({ "type": "http", "url": format!("http://{address}/mcp") });
    let servers = json!({ "itself": itself, "words": demo("words", "beside") });
    let config = json!({ "mcpServers": servers, "timeouts": { "grace": "20s" } });
    let folder = Folder::new().file("trunkline.json", config.to_string());
    let gateway = Serving::start_with(&folder, &["--listen", &address]);
    let names = tools_at(&folder, gateway.url(), None);
    assert!(names.iter().any(|name| name.starts_with("words_")), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("itself_")), "{names:?}");
    gateway.wait_for("leads back to the gateway");
}

/// Gateways in a ring: each has a server of its own, and the URL of the next gateway.
struct Ring {
    gateways: Vec<(char, Serving, Folder)>,
}

impl Ring {
    /// Starts gateways with these names; an open ring is a chain.
    fn start(names: &str, is_closed: bool) -> Self {
        let ports: Vec<_> = names.chars().map(|name| (name, free_port())).collect();
        let next = ports.iter().cycle().skip(1).take(ports.len());
        let start = |((name, port), (next, next_port)): (&(char, u16), &(char, u16))| {
            let mut servers = json!({ "words": demo("words", &name.to_string()) });
            if is_closed || next != &ports[0].0 {
                let url = format!("http://127.0.0.1:{next_port}/mcp");
                servers[next.to_string()] = json!({ "type": "http", "url": url });
            }
            let config = json!({ "mcpServers": servers, "timeouts": { "grace": "20s" } });
            let folder = Folder::new().file("trunkline.json", config.to_string());
            let listen = format!("127.0.0.1:{port}");
            let gateway = Serving::start_with(&folder, &["--listen", &listen]);
            (*name, gateway, folder)
        };
        Self { gateways: ports.iter().zip(next).map(start).collect() }
    }

    fn tools(&self, index: usize) -> Vec<String> {
        let (_, gateway, folder) = &self.gateways[index];
        tools_at(folder, gateway.url(), None)
    }

    /// Waits until a gateway of the ring has logged a text.
    fn wait_for(&self, text: &str) {
        wait_until(text, LONGEST_START, || {
            self.gateways.iter().any(|(_, gateway, _)| gateway.messages().contains(text))
        });
    }

    /// Lists the tools of all gateways several times. No list may contain the gateway's own tools.
    fn assert_finite(&self) {
        for round in 0..4 {
            for (index, (name, ..)) in self.gateways.iter().enumerate() {
                let tools = self.tools(index);
                assert!(tools.iter().any(|tool| tool.starts_with("words_")), "{tools:?}");
                let is_own = |tool: &&String| format!("_{tool}").contains(&format!("_{name}_"));
                let own: Vec<_> = tools.iter().filter(is_own).collect();
                assert!(own.is_empty(), "round {round} at {name}: {own:?}");
            }
        }
    }
}

/// Regression: 1,618 tools after four minutes, with names such as `b_a_b_a_b_a_words_shout`.
#[test]
fn two_gateways_that_use_each_other_are_found() {
    let ring = Ring::start("ab", true);
    ring.tools(0);
    ring.wait_for("leads back to");
    ring.assert_finite();
}

#[test]
fn a_ring_of_three_gateways_is_found() {
    let ring = Ring::start("abc", true);
    ring.tools(0);
    ring.wait_for("leads back to");
    ring.assert_finite();
}

#[test]
fn three_gateways_behind_one_another_work() {
    let chain = Ring::start("abc", false);
    let tools = chain.tools(0);
    for prefix in ["words_", "b_words_", "b_c_words_"] {
        assert!(tools.iter().any(|tool| tool.starts_with(prefix)), "{prefix}: {tools:?}");
    }
    let (_, gateway, folder) = &chain.gateways[0];
    let entry = json!({ "type": "http", "url": gateway.url(), "prefix": "" });
    let config = json!({ "mcpServers": { "a": entry } }).to_string();
    let mut command = folder.bare_command(&["call", "b_c_words_shout", "--arg", "text=hello"]);
    command.env("TRUNKLINE_CACHE", "off").env("TRUNKLINE_CONFIG_JSON", config).current_dir("/");
    let run = folder.finish(&mut command);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.output.contains("HELLO"), "{run}");
}

/// A gateway with a child process that connects to the URL of the gateway.
#[test]
fn a_gateway_behind_its_own_process_is_found() {
    let address = format!("127.0.0.1:{}", free_port());
    let child = json!({ "mcpServers": {
        "a": { "type": "http", "url": format!("http://{address}/mcp") },
        "words": demo("words", "child"),
    } });
    let servers = json!({ "child": nested("child.json"), "words": demo("words", "beside") });
    let config = json!({ "mcpServers": servers, "timeouts": { "grace": "20s" } });
    let folder = Folder::new()
        .file("trunkline.json", config.to_string())
        .file("child.json", child.to_string());
    let gateway = Serving::start_with(&folder, &["--listen", &address]);
    for _ in 0..4 {
        let names = tools_at(&folder, gateway.url(), None);
        for prefix in ["words_", "child_words_"] {
            assert!(names.iter().any(|name| name.starts_with(prefix)), "{prefix}: {names:?}");
        }
        assert!(!names.iter().any(|name| name.contains("_a_")), "{names:?}");
    }
}

/// Regression: one read led to 2,052 connections, ended only by the limit of waiting calls.
#[test]
fn a_read_of_a_uri_without_a_list_ends_in_a_ring() {
    let ports = [free_port(), free_port()];
    let start = |own: u16, other: u16| {
        let url = format!("http://127.0.0.1:{other}/mcp");
        let config = json!({ "mcpServers": { "other": { "type": "http", "url": url } } });
        let folder = Folder::new().file("trunkline.json", config.to_string());
        let listen = format!("127.0.0.1:{own}");
        (Serving::start_with(&folder, &["--listen", &listen]), folder)
    };
    let gateways = [start(ports[0], ports[1]), start(ports[1], ports[0])];
    let read = r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x://y","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "resources/read"),
        ("mcp-name", "x://y"),
    ];
    for _ in 0..3 {
        for (gateway, _) in &gateways {
            let (_, answer) = post(gateway.url(), &headers, read);
            assert!(answer.contains("\"error\""), "{answer}");
            assert!(!answer.contains("too many calls"), "{answer}");
        }
    }
}
