//! Measures an index of 50,000 tools, made of real ones, against flat BM25 in the same run.
//!
//! `cargo run -p trunkline-search --release --features word-vectors --example scale -- TOOLS.jsonl`

#![expect(clippy::print_stdout, reason = "a program that prints a table")]

use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::Value;
use trunkline_search::flat::FlatIndex;
use trunkline_search::{Document, Index, Query, Visible};

const TOOLS: usize = 50_000;

/// Number of different queries, each the beginning of the description of a tool.
const QUERIES: usize = 1_000;

/// Words of a query, as a model writes it.
const QUERY_WORDS: usize = 6;

fn main() {
    let path = std::env::args().nth(1).expect("usage: scale TOOLS.jsonl");
    let text = fs::read_to_string(path).expect("the file can be read");
    let real: Vec<Document> = text.lines().filter_map(read).collect();
    let documents: Vec<Document> = (0..TOOLS).map(|number| variation(&real, number)).collect();
    let queries: Vec<String> = (0..QUERIES).map(|number| query(&documents, number)).collect();

    let (flat, flat_build, flat_bytes) = measure(|| FlatIndex::build(documents.iter().cloned()));
    let (index, build, bytes) = measure(|| Index::build(documents.iter().cloned()));
    row("build", build, flat_build);
    println!("memory: {:.1} MB, flat {:.1} MB", bytes / 1e6, flat_bytes / 1e6);

    let ranked = times(&queries, |text| index.search(&Query::new(text)).len());
    let baseline = times(&queries, |text| flat.search(text, 5).len());
    row("query p50", ranked[QUERIES / 2], baseline[QUERIES / 2]);
    row("query p99", ranked[QUERIES * 99 / 100], baseline[QUERIES * 99 / 100]);
    let visible = Visible::new(&index, |entry| !entry.key().ends_with('7'));
    let filtered = times(&queries, |text| index.search_visible(&Query::new(text), &visible).len());
    row("query p50, a tenth hidden", filtered[QUERIES / 2], baseline[QUERIES / 2]);
    let small = Index::build(real.iter().cloned());
    let few = times(&queries, |text| small.search(&Query::new(text)).len());
    let name = format!("query p50, {} tools", real.len());
    row(&name, few[QUERIES / 2], baseline[QUERIES / 2]);
    replace(&index, &documents, build);
}

fn read(line: &str) -> Option<Document> {
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
        server_description: text(&tool["server_description"]),
        ..Document::default()
    })
}

/// A real tool with another server, and some words of another tool.
fn variation(real: &[Document], number: usize) -> Document {
    let (round, at) = (number / real.len(), number % real.len());
    let mut document = real[at].clone();
    let other = &real[(at * 31 + round * 7919) % real.len()];
    document.key = number.to_string();
    document.server = format!("{} {round}", document.server);
    if round > 0 {
        document.name = format!("{}_v{round}", document.name);
        document.description =
            format!("{} {}", document.description, beginning(&other.description));
    }
    document
}

fn beginning(text: &str) -> String {
    text.split_whitespace().take(QUERY_WORDS).collect::<Vec<_>>().join(" ")
}

fn query(documents: &[Document], number: usize) -> String {
    beginning(&documents[number * 7919 % documents.len()].description)
}

/// A value, the time to make it, and the memory that it takes.
fn measure<T>(make: impl FnOnce() -> T) -> (T, Duration, f64) {
    let before = resident();
    let start = Instant::now();
    let made = make();
    (made, start.elapsed(), resident() - before)
}

/// Resident memory in bytes, where the system reports it.
fn resident() -> f64 {
    let status = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split(' ').nth(1).and_then(|word| word.parse::<f64>().ok());
    4096.0 * pages.unwrap_or(f64::NAN)
}

/// The shortest of five times of each query, sorted: noise only adds.
fn times(queries: &[String], search: impl Fn(&str) -> usize) -> Vec<Duration> {
    let time = |text: &String| {
        let start = Instant::now();
        black_box(search(text));
        start.elapsed()
    };
    let shortest = |text: &String| (0..5).map(|_| time(text)).min().unwrap_or_default();
    let mut times: Vec<Duration> = queries.iter().map(shortest).collect();
    times.sort_unstable();
    times
}

fn row(name: &str, measured: Duration, baseline: Duration) {
    let ratio = measured.as_secs_f64() / baseline.as_secs_f64();
    println!("{name}: {measured:.1?}, baseline {baseline:.1?}, ratio {ratio:.2}");
}

/// Changes one server in a copy, as the owner of a published index does.
fn replace(index: &Index, documents: &[Document], build: Duration) {
    let server = documents[0].server.as_str();
    let of_server: Vec<Document> =
        documents.iter().filter(|document| document.server == server).cloned().collect();
    let change = || {
        let start = Instant::now();
        let mut copy = index.clone();
        copy.replace_server(server, of_server.iter().cloned());
        black_box(&copy);
        start.elapsed()
    };
    let shortest = (0..5).map(|_| change()).min().unwrap_or_default();
    row(&format!("replace a server with {} tools", of_server.len()), shortest, build);
}
