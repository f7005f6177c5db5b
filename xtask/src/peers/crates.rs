//! The peers written in Rust. Building them takes minutes, so only the benchmark asks for them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::Peer;
use crate::command::{output_of, run};

const LOCK: &str = "crates.txt";

pub(super) const PEER: Peer = Peer {
    name: "cargo",
    what: "gateways written in Rust, built in release mode",
    why: "the benchmark compares with them in the same run",
    locks: &[LOCK],
    find_tools,
    install,
};

fn find_tools() -> Result<String> {
    output_of(Command::new("rustc").arg("--version"), "install Rust with rustup")
}

fn install(from: &Path, into: &Path) -> Result<()> {
    let pins =
        fs::read_to_string(from.join(LOCK)).with_context(|| format!("cannot read {LOCK}"))?;
    for (name, version) in pins.lines().filter_map(parse) {
        run(Command::new("cargo")
            .args(["install", "--locked", "--version", version, name])
            .arg("--root")
            .arg(into)
            .arg("--target-dir")
            .arg(into.join("target")))?;
    }
    // Intermediate files are larger than all peers together.
    fs::remove_dir_all(into.join("target")).context("cannot remove intermediate files")
}

/// Name and version of a line; comments have none.
fn parse(line: &str) -> Option<(&str, &str)> {
    if line.starts_with('#') { None } else { line.split_once(' ') }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_name_and_a_version() {
        assert_eq!(parse("mcp-proxy 0.6.0"), Some(("mcp-proxy", "0.6.0")));
        assert_eq!(parse("# a comment"), None);
        assert_eq!(parse(""), None);
    }
}
