//! An axum application with routes of its own that also serves all MCP servers of a configuration:
//! `cargo run --example mounted -- mcp.json`, then `http://127.0.0.1:8080/tools/mcp`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example is a program")]

use std::error::Error;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;
use trunkline::config::{self, ColorStyle, EmptyResolver};
use trunkline::connection::{ChildOptions, ConnectionOptions, HttpOptions};
use trunkline::host::{Host, HostOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("give the file of a configuration")?;
    let loaded = config::parse(&file, std::fs::read(&file)?);
    for problem in &loaded.diagnostics {
        eprint!("{}", problem.render(ColorStyle::Plain));
    }
    // References such as ${TOKEN} need a resolver of your own; this one resolves none.
    let child = ChildOptions::from_environment(std::env::vars_os());
    let options = ConnectionOptions::new(Arc::new(EmptyResolver), child, HttpOptions::default())
        .with_capabilities(trunkline_gateway::client_capabilities());
    let agents = loaded.config.agents().named.clone();
    let host = Host::start(loaded.config, agents, HostOptions::new(options));

    let gateway =
        trunkline_gateway::router(host.clone(), trunkline_gateway::GatewayOptions::default());
    let application = Router::new().route("/health", get(async || "good")).nest("/tools", gateway);
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    println!("http://{}/tools/mcp", listener.local_addr()?);
    tokio::select! {
        served = trunkline_gateway::serve(listener, application) => served?,
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    // Without this, servers are stopped too, but not gracefully.
    host.shutdown().await;
    Ok(())
}
