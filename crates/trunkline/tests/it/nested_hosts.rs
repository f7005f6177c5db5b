//! CON-16: a host rejects a configuration that a parent process uses, without code in the embedding
//! program.

use std::ffi::OsString;
use std::fs;
use std::sync::Arc;

use serde_json::json;
use trunkline::config::{CHAIN_VARIABLE, EmptyResolver, parse};
use trunkline::connection::{ChildOptions, ConnectionOptions, HttpOptions, State};
use trunkline::host::{Host, HostOptions, WaitFor};
use trunkline::item::ItemKind;
use trunkline::registry::Registry;

use crate::support::file_driven_server::{Folder, within};

fn options(chain: Option<OsString>) -> ConnectionOptions {
    let path = std::env::vars_os().filter(|(name, _)| name == "PATH");
    let chain = chain.map(|chain| (CHAIN_VARIABLE.into(), chain));
    let child = ChildOptions::from_environment(path.chain(chain));
    ConnectionOptions::new(Arc::new(EmptyResolver), child, HttpOptions::default())
}

#[tokio::test]
async fn a_host_refuses_a_configuration_that_is_used_above_it() {
    let folder = Folder::new();
    let (starts, chain) = (folder.path().join("starts"), folder.path().join("chain"));
    let script = format!(
        "echo started >> {}; printf %s \"$TRUNKLINE_CHAIN\" > {}; exit 1",
        starts.display(),
        chain.display()
    );
    let server = json!({ "command": "sh", "args": ["-c", script], "restart": "never" });
    let config = json!({ "mcpServers": { "me": server } }).to_string();
    let config = parse("mcp.json", config).config;
    let start = |chain| {
        let options = HostOptions::new(options(chain));
        Host::start(config.clone(), config.agents().named.clone(), options)
    };
    let outer = start(None);
    within(outer.refresh(&[ItemKind::Tool], WaitFor::AllReady)).await;
    let above = fs::read_to_string(&chain).unwrap();
    let before = fs::read_to_string(&starts).unwrap();

    let inner = start(Some(above.clone().into()));
    let failures = within(inner.refresh(&[ItemKind::Tool], WaitFor::AllReady)).await;
    let message = failures[0].to_string();
    assert!(message.contains("server `me`") && message.contains("itself without end"), "{message}");
    assert!(failures[0].hint().is_some_and(|hint| hint.contains("unset TRUNKLINE_CHAIN")));

    let servers = Registry::new(options(Some(above.into()))).open(&config);
    assert_eq!(within(servers.connect_all()).await.len(), 1);
    assert_eq!(servers.get("me").unwrap().status().state, State::Failed);
    assert_eq!(fs::read_to_string(&starts).unwrap(), before, "nothing was started");
    within(servers.close()).await;
    within(inner.shutdown()).await;
    within(outer.shutdown()).await;
}
