//! Pagination of lists: pages with a size limit, and sealed cursors.

use trunkline::catalog::Entry;
use trunkline::item::ItemKind;
use trunkline::message::{Raw, RpcError};
use trunkline::meta::MetaTool;
use trunkline::view::View;

use crate::client::state_codec::{SealContext, StateCodec};
use crate::request::errors::invalid;

/// Limit of one page in bytes: more than nearly every list has, and small enough that many readers
/// of a long list cost little.
const MAX_PAGE_BYTES: usize = 2 * 1024 * 1024;

/// The definitions of one page.
pub(crate) struct ListPageBody<'v> {
    pub(crate) definitions: Vec<Raw>,
    /// The exposed name of the last one, if others follow.
    pub(crate) last: Option<&'v str>,
}

impl<'v> ListPageBody<'v> {
    /// The page after a name. The list is sorted by name, so the name itself need not exist any
    /// more. Every page has at least one definition, however long it is.
    pub(crate) fn of(
        view: &'v View,
        kind: ItemKind,
        after: Option<&str>,
        define: impl Fn(&Entry) -> Raw,
    ) -> Self {
        let (mut definitions, mut bytes, mut last) = (Vec::new(), 0, None);
        let is_before = |entry: &&Entry| after.is_some_and(|after| entry.exposed() <= after);
        let surface = (kind == ItemKind::Tool).then(|| view.surface());
        if after.is_none() && surface.is_some_and(|surface| surface.has_meta_tools()) {
            definitions.extend(MetaTool::ALL.iter().map(|tool| tool.definition().clone()));
        }
        if let Some(surface) = surface.filter(|_| after.is_none()) {
            definitions.extend(surface.item_tools().map(|tool| tool.definition().clone()));
        }
        let is_listed = |entry: &&Entry| surface.is_none_or(|surface| surface.is_direct(entry));
        for entry in view.entries(kind).skip_while(is_before).filter(is_listed) {
            let definition = define(entry);
            bytes += definition.bytes().len() + 1;
            if last.is_some() && bytes > MAX_PAGE_BYTES {
                return Self { definitions, last };
            }
            definitions.push(definition);
            last = Some(entry.exposed());
        }
        Self { definitions, last: None }
    }
}

/// The start of the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageStart {
    /// The catalog revision of the first page.
    pub(crate) revision: u64,
    /// The exposed name after which the page begins.
    pub(crate) after: String,
}

/// Cursors of one caller's lists. A cursor contains its position, sealed, so that no state is
/// stored. A cursor of another list, caller or run of the gateway is refused.
pub(crate) struct Cursors<'s> {
    pub(crate) codec: &'s StateCodec,
    /// The owner that cursors are sealed for.
    pub(crate) owner: String,
    pub(crate) kind: ItemKind,
}

impl Cursors<'_> {
    fn uses(&self) -> SealContext<'_> {
        SealContext { purpose: self.kind.list_method(), owner: &self.owner }
    }

    /// Creates the cursor of a page.
    pub(crate) fn close(&self, start: &PageStart) -> String {
        self.codec.seal(&format!("{} {}", start.revision, start.after), self.uses(), None)
    }

    /// The start of the requested page; `None` for the first one.
    pub(crate) fn open(&self, params: &Raw) -> Result<Option<PageStart>, RpcError> {
        let Some(cursor) = params.get("cursor").filter(|cursor| !cursor.is_null()) else {
            return Ok(None);
        };
        let opened = cursor.as_str().and_then(|it| self.codec.open(&it, self.uses()).ok());
        let unknown = || invalid("there is no such page: ask for the list again without `cursor`");
        let start = |opened: String| {
            let (revision, after) = opened.split_once(' ')?;
            Some(PageStart { revision: revision.parse().ok()?, after: after.to_owned() })
        };
        opened.and_then(start).map(Some).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trunkline::catalog::{Catalog, CatalogBuilder, Item, ServerItems};
    use trunkline::config;
    use trunkline::policy::{CallerSpec, Rules};
    use trunkline::view::DescriptionStyle;

    use super::*;

    fn view(names: &[String], bytes: usize) -> View {
        let config = config::parse("x", r#"{ "servers": { "a": { "command": "x" } } }"#).config;
        let tools = names.iter().map(|name| {
            let tool = Raw::empty_object()
                .with("name", &Raw::from_string(name))
                .with("description", &Raw::from_string(&"x".repeat(bytes)))
                .with("inputSchema", &Raw::empty_object());
            Item::new(ItemKind::Tool, name, tool)
        });
        let mut sources = CatalogBuilder::new(&config);
        sources.add(&config.server("a").unwrap().name, Arc::new(ServerItems::new(tools)));
        let rules = Rules::new(&config, Default::default());
        let caller = rules.caller(CallerSpec::default()).unwrap();
        View::new(Arc::new(Catalog::build(&sources)), Arc::new(rules), Arc::new(caller))
    }

    #[test]
    fn pages_together_are_the_list_whatever_becomes_of_it_meanwhile() {
        let names: Vec<_> = (0..50).map(|number| format!("t{number:02}")).collect();
        let whole = view(&names, 300_000);
        // Half of the list is gone before the second request, with the last item of the first page.
        let half: Vec<_> = names.iter().step_by(2).cloned().collect();
        let half = view(&half, 300_000);
        for (second, count) in [(&whole, 50), (&half, 28)] {
            let codec = StateCodec::new();
            let cursors = Cursors { codec: &codec, owner: "ann".to_owned(), kind: ItemKind::Tool };
            let (mut found, mut after, mut now) = (Vec::new(), None::<String>, &whole);
            loop {
                let define = |entry: &Entry| now.definition(entry, DescriptionStyle::AsWritten);
                let page = ListPageBody::of(now, ItemKind::Tool, after.as_deref(), define);
                let bytes: usize = page.definitions.iter().map(|it| it.bytes().len()).sum();
                assert!(bytes <= MAX_PAGE_BYTES && !page.definitions.is_empty());
                found.extend(page.definitions.iter().map(|it| it.get("name").unwrap()));
                let Some(last) = page.last else { break };
                let start = PageStart { revision: 7, after: last.to_owned() };
                let params =
                    Raw::empty_object().with("cursor", &Raw::from_string(&cursors.close(&start)));
                let opened = cursors.open(&params).unwrap();
                assert_eq!(opened.as_ref(), Some(&start));
                after = opened.map(|start| start.after);
                now = second;
            }
            assert_eq!(found.len(), count);
            assert!(found.is_sorted_by(|one, other| one.text() < other.text()), "none twice");
        }
    }

    #[test]
    fn a_cursor_of_another_list_or_caller_is_refused() {
        let codec = StateCodec::new();
        let cursors = |owner: &str, kind| Cursors { codec: &codec, owner: owner.to_owned(), kind };
        let start = PageStart { revision: 0, after: "x y".to_owned() };
        let cursor = cursors("ann", ItemKind::Tool).close(&start);
        let params = Raw::empty_object().with("cursor", &Raw::from_string(&cursor));
        assert_eq!(cursors("ann", ItemKind::Tool).open(&params).unwrap(), Some(start));
        assert!(cursors("bob", ItemKind::Tool).open(&params).is_err());
        assert!(cursors("ann", ItemKind::Prompt).open(&params).is_err());
        for made_up in ["7", "\"\"", "\"x\"", "{}"] {
            let params = Raw::empty_object().with("cursor", &Raw::from_text(made_up).unwrap());
            assert!(cursors("ann", ItemKind::Tool).open(&params).is_err(), "{made_up}");
        }
        let none = Raw::empty_object().with("cursor", &Raw::from_text("null").unwrap());
        assert_eq!(cursors("ann", ItemKind::Tool).open(&none).unwrap(), None);
    }
}
