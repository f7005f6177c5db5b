//! The processes between a client and a server that are compared: the gateway and the forwarder.

use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::{env, io};

use serde_json::{Value, json};
use tokio::net::unix::pipe::{Receiver, Sender};
use trunkline::config::{self, EmptyResolver};
use trunkline::connection::{ChildOptions, ConnectionOptions, HttpOptions};
use trunkline::host::{Host, HostOptions, WaitFor};
use trunkline::item::ItemKind;
use trunkline_gateway::{Scope, client_capabilities, listen, router, serve};

use crate::forwarder;
use crate::host::{runtime, stdio_server};
use crate::server::{end_with_input, listener};

/// What makes this program a proxy. After it stand which one, what clients speak to it, and what it
/// speaks to its server: `stdio` or the port of one over HTTP.
pub(crate) const PROXY: &str = "--proxy";

/// The tool of the server, under the name that the gateway gives it.
pub(crate) const TOOL: &str = "bench_text";

pub(crate) const GATEWAY: &str = "gateway";
pub(crate) const FORWARDER: &str = "forwarder";
pub(crate) const STDIO: &str = "stdio";
pub(crate) const HTTP: &str = "http";

/// Is a proxy until its standard input ends.
pub(crate) fn run(ways: &[&str]) -> io::Result<()> {
    let [which, front, back] = ways else { return Err(io::ErrorKind::InvalidInput.into()) };
    if *front == HTTP {
        end_with_input();
    }
    let port = back.parse().ok();
    // Both on this thread alone, so that they differ in nothing but what they do.
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
                serve(gateway_host(port).await, Scope::default(), reader, writer).await
            }
            (GATEWAY, HTTP, _) => {
                let router = router(gateway_host(port).await, Default::default());
                listen(router, listener().await?).await
            }
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    })
}

/// The standard streams, which are pipes here, without the threads that other streams need.
fn streams() -> io::Result<(Receiver, Sender)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    Ok((Receiver::from_owned_fd(input)?, Sender::from_owned_fd(output)?))
}

/// A host with one server that is ready: over HTTP if there is a port, else a child.
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
