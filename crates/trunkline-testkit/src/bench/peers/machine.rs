//! Description of the machine and of the versions that were compared.

use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

use trunkline_testkit::peers;

/// Lines that describe the machine: numbers of different machines are not comparable.
pub(crate) fn describe() -> Vec<(String, String)> {
    let line = |key: &str, value: Option<String>| {
        (key.to_owned(), value.unwrap_or_else(|| "unknown".to_owned()))
    };
    let processors = available_parallelism().map_or(0, usize::from);
    let model = field("/proc/cpuinfo", "model name");
    let memory = field("/proc/meminfo", "MemTotal");
    vec![
        line("processor", model.map(|model| format!("{processors} × {model}"))),
        line("memory", memory),
        line("kernel", read("/proc/sys/kernel/osrelease")),
        line(
            "system",
            field_of("/etc/os-release", "PRETTY_NAME", '=').map(|it| it.replace('"', "")),
        ),
        line("load before the run", read("/proc/loadavg")),
        line("rustc", first_line(Command::new("rustc").arg("--version"))),
        line("node", first_line(Command::new("node").arg("--version"))),
        line("python", first_line(Command::new("python3").arg("--version"))),
        line("peers", Some(versions().join(", "))),
    ]
}

fn read(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

fn field(path: &str, key: &str) -> Option<String> {
    field_of(path, key, ':')
}

fn field_of(path: &str, key: &str, separator: char) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.split_once(separator));
    value.map(|(_, value)| value.trim().to_owned())
}

fn first_line(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}

/// Installed versions of the peers.
fn versions() -> Vec<String> {
    let directory = peers::directory();
    let crates = fs::read_to_string(directory.join("cargo/.crates.toml")).unwrap_or_default();
    // A line is `"mcp-proxy 0.6.0 (registry…)" = ["mcp-proxy"]`.
    let crates = crates.lines().filter_map(|line| {
        let mut words = line.strip_prefix('"')?.split(' ');
        Some(format!("{} {} (crates.io)", words.next()?, words.next()?))
    });
    let packages = ["supergateway", "mcp-proxy", "mcporter"].into_iter().filter_map(|name| {
        let file = directory.join("npm/node_modules").join(name).join("package.json");
        let package: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(file).ok()?).ok()?;
        Some(format!("{name} {} (npm)", package["version"].as_str()?))
    });
    let python = [("python", "fastmcp"), ("python-proxy", "mcp-proxy")];
    let python = python.into_iter().filter_map(|(folder, name)| {
        let script = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))";
        let mut command = Command::new(directory.join(folder).join("bin/python"));
        Some(format!("{name} {} (PyPI)", first_line(command.args(["-c", script, name]))?))
    });
    crates.chain(packages).chain(python).collect()
}
