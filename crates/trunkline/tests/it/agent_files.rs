//! TOOL-6 and TOOL-7: agent files in all formats of supported hosts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use trunkline::config::{self, AgentFile, Code, ColorStyle, Environment, LoadedAgents, ToolMode};
use trunkline::name::AgentName;

fn several(text: &str) -> LoadedAgents {
    config::parse_agents("AGENTS.md", text, AgentFile::Several)
}

fn patterns(loaded: &LoadedAgents, agent: &str) -> Option<String> {
    let tools = loaded.agents[agent].tools.as_ref()?;
    Some(tools.iter().map(|it| it.pattern.as_str()).collect::<Vec<_>>().join(" "))
}

#[test]
fn the_examples_of_the_seeds_are_read_as_they_stand() {
    let text = "---\nname: Everything\ntools: [*]\n---\n\
                ---\nname: NoWeb\ntools: [*, !web_*]\n---\n\
                ---\nname: Docs\ntools: [view_file, grep, context7_*]\n---\n\
                ---\nname: Architect\ntools: [context7_*]\n---\n\
                ---\nname: Prompt Builder\ntools: [view_file]\n---\nText.\n";
    let loaded = several(text);
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    assert_eq!(patterns(&loaded, "Everything").unwrap(), "*");
    assert_eq!(patterns(&loaded, "NoWeb").unwrap(), "* !web_*");
    assert_eq!(patterns(&loaded, "Docs").unwrap(), "view_file grep context7_*");
    assert_eq!(patterns(&loaded, "Architect").unwrap(), "context7_*");
    assert_eq!(patterns(&loaded, "Prompt Builder").unwrap(), "view_file");
}

/// The patterns and the access of these blocks can be read; only the error shows that a limit may be
/// missing.
#[test]
fn an_agent_is_disabled_by_an_error_beside_readable_limits() {
    let limits = "tools: ['*']\naccess: read-write";
    for mistake in [
        "allowed-tools: [fs_read]",
        "access: read-only",
        "description: x\ndescription: y",
        "acess: read-only",
        "only: [fs_read]",
    ] {
        let loaded = several(&format!("---\nname: a\n{limits}\n{mistake}\n---\n"));
        assert!(loaded.diagnostics.iter().any(|found| found.is_error(false)), "{mistake}");
        assert!(loaded.agents["a"].is_disabled, "{mistake}");
    }
    assert!(!several(&format!("---\nname: a\n{limits}\n---\n")).agents["a"].is_disabled);
}

/// A misspelt key does not hide a mistake in another one.
#[test]
fn all_errors_in_the_block_of_an_agent_are_reported_at_once() {
    let keys = "only: [fs_read]\ntools:\n  fs_write: no\naccess: red-only";
    let loaded = several(&format!("---\nname: a\n{keys}\n---\n"));
    let errors = loaded.diagnostics.iter().filter(|found| found.is_error(false));
    let codes: Vec<_> = errors.map(|found| found.code).collect();
    assert_eq!(codes, [Code::UnknownKey, Code::WrongType, Code::UnknownValue]);
}

#[test]
fn tools_may_be_a_list_a_text_or_a_map() {
    let text = "---\nname: list\ntools:\n  - a_*\n  - !a_b # not this one\n---\n\
                ---\nname: text\ntools: Read, Grep, !mcp__github__*\n---\n\
                ---\nname: star\ntools: *, !web_*\n---\n\
                ---\nname: map\ntools:\n  \"*\": true\n  github_*: false\n---\n\
                ---\nname: all\ndescription: >\n  Reads\n  everything!\n---\n";
    let loaded = several(text);
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    assert_eq!(patterns(&loaded, "list").unwrap(), "a_* !a_b");
    assert_eq!(patterns(&loaded, "text").unwrap(), "Read Grep !mcp__github__*");
    assert_eq!(patterns(&loaded, "star").unwrap(), "* !web_*");
    assert_eq!(patterns(&loaded, "map").unwrap(), "* !github_*");
    assert_eq!(patterns(&loaded, "all"), None);
    assert_eq!(loaded.agents["all"].description.as_deref(), Some("Reads everything!\n"));
}

#[test]
fn unknown_keys_of_other_hosts_are_ignored() {
    let text = "---\nname: triage\ndescription: \"Triage: issues\"\nmodel: sonnet\ncolor: blue\n\
                tools: Read, mcp__linear__*   # allowlist\nmcpServers:\n  - github\n  - playwright:\n\
                \u{20}     type: stdio\n      command: npx\n      args: [\"-y\", \"@playwright/mcp@latest\"]\n---\n";
    let loaded = several(text);
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    assert_eq!(patterns(&loaded, "triage").unwrap(), "Read mcp__linear__*");
}

#[test]
fn line_breaks_of_windows_and_a_byte_order_mark_make_no_difference() {
    let loaded = several("\u{feff}---\r\nname: a\r\ntools:\r\n  - b_*\r\n---\r\nText\r\n");
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    let tools = loaded.agents["a"].tools.as_ref().unwrap();
    assert_eq!(tools[0].pattern.as_str(), "b_*");
    assert_eq!(tools[0].location.to_string(), "AGENTS.md:4:5");
}

#[test]
fn a_file_without_agents_is_no_mistake() {
    let loaded = several("# Rules\n\nBe kind.\n\n---\n\nAlways.\n");
    assert!(loaded.agents.is_empty());
    assert!(!loaded.diagnostics.iter().any(|found| found.is_error(true)));
}

#[test]
fn an_agent_that_cannot_be_read_leaves_the_others_usable() {
    let loaded = several("---\nname: a\ntools: [x?]\n---\n\n---\nname: b\n---\n");
    let usable = loaded.agents.iter().filter(|(_, agent)| !agent.is_disabled);
    assert_eq!(usable.map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["b"]);
    assert!(loaded.agents["a"].is_disabled);
}

/// Files by path; directories have `None`.
struct Files(BTreeMap<PathBuf, Option<&'static str>>);

impl Environment for Files {
    fn variable(&self, _: &str) -> Option<OsString> {
        None
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.0.get(path) {
            Some(Some(text)) => Ok(text.as_bytes().to_vec()),
            Some(None) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn files_in(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        Ok(self.0.keys().filter(|path| path.parent() == Some(folder)).cloned().collect())
    }
}

#[test]
fn agents_come_from_files_and_folders_that_the_configuration_names() {
    let files = Files(BTreeMap::from([
        (".claude/agents".into(), None),
        (".claude/agents/reviewer.md".into(), Some("---\ntools: [docs_*]\n---\nText\n\n---\n")),
        (".claude/agents/writer.agent.md".into(), Some("---\ndescription: x\n---\n")),
        (".claude/agents/README.md".into(), Some("Nothing here.\n")),
        (".claude/agents/notes.txt".into(), Some("---\nname: x\n---\n")),
        ("AGENTS.md".into(), Some("---\nname: architect\n---\n")),
    ]));
    let text = r#"{ "agents": [".claude/agents", "AGENTS.md", "gone.md"] }"#;
    let config = config::parse("mcp.json", text).config;
    let loaded = config::load_agents(&files, config.agents());
    let names: Vec<_> = loaded.agents.keys().map(AgentName::as_str).collect();
    assert_eq!(names, ["architect", "reviewer", "writer"]);
    let missing = loaded.diagnostics.iter().filter(|found| found.is_error(false));
    assert_eq!(missing.map(|found| found.code).collect::<Vec<_>>(), [Code::FileMissing]);
}

/// Typical lines of agent files in any order, with a secret under keys of other hosts.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just("---".to_owned()),
        2 => "name: [ab]{1,2}",
        2 => "tools: [\\[\\]{}a*!?, '\":-]{0,12}",
        1 => "  - [a*!?'\"]{0,5}",
        1 => Just("```".to_owned()),
        1 => Just("env: { TOKEN: sesame".to_owned()),
        1 => Just("  TOKEN: sesame: \"".to_owned()),
        1 => Just("sesame".to_owned()),
        1 => "\\PC{0,12}",
        1 => Just(String::new()),
    ]
}

proptest! {
    #[test]
    fn no_agent_file_is_too_strange_and_none_gives_a_secret_away(
        lines in proptest::collection::vec(line(), 0..12),
        windows in any::<bool>(),
    ) {
        let text = lines.join(if windows { "\r\n" } else { "\n" });
        for file in [AgentFile::Several, AgentFile::One("x")] {
            let loaded = config::parse_agents("AGENTS.md", &text, file);
            for found in &loaded.diagnostics {
                let shown = found.render(ColorStyle::Plain);
                prop_assert!(!shown.contains("sesame"), "{}", shown);
            }
            // An agent is used entirely or not at all.
            let names = loaded.agents.values().flat_map(|agent| agent.tools.iter().flatten());
            prop_assert!(names.into_iter().all(|it| !it.pattern.as_str().contains('?')));
        }
    }
}

/// BUN-3, TOOL-14. `mode` has another meaning in agent files of opencode and VS Code.
#[test]
fn mode_and_tools_for_resources_are_read_and_wrong_values_disable_the_agent() {
    let text = "---\nname: meta\nmode: meta\nresourcesAsTools: true\npromptsAsTools: false\n---\n\
                ---\nname: opencode\nmode: subagent\n---\n\
                ---\nname: plain\n---\n";
    let loaded = several(text);
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    let agent = |name: &str| {
        let agent = &loaded.agents[name];
        (agent.mode, agent.item_tools.resources, agent.item_tools.prompts)
    };
    assert_eq!(agent("meta"), (Some(ToolMode::Meta), Some(true), Some(false)));
    assert_eq!(agent("opencode"), (None, None, None));
    assert_eq!(agent("plain"), (None, None, None));
    for wrong in ["mode: metta", "mode: 7", "resourcesAsTools: maybe", "promptsAsTools: [a]"] {
        let loaded = several(&format!("---\nname: a\n{wrong}\n---\n"));
        assert!(loaded.agents["a"].is_disabled, "{wrong}: {:?}", loaded.diagnostics);
    }
}
