//! The tools that the model of a caller was shown, so that a tool that has changed since is not
//! called by its name.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::call::CallError;
use crate::catalog::{DefinitionDigest, Entry, ItemKind};
use crate::meta::{ShownTool, ShownToolSet};
use crate::view::View;

/// How a call names its tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallPath {
    /// By the name of the tool.
    Direct,
    /// In the arguments of a meta tool.
    Meta,
}

/// The tools that a caller was shown, shared by its clones.
#[derive(Default)]
pub(super) struct CallerShownTools(Mutex<CallerShownTable>);

#[derive(Default)]
struct CallerShownTable {
    /// Shown by meta tools.
    tools: ShownToolSet,
    /// Whether meta tools have shown tools that are forgotten.
    has_forgotten: bool,
    /// The definitions in the last list.
    listed: HashMap<Box<str>, DefinitionDigest>,
}

impl CallerShownTools {
    /// Records tools that a meta tool has shown.
    pub(super) fn record(&self, shown: Vec<(String, ShownTool)>) {
        let mut table = self.lock();
        let has_forgotten = table.tools.record(shown);
        table.has_forgotten |= has_forgotten;
    }

    /// Records the tools that a view shows directly, in place of the list before.
    pub(super) fn record_list(&self, view: &View) {
        let surface = view.surface();
        // In direct mode no call is made through a meta tool.
        let recorded = surface.direct().filter(|_| surface.answers_meta_tools());
        let listed = recorded.map(|entry| (entry.exposed().into(), entry.digest())).collect();
        let is_listed = |name: &str| {
            view.route(ItemKind::Tool, name).is_ok_and(|entry| surface.is_direct(entry))
        };
        let mut table = self.lock();
        table.tools.forget(is_listed);
        table.listed = listed;
    }

    /// Fails if a tool has changed since it was shown.
    pub(super) fn require_unchanged(
        &self,
        view: &View,
        entry: &Entry,
        path: CallPath,
    ) -> Result<(), CallError> {
        let (name, table) = (entry.exposed(), self.lock());
        let (shown, listed) = (table.tools.get(name), table.listed.get(name).copied());
        let is_forgotten = table.has_forgotten && shown.is_none() && listed.is_none();
        drop(table);
        let is_unchanged = match shown {
            Some(shown @ ShownTool::Definition(_)) => shown.is_unchanged(view, entry),
            // A line shows only a part of what a list has shown before.
            Some(shown @ ShownTool::Line(_)) => {
                shown.is_unchanged(view, entry) && is_as_listed(listed, entry, path)
            }
            None if is_forgotten => path == CallPath::Direct,
            None => is_as_listed(listed, entry, path),
        };
        if is_unchanged { Ok(()) } else { Err(CallError::changed_since_described(entry)) }
    }

    fn lock(&self) -> MutexGuard<'_, CallerShownTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a tool has the definition of the last list. A host that calls listed tools by name
/// decides itself whether it goes by the list: [`Tool`](super::Tool) is for that.
fn is_as_listed(listed: Option<DefinitionDigest>, entry: &Entry, path: CallPath) -> bool {
    path == CallPath::Direct || listed.is_none_or(|digest| digest == entry.digest())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::catalog::{Catalog, CatalogBuilder, Item, ServerItems};
    use crate::config;
    use crate::message::Raw;
    use crate::meta::MAX_SHOWN_TOOLS;
    use crate::policy::{CallerSpec, Rules};

    /// A view of one tool with this description.
    fn view(mode: &str, description: &str) -> View {
        let text = format!(r#"{{ "mode": "{mode}", "servers": {{ "a": {{ "command": "x" }} }} }}"#);
        let config = config::parse("x", text).config;
        let definition = Raw::empty_object().with("name", &Raw::from_string("t"));
        let definition = definition.with("description", &Raw::from_string(description));
        let mut sources = CatalogBuilder::new(&config);
        let items = ServerItems::new([Item::new(ItemKind::Tool, "t", definition)]);
        sources.add(&config.server("a").unwrap().name, Arc::new(items));
        let rules = Rules::new(&config, Default::default());
        let caller = rules.caller(CallerSpec::default()).unwrap();
        View::new(Arc::new(Catalog::build(&sources)), Arc::new(rules), Arc::new(caller))
    }

    fn is_called(shown: &CallerShownTools, view: &View, path: CallPath) -> bool {
        let entry = view.route(ItemKind::Tool, "a_t").unwrap();
        shown.require_unchanged(view, entry, path).is_ok()
    }

    /// A tool that may have been shown is not called until it is shown again.
    #[test]
    fn forgotten_tools_are_shown_again_before_they_are_called_through_a_meta_tool() {
        let (shown, view) = (CallerShownTools::default(), view("meta", "good"));
        assert!(is_called(&shown, &view, CallPath::Meta), "nothing was shown of it");
        let many = |count| (0..count).map(|it| (format!("t{it}"), ShownTool::line("x"))).collect();
        shown.record(many(MAX_SHOWN_TOOLS));
        shown.record(many(1));
        assert!(is_called(&shown, &view, CallPath::Meta), "nothing was forgotten");
        shown.record(vec![("another".to_owned(), ShownTool::line("x"))]);
        assert!(!is_called(&shown, &view, CallPath::Meta));
        assert!(is_called(&shown, &view, CallPath::Direct));
        let entry = view.route(ItemKind::Tool, "a_t").unwrap();
        shown.record(vec![("a_t".to_owned(), ShownTool::definition(entry))]);
        assert!(is_called(&shown, &view, CallPath::Meta));
    }

    /// A list replaces everything that was shown before of the tools in it.
    #[test]
    fn list_counts_as_shown() {
        for mode in ["auto", "direct"] {
            let (good, evil) = (view(mode, "good"), view(mode, "evil"));
            let shown = CallerShownTools::default();
            let entry = good.route(ItemKind::Tool, "a_t").unwrap();
            shown.record(vec![("a_t".to_owned(), ShownTool::definition(entry))]);
            assert!(!is_called(&shown, &evil, CallPath::Direct));
            shown.record_list(&evil);
            assert!(is_called(&shown, &evil, CallPath::Direct));
            assert!(is_called(&shown, &evil, CallPath::Meta));
            assert_eq!(is_called(&shown, &good, CallPath::Meta), mode == "direct");
        }
    }
}
