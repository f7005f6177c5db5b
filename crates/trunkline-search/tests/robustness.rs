//! Any text is a valid document and a valid query, and hidden documents leave no trace.

use proptest::prelude::*;
use trunkline_search::{Document, Hit, Index, Query, Visible};

fn document(number: usize, server: &str, name: &str, description: &str) -> Document {
    Document {
        key: format!("{server}/{name}/{number}"),
        server: server.to_owned(),
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: vec![(description.to_owned(), name.to_owned())],
        ..Document::default()
    }
}

fn found(hits: &[Hit<'_>]) -> Vec<(String, u32)> {
    hits.iter().map(|hit| (hit.document.key().to_owned(), hit.score.to_bits())).collect()
}

fn words() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("list"),
        Just("delete"),
        Just("weather"),
        Just("wether"),
        Just("file"),
        Just("issue"),
        Just("repository"),
        Just("the"),
        Just("検索"),
        Just("поиск"),
        Just("readFile"),
        Just(". "),
    ];
    prop::collection::vec(word, 0..8).prop_map(|words| words.join(" "))
}

fn documents() -> impl Strategy<Value = Vec<Document>> {
    let server = prop_oneof![Just("files"), Just("git hub"), Just("weather")];
    let one = (server, words(), words());
    prop::collection::vec(one, 0..12).prop_map(|list| {
        let numbered = list.iter().enumerate();
        numbered
            .map(|(number, (server, name, text))| document(number, server, name, text))
            .collect()
    })
}

proptest! {
    #[test]
    fn no_text_is_too_strange_to_index_or_search(name in ".{0,60}", text in "\\PC{0,200}|.{0,200}") {
        let index = Index::build([document(0, &name, &text, &name), document(1, "a", "b", &text)]);
        for query in [name.as_str(), text.as_str()] {
            let hits = index.search(&Query::of([query, &name]).with_server(&name).with_collapse());
            prop_assert!(hits.len() <= 2);
            prop_assert!(hits.iter().all(|hit| hit.score.is_finite() && hit.score > 0.0));
        }
    }

    #[test]
    fn hidden_documents_leave_no_trace(documents in documents(), query in words(), bits: u16) {
        let is_visible = |document: &Document| {
            let number = document.key.rsplit('/').next().unwrap().parse::<u32>().unwrap();
            bits >> number & 1 == 1
        };
        let all = Index::build(documents.clone());
        let visible = Visible::new(&all, |entry| {
            documents.iter().any(|it| it.key == entry.key() && is_visible(it))
        });
        let fewer = Index::build(documents.iter().filter(|it| is_visible(it)).cloned());
        let query = Query::of([query.as_str(), "list files"]).with_limit(20);
        prop_assert_eq!(found(&all.search_visible(&query, &visible)), found(&fewer.search(&query)));
    }

    #[test]
    fn a_replaced_server_is_as_good_as_new(
        before in documents(), after in documents(), query in words(),
    ) {
        let of_files = |list: &[Document]| -> Vec<Document> {
            list.iter().filter(|it| it.server == "files").cloned().collect()
        };
        let mut index = Index::build(before.clone());
        let snapshot = index.clone();
        index.replace_server("files", of_files(&after));
        let others = before.iter().filter(|it| it.server != "files").cloned();
        let built = Index::build(others.chain(of_files(&after)));
        let query = Query::new(&query).with_limit(20);
        prop_assert_eq!(index.len(), built.len());
        prop_assert_eq!(found(&index.search(&query)), found(&built.search(&query)));
        prop_assert_eq!(found(&snapshot.search(&query)), found(&Index::build(before).search(&query)));
    }
}

fn small_index() -> Index {
    Index::build([
        document(0, "weather", "get_forecast", "Weather forecast for a city."),
        document(1, "files", "read_file", "Read the contents of a file."),
        document(2, "ja", "検索", "天気予報を検索する"),
    ])
}

fn first(index: &Index, text: &str) -> Option<String> {
    let hits = index.search(&Query::new(text));
    hits.first().map(|hit| hit.document.name().to_owned())
}

#[test]
fn queries_without_words_have_no_hits() {
    let index = small_index();
    for text in ["", " ", "\0\u{1b}\u{7f}", "the of and", "…", "🙂"] {
        assert!(index.search(&Query::new(text)).is_empty(), "{text:?}");
    }
    assert!(index.search(&Query::of([])).is_empty());
    assert!(index.search(&Query::new("file").with_limit(0)).is_empty());
    assert!(index.search(&Query::new("file").with_server("gone")).is_empty());
    assert!(Index::default().search(&Query::new("file").with_limit(usize::MAX)).is_empty());
}

#[test]
fn long_queries_and_many_texts_are_cut() {
    let index = small_index();
    let long = format!("read a file. {}", "lorem ipsum, dolor. ".repeat(5_000));
    assert_eq!(first(&index, &long).as_deref(), Some("read_file"));
    assert!(index.search(&Query::new(&"file".repeat(25_000))).len() <= 3);
    let many = vec!["read a file"; 10_000];
    assert_eq!(index.search(&Query::of(many))[0].document.name(), "read_file");
}

#[test]
fn other_scripts_are_found() {
    let index = small_index();
    assert_eq!(first(&index, "天気予報").as_deref(), Some("検索"));
    assert_eq!(first(&index, "read\u{0}file\u{202e}").as_deref(), Some("read_file"));
}

#[test]
fn one_wrong_letter_is_forgiven() {
    let index = small_index();
    assert_eq!(first(&index, "forcast").as_deref(), Some("get_forecast"));
    assert_eq!(first(&index, "contnets").as_deref(), Some("read_file"));
}

#[test]
fn near_duplicates_are_one_hit_on_request() {
    let copy = |number| document(number, "mail", "send_message", "Send a message to a person.");
    let index =
        Index::build([copy(0), copy(1), copy(2), document(3, "sms", "send", "Send a text.")]);
    let query = Query::new("send a message");
    assert_eq!(index.search(&query).len(), 4);
    let hits = index.search(&query.with_collapse());
    assert_eq!(hits.len(), 2);
    assert_eq!(hits[0].similar.len(), 2);
}

#[test]
fn equal_scores_are_ordered_by_name() {
    let tool = |name: &str| document(0, "s", name, "Same text");
    let index = Index::build(["b", "c", "a"].map(tool));
    let hits = index.search(&Query::new("same text"));
    let names: Vec<&str> = hits.iter().map(|hit| hit.document.name()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[test]
fn the_server_of_a_query_limits_the_hits() {
    let index = small_index();
    let hits = index.search(&Query::new("weather file").with_server("files"));
    assert_eq!(hits.len(), 1);
    assert_eq!(hits[0].document.server(), "files");
}

/// A catalog in which only the best documents by words are scored.
fn large_catalog() -> Vec<Document> {
    let topics = ["weather forecast", "list files", "create issue", "send message", "play music"];
    let tool = |number: usize| {
        let topic = topics[number % topics.len()];
        let text = format!("{topic} number {} of {}", number % 89, number % 7);
        document(number, &format!("server {}", number % 50), topic, &text)
    };
    (0..6_000).map(tool).collect()
}

#[test]
fn hidden_documents_leave_no_trace_in_a_large_catalog() {
    let documents = large_catalog();
    let is_visible = |key: &str| !key.ends_with('7') && !key.contains("list");
    let all = Index::build(documents.clone());
    let visible = Visible::new(&all, |entry| is_visible(entry.key()));
    let fewer = Index::build(documents.into_iter().filter(|it| is_visible(&it.key)));
    for texts in [vec!["weather for number 17"], vec!["send. play music", "create issue"]] {
        let query = Query::of(texts).with_limit(50);
        let hits = all.search_visible(&query, &visible);
        assert_eq!(found(&hits), found(&fewer.search(&query)));
        assert_eq!(hits.len(), 50);
    }
}

#[test]
fn a_server_of_a_large_catalog_is_searched_as_a_whole() {
    let index = Index::build(large_catalog());
    // The best documents by words belong to other servers.
    let query = Query::new("weather forecast number 88").with_server("server 3").with_limit(100);
    let hits = index.search(&query);
    assert!(!hits.is_empty());
    assert!(hits.iter().all(|hit| hit.document.server() == "server 3"));
}

#[test]
fn every_text_of_a_query_has_hits_in_a_large_catalog() {
    let index = Index::build(large_catalog());
    let texts = ["send message number 17", "play music number 5"];
    let hits = index.search(&Query::of(texts).with_limit(100));
    for name in ["send message", "play music"] {
        assert!(hits.iter().any(|hit| hit.document.name() == name), "{name}");
    }
}

/// Regression: a tool with a name of stop words only was never found.
#[test]
fn tool_that_is_named_by_a_stop_word_is_found_by_its_name() {
    let tool = |name: &str, description: &str| document(1, "s", name, description);
    let index = Index::build([
        tool("who", "Lists the people who are logged in"),
        tool("read_file", "Reads a file that you name"),
    ]);
    for query in ["who", "s_who", "Who?"] {
        let hits = index.search(&Query::new(query));
        assert_eq!(hits.iter().map(|it| it.document.key()).collect::<Vec<_>>(), ["s/who/1"]);
        assert!(!index.explain(query, &tool("who", ""), None).terms.is_empty());
    }
    assert!(index.search(&Query::new("that you")).is_empty());
    let hits = index.search(&Query::new("who reads a file"));
    assert_eq!(hits[0].document.key(), "s/read_file/1");
}

/// Regression: pieces of unknown words had vectors, and some tool was always near to them.
#[test]
fn nonsense_has_no_hits() {
    let index = small_index();
    for text in ["asdfgh qwerty", "xyzzy plugh", "hjkl", "blorptastic. snarfle", "qqqqq"] {
        assert!(index.search(&Query::new(text)).is_empty(), "{text:?}");
    }
}

#[cfg(feature = "word-vectors")]
#[test]
fn unrelated_words_have_no_hits_and_related_ones_have() {
    let index = small_index();
    for text in ["purple elephant", "divorce lawyer"] {
        assert!(index.search(&Query::new(text)).is_empty(), "{text:?}");
    }
    assert_eq!(first(&index, "temperature tomorrow").as_deref(), Some("get_forecast"));
}

#[test]
fn nonsense_beside_another_text_changes_nothing() {
    let index = small_index();
    let alone = index.search(&Query::new("read a file"));
    let both = index.search(&Query::of(["asdfgh qwerty", "read a file"]));
    assert_eq!(found(&both), found(&alone));
}
