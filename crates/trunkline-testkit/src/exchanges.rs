//! Invariants of message exchanges with arbitrary bytes: client requests to the gateway, and server
//! responses through it. Shared by property tests and fuzz targets.

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

/// Time limit for each step. None takes nearly as long on an idle machine.
const LONGEST_EXCHANGE: Duration = Duration::from_secs(60);

/// Sends arbitrary client bytes to the gateway: as lines of a stream, and as POST body in both
/// eras.
///
/// # Panics
///
/// When a request does not get exactly one response, when there is a response without a request,
/// when a response is not JSON on a line of its own, when the gateway panics, or when another
/// client does not get its own response afterwards.
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

/// Makes a server respond with arbitrary bytes to its discovery or initialization, to lists, and to
/// a call, in parts separated by a byte 0xff. The first byte of a part selects its framing.
///
/// # Panics
///
/// When a client of the gateway does not get exactly one response to each request, when one is not
/// JSON on a line of its own, when the gateway panics, or when a call to another server fails.
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

/// Starts a well-behaved server that runs as long as the runtime, and returns its URL.
async fn start_words() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(DemoServer::Words.listen(listener));
    format!("http://{address}/mcp")
}

/// Starts a host of these servers with short timeouts.
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

/// Creates a request of the modern era.
fn modern(id: &str, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}
