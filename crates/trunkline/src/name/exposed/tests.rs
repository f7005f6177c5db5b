//! Tests of exposed names, by example and by property.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::{btree_map, btree_set};
use proptest::prelude::*;

use super::super::{HOST_TOOL_NAMES, NameOptions, Namespaces};
use super::*;

/// Servers with their prefixes and items.
type World = BTreeMap<String, (Option<String>, BTreeSet<String>)>;

fn server(text: &str) -> ServerName {
    ServerName::new(text).unwrap()
}

fn spaces(world: &World, options: NameOptions) -> Namespaces {
    let servers: Vec<_> =
        world.iter().map(|(name, (prefix, _))| (server(name), prefix.as_deref())).collect();
    Namespaces::new(options, servers.iter().map(|(name, prefix)| (name, *prefix)))
}

/// Every name of a world, by server and upstream name.
fn names(spaces: &Namespaces, world: &World) -> BTreeMap<(String, String), AssignedName> {
    let servers: Vec<_> = world.keys().map(|name| server(name)).collect();
    let mut claims = Vec::new();
    for (server, (_, owns)) in servers.iter().zip(world.values()) {
        claims.extend(owns.iter().map(|own| NameRequest { server, own }));
    }
    let key = |claim: &NameRequest<'_>| (claim.server.to_string(), claim.own.to_owned());
    let exposed = spaces.expose(&claims);
    claims.iter().map(key).zip(exposed).collect()
}

fn world(entries: &[(&str, &[&str])]) -> World {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    entries.iter().map(|(name, owns)| ((*name).to_owned(), (None, owned(owns)))).collect()
}

fn shown(world: &World) -> Vec<String> {
    let spaces = spaces(world, NameOptions::default());
    names(&spaces, world).into_values().map(|exposed| exposed.name.to_string()).collect()
}

#[test]
fn names_of_the_seeds_are_as_written_there() {
    let world = world(&[
        ("chrome-devtools", &["navigate_page", "take_screenshot"]),
        ("context7", &["query-docs", "resolve-library-id"]),
        ("freecad", &["create_object"]),
    ]);
    assert_eq!(
        shown(&world),
        [
            "chrome-devtools_navigate_page",
            "chrome-devtools_take_screenshot",
            "context7_query-docs",
            "context7_resolve-library-id",
            "freecad_create_object",
        ]
    );
    let options = NameOptions { separator: "__".into(), ..NameOptions::default() };
    let names = names(&spaces(&world, options), &world);
    let name = &names[&("freecad".to_owned(), "create_object".to_owned())].name;
    assert_eq!(name.as_str(), "freecad__create_object");
}

#[test]
fn any_server_name_works() {
    let long = "x".repeat(100);
    let world = world(&[
        ("My Server", &["read"]),
        ("größe.v2", &["a.b"]),
        (&long, &["t"]),
        ("文件", &["读"]),
    ]);
    assert_eq!(
        shown(&world),
        [
            "My_Server_read",
            "gr_e_v2_a_b",
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-oalzjdyp_t",
            "vojjwkve_nsfxzwrh",
        ]
    );
}

#[test]
fn name_with_the_prefix_of_another_server_is_changed() {
    let world = world(&[("a", &["b_c", "x"]), ("a_b", &["c"])]);
    let names = names(&spaces(&world, NameOptions::default()), &world);
    let of = |server: &str, own: &str| &names[&(server.to_owned(), own.to_owned())];
    assert_eq!(of("a_b", "c").name.as_str(), "a_b_c");
    assert_eq!(of("a", "x").name.as_str(), "a_x");
    let moved = of("a", "b_c");
    assert!(!moved.name.as_str().starts_with("a_b_"), "{}", moved.name);
    let adjusted = moved.adjusted.as_ref().unwrap();
    assert_eq!(&*adjusted.plain, "a_b_c");
    assert_eq!(adjusted.reason, AdjustmentReason::Foreign(server("a_b")));
}

#[test]
fn colliding_servers_are_renamed_and_the_exact_name_is_kept() {
    let world = world(&[("a b", &["t"]), ("a.b", &["t"]), ("a_b", &["t"])]);
    let spaces = spaces(&world, NameOptions::default());
    assert_eq!(spaces.prefix(&server("a_b")), Some("a_b"));
    assert_eq!(spaces.adjusted().count(), 2);
    assert_eq!(names(&spaces, &world).len(), 3);
}

#[test]
fn colliding_tools_are_renamed_and_the_exact_name_is_kept() {
    let world = world(&[("s", &["a.b", "a/b", "a_b"])]);
    let names = names(&spaces(&world, NameOptions::default()), &world);
    let of = |own: &str| &names[&("s".to_owned(), own.to_owned())];
    assert_eq!(of("a_b").name.as_str(), "s_a_b");
    for own in ["a.b", "a/b"] {
        assert!(of(own).name.as_str().starts_with("s_a_b_"));
        assert_eq!(of(own).adjusted.as_ref().unwrap().reason, AdjustmentReason::Clash);
    }
}

#[test]
fn colliding_bare_names_are_all_renamed() {
    let mut world = world(&[("x", &["search", "y_z"]), ("y", &["z"]), ("z", &["search"])]);
    for name in ["x", "z"] {
        world.get_mut(name).unwrap().0 = Some(String::new());
    }
    let names = names(&spaces(&world, NameOptions::default()), &world);
    let of = |server: &str, own: &str| names[&(server.to_owned(), own.to_owned())].name.as_str();
    assert!(of("x", "search").starts_with("search_"));
    assert_ne!(of("x", "search"), of("z", "search"));
    assert_eq!(of("y", "z"), "y_z");
    assert!(of("x", "y_z").ends_with("_y_z"));
}

#[test]
fn names_of_the_host_are_left_alone() {
    let world = world(&[("view", &["file", "dir"])]);
    let reserved = BTreeSet::from(["view_file".into()]);
    let options = NameOptions { reserved, ..NameOptions::default() };
    let names = names(&spaces(&world, options), &world);
    let file = &names[&("view".to_owned(), "file".to_owned())];
    assert_ne!(file.name.as_str(), "view_file");
    assert_eq!(file.adjusted.as_ref().unwrap().reason, AdjustmentReason::Reserved);
}

/// Neither by its prefix nor by a bare name does a server get the name of a tool of the host.
#[test]
fn names_of_the_tools_of_the_host_are_never_assigned() {
    let owns: Vec<_> =
        HOST_TOOL_NAMES.iter().map(|name| name.strip_prefix("trunkline_").unwrap()).collect();
    let mut world = world(&[("trunkline", &owns), ("bare", &HOST_TOOL_NAMES), ("other", &[])]);
    world.get_mut("bare").unwrap().0 = Some(String::new());
    let alone = {
        let mut world = world.clone();
        world.remove("trunkline");
        world
    };
    for world in [world, alone] {
        let names = names(&spaces(&world, NameOptions::default()), &world);
        for ((server, own), assigned) in &names {
            let name = assigned.name.as_str();
            assert!(!HOST_TOOL_NAMES.contains(&name), "{server} {own}");
            let adjusted = assigned.adjusted.as_ref().unwrap();
            assert!(adjusted.reason.is_ambiguous(), "{server} {own}: {:?}", adjusted.reason);
            assert!(HOST_TOOL_NAMES.contains(&&*adjusted.plain), "{}", adjusted.plain);
        }
        let unique: BTreeSet<_> = names.values().map(|assigned| &assigned.name).collect();
        assert_eq!(unique.len(), names.len());
    }
}

#[test]
fn a_name_made_to_look_like_a_shortened_one_does_not_take_it() {
    let long = "t".repeat(100);
    let first = world(&[("s", &[&long])]);
    let taken = shown(&first).remove(0);
    let copied = taken.strip_prefix("s_").unwrap().to_owned();
    let second = world(&[("s", &[&long, &copied])]);
    let names = names(&spaces(&second, NameOptions::default()), &second);
    assert_eq!(names[&("s".to_owned(), long)].name.as_str(), taken);
    assert_ne!(names[&("s".to_owned(), copied)].name.as_str(), taken);
}

#[test]
fn the_same_claim_twice_ends() {
    let server = server("s");
    let spaces = Namespaces::new(NameOptions::default(), [(&server, None)]);
    let claim = NameRequest { server: &server, own: "t" };
    let names = spaces.expose(&[claim, claim, claim]);
    let unique: BTreeSet<_> = names.iter().map(|exposed| &exposed.name).collect();
    assert_eq!(unique.len(), 3);
}

/// Strings of few different characters, so that they collide often, and some long ones.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[ab_]{1,4}",
        4 => "[a.é]{1,3}",
        1 => "[a-z_]{40,100}",
        1 => "\\PC{1,12}",
    ]
    .prop_filter("a name", |text| ServerName::new(text).is_ok())
}

fn worlds(prefix: BoxedStrategy<Option<String>>) -> impl Strategy<Value = World> {
    btree_map(text(), (prefix, btree_set(text(), 0..6)), 0..7)
}

fn derived() -> BoxedStrategy<Option<String>> {
    Just(None).boxed()
}

fn chosen() -> BoxedStrategy<Option<String>> {
    proptest::option::of("[ab_]{0,2}").boxed()
}

fn options() -> impl Strategy<Value = NameOptions> {
    let reserved = btree_set("[ab_]{1,5}".prop_map(Box::from), 0..3);
    ("(_|__|-|a)", 16_usize..=64, reserved).prop_map(|(separator, max_length, reserved)| {
        NameOptions { separator: separator.into(), max_length, reserved }
    })
}

fn is_valid(name: &str, options: &NameOptions) -> bool {
    (1..=options.max_length).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        && !options.reserved.contains(name)
}

proptest! {
    /// TOOL-1, TOOL-2, TOOL-13.
    #[test]
    fn every_name_is_valid_and_means_one_thing(world in worlds(chosen()), options in options()) {
        let names = names(&spaces(&world, options.clone()), &world);
        let unique: BTreeSet<_> = names.values().map(|exposed| exposed.name.as_str()).collect();
        prop_assert_eq!(unique.len(), names.len());
        for name in unique {
            prop_assert!(is_valid(name, &options), "{}", name);
        }
    }

    #[test]
    fn the_order_of_claims_does_not_matter(world in worlds(chosen()), seed in any::<u64>()) {
        let spaces = spaces(&world, NameOptions::default());
        let servers: Vec<_> = world.keys().map(|name| server(name)).collect();
        let mut claims = Vec::new();
        for (server, (_, owns)) in servers.iter().zip(world.values()) {
            claims.extend(owns.iter().map(|own| NameRequest { server, own }));
        }
        let before: BTreeMap<_, _> = claims.iter().copied().zip(spaces.expose(&claims)).collect();
        claims.sort_by_key(|claim| digest(&[claim.own.as_bytes(), &seed.to_le_bytes()], 8));
        let after: BTreeMap<_, _> = claims.iter().copied().zip(spaces.expose(&claims)).collect();
        prop_assert_eq!(before, after);
    }

    /// Servers that go down, return, or change their items do not affect names of others.
    #[test]
    fn names_are_stable_when_other_servers_come_and_go(
        world in worlds(derived()),
        gone in proptest::collection::vec(any::<bool>(), 7),
    ) {
        let spaces = spaces(&world, NameOptions::default());
        let before = names(&spaces, &world);
        let mut after = world.clone();
        for ((_, owns), is_gone) in after.values_mut().zip(&gone) {
            if *is_gone {
                owns.clear();
            }
        }
        for (claim, exposed) in names(&spaces, &after) {
            prop_assert_eq!(&before[&claim], &exposed);
        }
    }

    /// After a server is removed from the configuration, only names that looked like its names, or
    /// servers that looked like it, change.
    #[test]
    fn names_are_stable_when_the_configuration_changes(
        world in worlds(derived()),
        gone in proptest::collection::vec(any::<bool>(), 7),
    ) {
        let before = names(&spaces(&world, NameOptions::default()), &world);
        let mut after = world.clone();
        let mut gone = gone.into_iter();
        after.retain(|_, _| gone.next() != Some(true));
        let left = world.keys().filter(|name| !after.contains_key(*name));
        let left: Vec<_> = left.map(|name| sanitised(name).0).collect();
        for ((server, own), exposed) in names(&spaces(&after, NameOptions::default()), &after) {
            let (name, _) = sanitised(&server);
            let plain = format!("{name}_{}", sanitised(&own).0);
            let is_related = |left: &String| *left == name || plain.starts_with(&format!("{left}_"));
            if !left.iter().any(is_related) {
                prop_assert_eq!(&before[&(server, own)], &exposed);
            }
        }
    }

    /// Server names without the separator never affect each other.
    #[test]
    fn plain_server_names_never_change_anything(
        world in btree_map("[a-c-]{1,3}", (derived(), btree_set(text(), 0..6)), 1..7),
    ) {
        let together = names(&spaces(&world, NameOptions::default()), &world);
        for (name, value) in &world {
            let alone = World::from([(name.clone(), value.clone())]);
            for (claim, exposed) in names(&spaces(&alone, NameOptions::default()), &alone) {
                prop_assert_eq!(&together[&claim], &exposed);
            }
        }
    }
}

proptest! {
    /// A caller may send any string as a name; a prefix length may fall inside a character.
    #[test]
    fn any_text_can_be_looked_up(text in "\\PC{0,12}", servers in btree_set("[a-z]{1,6}", 0..4)) {
        let world: World = servers.into_iter().map(|name| (name, (None, BTreeSet::new()))).collect();
        let spaces = spaces(&world, NameOptions::default());
        let owner = spaces.owner(&text);
        prop_assert_eq!(spaces.owners(&text).is_empty(), owner.is_none());
    }
}
