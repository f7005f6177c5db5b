//! Validated agents: the name patterns that limit each agent's view, and their matcher (TOOL-6).

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::keywords::{Access, ToolMode};
use super::source::Location;
use crate::name::{AgentName, NamePattern};

/// Agents of a configuration, and the files that define more.
#[derive(Clone, Default)]
pub struct Agents {
    /// Files and directories with agents, as written.
    pub files: Vec<Box<str>>,
    /// The directory that `files` are relative to.
    pub folder: PathBuf,
    /// Agents defined in the configuration itself.
    pub named: BTreeMap<AgentName, Agent>,
    /// Whether patterns may match other names than intended, because `naming` cannot be read.
    pub(crate) has_unreadable_naming: bool,
}

/// An agent, and the limits of its view.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Patterns of exposed names; the last match wins. `None` if the agent may see everything.
    pub tools: Option<Vec<AgentPattern>>,
    /// The agent's access limit, if it is lower than the configuration's (TOOL-5).
    pub access: Option<Access>,
    /// The form in which it receives tools, if it has one of its own (BUN-3).
    pub mode: Option<ToolMode>,
    /// Whether resources and prompts are offered as tools.
    pub item_tools: ItemToolSettings,
    /// Description of the agent's purpose.
    pub description: Option<Box<str>>,
    /// The location of its definition.
    pub location: Location,
    /// Whether it has errors: a disabled agent sees nothing and cannot be selected (BUN-2).
    pub is_disabled: bool,
}

/// Whether resources and prompts are offered as tools; `None` for the setting of all scopes
/// (TOOL-14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemToolSettings {
    /// Tools to list and read resources.
    pub resources: Option<bool>,
    /// Tools to list and get prompts.
    pub prompts: Option<bool>,
}

impl Agent {
    /// Creates a placeholder for an agent that cannot be read.
    pub(crate) fn disabled(location: Location) -> Self {
        Self {
            tools: Some(Vec::new()),
            access: None,
            mode: None,
            item_tools: ItemToolSettings::default(),
            description: None,
            location,
            is_disabled: true,
        }
    }

    /// Disables an agent whose patterns may match other names than intended.
    pub(crate) fn without_known_names(&mut self) {
        if self.tools.is_some() {
            *self = Self::disabled(self.location.clone());
        }
    }
}

impl Agent {
    /// Returns whether its patterns include a name. The last match wins; an unmatched name is
    /// excluded; without patterns every name is included (TOOL-6). A host can apply the same
    /// patterns to its native tools with this.
    ///
    /// ```
    /// use trunkline::config::{self, AgentFile};
    ///
    /// let text = "---\nname: reader\ntools: [view_*, docs_*, !docs_drop]\n---\n";
    /// let agents = config::parse_agents("AGENTS.md", text, AgentFile::Several).agents;
    /// let reader = &agents["reader"];
    /// assert!(reader.includes("view_file") && reader.includes("docs_search"));
    /// assert!(!reader.includes("docs_drop") && !reader.includes("write_file"));
    /// ```
    pub fn includes(&self, name: &str) -> bool {
        let Some(patterns) = self.tools.as_deref().filter(|_| !self.is_disabled) else {
            return !self.is_disabled;
        };
        let last = deciding_pattern(patterns, |_, it| it.pattern.matches(name));
        last.is_some_and(|it| !it.pattern.excludes())
    }
}

/// Returns the pattern that decides on a name: the last for which `matches`, called with index and
/// pattern, is true.
pub(crate) fn deciding_pattern(
    patterns: &[AgentPattern],
    mut matches: impl FnMut(usize, &AgentPattern) -> bool,
) -> Option<&AgentPattern> {
    let mut candidates = patterns.iter().enumerate().rev();
    candidates.find(|(place, pattern)| matches(*place, pattern)).map(|(_, pattern)| pattern)
}

/// A pattern of an agent, with its location.
#[derive(Clone, Debug)]
pub struct AgentPattern {
    /// The pattern.
    pub pattern: NamePattern,
    /// The location of the pattern.
    pub location: Location,
}
