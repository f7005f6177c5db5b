//! Serves all MCP servers of a Trunkline host as one MCP server, to legacy and modern clients, over
//! HTTP and stdio.
//!
//! The crate reads no environment and touches no terminal: hosts, streams and listeners are passed
//! in. The [`demo`] module has two small MCP servers, complete enough for any client.
//!
//! [`router`] returns an axum router that can be nested in any application:
//! ```
//! use std::sync::Arc;
//!
//! use axum::Router;
//! use axum::routing::get;
//! use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
//! use tokio::net::{TcpListener, TcpStream};
//! use trunkline::config::{self, EmptyResolver};
//! use trunkline::connection::{ChildOptions, HttpOptions, ConnectionOptions};
//! use trunkline::host::{Host, HostOptions, WaitFor};
//! use trunkline::item::ItemKind;
//! use trunkline_gateway::demo::DemoServer;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! // A server, and a host that is configured with it.
//! let words = TcpListener::bind("127.0.0.1:0").await?;
//! let text = format!(
//!     r#"{{ "mcpServers": {{ "words": {{ "url": "http://{}/mcp" }} }} }}"#,
//!     words.local_addr()?,
//! );
//! tokio::spawn(DemoServer::Words.listen(words));
//! let loaded = config::parse("mcp.json", text);
//! let child = ChildOptions::from_environment(std::env::vars_os());
//! let options = ConnectionOptions::new(Arc::new(EmptyResolver), child, HttpOptions::default())
//!     .with_capabilities(trunkline_gateway::client_capabilities());
//! let agents = loaded.config.agents().named.clone();
//! let host = Host::start(loaded.config, agents, HostOptions::new(options));
//!
//! // Waits for the server, so that its instructions are part of the `initialize` result.
//! host.refresh(&[ItemKind::Tool], WaitFor::AllReady).await;
//!
//! // An application with a route of its own, and the gateway at /tools/mcp.
//! let gateway = trunkline_gateway::router(host.clone(), Default::default());
//! let application =
//!     Router::new().route("/health", get(async || "good")).nest("/tools", gateway);
//! let listener = TcpListener::bind("127.0.0.1:0").await?;
//! let address = listener.local_addr()?;
//! tokio::spawn(trunkline_gateway::serve(listener, application).into_future());
//!
//! // Any client can connect now. This one sends `initialize` by hand.
//! let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
//! let request = format!(
//!     "POST /tools/mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
//!      Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
//!     body.len(),
//! );
//! let mut stream = TcpStream::connect(address).await?;
//! stream.write_all(request.as_bytes()).await?;
//! let mut answer = String::new();
//! stream.read_to_string(&mut answer).await?;
//! assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("## words"), "{answer}");
//! host.shutdown().await;
//! # std::io::Result::Ok(()) }).unwrap();
//! ```

mod access;
mod request;
mod options;
mod changes;
mod client;
mod routing;
mod handlers;
mod transport;
pub mod demo;

pub use axum::Router;

pub use crate::access::scope::Scope;
pub use crate::access::tokens::{Token, Tokens, digest_of, new_token};
pub use crate::handlers::gateway::client_capabilities;
pub use crate::transport::http::origin::check as check_host_and_origin;
pub use crate::transport::http::{AcceptStatus, HttpService, Serve, router, serve};
pub use crate::transport::ndjson::{InputLine, LineReader};
pub use crate::transport::stdio::serve_stream;
pub use options::{GatewayOptions, Limits, Observer, StreamOptions};
pub use request::record::{RequestObserver, RequestOutcome, RequestRecord, RequestTrace};
pub use request::trace_context::TraceContext;
