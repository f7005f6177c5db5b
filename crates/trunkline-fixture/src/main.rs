//! An MCP server to test against: on `rmcp`, so that it shares no code with what it tests, with
//! everything that the conformance suite asks a server for.

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
    /// How clients reach it.
    transport: TransportKind,
    /// Where to listen, for `http`; the first line of the output is the address.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Which generations of the protocol it speaks.
    #[arg(long, default_value = "both")]
    generation: ServedEras,
    /// How it behaves where servers differ.
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
    // Whoever still reads our input must not keep us from ending.
    runtime.shutdown_background();
    served
}
