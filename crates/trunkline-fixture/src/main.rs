//! An MCP server for tests, built on `rmcp` to share no code with the library, with everything that
//! the conformance suite requires of a server.

#![expect(
    deprecated,
    reason = "sampling, roots, logging and subscribing are going out of the protocol, but not yet"
)]

mod eras;
mod profile;
mod world;
mod catalog;
mod call;
mod content;
mod tools;
mod prompts;
mod resources;
mod server;
mod stdio;
mod http;

use std::net::SocketAddr;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use tokio::runtime::Builder;

use eras::ServedEras;
use profile::Profile;

/// An MCP server for tests.
#[derive(Parser)]
struct Arguments {
    /// Transport.
    transport: TransportKind,
    /// Address to listen on, for `http`; the first line of the output is the URL.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Supported protocol eras.
    #[arg(long, default_value = "both")]
    generation: ServedEras,
    /// Behaviour where servers differ.
    #[arg(long, default_value = "strict")]
    profile: Profile,
}

#[derive(Clone, Copy, ValueEnum)]
enum TransportKind {
    Stdio,
    Http,
}

fn main() -> Result<()> {
    let Arguments { transport, listen, generation, profile } = Arguments::parse();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        match transport {
            TransportKind::Stdio => stdio::serve(generation, profile).await,
            TransportKind::Http => http::serve(listen, generation, profile).await,
        }
    });
    // A blocking read of stdin must not delay the exit.
    runtime.shutdown_background();
    served
}
