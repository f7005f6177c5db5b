//! The peers written in JavaScript.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::Peer;
use crate::command::{output_of, run};

const LOCKS: &[&str] = &["package.json", "package-lock.json"];

pub(super) const PEER: Peer = Peer {
    name: "npm",
    what: "TypeScript clients, servers and the conformance suite of MCP, an OAuth server, and Ajv",
    why: "our servers and clients must understand those that others wrote",
    locks: LOCKS,
    find_tools,
    install,
};

fn find_tools() -> Result<String> {
    let advice = "install Node.js 20 or later with npm, from https://nodejs.org or your system";
    output_of(Command::new("npm").arg("--version"), advice)?;
    let node = output_of(Command::new("node").arg("--version"), advice)?;
    Ok(format!("node {node}"))
}

fn install(from: &Path, into: &Path) -> Result<()> {
    for lock in LOCKS {
        fs::copy(from.join(lock), into.join(lock))
            .with_context(|| format!("cannot copy peers/{lock}"))?;
    }
    // Install scripts would run code of a hundred packages that the tests only import.
    run(Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(into))
}
