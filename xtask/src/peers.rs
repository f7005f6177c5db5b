//! Installs third-party programs for the tests from lock files into the build directory.

mod stamp;
mod npm;
mod python;
mod crates;
mod debian;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::output::{complain, say};
use crate::workspace::Workspace;
use stamp::Stamp;

/// The peers of one package manager.
struct Peer {
    /// The directory it is installed to, below [`directory`].
    name: &'static str,
    what: &'static str,
    why: &'static str,
    /// The files below `peers/` that determine the installation.
    locks: &'static [&'static str],
    /// Finds the tools for the installation; their versions become part of the stamp.
    find_tools: fn() -> Result<String>,
    /// Installs from the lock files in the first directory into the second, which is empty.
    install: fn(&Path, &Path) -> Result<()>,
}

const PEERS: &[Peer] = &[npm::PEER, python::PEER];

/// Peers that only the benchmark compares with.
const BENCH_PEERS: &[Peer] = &[npm::PEER, python::PEER, python::PROXY, crates::PEER];

/// The absolute directory of the peers; passed to the tests in `TRUNKLINE_PEERS`.
pub(crate) fn directory(workspace: &Workspace) -> PathBuf {
    workspace.target().join("peers")
}

/// Installs missing and outdated peers.
pub(crate) fn install(workspace: &Workspace) -> Result<()> {
    debian::install()?;
    debian::install_valgrind();
    let mut is_up_to_date = true;
    for peer in PEERS {
        let stamp = peer.stamp(workspace)?;
        if !stamp.is_current() {
            is_up_to_date = false;
            peer.reinstall(workspace, &stamp)?;
        }
    }
    if is_up_to_date {
        say("peers: up to date");
    }
    Ok(())
}

/// Installs the peers of the benchmark. One that cannot be installed does not stop the others: the reason is
/// left beside the peers, and becomes its row in the table.
pub(crate) fn install_for_bench(workspace: &Workspace) -> Result<()> {
    debian::install_for_bench();
    for peer in BENCH_PEERS {
        let failure = directory(workspace).join(format!("{}.failure", peer.name));
        let installed = peer.stamp(workspace).and_then(|stamp| {
            if stamp.is_current() { Ok(()) } else { peer.reinstall(workspace, &stamp) }
        });
        match installed {
            Ok(()) if failure.exists() => fs::remove_file(&failure)?,
            Ok(()) => {}
            Err(error) => {
                complain(&format!("peers: {error:#}"));
                fs::create_dir_all(directory(workspace))?;
                fs::write(&failure, error.root_cause().to_string())?;
            }
        }
    }
    Ok(())
}

/// Installs the tool that merges profiles, where Debian has it.
pub(crate) fn install_profile_tool() -> Result<()> {
    debian::install_profile_tool()
}

/// Fails unless every peer is installed according to its lock files.
pub(crate) fn require(workspace: &Workspace) -> Result<()> {
    debian::require()?;
    for peer in PEERS {
        if !peer.stamp(workspace)?.is_current() {
            bail!(
                "the {} peers are not installed or out of date; run `cargo xtask peers`",
                peer.name
            );
        }
    }
    Ok(())
}

impl Peer {
    fn stamp(&self, workspace: &Workspace) -> Result<Stamp> {
        let tools = (self.find_tools)()
            .with_context(|| format!("the tests need {}: {}", self.what, self.why))?;
        let locks = locks(workspace, self)?;
        Ok(Stamp::new(self.name, &tools, &directory(workspace), &locks))
    }

    /// Starts from an empty directory, so that an interrupted installation leaves nothing behind.
    fn reinstall(&self, workspace: &Workspace, stamp: &Stamp) -> Result<()> {
        let into = directory(workspace).join(self.name);
        say(&format!("peers: installing {} into {}", self.what, into.display()));
        say(&format!("       {}; done once, until peers/ changes", self.why));
        stamp.remove()?;
        if into.exists() {
            fs::remove_dir_all(&into)
                .with_context(|| format!("cannot remove {}", into.display()))?;
        }
        fs::create_dir_all(&into).with_context(|| format!("cannot create {}", into.display()))?;
        (self.install)(&workspace.join("peers"), &into).with_context(|| {
            format!(
                "cannot install {}; the output above says why. The first installation needs the \
                 network",
                self.what
            )
        })?;
        stamp.write()
    }
}

fn locks(workspace: &Workspace, peer: &Peer) -> Result<Vec<(String, String)>> {
    let read = |name: &&str| {
        let path = format!("peers/{name}");
        let text = fs::read_to_string(workspace.join(&path))
            .with_context(|| format!("cannot read {path}"))?;
        Ok((path, text))
    };
    peer.locks.iter().map(read).collect()
}
