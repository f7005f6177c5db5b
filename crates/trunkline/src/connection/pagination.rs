//! Reads paginated lists of items: follows every page, enforces limits, and checks each item
//! (CON-9, SEC-3).

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::param_headers::{ParamHeader, param_headers};
use super::state::status::RejectedItem;
use crate::config::{Trust, is_hidden};
use crate::error::{Error, ErrorKind};
use crate::item::{Item, ItemKind};
use crate::message::Raw;
use crate::name::MAX_URI_BYTES;

/// Limit on the pages of one list. A server that needs more has too small pages.
pub(super) const MAX_PAGES: usize = 100;

/// Limit on the items of one kind of one server; a model cannot use more.
pub(super) const MAX_ITEMS: usize = 10_000;

/// Limit on the bytes of a cursor.
const MAX_CURSOR_BYTES: usize = 64 * 1024;

/// Limit on the bytes of a name. The protocol recommends 128; some servers exceed that.
const MAX_NAME_BYTES: usize = 256;

/// Limit on the bytes of one item, including schemas.
const MAX_ITEM_BYTES: usize = 1024 * 1024;

/// Limit on the bytes of all items of one kind: 10,000 tools of 800 bytes each, or 1,000 with long
/// schemas. Every reader of a list pays for its size.
pub(super) const MAX_LIST_BYTES: usize = 8 * 1024 * 1024;

/// Characters of the name of a rejected item that are shown.
const SHOWN_NAME: usize = 64;

/// Limit on rejected items that are recorded.
const MAX_SET_ASIDE: usize = 100;

/// The reason to reject a tool whose name another tool has with another definition.
const CONTESTED: &str = "another tool has the same name and another definition, and nothing says \
                         which of them the server runs";

/// The pages of a list so far.
pub(super) struct PageReader {
    kind: ItemKind,
    items: Vec<Arc<Item>>,
    /// Bytes of their definitions.
    bytes: usize,
    set_aside: Vec<RejectedItem>,
    /// Number of rejected items beyond the recorded ones.
    unnamed: usize,
    /// The first item of each name; `None` if it was rejected since.
    names: HashMap<Box<str>, Option<Arc<Item>>>,
    /// Names of tools with several definitions.
    contested: BTreeSet<Box<str>>,
    cursors: HashSet<Box<str>>,
    pages: usize,
    /// The TTL of the list, as the server declares it.
    ttl: Option<Duration>,
    /// Whether arguments are repeated in headers; the next field lists them by tool.
    mirrors: bool,
    mirrored: HashMap<Box<str>, Arc<[ParamHeader]>>,
    trust: Trust,
}

/// The parameters for the page of a cursor.
pub(super) fn page_params(cursor: &Raw) -> Raw {
    Raw::from_value(&serde_json::json!({})).with("cursor", cursor)
}

/// The next step after a page.
pub(super) enum NextPage {
    /// Request the page of this cursor.
    Page(Raw),
    Done,
}

/// A complete list.
pub(super) struct ItemList {
    pub(super) kind: ItemKind,
    pub(super) items: Vec<Arc<Item>>,
    pub(super) set_aside: Vec<RejectedItem>,
    /// The TTL, as the server declares it.
    pub(super) ttl: Option<Duration>,
    /// Arguments that are repeated in headers, by tool.
    pub(super) mirrored: HashMap<Box<str>, Arc<[ParamHeader]>>,
}

impl PageReader {
    /// No pages yet. `mirrors` is whether arguments are repeated in headers for this server.
    pub(super) fn new(kind: ItemKind, mirrors: bool) -> Self {
        Self {
            kind,
            items: Vec::new(),
            bytes: 0,
            set_aside: Vec::new(),
            unnamed: 0,
            names: HashMap::new(),
            contested: BTreeSet::new(),
            cursors: HashSet::new(),
            pages: 0,
            ttl: None,
            mirrors: mirrors && kind == ItemKind::Tool,
            mirrored: HashMap::new(),
            trust: Trust::Trusted,
        }
    }

    /// Sets the trust of the server.
    pub(super) fn of(self, trust: Trust) -> Self {
        Self { trust, ..self }
    }

    /// Adds a page: the result of a list request.
    pub(super) fn add(&mut self, page: &Raw) -> Result<NextPage, Error> {
        let key = self.kind.list_key();
        let [items, cursor, ttl] = page.get_all([key, "nextCursor", "ttlMs"]);
        let Some(items) = items.filter(|items| items.text().starts_with('[')) else {
            let message = format!("its list of {}s has no `{key}`", self.kind.as_str());
            return Err(Error::new(ErrorKind::ProtocolViolation, message));
        };
        for definition in items.items() {
            if self.items.len() >= MAX_ITEMS {
                let message = format!("it has more than {MAX_ITEMS} {}s", self.kind.as_str());
                let error = Error::new(ErrorKind::TooLarge, message);
                return Err(error.with_hint("configure it to offer fewer; no model reads as many"));
            }
            match self.check_item(&definition) {
                Ok(name) => self.take(name, &definition),
                Err(reason) => self.reject(&definition, reason),
            }
        }
        self.reject_largest();
        self.pages += 1;
        let ttl = ttl.and_then(|ttl| ttl.as_u64()).map(Duration::from_millis);
        self.ttl = self.ttl.into_iter().chain(ttl).min();
        match cursor.filter(|cursor| !cursor.is_null()) {
            None => Ok(NextPage::Done),
            Some(cursor) => self.next_page(&cursor),
        }
    }

    /// Adds a valid item, unless another one has its name. Of two tools with one name and different
    /// definitions neither can be used: it is unknown which of them the server runs.
    fn take(&mut self, name: Box<str>, definition: &Raw) {
        // A copy, so that the item does not keep its page in memory.
        let item = Arc::new(Item::new(self.kind, &name, definition.detached()));
        let Some(first) = self.names.get(&name) else {
            self.bytes += item.definition().bytes().len();
            self.names.insert(name, Some(Arc::clone(&item)));
            self.items.push(item);
            return;
        };
        let is_other = |first: &Arc<Item>| first.definition() != item.definition();
        if self.kind == ItemKind::Tool && first.as_ref().is_some_and(is_other) {
            self.reject(definition, CONTESTED);
            self.contested.insert(name);
        } else {
            self.reject(definition, "another one has the same name");
        }
    }

    fn next_page(&mut self, cursor: &Raw) -> Result<NextPage, Error> {
        let problem = if self.pages >= MAX_PAGES {
            format!("has more than {MAX_PAGES} pages")
        } else if cursor.bytes().len() > MAX_CURSOR_BYTES {
            "has a cursor that is too long".to_owned()
        } else if !self.cursors.insert(cursor.text().into()) {
            "goes round in a circle".to_owned()
        } else {
            return Ok(NextPage::Page(cursor.detached()));
        };
        let hint = "the server has to end its list; tell those who make it";
        let message = format!("its list of {}s {problem}", self.kind.as_str());
        Err(Error::new(ErrorKind::ProtocolViolation, message).with_hint(hint))
    }

    /// The name of a valid item, or the reason why it is invalid.
    fn check_item(&mut self, definition: &Raw) -> Result<Box<str>, &'static str> {
        if !definition.is_object() {
            return Err("it is not an object");
        }
        if definition.bytes().len() > MAX_ITEM_BYTES {
            return Err("its definition is larger than 1 MiB");
        }
        let [name, schema] = definition.get_all([self.kind.name_key(), "inputSchema"]);
        let name = name.as_ref().and_then(Raw::as_str).ok_or("it has no name")?;
        if name.trim().is_empty() {
            return Err("its name is empty");
        }
        match self.kind {
            ItemKind::Tool | ItemKind::Prompt if name.len() > MAX_NAME_BYTES => {
                return Err("its name is longer than 256 bytes");
            }
            _ if name.len() > MAX_URI_BYTES => return Err("its address is longer than 8 KiB"),
            _ => {}
        }
        if name.chars().any(char::is_control) {
            return Err("its name holds control characters");
        }
        if self.trust == Trust::Untrusted && name.chars().any(is_hidden) {
            return Err("its name holds characters that cannot be seen, and it is not trusted");
        }
        if self.kind == ItemKind::Tool && !schema.is_some_and(|schema| schema.is_object()) {
            return Err("it has no input schema");
        }
        let name: Box<str> = name.into();
        if self.mirrors {
            // A server over HTTP would reject every call of it.
            let mirrored = param_headers(definition)?;
            if !mirrored.is_empty() {
                self.mirrored.insert(name.clone(), mirrored.into());
            }
        }
        Ok(name)
    }

    fn reject(&mut self, definition: &Raw, reason: &str) {
        if self.set_aside.len() >= MAX_SET_ASIDE {
            self.unnamed += 1;
            return;
        }
        let name = definition.get(self.kind.name_key());
        let name = name.as_ref().and_then(Raw::as_str);
        let shown = |name: Cow<'_, str>| name.chars().take(SHOWN_NAME).collect::<String>().into();
        let (kind, name) = (self.kind, name.map(shown));
        self.set_aside.push(RejectedItem { kind, name, reason: reason.into() });
    }

    /// Rejects the largest items of a list that is too large, so that all others can be used.
    fn reject_largest(&mut self) {
        if self.bytes <= MAX_LIST_BYTES {
            return;
        }
        self.items.sort_by_key(|item| item.definition().bytes().len());
        while self.bytes > MAX_LIST_BYTES
            && let Some(largest) = self.items.pop()
        {
            let bytes = largest.definition().bytes().len();
            self.bytes -= bytes;
            self.mirrored.remove(largest.name());
            self.names.insert(largest.name().into(), None);
            let reason = format!(
                "the list of {}s is larger than {} MiB, and this is among the largest of them, \
                 with {bytes} bytes",
                self.kind.as_str(),
                MAX_LIST_BYTES / (1024 * 1024),
            );
            self.reject(largest.definition(), &reason);
        }
    }

    pub(super) fn finish(mut self) -> ItemList {
        let contested = std::mem::take(&mut self.contested);
        let is_contested = |item: &Arc<Item>| contested.contains(item.name());
        let (aside, items) = self.items.into_iter().partition::<Vec<_>, _>(is_contested);
        self.items = items;
        aside.iter().for_each(|item| self.reject(item.definition(), CONTESTED));
        self.items.sort_by(|left, right| left.name().cmp(right.name()));
        if self.unnamed > 0 {
            let reason = format!("{} more are set aside, and not named here", self.unnamed).into();
            self.set_aside.push(RejectedItem { kind: self.kind, name: None, reason });
        }
        let Self { kind, items, set_aside, ttl, mirrored, .. } = self;
        ItemList { kind, items, set_aside, ttl, mirrored }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool_pages() -> PageReader {
        PageReader::new(ItemKind::Tool, false)
    }

    fn page(text: &str) -> Raw {
        Raw::from_text(text).unwrap()
    }

    #[test]
    fn one_bad_tool_is_set_aside_and_the_others_stay() {
        let mut pages = tool_pages();
        let text = r#"{"tools":[
            {"name":"b","inputSchema":{},"x":12345678901234567890},
            {"name":5,"inputSchema":{}}, {"name":"","inputSchema":{}}, 7,
            {"name":"c"}, {"name":"a","inputSchema":{}}, {"name":"a","inputSchema":{}}]}"#;
        assert!(matches!(pages.add(&page(text)), Ok(NextPage::Done)));
        let list = pages.finish();
        let names: Vec<_> = list.items.iter().map(|item| item.name()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(list.items[1].definition().get("x").unwrap().text(), "12345678901234567890");
        assert_eq!(list.set_aside.len(), 5);
        assert_eq!(&*list.set_aside[4].reason, "another one has the same name");
    }

    /// Regression: of a read-only tool and a writing one of the same name, the first was shown, and
    /// the server ran the other.
    #[test]
    fn of_two_different_tools_with_one_name_neither_is_taken() {
        let tool = |hint: &str, more: &str| {
            format!(
                r#"{{"name":"x","inputSchema":{{}},"annotations":{{"readOnlyHint":{hint}}}{more}}}"#
            )
        };
        let reads = tool("true", "");
        for other in [tool("false", ""), tool("true", r#","description":"Drops all.""#)] {
            for (one, two) in [(&reads, &other), (&other, &reads)] {
                let mut pages = tool_pages();
                let more = r#"{"name":"y","inputSchema":{}}"#;
                let first = format!(r#"{{"tools":[{one},{more}],"nextCursor":"2"}}"#);
                assert!(matches!(pages.add(&page(&first)), Ok(NextPage::Page(_))));
                let second = format!(r#"{{"tools":[{two},{one}]}}"#);
                assert!(matches!(pages.add(&page(&second)), Ok(NextPage::Done)));
                let list = pages.finish();
                let names: Vec<_> = list.items.iter().map(|item| item.name()).collect();
                assert_eq!(names, ["y"]);
                let aside = list.set_aside.iter().filter(|it| it.name.as_deref() == Some("x"));
                assert_eq!(aside.clone().count(), 3);
                assert!(aside.clone().any(|it| it.reason.contains("nothing says which")));
            }
        }
        let mut pages = tool_pages();
        let same = page(&format!(r#"{{"tools":[{reads},{reads}]}}"#));
        assert!(matches!(pages.add(&same), Ok(NextPage::Done)));
        assert_eq!(pages.finish().items.len(), 1, "one that is said twice is one");
    }

    #[test]
    fn a_list_that_is_too_large_loses_its_largest_items() {
        let mut pages = tool_pages();
        let tool = |name: &str, bytes: usize| {
            format!(
                r#"{{"name":"{name}","inputSchema":{{}},"description":"{}"}}"#,
                "x".repeat(bytes)
            )
        };
        for number in 0..20 {
            let large: Vec<_> =
                (0..10).map(|it| tool(&format!("l{number}-{it}"), 900_000)).collect();
            let text = format!(
                r#"{{"tools":[{},{}],"nextCursor":"{number}"}}"#,
                large.join(","),
                tool(&format!("small{number}"), 10),
            );
            assert!(matches!(pages.add(&page(&text)), Ok(NextPage::Page(_))));
            assert!(pages.bytes <= MAX_LIST_BYTES, "{}", pages.bytes);
        }
        let list = pages.finish();
        let small = list.items.iter().filter(|item| item.name().starts_with("small"));
        assert_eq!(small.count(), 20, "what is small stays");
        let total: usize = list.items.iter().map(|item| item.definition().bytes().len()).sum();
        assert!(total <= MAX_LIST_BYTES);
        assert!(list.set_aside[0].reason.contains("larger than 8 MiB"), "{:?}", list.set_aside[0]);
    }

    #[test]
    fn endless_lists_end() {
        let mut pages = tool_pages();
        assert!(matches!(
            pages.add(&page(r#"{"tools":[],"nextCursor":"a"}"#)),
            Ok(NextPage::Page(_))
        ));
        assert!(pages.add(&page(r#"{"tools":[],"nextCursor":"a"}"#)).is_err());
        let mut pages = tool_pages();
        let ends = (0..=MAX_PAGES).any(|number| {
            let text = format!(r#"{{"tools":[],"nextCursor":"{number}"}}"#);
            pages.add(&page(&text)).is_err()
        });
        assert!(ends);
        assert!(tool_pages().add(&page("{}")).is_err());
    }

    #[test]
    fn an_empty_cursor_is_a_cursor_and_null_is_none() {
        let mut pages = tool_pages();
        assert!(matches!(
            pages.add(&page(r#"{"tools":[],"nextCursor":""}"#)),
            Ok(NextPage::Page(_))
        ));
        assert!(matches!(
            pages.add(&page(r#"{"tools":[],"nextCursor":null}"#)),
            Ok(NextPage::Done)
        ));
    }
}
