//! Panics inside the actor of a connection: its requests fail, and the server can be restarted.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use trunkline::config::{self, Resolver, Secret};
use trunkline::connection::{ChildOptions, Connection, ConnectionOptions, HttpOptions, State};
use trunkline::error::ErrorKind;

use crate::support::file_driven_server::within;

/// Panics while resolving a variable, as code of an embedding host may.
struct Faulty(AtomicBool);

impl Resolver for Faulty {
    fn variable(&self, _: &str) -> Option<Secret> {
        assert!(!self.0.load(Ordering::Relaxed), "a defect");
        None
    }

    fn file(&self, _: &Path) -> io::Result<Secret> {
        Err(io::ErrorKind::NotFound.into())
    }
}

#[tokio::test]
async fn a_panic_fails_requests_and_leaves_the_server_failed() {
    let text = r#"{ "mcpServers": { "a": { "command": "true", "env": { "A": "${A}" } } } }"#;
    let server = config::parse("test", text).config.server("a").unwrap().clone();
    let faulty = Arc::new(Faulty(AtomicBool::new(true)));
    let child = ChildOptions::from_environment(std::iter::empty());
    let resolver = Arc::<Faulty>::clone(&faulty);
    let connection =
        Connection::new(server, ConnectionOptions::new(resolver, child, HttpOptions::default()));
    let failed = within(connection.request("tools/list", None)).await.unwrap_err();
    assert!(!failed.to_string().is_empty());
    let failed = within(connection.request("tools/list", None)).await.unwrap_err();
    assert_eq!(failed.failure().unwrap().kind(), ErrorKind::Broken, "{failed}");
    assert_eq!(connection.status().state, State::Failed);
    // The actor survives: an explicit connect starts the server again.
    faulty.0.store(false, Ordering::Relaxed);
    let missing = within(connection.connect()).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::MissingSecret, "{missing}");
    within(connection.close()).await;
}
