//! Agents as meant: patterns of the names that each may see, and the matcher for them (TOOL-6).

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::keywords::Access;
use super::source::Location;
use crate::name::{AgentName, NamePattern};

/// Agents, and the files that hold more of them.
#[derive(Clone, Default)]
pub struct Agents {
    /// Files and folders with agents, as written.
    pub files: Vec<Box<str>>,
    /// The folder those are relative to.
    pub folder: PathBuf,
    /// Agents written in the configuration itself.
    pub named: BTreeMap<AgentName, Agent>,
    /// Whether patterns may mean other names than they were written for, because `naming` cannot be
    /// read.
    pub(crate) has_unreadable_naming: bool,
}

/// An agent and what it may see.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Patterns of exposed names, the last that matches wins; absent when it may see all.
    pub tools: Option<Vec<AgentPattern>>,
    /// The most it may do, if that is less than the configuration allows (TOOL-5).
    pub access: Option<Access>,
    /// What it is for.
    pub description: Option<Box<str>>,
    /// Where it was written.
    pub location: Location,
    /// Whether it has errors, so that it may see nothing and cannot be asked for (BUN-2).
    pub is_disabled: bool,
}

impl Agent {
    /// An agent that cannot be read.
    pub(crate) fn disabled(location: Location) -> Self {
        let tools = Some(Vec::new());
        Self { tools, access: None, description: None, location, is_disabled: true }
    }

    /// Disables an agent whose patterns may mean other names than they were written for.
    pub(crate) fn without_known_names(&mut self) {
        if self.tools.is_some() {
            *self = Self::disabled(self.location.clone());
        }
    }
}

impl Agent {
    /// Whether its patterns include a name: the last that matches counts, a name that none matches is
    /// not included, and without patterns every name is (TOOL-6). A host applies the same patterns to
    /// its native tools with this.
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

/// The pattern that decides about a name: the last that matches, by its place and itself.
pub(crate) fn deciding_pattern(
    patterns: &[AgentPattern],
    mut matches: impl FnMut(usize, &AgentPattern) -> bool,
) -> Option<&AgentPattern> {
    let mut candidates = patterns.iter().enumerate().rev();
    candidates.find(|(place, pattern)| matches(*place, pattern)).map(|(_, pattern)| pattern)
}

/// A pattern of an agent, and where it was written.
#[derive(Clone, Debug)]
pub struct AgentPattern {
    /// The pattern.
    pub pattern: NamePattern,
    /// Where it was written.
    pub location: Location,
}
