//! Tests of unlisted URIs: the server that reads them, and the rules that still apply.

use super::*;
use crate::catalog::LookupWork;
use crate::name::qualified_uri;

const TWO: &str = r#"{ "servers": { "a": { "command": "x" }, "b": { "command": "x" } } }"#;

fn read(view: &View, address: &str) -> String {
    match view.route_resource(address) {
        Ok(route) if route.entry.is_listed() => format!("{} lists it", route.entry.server().name),
        Ok(route) => format!("{} {}", route.entry.server().name, route.uri),
        Err(none) => none.to_string(),
    }
}

/// TOOL-14: the only server with resources reads URIs of any scheme. A web URI is read from no
/// server unless one lists such URIs.
#[test]
fn the_only_server_with_resources_reads_a_uri_that_no_list_names() {
    let servers = [("a", addressed(&["x://one"])), ("b", vec![named("tool")])];
    let view = view(TWO, &servers, CallerSpec::default());
    assert_eq!(read(&view, "x://one"), "a lists it");
    assert_eq!(read(&view, "x://other"), "a x://other");
    assert!(read(&view, "https://example.com/a").starts_with("there is no resource"));
    assert_eq!(read(&view, "trunkline://a/https://example.com/a"), "a https://example.com/a");
    assert_eq!(read(&view, "trunkline://a/x://other"), "a x://other");
    assert!(read(&view, "trunkline://b/x://other").starts_with("there is no resource"));
    for bad in ["", "x://\u{7}", &format!("x://{}", "y".repeat(9000))] {
        assert!(view.route_resource(bad).is_err(), "{bad}");
    }
}

/// A server that lists no resources has some if it declares the capability.
#[test]
fn a_server_that_declares_resources_and_lists_none_can_be_meant() {
    let config = config::parse("mcp.json", TWO).config;
    let mut sources = CatalogBuilder::new(&config);
    let listing = ServerItems::new([named("tool")]).declare_resources(true);
    sources.add(&ServerName::new("b").unwrap(), Arc::new(listing));
    sources.add(&ServerName::new("a").unwrap(), Arc::new(ServerItems::new([named("tool")])));
    let rules = Arc::new(Rules::new(&config, config.agents().named.clone()));
    let view = View::new(Arc::new(Catalog::build(&sources)), rules, Arc::default());
    assert_eq!(read(&view, "x://other"), "b x://other");
}

/// Seen: while `b` was starting, and when it failed to start, URIs that only `b` lists were read
/// from `a`.
#[test]
fn a_uri_is_not_read_from_one_server_while_another_may_list_it() {
    let text = r#"{ "servers": { "a": { "command": "x" }, "b": { "command": "x" } },
        "agents": { "some": { "tools": ["*", "!b_*"] } } }"#;
    let config = config::parse("mcp.json", text).config;
    let of = |availability: Availability, agent| {
        let mut sources = CatalogBuilder::new(&config);
        let (a, b) = (ServerName::new("a").unwrap(), ServerName::new("b").unwrap());
        sources.add(&a, Arc::new(ServerItems::new(addressed(&["a://one"]))));
        sources.add(&b, Arc::new(ServerItems::default().with_unlisted_resources(true)));
        sources.set_availability(&b, availability);
        let rules = Rules::new(&config, config.agents().named.clone());
        let caller = rules.caller(CallerSpec { agent, ..CallerSpec::default() }).unwrap();
        View::new(Arc::new(Catalog::build(&sources)), Arc::new(rules), Arc::new(caller))
    };
    let starting = of(Availability::Available, None);
    assert_eq!(
        read(&starting, "b://one"),
        "no server has listed the resource `b://one`, and server `b` has not listed its resources yet; \
         try again, or name another server, as in `trunkline://a/b://one`"
    );
    let down = of(Availability::Down("refused".into()), None);
    assert!(read(&down, "b://one").contains("and server `b` is down: refused; try again"));
    for view in [&starting, &down] {
        assert!(view.resource_lookup().find("b://one").is_none());
        assert_eq!(read(view, "a://one"), "a lists it");
        assert_eq!(read(view, "a://two"), "a a://two");
        assert_eq!(read(view, "trunkline://a/b://one"), "a b://one");
    }
    // A server that the caller may not read it from has no influence, and is not named.
    assert_eq!(read(&of(Availability::Available, Some("some")), "b://one"), "a b://one");
}

/// Seen: patterns and agents that hide a URI were not evaluated before its server was known, so the
/// caller received its updates, and learned that its server is down.
#[test]
fn patterns_and_agents_hide_uris_of_servers_whose_lists_are_not_known() {
    let text = r#"{ "servers": { "a": { "command": "x", "denyTools": ["x://secret/*"] },
            "b": { "command": "x", "allowTools": ["x://pub/*", "x://t/{n}"] }, "dead": { "command": "x" } },
        "agents": { "some": { "tools": ["*", "!dead_*", "!*private*"] }, "one": { "tools": ["a_t"] } },
        "bundles": { "few": { "serverId": "dead", "denyTools": ["y*"] } } }"#;
    let of = |agent: Option<&'static str>, bundles: &'static [&'static str]| {
        view(text, &[], CallerSpec { agent, bundles, ..CallerSpec::default() })
    };
    let heard = |view: &View, server: &str, uri: &str| {
        let server = ServerName::new(server).unwrap();
        let owner = view.possible_uri_owner(&qualified_uri(&server, uri));
        assert_eq!(owner.is_some(), view.may_hear_of(&server, uri), "{uri}");
        owner.is_some()
    };
    let all = of(None, &[]);
    assert!(!heard(&all, "a", "x://secret/1") && heard(&all, "a", "x://open"));
    assert!(heard(&all, "b", "x://pub/1") && heard(&all, "b", "x://t/1"));
    assert!(!heard(&all, "b", "x://secret/1"));
    let some = of(Some("some"), &[]);
    assert!(!heard(&some, "dead", "x://y") && !heard(&some, "a", "x://private/1"));
    assert!(heard(&some, "a", "x://open"));
    assert!(!heard(&of(Some("one"), &[]), "a", "x://open"));
    let few = of(None, &["few"]);
    assert!(!heard(&few, "dead", "y://1") && heard(&few, "dead", "x://1"));
    assert!(!heard(&few, "a", "x://open"));
}

/// TOOL-14: of several servers, the one that lists the scheme is used; otherwise the message names
/// them.
#[test]
fn of_several_servers_the_scheme_decides_or_the_message_names_them() {
    let servers =
        [("a", addressed(&["x://one", "z://1"])), ("b", addressed(&["y://{n}/data", "z://2"]))];
    let view = view(TWO, &servers, CallerSpec::default());
    assert_eq!(read(&view, "x://other"), "a x://other");
    assert_eq!(read(&view, "Y:other"), "b Y:other");
    assert_eq!(
        read(&view, "q://other"),
        "no server lists the resource `q://other`; `a`, `b` could have it: \
         name the server, as in `trunkline://a/q://other`"
    );
    assert_eq!(
        read(&view, "z://3"),
        "no server lists the resource `z://3` (did you mean `z://1` or `z://2`?); `a`, `b` could have it: \
         name the server, as in `trunkline://a/z://3`"
    );
    assert_eq!(read(&view, "trunkline://b/q://other"), "b q://other");
    // A link of `a` to an unlisted URI resolves to `a`, or to the error above.
    let exposed = |server: &str, uri| {
        view.exposed_uri(&ServerName::new(server).unwrap(), uri, &LookupWork::default())
    };
    assert_eq!(exposed("a", "y://other").as_deref(), Some("trunkline://a/y://other"));
    assert_eq!(exposed("b", "y://other"), None);
    assert_eq!(exposed("a", "q://other"), None);
    assert_eq!(exposed("a", "https://example.com"), None);
}

/// Seen: `a` has no resources, and links to a URI that only `b` could have.
#[test]
fn a_link_never_leads_to_the_unlisted_resource_of_another_server() {
    let servers =
        [("a", vec![named("tool")]), ("b", addressed(&["y://one", "https://b.example/"]))];
    let view = view(TWO, &servers, CallerSpec::default());
    let a = ServerName::new("a").unwrap();
    for own in ["y://other", "q://other", "file:///etc/passwd", "https://c.example/", "other"] {
        let link =
            view.exposed_uri(&a, own, &LookupWork::default()).unwrap_or_else(|| own.to_owned());
        let led = view.route_resource(&link);
        assert!(led.is_err(), "{own}: {led:?}");
    }
    // No other server can have it, so it stays unqualified.
    assert_eq!(view.exposed_uri(&a, "http://c.example/", &LookupWork::default()), None);
}

/// Seen: `TRUNKLINE://b/y://one` and ` y://one` were forwarded unchanged, and URL parsers of
/// clients turn them into resources of `b`.
#[test]
fn a_link_that_clients_may_read_as_another_is_qualified() {
    let servers =
        [("a", addressed(&["x://one", "y://mine"])), ("b", addressed(&["y://one", "y://t/{n}"]))];
    let view = view(TWO, &servers, CallerSpec::default());
    let a = ServerName::new("a").unwrap();
    for own in [
        "TRUNKLINE://b/y://one",
        " y://one",
        "y://one\t",
        "Y://one",
        "y://./one",
        "y://ONE",
        "y://t/../t/1",
        " x://one",
        "UI://trunkline/b/ui://x",
    ] {
        let link = view.exposed_uri(&a, own, &LookupWork::default());
        assert_eq!(link.as_deref(), Some(&*format!("trunkline://a/{own}")), "{own:?}");
        let link = view.catalog().exposed_uri(&a, own);
        assert_eq!(link.as_deref(), Some(&*format!("trunkline://a/{own}")), "{own:?}");
    }
    for own in ["x://one", "y://mine", "y://other", "X://other"] {
        assert_eq!(view.exposed_uri(&a, own, &LookupWork::default()), None, "{own:?}");
    }
}

/// If a rule hides the resources of `a`, a link of `a` does not resolve to those of `b`.
#[test]
fn link_to_a_denied_resource_reaches_no_other_server() {
    let text = r#"{ "servers": { "a": { "command": "x", "denyTools": ["q://{any}"] }, "b": { "command": "x" } } }"#;
    let servers = [("a", addressed(&["x://one"])), ("b", addressed(&["y://one"]))];
    let view = view(text, &servers, CallerSpec::default());
    let link = view
        .exposed_uri(&ServerName::new("a").unwrap(), "q://other", &LookupWork::default())
        .unwrap();
    assert_eq!(link, "trunkline://a/q://other");
    assert!(view.route_resource(&link).is_err());
}

/// A URI that is denied on the server that lists its scheme is not read from another server, which
/// would learn of it.
#[test]
fn a_denied_uri_is_not_read_from_another_server() {
    let text = r#"{ "servers": { "a": { "command": "x", "denyTools": ["x://secret"] }, "b": { "command": "x" } } }"#;
    let servers = [("a", addressed(&["x://one"])), ("b", addressed(&["y://one"]))];
    let view = view(text, &servers, CallerSpec::default());
    for spelling in ["x://secret", "X://%73ecret", "trunkline://a/x://secret"] {
        assert!(view.route_resource(spelling).is_err(), "{spelling}");
    }
}

#[test]
fn uri_of_a_failed_server_is_unavailable() {
    let text = r#"{ "servers": { "down": { "command": "x" } } }"#;
    let view = view(text, &[("down", addressed(&["x://one"]))], CallerSpec::default());
    assert_eq!(read(&view, "x://other"), "server `down` is down: refused");
}

/// TOOL-12: deny lists and their templates apply to unlisted URIs, in every spelling.
#[test]
fn denied_uri_is_not_read_as_unlisted() {
    let text = r#"{ "servers": { "a": { "command": "x",
        "denyTools": ["x://secret", "x://keys/{name}", "x://{owner}/private"] } } }"#;
    let items = addressed(&["x://one", "x://keys/{name}"]);
    let view = view(text, &[("a", items)], CallerSpec::default());
    for hidden in [
        "x://secret",
        "X://secret",
        "x://%73ecret",
        "x:///secret",
        "x://a/../secret",
        "x://secret?a=1",
        "trunkline://a/x://./secret",
        "x://keys/1",
        "X://KEYS/1",
        "x://%6beys/a/b",
        "x://keys/",
        "x://keys",
        "x://a/../keys/1",
        "x://me/private",
        "x://me/%70rivate",
        "trunkline://a/x://me//private",
    ] {
        assert!(view.route_resource(hidden).is_err(), "{hidden}");
    }
    for seen in ["x://secrets", "x://key/1", "x://me/privates", "y://secret"] {
        assert!(view.route_resource(seen).is_ok(), "{seen}");
    }
}

/// Seen: a template in `denyTools` denied unlisted URIs, but no listed resource.
#[test]
fn a_denied_template_hides_listed_resources() {
    let text = r#"{ "servers": { "a": { "command": "x", "denyTools": ["x://secret/{n}"] },
            "b": { "command": "x" } },
        "bundles": { "few": { "serverId": "b", "denyTools": ["y://{owner}/private"] } } }"#;
    let a = addressed(&[
        "x://secret/1",
        "X://Secret/2",
        "x://open/1",
        "x://secret/deep/{m}",
        "x://{+any}",
    ]);
    let b = addressed(&["y://me/private", "y://me/public"]);
    let servers = [("a", a), ("b", b)];
    let all = view(text, &servers, CallerSpec::default());
    let shown = |view: &View, kind| {
        let shown: Vec<_> = view.entries(kind).map(Entry::exposed).collect();
        shown.join(" ")
    };
    assert_eq!(shown(&all, ItemKind::Resource), "x://open/1 y://me/private y://me/public");
    assert_eq!(shown(&all, ItemKind::ResourceTemplate), "x://{+any}");
    for hidden in ["x://secret/1", "X://Secret/2", "x://secret/3", "trunkline://a/x://secret/1"] {
        assert!(all.route_resource(hidden).is_err(), "{hidden}");
    }
    let few = view(text, &servers, CallerSpec { bundles: &["few"], ..CallerSpec::default() });
    assert_eq!(shown(&few, ItemKind::Resource), "y://me/public");
}

/// An agent may read a URI by a pattern only in its normalised spelling.
#[test]
fn patterns_of_an_agent_hold_for_unlisted_uris() {
    let text = r#"{ "servers": { "a": { "command": "x" } },
        "agents": { "few": { "tools": ["a_x://public/*", "!a_x://public/draft*"] } } }"#;
    let who = CallerSpec { agent: Some("few"), ..CallerSpec::default() };
    let view = view(text, &[("a", addressed(&["x://public/one", "x://{+any}"]))], who);
    assert_eq!(read(&view, "x://public/one"), "a lists it");
    assert_eq!(read(&view, "x://public/two"), "a x://public/two");
    assert_eq!(read(&view, "x://public/Two%20three?q=1"), "a x://public/Two%20three?q=1");
    for hidden in [
        "x://private",
        "x://public/../private",
        "x://public/%2e%2e/private",
        "x://public/draft",
        "x://public/%64raft/1",
        "x://public/a/../draft",
        "trunkline://a/x://public/../private",
    ] {
        assert!(view.route_resource(hidden).is_err(), "{hidden}");
    }
}

/// Allow lists and trust apply to unlisted URIs.
#[test]
fn allow_lists_and_trust_hold_for_unlisted_uris() {
    let text = r#"{ "servers": { "a": { "command": "x", "allowTools": ["x://given"] },
            "b": { "command": "x", "trust": "untrusted" } },
        "bundles": { "few": { "serverId": "a", "allowTools": ["x://one"] } } }"#;
    let servers = [("a", addressed(&["x://one"])), ("b", addressed(&["y://one"]))];
    let all = view(text, &servers, CallerSpec::default());
    assert_eq!(read(&all, "x://given"), "a x://given");
    for hidden in ["x://other", "X://given", "y://one", "y://other", "trunkline://b/y://other"] {
        assert!(all.route_resource(hidden).is_err(), "{hidden}");
    }
    let few = view(text, &servers, CallerSpec { bundles: &["few"], ..CallerSpec::default() });
    assert!(few.route_resource("x://given").is_err());
}

/// A denied template hides the URIs that it covers, although a less specific template is visible.
#[test]
fn specific_denied_template_hides_its_uris() {
    let text = r#"{ "servers": { "a": { "command": "x" } },
        "agents": { "a": { "tools": ["*", "!a_x://keys/{name}"] }, "b": { "tools": ["a_x://public/{name}"] } } }"#;
    let items = || addressed(&["x://{+any}", "x://keys/{name}", "x://public/{name}"]);
    let of = |agent| {
        view(text, &[("a", items())], CallerSpec { agent: Some(agent), ..CallerSpec::default() })
    };
    assert!(of("a").route_resource("x://keys/1").is_err());
    assert!(of("a").route_resource("x://%6beys/1").is_err());
    assert_eq!(read(&of("a"), "x://other/1"), "a lists it");
    assert_eq!(read(&of("b"), "x://public/1"), "a lists it");
}

/// Patterns in lists apply to unlisted URIs, in every spelling; a pattern that allows a URI must
/// also match its normalised spelling.
#[test]
fn patterns_of_lists_hold_for_unlisted_uris() {
    let of = |list: &str| {
        let text = format!(r#"{{ "servers": {{ "a": {{ "command": "x", {list} }} }} }}"#);
        view(&text, &[("a", addressed(&["x://public/one"]))], CallerSpec::default())
    };
    let denying = of(r#""denyTools": ["x://Keys/*"]"#);
    assert_eq!(read(&denying, "x://other"), "a x://other");
    for spelling in ["x://Keys/1", "x://keys/1", "X:///k%65ys/1", "x://public/../keys/1"] {
        assert!(denying.route_resource(spelling).is_err(), "{spelling}");
    }
    let allowing = of(r#""allowTools": ["x://public/*"]"#);
    assert_eq!(read(&allowing, "x://public/two"), "a x://public/two");
    for hidden in ["x://private", "x://public/../private", "x://public/%2e%2e/private"] {
        assert!(allowing.route_resource(hidden).is_err(), "{hidden}");
    }
}
