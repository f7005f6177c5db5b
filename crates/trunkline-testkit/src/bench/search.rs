//! Measures the search for tools among 50,000, against flat BM25 over the same tools.
//!
//! The tools are those of the gate set of `trunkline-search` with other words added, or real ones:
//! `--data FOLDER` reads `mcpzero_tools/tools.jsonl` in that folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region};
use trunkline::meta::{SearchArguments, ToolIndex};
use trunkline_search::flat::FlatIndex;
use trunkline_search::{Document, Index, Query};

use crate::catalog::large_view;
use crate::measure::{Effort, in_turn, shortest, time};
use crate::table::{Aim, Quantity, Row, Table};

const GATE_TOOLS: &str = include_str!("../../../trunkline-search/tests/gate/tools.tsv");

/// Words of a query, as a model writes it.
const QUERY_WORDS: usize = 6;

/// Number of different words that are added to the tools of the gate set.
const ADDED_WORDS: usize = 4_000;

/// Not noticeable beside the call of any tool.
const QUERY: Duration = Duration::from_micros(150);

/// Below the pause between two turns of a model.
const CHANGE: Duration = Duration::from_millis(50);

const FLAT: &str = "flat BM25";

pub(crate) fn rows(effort: Effort, data: Option<&Path>, table: &mut Table) {
    let count = match effort {
        Effort::Quick => 5_000,
        Effort::Thorough => 50_000,
    };
    let tools = data.map_or_else(gate_tools, |folder| real_tools(folder, table));
    if tools.is_empty() {
        return;
    }
    let documents: Vec<Document> = (0..count).map(|number| variation(&tools, number)).collect();
    let index = build_rows(effort, &documents, table);
    query_rows(effort, &index, &documents, table);
    change_row(effort, &index, &documents, table);
    view_row(effort, table);
}

fn gate_tools() -> Vec<Document> {
    let read = |line: &str| {
        let mut cells = line.split('\t').map(str::to_owned);
        let mut next = || cells.next().unwrap_or_default();
        let (server, name, description) = (next(), next(), next());
        let parameters = next().split(", ").map(|name| (name.to_owned(), String::new())).collect();
        Document { server, name, description, parameters, ..Document::default() }
    };
    GATE_TOOLS.lines().map(read).collect()
}

fn real_tools(folder: &Path, table: &mut Table) -> Vec<Document> {
    let path = folder.join("mcpzero_tools").join("tools.jsonl");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| {
        table.note(format!("search: no rows, because {} cannot be read: {error}", path.display()));
        String::new()
    });
    text.lines().filter_map(real_tool).collect()
}

fn real_tool(line: &str) -> Option<Document> {
    let tool: Value = serde_json::from_str(line).ok()?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let parameters = tool["input_schema"]["properties"].as_object().into_iter().flatten();
    Some(Document {
        server: text(&tool["server"]),
        name: text(&tool["name"]),
        description: text(&tool["description"]),
        parameters: parameters
            .map(|(name, schema)| (name.clone(), text(&schema["description"])))
            .collect(),
        ..Document::default()
    })
}

/// A tool of another server, with words of another tool and some of its own.
fn variation(tools: &[Document], number: usize) -> Document {
    let (round, at) = (number / tools.len(), number % tools.len());
    let mut document = tools[at].clone();
    document.key = number.to_string();
    if round > 0 {
        let other = beginning(&tools[(at * 31 + round * 7919) % tools.len()].description);
        let (first, second) = (added_word(number * 7919), added_word(number * 31));
        document.server = format!("{} {round}", document.server);
        document.name = format!("{}_{first}", document.name);
        document.description = format!("{} {other} {second}", document.description);
    }
    document
}

/// A word that no language has. Low numbers are more frequent, as words of languages are.
fn added_word(random: usize) -> String {
    let share = (random % 10_007) as f64 / 10_007.0;
    let number = (share * share * ADDED_WORDS as f64) as usize;
    let syllables = ["ka", "lo", "mi", "ru", "te", "shi", "no", "pe", "va", "zu"];
    let digits = [number / 1_000, number / 100, number / 10, number];
    digits.map(|digit| syllables[digit % syllables.len()]).concat()
}

fn beginning(text: &str) -> String {
    text.split_whitespace().take(QUERY_WORDS).collect::<Vec<_>>().join(" ")
}

fn build_rows(effort: Effort, documents: &[Document], table: &mut Table) -> Index {
    let ((ranked, flat), (index, bytes), (_, flat_bytes)) = (
        in_turn(
            effort.few_rounds(),
            || time(|| Index::build(documents.iter().cloned())),
            || time(|| FlatIndex::build(documents.iter().cloned())),
        ),
        kept(|| Index::build(documents.iter().cloned())),
        kept(|| FlatIndex::build(documents.iter().cloned())),
    );
    table.push(Row {
        name: format!("search: index build, {} tools", documents.len()),
        measured: ranked.into(),
        baseline: Some((FLAT, flat.into())),
        aim: None,
    });
    table.push(Row {
        name: format!("search: memory, {} tools", documents.len()),
        measured: bytes,
        baseline: Some((FLAT, flat_bytes)),
        aim: None,
    });
    index
}

/// A value, and the memory that it takes.
fn kept<T>(make: impl FnOnce() -> T) -> (T, Quantity) {
    let before = Region::new(&INSTRUMENTED_SYSTEM);
    let made = make();
    let change = before.change();
    let bytes = change.bytes_allocated.saturating_sub(change.bytes_deallocated);
    (made, Quantity::Bytes(bytes as f64))
}

fn query_rows(effort: Effort, index: &Index, documents: &[Document], table: &mut Table) {
    let flat = FlatIndex::build(documents.iter().cloned());
    let count = 20 * effort.rounds();
    let query = |number: usize| beginning(&documents[number * 7919 % documents.len()].description);
    let times = (0..count).map(query).map(|text| {
        in_turn(
            effort.many_rounds().min(8),
            || time(|| index.search(&Query::new(&text)).len()),
            || time(|| flat.search(&text, 5).len()),
        )
    });
    let (mut ranked, mut baseline): (Vec<Duration>, Vec<Duration>) = times.unzip();
    ranked.sort_unstable();
    baseline.sort_unstable();
    for (name, share, aim) in
        [("p50", 50, Some(Aim::Below(QUERY.into()))), ("p99", 99, None::<Aim>)]
    {
        let at = count * share / 100;
        table.push(Row {
            name: format!("search: query {name}, {} tools", documents.len()),
            measured: ranked[at].into(),
            baseline: Some((FLAT, baseline[at].into())),
            aim,
        });
    }
}

/// Changes one server in a copy, as the owner of a published index does.
fn change_row(effort: Effort, index: &Index, documents: &[Document], table: &mut Table) {
    let servers: BTreeSet<&str> = documents.iter().map(|it| it.server.as_str()).collect();
    let Some(server) = servers.first() else { return };
    let of_server: Vec<&Document> = documents.iter().filter(|it| it.server == *server).collect();
    let change = || {
        let mut copy = index.clone();
        copy.replace_server(server, of_server.iter().copied().cloned());
        copy
    };
    let (changed, built) = in_turn(
        effort.few_rounds(),
        || shortest(effort, change),
        || time(|| Index::build(documents.iter().cloned())),
    );
    table.push(Row {
        name: format!("search: change of a server with {} tools", of_server.len()),
        measured: changed.into(),
        baseline: Some(("a build of all", built.into())),
        aim: Some(Aim::Below(CHANGE.into())),
    });
}

/// Searches as a caller whose view hides tools. The rules are asked for the first search only.
fn view_row(effort: Effort, table: &mut Table) {
    let view = large_view();
    let index = ToolIndex::build(view.catalog(), None);
    let queries = vec!["limit of the path".to_owned()];
    let search = SearchArguments { queries, server: None, limit: 5 };
    let first = time(|| index.search(&view, &search).len());
    let again = shortest(effort, || index.search(&view, &search).len());
    table.push(Row {
        name: "search: a view that was searched before".to_owned(),
        measured: again.into(),
        baseline: Some(("the first search of the view", first.into())),
        aim: None,
    });
}
