//! Measures a catalog with many tools: build, view and routing by name.

use std::sync::Arc;
use std::time::Duration;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region};
use trunkline::catalog::{Catalog, CatalogBuilder, Item, ItemKind, ServerItems};
use trunkline::config::{self, Config};
use trunkline::message::Raw;
use trunkline::policy::{CallerSpec, Rules};
use trunkline::view::View;
use trunkline_testkit::generate::{Entries, configuration};

use crate::measure::{Effort, in_turn, shortest, time};
use crate::table::{Aim, Quantity, Row, Table};

const SERVERS: usize = 1_000;
const TOOLS: usize = 50;

/// Number of patterns of the agent; for most tools all of them are evaluated.
const PATTERNS: usize = 40;

/// Number of names routed per round.
const ROUTED: u32 = 10_000;

/// A delay that is not noticeable between two turns of a model.
const VIEW: Duration = Duration::from_millis(10);

/// Negligible relative to a call.
const ROUTE: Duration = Duration::from_micros(1);

/// Maximum memory per entry, excluding its definition.
const ENTRY: f64 = 400.0;

pub(crate) fn rows(effort: Effort, table: &mut Table) {
    let config = config::parse("bench", configuration(SERVERS, Entries::Good)).config;
    let listings = listings();
    build_row(effort, &config, &listings, table);
    let before = Region::new(&INSTRUMENTED_SYSTEM);
    let catalog = Arc::new(build(&config, &listings));
    let change = before.change();
    let kept = change.bytes_allocated.saturating_sub(change.bytes_deallocated);
    table.push(Row {
        name: "catalog: memory per tool, beside its definition".to_owned(),
        measured: Quantity::Bytes(kept as f64 / (SERVERS * TOOLS) as f64),
        baseline: Some(("the definition", Quantity::Bytes(definition(0).len() as f64))),
        aim: Some(Aim::Below(Quantity::Bytes(ENTRY))),
    });
    let view = view_of(&config, catalog);
    view_row(effort, &view, table);
    route_rows(effort, &view, table);
}

/// A view of an agent with many patterns, in a catalog with many tools.
pub(crate) fn large_view() -> View {
    let config = config::parse("bench", configuration(SERVERS, Entries::Good)).config;
    let catalog = Arc::new(build(&config, &listings()));
    view_of(&config, catalog)
}

/// A definition of typical size.
fn definition(tool: usize) -> String {
    format!(
        r#"{{"name":"tool_{tool}","description":"Does the thing that tool number {tool} is for, and says what came of it.","inputSchema":{{"type":"object","properties":{{"path":{{"type":"string","description":"Where to do it"}},"limit":{{"type":"integer"}}}},"required":["path"]}},"annotations":{{"readOnlyHint":true}}}}"#
    )
}

/// The items of every server, with separate definitions.
fn listings() -> Vec<Arc<ServerItems>> {
    let item = |tool: usize| {
        let definition = Raw::from_text(&definition(tool)).expect("it is JSON");
        Item::new(ItemKind::Tool, &format!("tool_{tool}"), definition)
    };
    (0..SERVERS).map(|_| Arc::new(ServerItems::new((0..TOOLS).map(item)))).collect()
}

fn build(config: &Config, listings: &[Arc<ServerItems>]) -> Catalog {
    let mut sources = CatalogBuilder::new(config);
    for (server, listing) in config.servers().zip(listings) {
        sources.add(&server.name, Arc::clone(listing));
    }
    Catalog::build(&sources)
}

/// Baseline for a catalog: builds and sorts all names.
fn names_only(config: &Config, listings: &[Arc<ServerItems>]) -> Vec<String> {
    let mut names = Vec::new();
    for (server, listing) in config.servers().zip(listings) {
        names.extend(listing.items().iter().map(|it| format!("{}_{}", server.name, it.name())));
    }
    names.sort_unstable();
    names
}

fn build_row(effort: Effort, config: &Config, listings: &[Arc<ServerItems>], table: &mut Table) {
    let (built, sorted) = in_turn(
        effort.many_rounds().min(15),
        || time(|| build(config, listings)),
        || time(|| names_only(config, listings)),
    );
    table.push(Row {
        name: format!("catalog: build, {SERVERS} servers with {TOOLS} tools"),
        measured: built.into(),
        baseline: Some(("all names, made and sorted", sorted.into())),
        aim: None,
    });
}

/// Creates the view of an agent with many patterns.
fn view_of(config: &Config, catalog: Arc<Catalog>) -> View {
    let patterns = (0..PATTERNS).map(|number| match number % 4 {
        0 => format!("server-{number}*"),
        1 => format!("!*tool_{number}"),
        2 => format!("*-{number}*_tool_4*"),
        _ => format!("!server-{number}_*_1"),
    });
    let patterns: Vec<_> = patterns.collect();
    let text = serde_json::json!({ "agents": { "a": { "tools": patterns } } }).to_string();
    let agents = config::parse("agents", text).config.agents().named.clone();
    let rules = Rules::new(config, agents);
    let who = CallerSpec { agent: Some("a"), ..CallerSpec::default() };
    let caller = rules.caller(who).expect("there is an agent");
    View::new(catalog, Arc::new(rules), Arc::new(caller))
}

fn view_row(effort: Effort, view: &View, table: &mut Table) {
    let seen = view.entries(ItemKind::Tool).count();
    assert!(seen > 0 && seen < SERVERS * TOOLS, "{seen}");
    let entries = view.catalog().entries(ItemKind::Tool);
    let (decided, looked) = in_turn(
        effort.many_rounds(),
        || time(|| view.entries(ItemKind::Tool).count()),
        // Every decision reads at least the name of the entry.
        || {
            time(|| {
                entries.iter().map(|entry| entry.exposed().matches("tool").count()).sum::<usize>()
            })
        },
    );
    table.push(Row {
        name: format!("catalog: view through {PATTERNS} patterns"),
        measured: decided.into(),
        baseline: Some(("one search in each name", looked.into())),
        aim: Some(Aim::Below(VIEW.into())),
    });
}

fn route_rows(effort: Effort, view: &View, table: &mut Table) {
    // Spread out, so that each look-up touches other memory.
    let entries: Vec<_> = view.entries(ItemKind::Tool).collect();
    let names: Vec<_> =
        (0..ROUTED as usize).map(|at| entries[at * 7919 % entries.len()].exposed()).collect();
    let map: std::collections::HashMap<_, _> =
        view.catalog().entries(ItemKind::Tool).iter().map(|it| (it.exposed(), it)).collect();
    let route = || names.iter().filter(|name| view.route(ItemKind::Tool, name).is_ok()).count();
    let look_up = || names.iter().filter(|name| map.contains_key(**name)).count();
    let region = Region::new(&INSTRUMENTED_SYSTEM);
    assert_eq!(route(), names.len());
    let allocations = region.change().allocations;
    let (routed, found) = in_turn(effort.many_rounds(), || time(route), || time(look_up));
    table.push(Row {
        name: "catalog: route a name".to_owned(),
        measured: (routed / ROUTED).into(),
        baseline: Some(("one look into a hash map", (found / ROUTED).into())),
        aim: Some(Aim::Below(ROUTE.into())),
    });
    table.push(Row {
        name: "catalog: route a name: allocations".to_owned(),
        measured: Quantity::Count(allocations as f64 / f64::from(ROUTED)),
        baseline: None,
        aim: Some(Aim::Below(Quantity::Count(0.1))),
    });
    let unknown = shortest(effort, || view.route(ItemKind::Tool, "server-1_tool-x").is_err());
    table.push(Row {
        name: "catalog: a name that nothing has, with suggestions".to_owned(),
        measured: unknown.into(),
        baseline: Some(("route a name", (routed / ROUTED).into())),
        aim: None,
    });
}
