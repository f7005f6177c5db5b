//! A gateway to configured servers, for the duration of a test.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use trunkline::config::{self, Config, EmptyResolver};
use trunkline::connection::{ChildOptions, ConnectionOptions, HttpOptions};
use trunkline::host::{Host, HostOptions};
use trunkline_gateway::{HttpService, serve};

/// A gateway that listens, and ends with the test.
pub(crate) struct TestGateway {
    pub(crate) address: SocketAddr,
    pub(crate) host: Host,
    serving: AbortHandle,
}

impl TestGateway {
    /// A gateway without any limits, to these servers by their names.
    pub(crate) async fn to(servers: &Value) -> Self {
        Self::with(servers, trunkline_gateway::GatewayOptions::default()).await
    }

    pub(crate) async fn with(servers: &Value, options: trunkline_gateway::GatewayOptions) -> Self {
        Self::start(configuration(servers), options).await
    }

    /// A gateway with a whole configuration.
    pub(crate) async fn of(config: Config) -> Self {
        Self::start(config, trunkline_gateway::GatewayOptions::default()).await
    }

    /// A gateway with these connection options.
    pub(crate) async fn connecting(servers: &Value, connections: ConnectionOptions) -> Self {
        let options = trunkline_gateway::GatewayOptions::default();
        Self::begin(configuration(servers), connections, options).await
    }

    /// A gateway with a whole configuration and options.
    pub(crate) async fn start(config: Config, options: trunkline_gateway::GatewayOptions) -> Self {
        Self::begin(config, connecting(), options).await
    }

    async fn begin(
        config: Config,
        connections: ConnectionOptions,
        options: trunkline_gateway::GatewayOptions,
    ) -> Self {
        let agents = config.agents().named.clone();
        let host = Host::start(config, agents, HostOptions::new(connections));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = HttpService::new(host.clone(), options);
        let serving = tokio::spawn(serve(listener, service).into_future());
        Self { address, host, serving: serving.abort_handle() }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) async fn end(self) {
        self.serving.abort();
        self.host.shutdown().await;
    }
}

/// A configuration with these servers.
pub(crate) fn configuration(servers: &Value) -> Config {
    let loaded = config::parse("test", json!({ "mcpServers": servers }).to_string());
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    loaded.config
}

/// Connection options. The gateway declares its client capabilities itself.
pub(crate) fn connecting() -> ConnectionOptions {
    connecting_with(HttpOptions::default())
}

/// The same with these HTTP options.
pub(crate) fn connecting_with(http: HttpOptions) -> ConnectionOptions {
    let child = ChildOptions::from_environment(env::vars_os());
    ConnectionOptions::new(Arc::new(EmptyResolver), child, http)
}

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A directory that is removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("trunkline-gateway-{}-{number}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
