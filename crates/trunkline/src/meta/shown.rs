//! Tools as meta tools have shown them to a model, so that a tool that has changed since is not
//! called.
//!
//! A model decides by what it has read. After a search that is one line, and the call is refused
//! only if that line is not true any more; after a description it is the whole definition, and a
//! later search does not replace it.

use std::collections::HashMap;

use super::signature::search_line;
use crate::catalog::{DefinitionDigest, Entry};
use crate::message::Raw;
use crate::view::View;

/// Tools that are remembered for one client. Above this all of them are forgotten.
pub const MAX_SHOWN_TOOLS: usize = 500;

/// A tool as a meta tool has shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownTool {
    /// A line of a search, by its digest.
    Line(DefinitionDigest),
    /// The definition.
    Definition(DefinitionDigest),
}

impl ShownTool {
    /// A tool whose line was shown.
    pub fn line(line: &str) -> Self {
        Self::Line(DefinitionDigest::of(&Raw::from_string(line)))
    }

    /// A tool whose definition was shown.
    pub fn definition(entry: &Entry) -> Self {
        Self::Definition(entry.digest())
    }

    /// Whether the shown part is still the same.
    pub fn is_unchanged(self, view: &View, entry: &Entry) -> bool {
        match self {
            Self::Line(_) => self == Self::line(&search_line(view, entry)),
            Self::Definition(_) => self == Self::definition(entry),
        }
    }
}

/// The tools that a client was shown, by exposed name.
#[derive(Debug, Default)]
pub struct ShownToolSet {
    tools: HashMap<Box<str>, ShownTool>,
}

impl ShownToolSet {
    /// The tool as it was shown.
    pub fn get(&self, name: &str) -> Option<ShownTool> {
        self.tools.get(name).copied()
    }

    /// Records shown tools. Returns whether all others were forgotten to make room.
    #[must_use = "forgotten tools do not count as never shown"]
    pub fn record(&mut self, shown: Vec<(String, ShownTool)>) -> bool {
        let is_new = |(name, _): &&(String, ShownTool)| !self.tools.contains_key(name.as_str());
        let is_full = self.tools.len() + shown.iter().filter(is_new).count() > MAX_SHOWN_TOOLS;
        if is_full {
            self.tools.clear();
        }
        for (name, tool) in shown {
            let known = self.tools.entry(name.into());
            let known = known.or_insert(tool);
            // A line does not show the rest of a definition again.
            if matches!(tool, ShownTool::Definition(_)) || matches!(known, ShownTool::Line(_)) {
                *known = tool;
            }
        }
        is_full
    }

    /// Forgets tools that were shown in another way since.
    pub fn forget(&mut self, is_shown: impl Fn(&str) -> bool) {
        self.tools.retain(|name, _| !is_shown(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(text: &str) -> ShownTool {
        ShownTool::Definition(DefinitionDigest::of(&Raw::from_string(text)))
    }

    #[test]
    fn line_does_not_replace_a_definition() {
        let mut shown = ShownToolSet::default();
        for (tool, expected) in [
            (ShownTool::line("a"), ShownTool::line("a")),
            (ShownTool::line("b"), ShownTool::line("b")),
            (definition("1"), definition("1")),
            (ShownTool::line("c"), definition("1")),
            (definition("2"), definition("2")),
        ] {
            assert!(!shown.record(vec![("t".to_owned(), tool)]));
            assert_eq!(shown.get("t"), Some(expected));
        }
        shown.forget(|name| name == "t");
        assert_eq!(shown.get("t"), None);
    }

    #[test]
    fn above_the_limit_all_are_forgotten() {
        let mut shown = ShownToolSet::default();
        let many = |prefix: &str, count: usize| {
            (0..count).map(|it| (format!("{prefix}{it}"), ShownTool::line("x"))).collect()
        };
        assert!(!shown.record(many("a", MAX_SHOWN_TOOLS)));
        assert!(shown.record(many("b", 1)));
        assert_eq!((shown.get("a0"), shown.get("b0")), (None, Some(ShownTool::line("x"))));
    }
}
