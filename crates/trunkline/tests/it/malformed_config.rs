//! Any bytes yield a configuration and diagnostics, without a panic or a hang.

use proptest::prelude::*;
use trunkline::config::{self, Code};
use trunkline_testkit::generate::{Entries, configuration, on_one_line};
use trunkline_testkit::{invariants, samples};

#[test]
fn ten_thousand_servers_are_read_with_or_without_mistakes() {
    let good = configuration(10_000, Entries::Good);
    for text in [good.clone(), on_one_line(&good)] {
        let loaded = config::parse("many.json", &text);
        assert_eq!(loaded.config.servers().len(), 10_000);
        assert!(loaded.diagnostics.is_empty());
    }
    let bad = configuration(10_000, Entries::Bad);
    for text in [bad.clone(), on_one_line(&bad)] {
        let loaded = config::parse("many.json", &text);
        assert_eq!(loaded.config.broken().len(), 10_000);
        let report: String = loaded
            .diagnostics
            .iter()
            .map(|found| found.render(config::ColorStyle::Plain))
            .collect();
        assert!(!report.contains("literal-"), "a handwritten value is shown");
    }
}

#[test]
fn ten_megabytes_of_one_thing_are_read() {
    let megabytes = 10 * 1024 * 1024;
    let wrap = |inner: String| format!("{{ \"mcpServers\": {inner} }}");
    for text in [
        wrap(format!("\"{}\"", "x".repeat(megabytes))),
        wrap(format!("[{}]", "1,".repeat(megabytes / 2))),
        wrap(format!("{{ \"s\": {{ \"command\": \"{}\" }} }}", "\\u00e9".repeat(megabytes / 6))),
        wrap("{".repeat(megabytes)),
        wrap("[".repeat(megabytes)),
        format!("// {}", "x".repeat(megabytes)),
        " \n".repeat(megabytes / 2),
        ",".repeat(megabytes),
        "\"".repeat(megabytes),
        format!(
            "{{ \"agents\": {{ \"a\": {{ \"tools\": [{}] }} }} }}",
            "\"t\",".repeat(megabytes / 4)
        ),
    ] {
        invariants::check(text.as_bytes());
    }
}

#[test]
fn ten_thousand_wrong_bundles_are_reported_one_by_one() {
    let bundles: Vec<_> =
        (0..10_000).map(|i| format!("\"b{i}\": {{ \"serverId\": \"serve-{i}\" }}")).collect();
    let servers: Vec<_> =
        (0..10_000).map(|i| format!("\"server-{i}\": {{ \"command\": \"x\" }}")).collect();
    let text = format!(
        "{{ \"servers\": {{ {} }}, \"bundles\": {{ {} }} }}",
        servers.join(","),
        bundles.join(",")
    );
    let loaded = config::parse("x.json", &text);
    assert_eq!(loaded.diagnostics.len(), 10_000);
    assert!(loaded.diagnostics.iter().all(|found| found.code == Code::UnknownServer));
}

#[test]
fn untrusted_servers_with_bundles_are_found_in_linear_time() {
    let servers: Vec<_> = (0..10_000)
        .map(|i| format!("\"s{i}\": {{ \"command\": \"x\", \"trust\": \"untrusted\" }}"))
        .collect();
    let bundles: Vec<_> = (0..10_000)
        .map(|i| format!("\"b{i}\": {{ \"serverId\": \"s{i}\", \"allowTools\": [\"t\"] }}"))
        .collect();
    let text = format!(
        "{{ \"servers\": {{ {} }}, \"bundles\": {{ {} }} }}",
        servers.join(","),
        bundles.join(",")
    );
    assert!(config::parse("x.json", &text).diagnostics.is_empty());
}

#[test]
fn long_texts_of_references_and_long_lists_of_names_take_linear_time() {
    let references = "{env:A}".repeat(500_000);
    let text = format!(r#"{{"mcp":{{"a":{{"type":"local","command":["x","{references}"]}}}}}}"#);
    assert_eq!(config::parse("x", &text).config.servers().len(), 1);
    let names: Vec<_> = (0..50_000).map(|i| format!("\"s{i}\"")).collect();
    let servers: Vec<_> =
        names.iter().map(|name| format!("{name}:{{\"command\":\"x\"}}")).collect();
    let text = format!(
        r#"{{"mcpServers":{{{}}},"mcp":{{"allowed":[{}]}}}}"#,
        servers.join(","),
        names.join(",")
    );
    assert_eq!(config::parse("x", &text).config.servers().len(), 50_000);
}

#[test]
fn suggestions_for_long_names_cost_no_more_than_their_budget() {
    let servers: Vec<_> =
        (0..800).map(|i| format!("\"{}{i}\":{{\"command\":\"x\"}}", "s".repeat(60))).collect();
    let bundles: Vec<_> =
        (0..800).map(|i| format!("\"b{i}\":{{\"serverId\":\"{}{i}\"}}", "t".repeat(60))).collect();
    let text =
        format!(r#"{{"servers":{{{}}},"bundles":{{{}}}}}"#, servers.join(","), bundles.join(","));
    assert_eq!(config::parse("x", &text).diagnostics.len(), 800);
}

#[test]
fn nesting_is_bounded_on_a_small_stack() {
    let text = format!("{{ \"mcpServers\": {}", "{ \"a\": [".repeat(1_000_000));
    let thread = std::thread::Builder::new().stack_size(512 * 1024);
    let loaded = thread.spawn(move || config::parse("x.json", &text)).unwrap().join().unwrap();
    assert!(loaded.diagnostics.iter().any(|found| found.code == Code::TooDeep));
}

#[test]
fn a_byte_order_mark_and_crlf_are_no_problem() {
    let text = format!("\u{feff}{}", samples::BOOCODE.text.replace('\n', "\r\n"));
    let loaded = config::parse("x.json", &text);
    assert!(loaded.diagnostics.is_empty());
    assert_eq!(loaded.config.servers().len(), 2);
}

#[test]
fn null_everywhere_is_reported_and_survived() {
    for sample in samples::ALL {
        let text = sample.text;
        let places = text.match_indices([':', ',', '[']).map(|(at, found)| at + found.len());
        for place in places {
            let (before, after) = text.split_at_checked(place).unwrap();
            let nulled = format!("{before} null {after}");
            invariants::check(nulled.as_bytes());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2 * ProptestConfig::default().cases))]

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        invariants::check(&bytes);
    }

    /// Configuration tokens in any order, which reach far more of the parser than noise.
    #[test]
    fn any_mixture_of_tokens_is_survived(tokens in prop::collection::vec(token(), 0..60)) {
        invariants::check(tokens.concat().as_bytes());
    }

    /// A real file with a few bytes removed, inserted or replaced.
    #[test]
    fn any_small_damage_to_a_real_file_is_survived(
        sample in prop::sample::select(samples::ALL),
        damages in prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, any::<u8>()), 1..4),
    ) {
        let mut bytes = sample.text.as_bytes().to_vec();
        for (place, kind, byte) in damages {
            let place = place.index(bytes.len());
            match kind {
                0 => { bytes.remove(place); }
                1 => bytes.insert(place, byte),
                _ => bytes[place] = byte,
            }
        }
        invariants::check(&bytes);
    }
}

fn token() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "'",
        "//",
        "/*",
        "*/",
        "\n",
        " ",
        "null",
        "true",
        "-1",
        "1e999",
        "\\",
        "\\u",
        "é",
        "\u{feff}",
        "\"mcpServers\":",
        "\"servers\":",
        "\"mcp\":",
        "\"context_servers\":",
        "\"bundles\":",
        "\"agents\":",
        "\"s\":",
        "\"command\":",
        "\"url\":",
        "\"args\":",
        "\"env\":",
        "\"headers\":",
        "\"timeout\":",
        "\"transport\":",
        "\"type\":",
        "\"inputs\":",
        "\"serverId\":",
        "\"allowTools\":",
        "\"enabled\":",
        "\"stdio\"",
        "\"http\"",
        "\"https://x/\"",
        "\"${A}\"",
        "\"${\"",
        "\"30s\"",
        "60",
    ])
}
