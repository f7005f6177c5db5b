//! Tests of the catalog: its entries, and lookups by name and URI.

use std::collections::BTreeSet;

use proptest::collection::{btree_map, btree_set};
use proptest::prelude::*;

use super::*;
use crate::config::{self, Config};

fn config(text: &str) -> Config {
    config::parse("mcp.json", text).config
}

fn item(kind: ItemKind, name: &str) -> Item {
    let definition = serde_json::json!({ kind.name_key(): name });
    Item::new(kind, name, Raw::from_value(&definition))
}

fn server(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

fn exposed(catalog: &Catalog, kind: ItemKind) -> Vec<&str> {
    catalog.entries(kind).iter().map(Entry::exposed).collect()
}

#[test]
fn every_kind_has_names_of_its_own_and_is_sorted() {
    let config = config(r#"{ "servers": { "b": { "command": "x" }, "a": { "command": "x" } } }"#);
    let mut sources = CatalogBuilder::new(&config);
    for name in ["b", "a"] {
        let items = [
            item(ItemKind::Tool, "t"),
            item(ItemKind::Prompt, "t"),
            item(ItemKind::Resource, "file:///same"),
            item(ItemKind::Resource, &format!("file:///{name}")),
            item(ItemKind::ResourceTemplate, "file:///{path}"),
            item(ItemKind::Tool, "t"),
        ];
        sources.add(&server(name), Arc::new(ServerItems::new(items)));
    }
    let catalog = Catalog::build(&sources);
    assert_eq!(exposed(&catalog, ItemKind::Tool), ["a_t", "b_t"]);
    assert_eq!(exposed(&catalog, ItemKind::Prompt), ["a_t", "b_t"]);
    assert_eq!(
        exposed(&catalog, ItemKind::Resource),
        ["file:///a", "file:///b", "trunkline://a/file:///same", "trunkline://b/file:///same"]
    );
    assert_eq!(catalog.entries(ItemKind::Resource)[0].scope(), "a_file:///a");
}

#[test]
fn a_server_that_is_down_keeps_its_names() {
    let config = config(r#"{ "servers": { "a": { "command": "x" } } }"#);
    let mut sources = CatalogBuilder::new(&config);
    sources.add(&server("a"), Arc::new(ServerItems::new([item(ItemKind::Tool, "t")])));
    sources.set_availability(&server("a"), Availability::Down("it ended".into()));
    let catalog = Catalog::build(&sources);
    let down = Availability::Down("it ended".into());
    assert_eq!(catalog.get(ItemKind::Tool, "a_t").unwrap().server().availability, down);
    sources.remove(&server("a"));
    assert!(Catalog::build(&sources).get(ItemKind::Tool, "a_t").is_none());
}

#[test]
fn text_of_an_untrusted_server_is_sanitized_and_names_are_kept() {
    let text = r#"{ "servers": { "bad": { "command": "x", "trust": "untrusted", "allowTools": ["t\u200b"] } } }"#;
    let definition =
        r#"{"name":"t\u200b","description":"\u001b[8mhidden\u202e","n":12345678901234567890}"#;
    let tool = Item::new(ItemKind::Tool, "t\u{200b}", Raw::from_text(definition).unwrap());
    let mut sources = CatalogBuilder::new(&config(text));
    sources.add(&server("bad"), Arc::new(ServerItems::new([tool])));
    let catalog = Catalog::build(&sources);
    let entry = &catalog.entries(ItemKind::Tool)[0];
    assert_eq!(entry.name(), "t\u{200b}");
    let clean = r#"{"name":"t","description":"hidden","n":12345678901234567890}"#;
    assert_eq!(entry.definition().text(), clean);
}

#[test]
fn hints_are_read_whatever_else_stands_beside_them() {
    let hints = |annotations: &str| {
        let text = format!(r#"{{"name":"t","annotations":{annotations}}}"#);
        Item::new(ItemKind::Tool, "t", Raw::from_text(&text).unwrap()).annotations()
    };
    assert!(hints(r#"{"readOnlyHint":false}"#).declares_writing());
    assert!(hints(r#"{"destructiveHint":true}"#).declares_writing());
    assert!(!hints(r#"{"destructiveHint":true,"readOnlyHint":true}"#).declares_writing());
    for nothing in
        ["{}", "null", "7", r#"{"readOnlyHint":"false"}"#, r#"{"destructiveHint":false}"#]
    {
        assert!(!hints(nothing).declares_writing(), "{nothing}");
    }
}

#[test]
fn addresses_are_found_by_name_by_form_and_by_template() {
    let config = config(r#"{ "servers": { "a": { "command": "x" }, "b": { "command": "x" } } }"#);
    let mut sources = CatalogBuilder::new(&config);
    let a = [item(ItemKind::Resource, "x://one"), item(ItemKind::ResourceTemplate, "x://{name}")];
    let b =
        [item(ItemKind::ResourceTemplate, "x://deep/{+path}"), item(ItemKind::Resource, "x://one")];
    sources.add(&server("a"), Arc::new(ServerItems::new(a)));
    sources.add(&server("b"), Arc::new(ServerItems::new(b)));
    let catalog = Catalog::build(&sources);
    let found = |address| {
        let entries = catalog.resolve(address);
        let shown = |(entry, own): &(&Entry, &str)| format!("{} {own}", entry.server().name);
        entries.iter().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(found("trunkline://b/x://one"), ["b x://one"]);
    assert_eq!(found("x://two"), ["a x://two"]);
    assert_eq!(found("x://one"), ["a x://one", "b x://one"]);
    assert_eq!(found("x://deep/er"), ["b x://deep/er", "a x://deep/er"]);
    assert_eq!(found("trunkline://a/x://two"), ["a x://two"]);
    assert_eq!(found("trunkline://b/x://deep/er"), ["b x://deep/er"]);
    assert_eq!(found("y://two"), Vec::<String>::new());
    assert_eq!(found("trunkline://b/x://two"), Vec::<String>::new());
    // TOOL-12: the exposed URI is the upstream one, unless that resolves to another server.
    let exposed = |name, own| catalog.exposed_uri(&server(name), own);
    assert_eq!(exposed("a", "x://one").as_deref(), Some("trunkline://a/x://one"));
    assert_eq!(exposed("a", "x://two"), None);
    assert_eq!(exposed("b", "x://two").as_deref(), Some("trunkline://b/x://two"));
    assert_eq!(exposed("b", "https://example.com"), None);
    assert_eq!(exposed("a", "trunkline://b/x").as_deref(), Some("trunkline://a/trunkline://b/x"));
}

/// TOOL-12: a link must not resolve to another server, although every URI is exposed unchanged.
/// Seen: links of a server without resources were not checked.
#[test]
fn links_are_looked_at_as_soon_as_there_are_two_servers() {
    let alone = config(r#"{ "servers": { "a": { "command": "x" } } }"#);
    let mut sources = CatalogBuilder::new(&alone);
    sources.add(&server("a"), Arc::new(ServerItems::new([item(ItemKind::Resource, "x://r")])));
    assert!(!Catalog::build(&sources).qualifies_uris());
    let config = config(r#"{ "servers": { "a": { "command": "x" }, "b": { "command": "x" } } }"#);
    let mut sources = CatalogBuilder::new(&config);
    assert!(Catalog::build(&sources).qualifies_uris());
    let a = [item(ItemKind::ResourceTemplate, "x://{id}"), item(ItemKind::Tool, "t")];
    sources.add(&server("a"), Arc::new(ServerItems::new(a)));
    sources.add(&server("b"), Arc::new(ServerItems::new([item(ItemKind::Tool, "t")])));
    let catalog = Catalog::build(&sources);
    assert!(catalog.qualifies_uris());
    let known = catalog.exposed_uri(&server("b"), "x://r");
    assert_eq!(known.as_deref(), Some("trunkline://b/x://r"));
    sources.add(&server("b"), Arc::new(ServerItems::new([item(ItemKind::Resource, "x://r")])));
    let catalog = Catalog::build(&sources);
    assert!(catalog.qualifies_uris());
    let known = catalog.exposed_uri(&server("a"), "x://r");
    assert_eq!(known.as_deref(), Some("trunkline://a/x://r"));
}

/// Seen: a link resolved to a resource of a server whose lists had not been requested.
#[test]
fn link_is_qualified_while_resources_of_another_server_are_unknown() {
    let config = config(r#"{ "servers": { "a": { "command": "x" }, "b": { "command": "x" } } }"#);
    let mut sources = CatalogBuilder::new(&config);
    let a = [item(ItemKind::Resource, "x://mine"), item(ItemKind::ResourceTemplate, "x://{any}")];
    sources.add(&server("a"), Arc::new(ServerItems::new(a).declare_resources(true)));
    let b = || ServerItems::new([item(ItemKind::Tool, "t")]);
    let exposed =
        |sources: &CatalogBuilder, own| Catalog::build(sources).exposed_uri(&server("a"), own);
    sources.add(&server("b"), Arc::new(b().with_unlisted_resources(true)));
    assert_eq!(exposed(&sources, "y://r").as_deref(), Some("trunkline://a/y://r"));
    // A resource of the other server would be closer than this template.
    assert_eq!(exposed(&sources, "x://r").as_deref(), Some("trunkline://a/x://r"));
    assert_eq!(
        exposed(&sources, "x://mine"),
        None,
        "if both have it, each is shown with its server"
    );
    assert_eq!(exposed(&sources, "HTTPS://example.com"), None, "clients open it themselves");
    sources.add(&server("b"), Arc::new(b()));
    assert_eq!(exposed(&sources, "x://r"), None, "no other server has resources");
    assert_eq!(exposed(&sources, "y://r"), None);
}

/// TOOL-12: URIs contain their server if the configuration requires it.
#[test]
fn uris_are_qualified_on_request() {
    let text =
        r#"{ "servers": { "a": { "command": "x" } }, "naming": { "addresses": "with-server" } }"#;
    let mut sources = CatalogBuilder::new(&config(text));
    sources.add(&server("a"), Arc::new(ServerItems::new([item(ItemKind::Resource, "x://one")])));
    let catalog = Catalog::build(&sources);
    assert_eq!(exposed(&catalog, ItemKind::Resource), ["trunkline://a/x://one"]);
    assert_eq!(catalog.resolve("x://one").len(), 1);
    let known = catalog.exposed_uri(&server("a"), "x://one");
    assert_eq!(known.as_deref(), Some("trunkline://a/x://one"));
}

proptest! {
    /// TOOL-1: the upstream name is restored from a table.
    #[test]
    fn every_exposed_name_leads_back_to_exactly_its_original(
        world in btree_map("[a-b_. é]{1,4}", btree_set("[a-b_. é]{1,4}", 0..5), 0..5),
    ) {
        let world: Vec<_> =
            world.into_iter().filter(|(name, _)| ServerName::new(name).is_ok()).collect();
        let entries = world.iter().map(|(name, _)| format!("{name:?}: {{ \"command\": \"x\" }}"));
        let text = format!("{{ \"servers\": {{ {} }} }}", entries.collect::<Vec<_>>().join(","));
        let mut sources = CatalogBuilder::new(&config(&text));
        let mut expected = BTreeSet::new();
        for (name, tools) in &world {
            expected.extend(tools.iter().map(|tool| (name.clone(), tool.clone())));
            let items = tools.iter().map(|tool| item(ItemKind::Tool, tool));
            sources.add(&server(name), Arc::new(ServerItems::new(items)));
        }
        let catalog = Catalog::build(&sources);
        let original = |entry: &Entry| (entry.server().name.to_string(), entry.name().to_owned());
        let found: BTreeSet<_> = exposed(&catalog, ItemKind::Tool)
            .into_iter()
            .map(|name| original(catalog.get(ItemKind::Tool, name).unwrap()))
            .collect();
        prop_assert_eq!(found, expected);
        prop_assert!(catalog.entries(ItemKind::Tool).is_sorted_by(|a, b| a.exposed() < b.exposed()));
    }
}
