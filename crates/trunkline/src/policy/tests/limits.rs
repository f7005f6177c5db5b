//! Tests that several limits together show the items that each of them shows.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::name::qualified_uri;
use crate::policy::Visibility;
use crate::view::View;

static SERVERS: [&str; 3] = ["a", "b", "c"];
static BUNDLES: [&str; 4] = ["one", "two", "three", "four"];
static AGENTS: [&str; 3] = ["red", "green", "blue"];
static OWN: [&str; 7] = ["plain", "reads", "writes", "plan", "x://1", "x://2", "x://2/{n}"];

/// Entries of deny lists of servers.
static DENIED: [&str; 6] = ["plain", "reads", "writes", "plan", "x://1", "x://2/*"];

/// URIs of every server, in several spellings.
static URIS: [&str; 6] = ["x://1", "x://2", "x://2/3", "x://2/%33", "X://2//4", "x://other"];

/// The items of every server.
const ITEMS: &[(ItemKind, &str)] = &[
    (ItemKind::Tool, "plain"),
    (ItemKind::Tool, r#"reads{"readOnlyHint":true}"#),
    (ItemKind::Tool, r#"writes{"readOnlyHint":false}"#),
    (ItemKind::Prompt, "plan"),
    (ItemKind::Resource, "x://1"),
    (ItemKind::Resource, "x://2"),
    (ItemKind::ResourceTemplate, "x://2/{n}"),
];

/// One generated limit.
#[derive(Clone, Debug)]
struct Drawn {
    agent: Option<&'static str>,
    bundles: Vec<&'static str>,
    access: Option<Access>,
}

impl Drawn {
    fn limit(&self) -> Limit<'_> {
        Limit { name: None, agent: self.agent, bundles: &self.bundles, access: self.access }
    }

    fn is_set(&self) -> bool {
        self.agent.is_some() || !self.bundles.is_empty() || self.access.is_some()
    }
}

fn access() -> impl Strategy<Value = Access> {
    prop::sample::select(vec![Access::ReadWrite, Access::ReadOnly, Access::ReadOnlyStrict])
}

fn some_of(
    names: &'static [&'static str],
    least: usize,
) -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::subsequence(names, least..=names.len())
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let agent = prop::option::of(prop::sample::select(&AGENTS[..]));
    let bundles = prop::sample::subsequence(&BUNDLES[..], 0..=2);
    (agent, bundles, prop::option::of(access())).prop_map(|(agent, bundles, access)| Drawn {
        agent,
        bundles,
        access,
    })
}

/// A limit with at least one rule: one without has no effect.
fn drawn_rule() -> impl Strategy<Value = Drawn> {
    (drawn(), access()).prop_map(|(drawn, access)| match drawn.is_set() {
        true => drawn,
        false => Drawn { access: Some(access), ..drawn },
    })
}

fn server() -> impl Strategy<Value = Value> {
    let lists = (prop::option::weighted(0.4, some_of(&OWN, 1)), some_of(&DENIED, 0));
    (lists, access(), prop::bool::weighted(0.3), prop::bool::weighted(0.9)).prop_map(
        |((allow, deny), access, is_untrusted, is_enabled)| {
            let mut server = json!({ "command": "x", "access": access.as_str(), "denyTools": deny,
                                     "enabled": is_enabled });
            if let Some(allow) = allow {
                server["allowTools"] = json!(allow);
            }
            if is_untrusted {
                server["trust"] = "untrusted".into();
            }
            server
        },
    )
}

/// A bundle always has a list: without one it must not be of an untrusted server.
fn bundle() -> impl Strategy<Value = Value> {
    let server = prop::sample::select(&SERVERS[..]);
    (server, some_of(&OWN, 1), prop::sample::subsequence(&OWN[..], 0..=2)).prop_map(
        |(server, allow, deny)| {
            json!({ "serverId": server, "allowTools": allow, "denyTools": deny })
        },
    )
}

fn agent() -> impl Strategy<Value = Value> {
    let patterns =
        ["*", "a_*", "b_*", "!b_*", "c_*", "!c_*", "*_reads", "!*_reads", "!*_x://2*", "a_plan"];
    let patterns = prop::collection::vec(prop::sample::select(patterns.to_vec()), 1..4);
    prop::option::of(patterns).prop_map(|tools| match tools {
        Some(tools) => json!({ "tools": tools }),
        None => json!({}),
    })
}

fn named(names: &[&str], values: Vec<Value>) -> Value {
    let members = names.iter().map(|it| (*it).to_owned()).zip(values);
    Value::Object(members.collect())
}

/// The text of a configuration.
fn text() -> impl Strategy<Value = String> {
    let servers = prop::collection::vec(server(), SERVERS.len());
    let bundles = prop::collection::vec(bundle(), BUNDLES.len());
    let agents = prop::collection::vec(agent(), AGENTS.len());
    (servers, bundles, agents).prop_map(|(servers, bundles, agents)| {
        let text = json!({
            "servers": named(&SERVERS, servers),
            "bundles": named(&BUNDLES, bundles),
            "agents": named(&AGENTS, agents),
        });
        text.to_string()
    })
}

impl World {
    fn furnished(text: &str) -> Self {
        Self::new(text, &SERVERS.map(|server| (server, ITEMS)))
    }

    fn limited(&self, limits: &[&Drawn]) -> Caller {
        let within: Vec<_> = limits.iter().map(|it| it.limit()).collect();
        self.rules.caller(CallerSpec { within: &within, ..CallerSpec::default() }).unwrap()
    }

    /// All items that a caller sees.
    fn all_seen(&self, caller: &Caller) -> BTreeSet<(ItemKind, &str)> {
        let entries = ItemKind::ALL.iter().flat_map(|kind| self.catalog.entries(*kind));
        let allowed =
            entries.filter(|it| matches!(decide(&self.rules, caller, it), Decision::Allow));
        allowed.map(|entry| (entry.kind(), entry.exposed())).collect()
    }

    /// The URIs that a caller can read, including those that match a template.
    fn readable(&self, caller: &Caller) -> BTreeSet<String> {
        let view = self.view(caller);
        let addresses = uris().into_iter().map(|(server, own)| qualified_uri(&server, own));
        addresses.filter(|address| view.route_resource(address).is_ok()).collect()
    }

    /// The URIs whose updates a caller receives.
    fn heard(&self, caller: &Caller) -> BTreeSet<String> {
        let view = self.view(caller);
        let heard = uris().into_iter().filter(|(server, own)| view.may_hear_of(server, own));
        heard.map(|(server, own)| qualified_uri(&server, own)).collect()
    }

    /// The servers whose log messages and tasks a caller may receive.
    fn heard_from(&self, caller: &Caller) -> BTreeSet<ServerName> {
        let view = self.view(caller);
        let servers = SERVERS.map(|name| ServerName::new(name).unwrap());
        servers.into_iter().filter(|server| view.may_hear_from(server)).collect()
    }

    fn view(&self, caller: &Caller) -> View {
        let (catalog, rules) = (self.catalog.clone(), self.rules.clone());
        View::new(Arc::new(catalog), Arc::new(rules), Arc::new(caller.clone()))
    }
}

/// The URIs of all servers.
fn uris() -> Vec<(ServerName, &'static str)> {
    let servers = SERVERS.map(|name| ServerName::new(name).unwrap());
    servers.iter().flat_map(|it| URIS.map(|own| (it.clone(), own))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Seen: bundles of the token were added to those of the endpoint.
    #[test]
    fn several_limits_intersect(
        text in text(), one in drawn_rule(), other in drawn_rule(),
    ) {
        let world = World::furnished(&text);
        let both = world.limited(&[&one, &other]);
        let alone = [&one, &other].map(|it| world.limited(&[it]));
        let [first, second] = alone.each_ref().map(|it| world.all_seen(it));
        let common: BTreeSet<_> = first.intersection(&second).copied().collect();
        prop_assert_eq!(world.all_seen(&both), common);
        let [first, second] = alone.each_ref().map(|it| world.readable(it));
        let common: BTreeSet<_> = first.intersection(&second).cloned().collect();
        prop_assert_eq!(world.readable(&both), common);
    }

    /// Seen: updates of resources were delivered that only an exact name would have hidden. A
    /// caller receives updates of resources that it can read, and notifications of servers that it
    /// sees items of.
    #[test]
    fn callers_receive_updates_of_visible_items(
        text in text(), one in drawn_rule(), other in drawn_rule(),
    ) {
        let world = World::furnished(&text);
        let both = world.limited(&[&one, &other]);
        let alone = [&one, &other].map(|it| world.limited(&[it]));
        for caller in alone.iter().chain([&both]) {
            prop_assert_eq!(world.heard(caller), world.readable(caller));
            let seen = world.view(caller);
            let seen = ItemKind::ALL.iter().flat_map(|kind| seen.entries(*kind));
            let seen: BTreeSet<_> = seen.map(|entry| entry.server().name.clone()).collect();
            prop_assert_eq!(world.heard_from(caller), seen);
        }
        let [first, second] = alone.each_ref().map(|it| world.heard(it));
        let common: BTreeSet<_> = first.intersection(&second).cloned().collect();
        prop_assert_eq!(world.heard(&both), common);
    }

    /// A URI that can be read once the servers have listed their items was possible before.
    #[test]
    fn readable_uris_were_reported_as_possible(text in text(), one in drawn(), other in drawn()) {
        let (world, unknown) = (World::furnished(&text), World::new(&text, &[]));
        let limits = [&one, &other];
        let readable = world.readable(&world.limited(&limits));
        let before = unknown.view(&unknown.limited(&limits));
        for (server, own) in uris() {
            if readable.contains(&qualified_uri(&server, own)) {
                let chance = before.could_contain_uri(&server, own);
                prop_assert_eq!(chance, Visibility::Possible, "{} {}", server, own);
            }
        }
    }

    /// The visibility predicted before servers list their items also holds for several limits.
    #[test]
    fn visible_items_were_reported_as_possible(text in text(), one in drawn(), other in drawn()) {
        let world = World::furnished(&text);
        let caller = world.limited(&[&one, &other]);
        let spaces = world.catalog.namespaces();
        for entry in ItemKind::ALL.iter().flat_map(|kind| world.catalog.entries(*kind)) {
            let server = &entry.server().name;
            let rules = CallerRules { rules: &world.rules, caller: &caller };
            if matches!(decide(&world.rules, &caller, entry), Decision::Allow) {
                prop_assert!(caller.may_have(server, spaces.prefix(server).unwrap()));
                let chance = match entry.kind() {
                    ItemKind::Tool | ItemKind::Prompt => visibility(rules, spaces, server, entry.exposed()),
                    _ => uri_visibility(rules, &world.catalog.possible_resource(server, entry.name())),
                };
                prop_assert_eq!(chance, Visibility::Possible, "{}", entry.exposed());
            }
        }
    }

    /// The order of limits does not matter, also after the rules were reloaded.
    #[test]
    fn limits_survive_a_reload(text in text(), one in drawn(), other in drawn()) {
        let world = World::furnished(&text);
        let both = world.limited(&[&one, &other]);
        let seen = world.all_seen(&both);
        prop_assert_eq!(world.all_seen(&world.limited(&[&other, &one])), seen.clone());
        let again = world.rules.refreshed_caller(&both).unwrap();
        prop_assert_eq!(world.all_seen(&again), seen.clone());
        let Drawn { agent, bundles, access } = &one;
        let who = CallerSpec { agent: *agent, bundles, access: *access, within: &[other.limit()], ..CallerSpec::default() };
        prop_assert_eq!(world.all_seen(&world.rules.caller(who).unwrap()), seen);
    }
}

const TWO: &str = r#"{ "access": "read-write",
    "servers": { "docs": { "command": "x" }, "prod": { "command": "x" },
                 "wild": { "command": "x", "trust": "untrusted" } },
    "bundles": { "read": { "serverId": "docs", "allowTools": ["plain"] }, "ops": { "serverId": "prod" },
                 "some": { "serverId": "wild", "allowTools": ["plain"] } },
    "agents": { "all": {}, "wild": { "tools": ["wild_*"] } } }"#;

#[test]
fn reason_names_its_limit() {
    let world = World::new(TWO, &[("docs", TOOLS), ("prod", TOOLS)]);
    let address = Limit { name: Some("address"), bundles: &["ops"], ..Limit::default() };
    let token = Limit { name: Some("token"), bundles: &["read"], ..Limit::default() };
    let within = [address, token];
    let who = || CallerSpec { within: &within, ..CallerSpec::default() };
    assert_eq!(
        world.why(who(), ItemKind::Tool, "prod_plain"),
        "bundles: no bundle asked for is of its server (limit of the token)"
    );
    assert_eq!(
        world.why(who(), ItemKind::Tool, "docs_plain"),
        "bundles: no bundle asked for is of its server (limit of the address)"
    );
    let caller = world.rules.caller(who()).unwrap();
    let steps =
        explain(&world.rules, &caller, world.catalog.get(ItemKind::Tool, "prod_plain").unwrap());
    let deciding: Vec<_> =
        steps.iter().filter(|it| it.decides).map(|it| it.reason.limit()).collect();
    assert_eq!(deciding, [Some("token")]);
    let of = |limit| steps.iter().filter(|it| it.reason.limit() == Some(limit)).count();
    assert_eq!((of("address"), of("token")), (4, 4));
}

/// An agent, or a bundle of another server, does not adopt the list of another limit's bundle.
#[test]
fn every_limit_must_list_items_of_an_untrusted_server() {
    let world = World::new(TWO, &[("wild", TOOLS)]);
    let some = Limit { bundles: &["some"], ..Limit::default() };
    let seen = |other: Limit<'_>| {
        let within = [some.clone(), other];
        world.seen(CallerSpec { within: &within, ..CallerSpec::default() })
    };
    assert_eq!(seen(Limit::default()), ["wild_plain"], "nothing is set, which is no limit");
    assert_eq!(seen(some.clone()), ["wild_plain"]);
    for agent in ["all", "wild"] {
        assert_eq!(seen(Limit { agent: Some(agent), ..Limit::default() }), [""; 0]);
    }
    // Within one limit, they apply together.
    let who = CallerSpec { agent: Some("wild"), bundles: &["some"], ..CallerSpec::default() };
    assert_eq!(world.seen(who), ["wild_plain"]);
}

#[test]
fn limit_with_a_removed_agent_or_bundle_admits_nothing() {
    let (old, new) = (World::new(TWO, &[]), World::new(r#"{ "agents": { "all": {} } }"#, &[]));
    let token = Limit { bundles: &["read"], ..Limit::default() };
    let who = CallerSpec { agent: Some("all"), within: &[token], ..CallerSpec::default() };
    let caller = old.rules.caller(who).unwrap();
    let gone = new.rules.refreshed_caller(&caller).unwrap_err();
    assert_eq!(gone.to_string(), "there is no bundle `read`");
}
