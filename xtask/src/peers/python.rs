//! The peers written in Python.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::Peer;
use crate::command::{output_of, run};

/// Prints the version, or exits with the missing part. Debian does not include `ensurepip`.
const PROBE: &str = "
import sys
if sys.version_info < (3, 11):
    sys.exit('found Python %d.%d' % sys.version_info[:2])
import venv, ensurepip
print('python %d.%d' % sys.version_info[:2])
";

pub(super) const PEER: Peer = Peer {
    name: "python",
    what: "the Python SDK of MCP, FastMCP, the jsonschema validator and schemathesis",
    why: "our servers and clients must understand those that others wrote",
    locks: &["requirements.txt"],
    find_tools,
    install,
};

/// A peer of the benchmark, apart from the others because it needs the first generation of the SDK.
pub(super) const PROXY: Peer = Peer {
    name: "python-proxy",
    what: "the Python package mcp-proxy",
    why: "the benchmark compares with it in the same run",
    locks: &["proxy-requirements.txt"],
    find_tools,
    install: install_proxy,
};

fn find_tools() -> Result<String> {
    let advice = "install Python 3.11 or later with its venv module (Debian and Ubuntu: \
                  `apt install python3 python3-venv`)";
    output_of(Command::new("python3").args(["-c", PROBE]), advice)
}

fn install(from: &Path, into: &Path) -> Result<()> {
    install_from(&from.join("requirements.txt"), into)
}

fn install_proxy(from: &Path, into: &Path) -> Result<()> {
    install_from(&from.join("proxy-requirements.txt"), into)
}

fn install_from(requirements: &Path, into: &Path) -> Result<()> {
    run(Command::new("python3").args(["-m", "venv"]).arg(into))?;
    run(Command::new(into.join("bin/python"))
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(["--require-hashes", "--no-deps", "-r"])
        .arg(requirements))
}
