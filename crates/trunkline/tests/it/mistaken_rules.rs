//! BUN-2, TOOL-6: property tests of mistakes in every rule of a configuration, a layer or an agent
//! file.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::Index;
use trunkline::config::{self, Agent, AgentFile, LoadOptions, LoadedConfig, Overrides};
use trunkline::name::AgentName;
use trunkline::policy::CallerSpec;

use crate::fail_closed::{File, visible_with};

fn callers() -> [CallerSpec<'static>; 5] {
    [
        CallerSpec::default(),
        CallerSpec { agent: Some("a"), ..CallerSpec::default() },
        CallerSpec { agent: Some("f"), ..CallerSpec::default() },
        CallerSpec { bundles: &["b"], ..CallerSpec::default() },
        CallerSpec { agent: Some("a"), bundles: &["b"], ..CallerSpec::default() },
    ]
}

/// A configuration, the layer below it, and a file with the agent `f`.
#[derive(Debug)]
struct Setup {
    lower: Option<&'static str>,
    text: String,
    agent_file: String,
}

struct LoadedSetup {
    config: LoadedConfig,
    agents: BTreeMap<AgentName, Agent>,
    has_errors: bool,
}

impl Setup {
    fn load(&self) -> LoadedSetup {
        let config = match self.lower {
            None => config::parse("x", &self.text),
            Some(lower) => {
                let overrides = Some(Overrides::Text(self.text.clone()));
                let path = Some("mcp.json".into());
                let options = LoadOptions { path, overrides, ..LoadOptions::default() };
                config::load(&File(lower), &options)
            }
        };
        let of_file = config::parse_agents("AGENTS.md", &self.agent_file, AgentFile::Several);
        let mut agents = config.config.agents().named.clone();
        agents.extend(of_file.agents);
        let mut diagnostics = config.diagnostics.iter().chain(&of_file.diagnostics);
        let has_errors = diagnostics.any(|found| found.is_error(false));
        LoadedSetup { config, agents, has_errors }
    }
}

fn assert_shows_no_more(mistaken: &Setup, correct: &Setup) {
    let (with, without) = (mistaken.load(), correct.load());
    for who in callers() {
        let shown = |it: &LoadedSetup| visible_with(&it.config, it.agents.clone(), who.clone());
        let (more, less) = (shown(&with), shown(&without));
        assert!(
            more.is_subset(&less),
            "{who:?} sees {more:?}, not {less:?}\n{mistaken:?}\n{correct:?}"
        );
    }
    assert!(with.has_errors, "nothing is said of {mistaken:?}");
}

/// The path of rules in an agent file.
const AGENT_FILE: &[&str] = &["AGENTS.md"];

/// Rules that exclude each other: the second is not generated with the first.
const EXCLUSIVE: &[(&[&str], &str, &str)] =
    &[(&["servers", "fs"], "enabled", "disabled"), (AGENT_FILE, "tools", "allowed-tools")];

/// One rule: its path, its key, valid values, and mistaken values.
struct RuleKind {
    path: &'static [&'static str],
    key: &'static str,
    values: &'static [&'static str],
    mistakes: &'static [&'static str],
}

const LIST_MISTAKES: &[&str] = &[
    "7",
    "\"x\"",
    "[7]",
    "[[\"read\"]]",
    "{\"read\":true}",
    "true",
    "null",
    "[\"!read\"]",
    "[\"*\",\"!read\"]",
    "[\" read\"]",
    "[\"read \"]",
    "[\"\"]",
    "[\"**\"]",
    "[\"rea?\"]",
];
const SERVER_LIST_MISTAKES: &[&str] = &["7", "\"fs\"", "[7]", "[\"f*\"]", "[\" fs\"]", "null"];
const WORD_MISTAKES: &[&str] = &["7", "\"read-onl\"", "[]", "{}", "null", "\"\""];

const RULES: &[RuleKind] = &[
    RuleKind {
        path: &[],
        key: "access",
        values: &["\"read-only\"", "\"read-only-strict\""],
        mistakes: WORD_MISTAKES,
    },
    RuleKind {
        path: &["servers", "fs"],
        key: "access",
        values: &["\"read-only\"", "\"read-only-strict\""],
        mistakes: WORD_MISTAKES,
    },
    RuleKind {
        path: &["servers", "fs"],
        key: "allowTools",
        values: &["[\"read\"]", "[\"read\",\"list\"]"],
        mistakes: LIST_MISTAKES,
    },
    RuleKind {
        path: &["servers", "fs"],
        key: "denyTools",
        values: &["[\"read\"]", "[\"list\",\"read\"]"],
        mistakes: LIST_MISTAKES,
    },
    RuleKind {
        path: &["servers", "fs"],
        key: "trust",
        values: &["\"untrusted\""],
        mistakes: WORD_MISTAKES,
    },
    RuleKind {
        path: &["servers", "fs"],
        key: "enabled",
        values: &["false"],
        mistakes: &["7", "\"no\"", "null", "[]"],
    },
    RuleKind {
        path: &["servers", "fs"],
        key: "disabled",
        values: &["true"],
        mistakes: &["7", "\"yes\"", "null", "[]"],
    },
    RuleKind {
        path: &["bundles", "b"],
        key: "allowTools",
        values: &["[\"read\"]", "[\"list\"]"],
        mistakes: &["[]", "7", "\"x\"", "[7]", "{}", "null", "[\"*\",\"!read\"]", "[\" list\"]"],
    },
    RuleKind {
        path: &["bundles", "b"],
        key: "denyTools",
        values: &["[\"read\"]", "[\"list\"]"],
        mistakes: LIST_MISTAKES,
    },
    RuleKind {
        path: &["agents", "a"],
        key: "tools",
        values: &["[\"fs_*\"]", "[\"*\",\"!fs_read\"]", "[\"web_read\"]", "[]"],
        mistakes: &["7", "[7]", "[null]", "{\"*\":1}", "true", "null", "[\"fs_?\"]", "[\"**\"]"],
    },
    RuleKind {
        path: &["agents", "a"],
        key: "access",
        values: &["\"read-only\"", "\"read-only-strict\""],
        mistakes: WORD_MISTAKES,
    },
    RuleKind {
        path: &["mcp"],
        key: "excluded",
        values: &["[\"fs\"]", "[\"web\"]"],
        mistakes: SERVER_LIST_MISTAKES,
    },
    RuleKind {
        path: &["mcp"],
        key: "allowed",
        values: &["[\"fs\"]", "[\"web\"]"],
        mistakes: SERVER_LIST_MISTAKES,
    },
    RuleKind {
        path: AGENT_FILE,
        key: "tools",
        values: &["[fs_*]", "['*', '!fs_read']", "{'*': true, fs_write: false}"],
        mistakes: &[
            "{'*': true, fs_write: no}",
            "{'*': true, fs_write: }",
            "{'*': true, fs_write: 0}",
            "{'*': true, fs_write: {a: b}}",
            "[[fs_read]]",
            "",
        ],
    },
    RuleKind {
        path: AGENT_FILE,
        key: "allowed-tools",
        values: &["[fs_read]", "fs_list"],
        mistakes: &["[[fs_read]]", "{fs_read: yes}", ""],
    },
    RuleKind {
        path: AGENT_FILE,
        key: "disallowedTools",
        values: &["[fs_write]", "fs_read, fs_list"],
        mistakes: &["[[fs_write]]", "[mcp__fs__write]", "{fs_write: x}", ""],
    },
    RuleKind {
        path: AGENT_FILE,
        key: "permission",
        values: &["{fs_write: deny}", "{'fs_*': deny}"],
        mistakes: &["{fs_write: no}", "[fs_write]", "none", ""],
    },
    RuleKind {
        path: AGENT_FILE,
        key: "access",
        values: &["read-only", "read-only-strict"],
        mistakes: &["read-onl", "[]", "{}", ""],
    },
];

/// A mistake in a rule.
#[derive(Clone, Debug)]
enum Mistake {
    /// A mistaken value, by its index.
    Value(Index),
    /// A key without one of its letters.
    Key(Index),
    /// A duplicate key with another value.
    Twice,
    /// A file that is cut somewhere after the rule.
    Cut(Index),
    /// A duplicate container, once without rules; the rules are in the first or the last.
    ContainerTwice { is_first: bool },
    /// A container under a key without one of its letters, in a layer above another.
    ContainerKey(Index),
}

fn mistakes() -> impl Strategy<Value = Mistake> {
    let index = any::<Index>;
    prop_oneof![
        3 => index().prop_map(Mistake::Value),
        2 => index().prop_map(Mistake::Key),
        1 => Just(Mistake::Twice),
        1 => index().prop_map(Mistake::Cut),
        1 => any::<bool>().prop_map(|is_first| Mistake::ContainerTwice { is_first }),
        1 => index().prop_map(Mistake::ContainerKey),
    ]
}

/// Removes a letter of a key.
fn slip(key: &str, index: &Index) -> String {
    let left_out = index.index(key.len());
    let letters = key.chars().enumerate().filter(|(place, _)| *place != left_out);
    letters.map(|(_, letter)| letter).collect()
}

/// The top-level containers, without rules.
const CONTAINERS: [(&str, &str); 4] = [
    ("servers", r#""fs":{"command":"x"},"web":{"command":"y"}"#),
    ("bundles", r#""b":{"serverId":"fs"}"#),
    ("agents", r#""a":{}"#),
    ("mcp", ""),
];

/// The layer below, without rules.
const LOWER: &str = r#"{"servers":{"fs":{"command":"x"},"web":{"command":"y"}},
    "bundles":{"b":{"serverId":"fs"}},"agents":{"a":{}}}"#;

/// Writes a container, given its key and its members.
type WriteContainer<'w> = &'w dyn Fn(&str, &str) -> String;

/// Rules to write, and the replacement of one rule or of one container.
struct Draft<'r> {
    rules: &'r [(usize, usize)],
    replaced: Option<(usize, Vec<(String, String)>)>,
    /// A container and its replacement.
    container: Option<(&'r str, WriteContainer<'r>)>,
}

impl Draft<'_> {
    /// The keys and values of the rules in one object.
    fn rules_at(&self, path: &[&str]) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for (kind, value) in self.rules {
            let rule = &RULES[*kind];
            match &self.replaced {
                _ if rule.path != path => {}
                Some((replaced, written)) if replaced == kind => found.extend(written.clone()),
                _ => found.push((rule.key.to_owned(), rule.values[*value].to_owned())),
            }
        }
        found
    }

    fn object(&self, path: &[&str], members: &[&str]) -> String {
        let rules = self.rules_at(path).into_iter();
        let rules = rules.map(|(key, value)| format!("\"{key}\":{value}"));
        members.iter().map(|it| (*it).to_owned()).chain(rules).collect::<Vec<_>>().join(",")
    }

    fn text(&self) -> String {
        let fs = self.object(&["servers", "fs"], &[r#""command":"x""#]);
        let mut containers = vec![
            ("servers", format!(r#""fs":{{{fs}}},"web":{{"command":"y"}}"#)),
            (
                "bundles",
                format!(r#""b":{{{}}}"#, self.object(&["bundles", "b"], &[r#""serverId":"fs""#])),
            ),
            ("agents", format!(r#""a":{{{}}}"#, self.object(&["agents", "a"], &[]))),
        ];
        let mcp = self.object(&["mcp"], &[]);
        if !mcp.is_empty() {
            containers.push(("mcp", mcp));
        }
        let written = containers.iter().map(|(key, members)| match &self.container {
            Some((replaced, write)) if replaced == key => write(key, members),
            _ => format!("\"{key}\":{{{members}}}"),
        });
        let top = self.object(&[], &[]);
        let top = (!top.is_empty()).then_some(top);
        format!("{{{}}}", written.chain(top).collect::<Vec<_>>().join(","))
    }

    fn setup(&self, lower: Option<&'static str>) -> Setup {
        let lines = self.rules_at(AGENT_FILE).into_iter();
        let lines: String = lines.map(|(key, value)| format!("{key}: {value}\n")).collect();
        let agent_file = format!("---\nname: f\n{lines}---\n");
        Setup { lower, text: self.text(), agent_file }
    }
}

/// Writes rules with and without a mistake in one of them.
fn mistaken_and_correct(
    rules: &[(usize, usize)],
    (kind, value): (usize, usize),
    mistake: &Mistake,
) -> (Setup, Setup) {
    let RuleKind { path, key, values, mistakes } = &RULES[kind];
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let replaced = |written| Draft { rules, replaced: Some((kind, written)), container: None };
    let plain = Draft { rules, replaced: None, container: None };
    let container = CONTAINERS.iter().find(|(it, _)| path.first() == Some(it));
    let (container, bare) = container.unwrap_or(&CONTAINERS[0]);
    let draft = match mistake {
        Mistake::Value(index) => replaced(vec![pair(key, mistakes[index.index(mistakes.len())])]),
        Mistake::Key(index) => replaced(vec![pair(&slip(key, index), values[value])]),
        Mistake::Twice => replaced(vec![pair(key, values[value]), pair(key, "true")]),
        Mistake::Cut(index) => {
            let correct = plain.setup(None);
            let text = correct.text.chars().take(1 + index.index(correct.text.len() - 1)).collect();
            return (Setup { text, ..plain.setup(None) }, correct);
        }
        Mistake::ContainerTwice { is_first } => {
            let write = |key: &str, members: &str| match is_first {
                true => format!("\"{key}\":{{{members}}},\"{key}\":{{{bare}}}"),
                false => format!("\"{key}\":{{{bare}}},\"{key}\":{{{members}}}"),
            };
            let draft = Draft { rules, replaced: None, container: Some((container, &write)) };
            return (draft.setup(None), plain.setup(None));
        }
        Mistake::ContainerKey(index) => {
            let write =
                |key: &str, members: &str| format!("\"{}\":{{{members}}}", slip(key, index));
            let draft = Draft { rules, replaced: None, container: Some((container, &write)) };
            return (draft.setup(Some(LOWER)), plain.setup(Some(LOWER)));
        }
    };
    (draft.setup(None), plain.setup(None))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4 * ProptestConfig::default().cases))]

    #[test]
    fn no_mistake_in_a_rule_shows_more_than_the_rule(
        kinds in prop::sample::subsequence((0..RULES.len()).collect::<Vec<_>>(), 1..=RULES.len()),
        values in prop::collection::vec(any::<Index>(), RULES.len()),
        wrong in any::<Index>(),
        mistake in mistakes(),
    ) {
        let is_drawn = |path: &[&str], key: &str| {
            kinds.iter().any(|kind| RULES[*kind].path == path && RULES[*kind].key == key)
        };
        let kinds: Vec<_> = kinds.iter().copied().filter(|kind| {
            let RuleKind { path, key, .. } = &RULES[*kind];
            !EXCLUSIVE.iter().any(|(at, first, second)| {
                at == path && second == key && is_drawn(at, first)
            })
        }).collect();
        let rules: Vec<_> =
            kinds.iter().map(|kind| (*kind, values[*kind].index(RULES[*kind].values.len()))).collect();
        let wrong = rules[wrong.index(rules.len())];
        let (mistaken, correct) = mistaken_and_correct(&rules, wrong, &mistake);
        assert_shows_no_more(&mistaken, &correct);
    }
}
