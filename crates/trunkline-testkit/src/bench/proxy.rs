//! Runs the compared proxies between client and server: the gateway and the forwarder.

use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::{env, io};

use serde_json::{Value, json};
use tokio::net::unix::pipe::{Receiver, Sender};
use trunkline::config::{self, EmptyResolver};
use trunkline::connection::{ChildOptions, ConnectionOptions, HttpOptions};
use trunkline::host::{Host, HostOptions, WaitFor};
use trunkline::item::ItemKind;
use trunkline_gateway::{HttpService, Scope, client_capabilities, serve, serve_stream};

use crate::allocations::count_with_input;
use crate::forwarder;
use crate::host::{runtime, stdio_server};
use crate::server::{end_with_input, listener};

/// Argument that makes this program a proxy. It is followed by the proxy, the transport of clients,
/// and that of the server: `stdio`, or the port of an HTTP server.
pub(crate) const PROXY: &str = "--proxy";

/// The exposed name of the server's tool.
pub(crate) const TOOL: &str = "bench_text";

pub(crate) const GATEWAY: &str = "gateway";
pub(crate) const FORWARDER: &str = "forwarder";
pub(crate) const STDIO: &str = "stdio";
pub(crate) const HTTP: &str = "http";

/// Last argument of an HTTP proxy that prints the number of its allocations for each line of stdin.
pub(crate) const COUNTER: &str = "counter";

/// Runs a proxy until its stdin closes.
pub(crate) fn run(ways: &[&str]) -> io::Result<()> {
    let [which, front, back, rest @ ..] = ways else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    match (*front, rest) {
        (HTTP, [COUNTER]) => count_with_input(),
        (HTTP, _) => end_with_input(),
        _ => {}
    }
    let port = back.parse().ok();
    // Both run single-threaded, so that only their work differs.
    runtime().block_on(async {
        match (*which, *front, port) {
            (FORWARDER, STDIO, None) => {
                let (reader, writer) = streams()?;
                forwarder::stdio_to_stdio(reader, writer).await
            }
            (FORWARDER, HTTP, None) => forwarder::http_to_stdio(listener().await?).await,
            (FORWARDER, HTTP, Some(port)) => forwarder::http_to_http(listener().await?, port).await,
            (GATEWAY, STDIO, _) => {
                let (reader, writer) = streams()?;
                serve_stream(gateway_host(port).await, Scope::default(), reader, writer).await
            }
            (GATEWAY, HTTP, _) => {
                let service = HttpService::new(gateway_host(port).await, Default::default());
                serve(listener().await?, service).await
            }
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    })
}

/// The standard streams as pipes, without the threads that `tokio::io::stdin` uses.
fn streams() -> io::Result<(Receiver, Sender)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    Ok((Receiver::from_owned_fd(input)?, Sender::from_owned_fd(output)?))
}

/// Creates a host with one ready server: over HTTP with a port, otherwise a child process.
async fn gateway_host(port: Option<u16>) -> Host {
    let mut server = match port {
        Some(port) => json!({ "type": "http", "url": format!("http://127.0.0.1:{port}/mcp") }),
        None => stdio_server(0),
    };
    server["access"] = Value::from("read-write");
    let loaded = config::parse("bench", json!({ "mcpServers": { "bench": server } }).to_string());
    let child = ChildOptions::from_environment(env::vars_os());
    let options = ConnectionOptions::new(Arc::new(EmptyResolver), child, HttpOptions::default())
        .with_capabilities(client_capabilities());
    let agents = loaded.config.agents().named.clone();
    let host = Host::start(loaded.config, agents, HostOptions::new(options));
    let failed = host.refresh(&[ItemKind::Tool], WaitFor::AllReady).await;
    assert!(failed.is_empty(), "{failed:?}");
    host
}
