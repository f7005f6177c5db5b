//! Tests of views: visible items, and the resolution of names and URIs.

mod lookup_work;
mod unlisted;

use super::*;
use crate::catalog::{Availability, CatalogBuilder, Item, ServerItems};
use crate::config;
use crate::policy::{CallerSpec, Disclosure};

fn tool(definition: &str) -> Item {
    let definition = Raw::from_text(definition).unwrap();
    let name = definition.get("name").unwrap();
    let name = name.as_str().unwrap().into_owned();
    Item::new(ItemKind::Tool, &name, definition)
}

fn named(name: &str) -> Item {
    tool(&format!(r#"{{"name":"{name}","inputSchema":{{}}}}"#))
}

fn view(text: &str, servers: &[(&str, Vec<Item>)], who: CallerSpec<'_>) -> View {
    let config = config::parse("mcp.json", text).config;
    let mut sources = CatalogBuilder::new(&config);
    for (server, items) in servers {
        let name = ServerName::new(server).unwrap();
        sources.add(&name, Arc::new(ServerItems::new(items.iter().cloned())));
        if *server == "down" {
            sources.set_availability(&name, Availability::Down("refused".into()));
        }
    }
    let rules = Rules::new(&config, config.agents().named.clone());
    let caller = rules.caller(who).unwrap();
    View::new(Arc::new(Catalog::build(&sources)), Arc::new(rules), Arc::new(caller))
}

const ONE: &str = r#"{ "servers": { "fs": { "command": "x" } } }"#;

#[test]
fn definitions_keep_every_byte_but_name_and_description() {
    let definition = r#"{ "name" : "read", "x":12345678901234567890, "description":"Reads \u00e9.",
        "inputSchema": {"type":"object" }, "annotations":{"readOnlyHint":true},"_meta":{} }"#;
    let view = view(ONE, &[("fs", vec![tool(definition), named("a")])], CallerSpec::default());
    let listed = view.list(ItemKind::Tool, DescriptionStyle::WithServer);
    let expected = definition
        .replace(r#""read""#, r#""fs_read""#)
        .replace(r#""Reads \u00e9.""#, r#""[fs] Reads é.""#);
    assert_eq!(listed[1].text(), expected);
    assert_eq!(listed[0].text(), r#"{"name":"fs_a","inputSchema":{},"description":"[fs]"}"#);
    let plain = view.list(ItemKind::Tool, DescriptionStyle::AsWritten);
    assert_eq!(plain[1].text(), definition.replace(r#""read""#, r#""fs_read""#));
}

#[test]
fn a_hidden_tool_is_unknown_and_never_suggested() {
    let writes = r#"{"name":"purge","annotations":{"readOnlyHint":false}}"#;
    let text = r#"{ "servers": { "fs": { "command": "x", "access": "read-only" } } }"#;
    let view = view(text, &[("fs", vec![named("read_file"), tool(writes)])], CallerSpec::default());
    let failure = |name| view.route(ItemKind::Tool, name).unwrap_err().to_string();
    assert_eq!(failure("fs_purge"), "there is no tool `fs_purge`");
    assert_eq!(
        failure("fs_raed_file"),
        "there is no tool `fs_raed_file`; did you mean `fs_read_file`?"
    );
    assert_eq!(failure("read_file"), "there is no tool `read_file`; did you mean `fs_read_file`?");
    assert_eq!(failure("x\u{1b}[2J"), "there is no tool `x\u{fffd}[2J`");
    assert_eq!(view.hidden(ItemKind::Tool).count(), 1);
    assert_eq!(view.hidden_counts(ItemKind::Tool).into_values().sum::<usize>(), 1);
    let entry = view.catalog().get(ItemKind::Tool, "fs_purge").unwrap();
    assert!(view.explain(entry).iter().any(|step| step.decides));
}

#[test]
fn owner_learns_that_a_tool_is_hidden() {
    let text =
        r#"{ "servers": { "fs": { "command": "x", "denyTools": ["purge", "x://notes"] } } }"#;
    let notes = Raw::from_text(r#"{"uri":"x://notes","name":"notes"}"#).unwrap();
    let items = vec![named("purge"), Item::new(ItemKind::Resource, "x://notes", notes)];
    let failures = |disclosure| {
        let who = CallerSpec { disclosure, ..CallerSpec::default() };
        let view = view(text, &[("fs", items.clone())], who);
        let tool = view.route(ItemKind::Tool, "fs_purge").unwrap_err().to_string();
        [tool, view.route_resource("x://notes").unwrap_err().to_string()]
    };
    let unknown = ["there is no tool `fs_purge`", "there is no resource `x://notes`"];
    assert_eq!(failures(Disclosure::Nothing), unknown);
    let why = "is hidden: its server's `denyTools` names it (mcp.json:1:40)";
    let hidden = [format!("the tool `fs_purge` {why}"), format!("the resource `x://notes` {why}")];
    assert_eq!(failures(Disclosure::Reasons), hidden);
}

#[test]
fn tool_of_a_failed_server_is_reported_as_unavailable() {
    let text = r#"{ "servers": { "down": { "command": "x" } } }"#;
    let view = view(text, &[("down", vec![named("t")])], CallerSpec::default());
    assert_eq!(view.entries(ItemKind::Tool).count(), 0);
    let failure = view.route(ItemKind::Tool, "down_t").unwrap_err();
    assert_eq!(failure.to_string(), "server `down` is down: refused");
}

#[test]
fn resources_are_scoped_like_tools() {
    let text = r#"{ "servers": { "a": { "command": "x" }, "b": { "command": "x" } },
                    "agents": { "only-a": { "tools": ["a_*"] } } }"#;
    let items = |name: &str| {
        let raw = |key: &str, value: &str| Raw::from_value(&serde_json::json!({ key: value }));
        let uri = format!("{name}://r");
        let template = format!("{name}://t/{{x}}");
        vec![
            Item::new(ItemKind::Resource, &uri, raw("uri", &uri)),
            Item::new(ItemKind::ResourceTemplate, &template, raw("uriTemplate", &template)),
        ]
    };
    let who = CallerSpec { agent: Some("only-a"), ..CallerSpec::default() };
    let view = view(text, &[("a", items("a")), ("b", items("b"))], who);
    assert_eq!(
        view.list(ItemKind::Resource, DescriptionStyle::WithServer)[0].text(),
        r#"{"uri":"a://r"}"#
    );
    assert_eq!(view.entries(ItemKind::Resource).count(), 1);
    assert_eq!(view.route_resource("a://r").unwrap().entry.server().name.as_str(), "a");
    assert_eq!(view.route_resource("a://t/1").unwrap().uri, "a://t/1");
    // To this caller they are unlisted URIs, and `a` is the only server.
    for address in ["b://r", "b://t/1"] {
        let route = view.route_resource(address).unwrap();
        assert!(!route.entry.is_listed() && route.entry.server().name.as_str() == "a", "{address}");
        let form = format!("trunkline://b/{address}");
        assert!(view.route_resource(&form).is_err(), "{address}");
    }
}

/// TOOL-6: a plain name that matches nothing is reported once its server is up.
#[test]
fn names_that_nothing_has_are_found_once_their_server_is_up() {
    let text = r#"{ "servers": { "fs": { "command": "x" }, "down": { "command": "x" } },
        "agents": { "a": { "tools": ["fs_raed", "fs_read", "fs_*x", "grep", "down_t", "!fs_gone"] } } }"#;
    let who = CallerSpec { agent: Some("a"), ..CallerSpec::default() };
    let view = view(text, &[("fs", vec![named("read")]), ("down", vec![])], who);
    let unknown = view.unmatched_names();
    let names: Vec<_> = unknown.iter().map(|it| it.pattern.pattern.as_str()).collect();
    assert_eq!(names, ["fs_raed", "!fs_gone"]);
    assert_eq!(unknown[0].suggestion, Some("fs_read"));
    assert_eq!(unknown[0].pattern.location.to_string(), "mcp.json:2:38");
}

/// TOOL-6: a name with the prefix of no server is reported once all servers are up, unless the host
/// reserves it.
#[test]
fn names_that_begin_like_those_of_no_server_are_found_once_all_are_up() {
    let text = r#"{ "servers": { "fs": { "command": "x" } },
        "agents": { "a": { "tools": ["veiw_file", "view_file", "fs_read", "web_*"] } } }"#;
    let config = config::parse("mcp.json", text).config;
    let mut sources = CatalogBuilder::with_reserved(&config, ["view_file".into()].into());
    sources.add(&ServerName::new("fs").unwrap(), Arc::new(ServerItems::new([named("read")])));
    let rules = Rules::new(&config, config.agents().named.clone());
    let caller = rules.caller(CallerSpec { agent: Some("a"), ..CallerSpec::default() }).unwrap();
    let view = View::new(Arc::new(Catalog::build(&sources)), Arc::new(rules), Arc::new(caller));
    let unknown = view.unmatched_names();
    assert_eq!(unknown.len(), 1, "{unknown:?}");
    assert_eq!(unknown[0].pattern.pattern.as_str(), "veiw_file");
    assert_eq!(unknown[0].server, None);
}

/// A list entry that matches no item of its server is reported once the names of the server are
/// known.
#[test]
fn list_entries_that_match_nothing_are_found() {
    let text = r#"{ "servers": {
            "fs": { "command": "x", "denyTools": ["Read", "fs_read", "read", "x://a", "no*", "*s_r*"] },
            "web": { "command": "x", "allowTools": ["anything"] } },
        "bundles": { "b": { "serverId": "fs", "allowTools": ["raed"] } } }"#;
    let config = config::parse("mcp.json", text).config;
    let mut sources = CatalogBuilder::new(&config);
    sources.add(&ServerName::new("fs").unwrap(), Arc::new(ServerItems::new([named("read")])));
    let unasked = ServerItems::default().with_unlisted_names(true);
    sources.add(&ServerName::new("web").unwrap(), Arc::new(unasked));
    let rules = Arc::new(Rules::new(&config, BTreeMap::new()));
    let view = View::new(Arc::new(Catalog::build(&sources)), rules, Arc::new(Caller::default()));
    let unknown = view.unmatched_list_entries();
    let found: Vec<_> =
        unknown.iter().map(|it| (it.entry, it.suggestion, it.is_exposed_name)).collect();
    assert_eq!(
        found,
        [
            ("Read", Some("read"), false),
            ("fs_read", Some("read"), true),
            ("*s_r*", None, true),
            ("raed", Some("read"), false),
        ]
    );
    assert_eq!(unknown[3].bundle.map(crate::name::BundleName::as_str), Some("b"));
    assert_eq!(unknown[0].location.unwrap().to_string(), "mcp.json:2:37");
}

/// Resources and templates with these URIs.
fn addressed(addresses: &[&str]) -> Vec<Item> {
    let item = |address: &&str| {
        let kind =
            if address.contains('{') { ItemKind::ResourceTemplate } else { ItemKind::Resource };
        let definition = serde_json::json!({ kind.name_key(): address });
        Item::new(kind, address, Raw::from_value(&definition))
    };
    addresses.iter().map(item).collect()
}

/// TOOL-12: a qualified URI always resolves, and is suggested where it is needed.
#[test]
fn ambiguous_uri_must_be_qualified() {
    let text = r#"{ "servers": { "a": { "command": "x" }, "b": { "command": "x" } },
                    "agents": { "only-a": { "tools": ["a_*"] } } }"#;
    let a = addressed(&["x://one", "x://mine", "y://{n}"]);
    let b = addressed(&["x://one", "y://deep/{n}"]);
    let servers = [("a", a), ("b", b)];
    let all = view(text, &servers, CallerSpec::default());
    let read = |view: &View, address: &str| match view.route_resource(address) {
        Ok(route) => format!("{} {}", route.entry.server().name, route.uri),
        Err(none) => none.to_string(),
    };
    assert_eq!(read(&all, "trunkline://b/x://one"), "b x://one");
    assert_eq!(read(&all, "trunkline://a/x://mine"), "a x://mine");
    assert_eq!(read(&all, "trunkline://a/y://deep/1"), "a y://deep/1");
    assert_eq!(read(&all, "y://1"), "a y://1");
    let several = "several servers have `x://one`; did you mean `trunkline://a/x://one` or `trunkline://b/x://one`?";
    assert_eq!(read(&all, "x://one"), several);
    assert_eq!(read(&all, "y://deep/1"), several.replace("x://one", "y://deep/1"));
    // A caller that sees only one of them means that one.
    let who = CallerSpec { agent: Some("only-a"), ..CallerSpec::default() };
    let one = view(text, &servers, who);
    assert_eq!(read(&one, "x://one"), "a x://one");
    assert!(read(&one, "trunkline://b/x://one").starts_with("there is no resource "));
}

/// MCP Apps: a tool links to its view by the URI under which the view is listed and read.
#[test]
fn a_tool_links_to_its_view_as_callers_know_it() {
    let text = r#"{ "servers": { "a": { "command": "x" }, "b": { "command": "x" } } }"#;
    let chart = r#"{"name":"chart","inputSchema":{},"_meta":{"ui": {"resourceUri":"ui://chart","x":1},"ui/resourceUri":"ui://chart"}}"#;
    let items = || {
        let mut items = addressed(&["ui://chart"]);
        items.push(tool(chart));
        items
    };
    let both = view(text, &[("a", items()), ("b", items())], CallerSpec::default());
    let tools = both.list(ItemKind::Tool, DescriptionStyle::AsWritten);
    let resources = both.list(ItemKind::Resource, DescriptionStyle::AsWritten);
    for (server, (tool, resource)) in ["a", "b"].iter().zip(tools.iter().zip(&resources)) {
        let uri = format!("ui://trunkline/{server}/ui://chart");
        let expected =
            chart.replace("ui://chart", &uri).replace("\"chart\"", &format!("\"{server}_chart\""));
        assert_eq!(tool.text(), expected);
        assert_eq!(resource.get("uri").unwrap().as_str().unwrap(), uri);
        assert_eq!(both.route_resource(&uri).unwrap().uri, "ui://chart");
    }
    let one = view(text, &[("a", items()), ("b", vec![named("t")])], CallerSpec::default());
    assert_eq!(
        one.list(ItemKind::Tool, DescriptionStyle::AsWritten)[0].text(),
        chart.replace("\"chart\"", "\"a_chart\"")
    );
}

/// TOOL-12: a hidden resource cannot be read under another spelling that matches a template.
#[test]
fn a_hidden_resource_has_no_other_spelling() {
    let text = r#"{ "servers": { "a": { "command": "x",
        "denyTools": ["x://files/secret", "x://unlisted"] } } }"#;
    let items = addressed(&["x://files/secret", "x://files/open", "x://{+path}", "X://{+path}"]);
    let view = view(text, &[("a", items)], CallerSpec::default());
    for address in [
        "x://files/secret",
        "X://files/secret",
        "x://files/%73ecret",
        "x://files/%2573ecret",
        "x://files//secret",
        "x://files/secret/",
        "x://files/open/../secret",
        "x://files/./secret",
        "x://FILES/secret",
        "x://unlisted",
        "x://./unlisted",
        "trunkline://a/x://files/%73ecret",
    ] {
        assert!(view.route_resource(address).is_err(), "{address}");
    }
    for address in ["x://files/open", "x://files/%6fpen", "x://files/secrets", "x://other"] {
        assert!(view.route_resource(address).is_ok(), "{address}");
    }
}

/// TOOL-2, TOOL-13: an adjusted name has a reason, and is suggested for the plain one.
#[test]
fn a_changed_name_is_suggested_for_the_plain_one() {
    let text = r#"{ "servers": { "a": { "command": "x", "prefix": "p" }, "b": { "command": "x", "prefix": "p" },
                    "pp": { "command": "x" } } }"#;
    let servers = [
        ("a", vec![named("shout"), named("x.y")]),
        ("b", vec![named("shout")]),
        ("pp", vec![named("shout")]),
    ];
    let view = view(text, &servers, CallerSpec::default());
    let RouteError::Unknown { suggestions, .. } =
        view.route(ItemKind::Tool, "p_shout").unwrap_err()
    else {
        panic!()
    };
    assert!(suggestions[..2].iter().all(|name| name.starts_with("p_shout_")), "{suggestions:?}");
    assert_eq!(suggestions[..2], view.existing_like(ItemKind::Tool, "p_shout")[..2]);
    let renamed = |name: &str| view.catalog().get(ItemKind::Tool, name).unwrap().renamed();
    let clash = ("p_shout", "something else has the same name".to_owned());
    assert_eq!(renamed(&suggestions[0]), Some(clash));
    assert_eq!(renamed("p_x_y").unwrap().1, "it has characters that names may not have");
    assert_eq!(renamed("pp_shout"), None);
}

/// TOOL-12: a resource that an agent may not see cannot be read through a visible template.
#[test]
fn patterns_take_away_addresses_that_fit_a_template() {
    let text = r#"{ "servers": { "b": { "command": "x" }, "c": { "command": "x" } },
        "agents": { "a": { "tools": ["*", "!*private*", "!b_y://Secret*", "b_y://secret/public"] } } }"#;
    let template = || {
        let definition = Raw::from_text(r#"{"uriTemplate":"y://{+any}"}"#).unwrap();
        Item::new(ItemKind::ResourceTemplate, "y://{+any}", definition)
    };
    let servers = [("b", vec![template()])];
    let view = view(text, &servers, CallerSpec { agent: Some("a"), ..CallerSpec::default() });
    for hidden in [
        "y://secret",
        "y://Secret/x",
        "y://%53ecret?x",
        "y:///secret",
        "y://a/../secret",
        "y://my/private/zz",
        "trunkline://b/y://%70rivate",
    ] {
        assert!(view.route_resource(hidden).is_err(), "{hidden}");
        let entry = &view.catalog().entries(ItemKind::ResourceTemplate)[0];
        let steps = view.explain_uri(entry, hidden);
        let deciding: Vec<_> = steps.iter().filter(|step| step.decides).collect();
        assert_eq!(deciding.len(), 1, "{hidden}");
        assert!(deciding[0].reason.to_string().contains("`!"), "{hidden}");
    }
    for seen in ["y://other", "y://secret/public"] {
        assert!(view.route_resource(seen).is_ok(), "{seen}");
        let entry = &view.catalog().entries(ItemKind::ResourceTemplate)[0];
        assert!(view.explain_uri(entry, seen).iter().all(|step| !step.decides), "{seen}");
    }
}

/// The visibility is known before the server is started, so that a hidden name reveals nothing
/// about it.
#[test]
fn hidden_names_are_known_before_lists_are() {
    let text = r#"{ "servers": { "bad": { "command": "x", "denyTools": ["no"] },
            "shy": { "command": "x", "trust": "untrusted", "allowTools": ["k"] },
            "mute": { "command": "x", "trust": "untrusted" } },
        "agents": { "a": { "tools": ["*", "!bad_z*"] }, "b": { "tools": ["bad_ok"] } },
        "bundles": { "few": { "serverId": "bad", "allowTools": ["ok"] } } }"#;
    let of = |agent: Option<&'static str>, bundles: &'static [&'static str], name: &str| {
        let view = view(text, &[], CallerSpec { agent, bundles, ..CallerSpec::default() });
        let server = view.catalog().namespaces().owner(name).unwrap();
        view.could_contain_name(server, name)
    };
    assert_eq!(of(None, &[], "bad_zz"), Visibility::Possible);
    assert_eq!(of(None, &[], "bad_no"), Visibility::Excluded);
    assert_eq!(of(Some("a"), &[], "bad_zz"), Visibility::Excluded);
    assert_eq!(of(Some("a"), &[], "bad_a"), Visibility::Possible);
    assert_eq!(of(Some("b"), &[], "bad_zz"), Visibility::NotSelected);
    assert_eq!(of(Some("b"), &[], "bad_ok"), Visibility::Possible);
    assert_eq!(of(None, &[], "shy_zz"), Visibility::NotSelected);
    assert_eq!(of(None, &[], "shy_k"), Visibility::Possible);
    assert_eq!(of(None, &[], "shy_k_abcdefgh"), Visibility::Possible);
    assert_eq!(of(None, &[], "mute_k"), Visibility::NotSelected);
    assert_eq!(of(None, &["few"], "bad_zz"), Visibility::NotSelected);
    assert_eq!(of(None, &["few"], "bad_ok"), Visibility::Possible);
    let long = format!("bad_z{}", "z".repeat(100));
    assert_eq!(of(Some("a"), &[], &long), Visibility::Possible);
}
