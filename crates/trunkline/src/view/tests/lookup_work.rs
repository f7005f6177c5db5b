//! Tests of the work of URI lookups: counted, not timed.

use super::*;
use crate::catalog::LookupWork;

const DENYING: &str = r#"{ "servers": { "a": { "command": "x", "denyTools": ["x://no", "x://no/*", "z*"] } },
    "agents": { "some": { "tools": ["*", "!a_x://gone*"] } } }"#;

/// As many templates as a list may have, each with another prefix.
fn templates(count: usize) -> Vec<Item> {
    let uris: Vec<_> = (0..count).map(|it| format!("z{it}://{}{{+p}}", "a/".repeat(20))).collect();
    addressed(&uris.iter().map(String::as_str).collect::<Vec<_>>())
}

fn spent(view: &View, address: &str) -> u64 {
    let work = LookupWork::default();
    let _ = view.find_resource(address, &work);
    work.spent()
}

/// Seen with 9,000 templates: one read of an unlisted URI took 1.4 s.
#[test]
fn a_lookup_takes_no_more_work_with_thousands_of_templates() {
    for who in [None, Some("some")] {
        let of = |count| {
            let mut items = templates(count);
            items.extend(addressed(&["x://r"]));
            view(DENYING, &[("a", items)], CallerSpec { agent: who, ..CallerSpec::default() })
        };
        let (few, many) = (of(9), of(9000));
        for address in ["q://u/x", "x://r", "x://no", "z3://a/", "x://", "trunkline://a/x://any"] {
            assert_eq!(spent(&few, address), spent(&many, address), "{address}");
            assert!(spent(&many, address) < 10_000, "{address}");
        }
    }
}

/// A lookup ends, whatever a server lists.
#[test]
fn a_lookup_that_needs_too_much_work_finds_nothing() {
    let same: Vec<_> = (0..10_000).map(|it| format!("x://{{a}}{it}{{b}}")).collect();
    let nested: Vec<_> = (0..3000).map(|it| format!("y://{}{{p}}", "a".repeat(it))).collect();
    // 40,000 spellings of one URI.
    let letter = |bits: u32, place: u32| if (bits >> place) & 1 == 1 { 'S' } else { 's' };
    let name = |bits| (0..16).map(|place| letter(bits, place)).collect::<String>();
    let spelled: Vec<_> = (0..40_000).map(|bits| format!("v://{}", name(bits))).collect();
    let uris = [same, nested, spelled].concat();
    let items = addressed(&uris.iter().map(String::as_str).collect::<Vec<_>>());
    let text = r#"{ "servers": { "a": { "command": "x", "denyTools": ["q"] } } }"#;
    let view = view(text, &[("a", items)], CallerSpec::default());
    let most = LookupWork::default();
    while most.spend(1000).is_ok() {}
    for address in [
        format!("x://{}", "1".repeat(8000)),
        format!("y://{}", "a".repeat(8000)),
        format!("v:/%73{}", "s".repeat(15)),
    ] {
        // The last step is counted before it is done.
        assert!(spent(&view, &address) < most.spent() + 10_000, "{address:.20}");
    }
    let hard = format!("x://{}", "1".repeat(8000));
    let error = view.route_resource(&hard).unwrap_err();
    assert!(error.to_string().starts_with("there is no resource `x://1"), "{error}");
}

/// Seen with 256 links and 9,000 templates: no response within a minute.
#[test]
fn all_links_of_a_result_share_one_bound() {
    let uris: Vec<_> = (0..10_000).map(|it| format!("x://{{a}}{it}{{b}}")).collect();
    let items = addressed(&uris.iter().map(String::as_str).collect::<Vec<_>>());
    let text = r#"{ "servers": { "a": { "command": "x" }, "b": { "command": "x" } } }"#;
    let servers = [("a", items), ("b", addressed(&["y://r"]))];
    let view = view(text, &servers, CallerSpec::default());
    let (a, work) = (ServerName::new("a").unwrap(), LookupWork::default());
    assert_eq!(view.exposed_uri(&a, "x://1", &work), None);
    for _ in 0..1000 {
        let _ = view.exposed_uri(&a, "x://1", &work);
    }
    // Every further link is qualified, which always resolves to its server.
    assert_eq!(view.exposed_uri(&a, "x://1", &work).unwrap(), "trunkline://a/x://1");
    let mut lookup = view.resource_lookup();
    let found = (0..10_000).filter(|it| lookup.find(&format!("x://{it}")).is_some()).count();
    assert!((1..10_000).contains(&found), "{found}");
}
