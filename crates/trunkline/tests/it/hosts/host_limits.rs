//! Limits of an embedding host (CFG-13), and disclosure of hidden items to callers (TOOL-5).

use std::collections::BTreeMap;

use serde_json::json;
use trunkline::call::{CallErrorKind, CallOptions};
use trunkline::config::{Access, Restart};
use trunkline::host::{Host, HostOptions};
use trunkline::item::ItemKind;
use trunkline::message::Raw;
use trunkline::policy::{CallerSpec, Disclosure};

use super::{configuration, gather, host_with, tools, view};
use crate::support::file_driven_server::{Folder, options, within};

/// An invariant of BooCode: no configuration can allow writing.
#[tokio::test]
async fn no_file_raises_the_ceilings_of_a_host() {
    let folder = Folder::new();
    folder.write("tools", "look\nwrite");
    folder.write("writing", "write");
    let more = json!({ "access": "read-write", "restart": "on-failure" });
    let text =
        json!({ "access": "read-write", "mcpServers": { "s": folder.server("legacy", &more) } });
    let host = Host::start(
        configuration(&text),
        BTreeMap::new(),
        HostOptions {
            max_access: Access::ReadOnly,
            restart: Some(Restart::Never),
            ..HostOptions::new(options())
        },
    );
    for _ in 0..2 {
        gather(&host, &[ItemKind::Tool]).await;
        let (seen, hidden) = (view(&host), host.config());
        assert!(tools(&seen).contains(&"s_look") && !tools(&seen).contains(&"s_write"));
        assert_eq!(hidden.server("s").unwrap().behaviour.restart, Restart::Never);
        within(host.reload(configuration(&text), BTreeMap::new())).await;
    }
    within(host.shutdown()).await;
}

#[tokio::test]
async fn only_the_owner_learns_that_an_item_is_hidden() {
    let folder = Folder::new();
    folder.write("tools", "look\nwrite");
    folder.write("writing", "write");
    let entry = folder.server("legacy", &json!({}));
    let host = host_with(&json!({ "access": "read-only", "mcpServers": { "s": entry } }), &[]);
    gather(&host, &[ItemKind::Tool]).await;
    let call = async |disclosure, name: &str| {
        let view = host.view(CallerSpec { disclosure, ..CallerSpec::default() }).unwrap();
        let arguments = Raw::from_value(&json!({}));
        within(host.call(&view, name, arguments, CallOptions::default())).await.unwrap_err()
    };
    let error = call(Disclosure::Nothing, "s_write").await;
    assert!(error.to_string().starts_with("there is no tool `s_write`"), "{error}");
    assert_eq!(error.hint(), None);
    let error = call(Disclosure::Reasons, "s_write").await;
    assert_eq!(error.kind(), CallErrorKind::Unknown);
    let message =
        "the tool `s_write` is hidden: it declares that it writes, and access is `read-only`";
    assert!(error.to_string().starts_with(message), "{error}");
    assert_eq!(error.hint(), Some("set `\"access\": \"read-write\"` on the server"));
    let error = call(Disclosure::Reasons, "s_absent").await;
    assert!(error.to_string().starts_with("there is no tool"), "{error}");
    within(host.shutdown()).await;
}
