//! CON-16: Trunkline never starts itself recursively, neither as a process nor by its own URL.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use trunkline::config::MAX_NESTED_PROCESSES;

use crate::gateway::{Serving, tools_at};
use crate::listening::free_port;
use crate::run::{Folder, Run};
use crate::serving::demo;

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
