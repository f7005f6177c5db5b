//! `trunkline demo-server`: runs one of the demo servers, over stdio or HTTP.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail};
use tokio::net::TcpListener;
use tokio::runtime;
use trunkline_gateway::demo::DemoServer;

use crate::arguments::DemoServerArguments;
use crate::output::exit::Outcome;
use crate::output::terminal::Terminal;

pub(crate) fn run(arguments: &DemoServerArguments, terminal: &mut Terminal) -> Result<Outcome> {
    let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
    match arguments.listen {
        Some(address) => runtime.block_on(listen(arguments.server, address, terminal))?,
        None => runtime.block_on(async {
            let (input, output) = terminal.streams();
            arguments.server.serve(input, output).await
        })?,
    }
    // The thread that reads standard input may block forever.
    runtime.shutdown_background();
    Ok(Outcome::Good)
}

async fn listen(server: DemoServer, address: SocketAddr, terminal: &mut Terminal) -> Result<()> {
    if !address.ip().is_loopback() {
        bail!("the demo servers listen on loopback addresses only, such as 127.0.0.1:0");
    }
    let listener = bind(address).await?;
    terminal.say(&format!("{} at {}\n", server.name(), endpoint(&listener)?));
    Ok(server.listen(listener).await?)
}

pub(super) async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))
}

/// The URL for clients.
pub(super) fn endpoint(listener: &TcpListener) -> Result<String> {
    Ok(format!("http://{}/mcp", listener.local_addr()?))
}
