//! Invariants of whole exchanges, for any bytes: what a client sends to the gateway, and what a server
//! answers through it. Property tests and fuzz targets call the same functions.

mod transcript;
mod gateway;
mod hostile;

use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use trunkline::config::{self, EmptyResolver};
use trunkline::connection::{ChildOptions, ConnectionOptions, HttpOptions};
use trunkline::host::{Host, HostOptions};
use trunkline_gateway::client_capabilities;
use trunkline_gateway::demo::DemoServer;

use self::gateway::Gateway;
use self::hostile::HostileServer;

/// Longest time that anything here may take. Nothing takes nearly as long on an idle machine.
const LONGEST_EXCHANGE: Duration = Duration::from_secs(60);

/// Gives the gateway any bytes of a client: as lines of a stream, and as the body of a POST in both eras.
///
/// # Panics
///
/// When a request is not answered exactly once, when something is answered that was not asked, when an
/// answer is not JSON on a line of its own, when the gateway panics, or when another client does not get
/// its own answer afterwards.
pub fn check_request(bytes: &[u8]) {
    static WORLD: LazyLock<Mutex<(Runtime, Gateway)>> = LazyLock::new(|| {
        let runtime = runtime();
        let gateway = runtime.block_on(Gateway::start());
        Mutex::new((runtime, gateway))
    });
    let world = WORLD.lock().unwrap_or_else(PoisonError::into_inner);
    let (runtime, gateway) = &*world;
    runtime.block_on(gateway.check(bytes));
}

/// Lets a server answer with any bytes: to its discovery or initialisation, to lists, and to a call, in
/// parts that a byte 0xff separates. The first byte of a part says how it is sent.
///
/// # Panics
///
/// When a client of the gateway does not get exactly one response to each request, when one is not JSON
/// on a line of its own, when the gateway panics, or when a call to another server fails.
pub fn check_answer(bytes: &[u8]) {
    static WORLD: LazyLock<Mutex<(Runtime, HostileServer)>> = LazyLock::new(|| {
        let runtime = runtime();
        let server = runtime.block_on(HostileServer::start());
        Mutex::new((runtime, server))
    });
    let world = WORLD.lock().unwrap_or_else(PoisonError::into_inner);
    let (runtime, server) = &*world;
    runtime.block_on(server.check(bytes));
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// The address of a server that behaves, for as long as the runtime runs.
async fn start_words() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(DemoServer::Words.listen(listener));
    format!("http://{address}/mcp")
}

/// A host of these servers, whose bounds are short.
fn host_of(servers: &Value) -> Host {
    let timeouts = json!({ "connect": "2s", "handshake": "2s", "list": "2s", "call": "10s",
        "question": "1s", "shutdown": "1s", "grace": "5s" });
    let text = json!({ "mcpServers": servers, "timeouts": timeouts });
    let loaded = config::parse("exchanges", text.to_string());
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    let child = ChildOptions::from_environment(std::iter::empty());
    let options = ConnectionOptions::new(Arc::new(EmptyResolver), child, HttpOptions::default());
    let options = options.with_capabilities(client_capabilities());
    let agents = loaded.config.agents().named.clone();
    Host::start(loaded.config, agents, HostOptions::new(options))
}

/// A request in the words of the modern era.
fn modern(id: &str, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}
