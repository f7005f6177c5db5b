//! Recall on a small labelled set, written for this test, must stay above a floor and above flat
//! BM25.
//!
//! The set is under the licences of this crate. It is too small to choose parameters with; for that
//! there is `cargo xtask eval-search`.

use trunkline_search::flat::FlatIndex;
use trunkline_search::{Document, Index, Query};

const TOOLS: &str = include_str!("gate/tools.tsv");
const QUERIES: &str = include_str!("gate/queries.tsv");

/// Floor of the recall at 5 in percent, and least distance to flat BM25 in points: two points
/// below the values when this was written.
const FLOOR: (f64, f64) = if cfg!(feature = "word-vectors") { (91.0, 20.0) } else { (76.5, 6.0) };

fn documents() -> Vec<Document> {
    let read = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [server, name, description, parameters] = cells[..] else { panic!("{line:?}") };
        let parameter = |name: &str| (name.trim().to_owned(), String::new());
        Document {
            key: format!("{server}/{name}"),
            server: server.to_owned(),
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: parameters.split(',').map(parameter).collect(),
            ..Document::default()
        }
    };
    TOOLS.lines().map(read).collect()
}

/// Mean share of relevant tools among the first five, in percent, and the texts that missed one.
fn recall(search: impl Fn(&str) -> Vec<String>) -> (f64, Vec<&'static str>) {
    let mut sum = 0.0;
    let mut misses = Vec::new();
    for line in QUERIES.lines() {
        let Some((text, relevant)) = line.split_once('\t') else { panic!("{line:?}") };
        let found = search(text);
        let relevant: Vec<&str> = relevant.split('\t').collect();
        let hits = relevant.iter().filter(|key| found.iter().any(|it| it == *key)).count();
        if hits < relevant.len() {
            misses.push(text);
        }
        sum += hits as f64 / relevant.len() as f64;
    }
    (100.0 * sum / QUERIES.lines().count() as f64, misses)
}

#[test]
fn recall_stays_above_the_floor_and_above_flat_bm25() {
    let index = Index::build(documents());
    let flat = FlatIndex::build(documents());
    let (baseline, _) =
        recall(|text| flat.search(text, 5).into_iter().map(str::to_owned).collect());
    let (ranked, misses) = recall(|text| {
        let hits = index.search(&Query::new(text));
        hits.iter().map(|hit| hit.document.key().to_owned()).collect()
    });
    let (floor, distance) = FLOOR;
    assert!(ranked >= floor, "recall at 5 is {ranked:.1}, below {floor}; misses: {misses:#?}");
    assert!(ranked >= baseline + distance, "recall at 5 is {ranked:.1}, flat has {baseline:.1}");
}

#[test]
fn labels_name_existing_tools() {
    let documents = documents();
    for line in QUERIES.lines() {
        for key in line.split('\t').skip(1) {
            assert!(documents.iter().any(|document| document.key == key), "{line:?}");
        }
    }
}
