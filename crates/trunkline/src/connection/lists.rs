//! Lists of tools: every page, every bound, and each tool judged on its own (CON-9, SEC-3).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::parameters::{Mirrored, mirrored};
use super::status::SetAside;
use crate::error::{Error, ErrorKind};
use crate::message::Raw;

/// Pages taken of one list. A server that needs more gives too little at once.
pub(super) const MAX_PAGES: usize = 100;

/// Tools taken of one server; more cannot be shown to any model.
pub(super) const MAX_TOOLS: usize = 10_000;

/// Bytes of a cursor.
const MAX_CURSOR_BYTES: usize = 64 * 1024;

/// Bytes of a tool's name. The protocol asks for 128; some servers do not know that.
const MAX_NAME_BYTES: usize = 256;

/// Bytes of one tool, schemas and all.
const MAX_TOOL_BYTES: usize = 1024 * 1024;

/// Characters of a name shown when the tool is set aside.
const SHOWN_NAME: usize = 64;

/// Tools set aside that are remembered.
const MAX_SET_ASIDE: usize = 100;

/// A tool as its server described it.
#[derive(Clone, Debug)]
pub struct Tool {
    /// The server's own name for it.
    pub name: Box<str>,
    /// Everything the server said about it, byte for byte.
    pub definition: Raw,
}

impl Tool {
    /// What it says it does.
    pub fn description(&self) -> Option<String> {
        let description = self.definition.get("description")?;
        description.as_str().map(Cow::into_owned)
    }
}

/// The pages of a list so far.
#[derive(Default)]
pub(super) struct ToolPages {
    tools: Vec<Tool>,
    set_aside: Vec<SetAside>,
    names: HashSet<Box<str>>,
    cursors: HashSet<Box<str>>,
    pages: usize,
    /// How long the server says that the list holds.
    ttl: Option<Duration>,
    /// Whether arguments are repeated in headers, and which.
    mirrors: bool,
    mirrored: HashMap<Box<str>, Arc<[Mirrored]>>,
}

/// The parameters that ask for the page of a cursor.
pub(super) fn page_params(cursor: &Raw) -> Raw {
    Raw::from_value(&serde_json::json!({})).with("cursor", cursor)
}

/// What to do after a page.
pub(super) enum Next {
    /// Ask again with this cursor.
    Page(Raw),
    Done,
}

/// A list that is complete.
pub(super) struct ToolList {
    pub(super) tools: Vec<Tool>,
    pub(super) set_aside: Vec<SetAside>,
    /// How long the server says that it holds.
    pub(super) ttl: Option<Duration>,
    /// Arguments that are repeated in headers, by tool.
    pub(super) mirrored: HashMap<Box<str>, Arc<[Mirrored]>>,
}

impl ToolPages {
    /// No pages yet, of a server to which arguments are repeated in headers, or not.
    pub(super) fn new(mirrors: bool) -> Self {
        Self { mirrors, ..Self::default() }
    }

    /// Takes one page: the result of `tools/list`.
    pub(super) fn add(&mut self, page: &Raw) -> Result<Next, Error> {
        let [tools, cursor, ttl] = page.get_all(["tools", "nextCursor", "ttlMs"]);
        let Some(tools) = tools.filter(|tools| tools.text().starts_with('[')) else {
            return Err(Error::new(ErrorKind::NotMcp, "its list of tools has no `tools`"));
        };
        for definition in tools.items() {
            if self.tools.len() >= MAX_TOOLS {
                let message = format!("it has more than {MAX_TOOLS} tools");
                let error = Error::new(ErrorKind::TooLarge, message);
                return Err(error.with_hint("configure it to offer fewer; no model reads as many"));
            }
            match self.judge(&definition) {
                Ok(name) => {
                    // Apart from its page, which would stay in memory for its sake.
                    self.tools.push(Tool { name, definition: definition.detached() });
                }
                Err(reason) => self.put_aside(&definition, reason),
            }
        }
        self.pages += 1;
        let ttl = ttl.and_then(|ttl| ttl.as_u64()).map(Duration::from_millis);
        self.ttl = self.ttl.into_iter().chain(ttl).min();
        match cursor.filter(|cursor| !cursor.is_null()) {
            None => Ok(Next::Done),
            Some(cursor) => self.next_page(&cursor),
        }
    }

    fn next_page(&mut self, cursor: &Raw) -> Result<Next, Error> {
        let problem = if self.pages >= MAX_PAGES {
            format!("its list of tools has more than {MAX_PAGES} pages")
        } else if cursor.bytes().len() > MAX_CURSOR_BYTES {
            "its list of tools has a cursor that is too long".to_owned()
        } else if !self.cursors.insert(cursor.text().into()) {
            "its list of tools goes round in a circle".to_owned()
        } else {
            return Ok(Next::Page(cursor.detached()));
        };
        let hint = "the server has to end its list; tell those who make it";
        Err(Error::new(ErrorKind::NotMcp, problem).with_hint(hint))
    }

    /// The name of a tool that can be used, or why it cannot.
    fn judge(&mut self, definition: &Raw) -> Result<Box<str>, &'static str> {
        if !definition.is_object() {
            return Err("it is not an object");
        }
        if definition.bytes().len() > MAX_TOOL_BYTES {
            return Err("its definition is larger than 1 MiB");
        }
        let [name, schema] = definition.get_all(["name", "inputSchema"]);
        let name = name.as_ref().and_then(Raw::as_str).ok_or("it has no name")?;
        if name.trim().is_empty() {
            return Err("its name is empty");
        }
        if name.len() > MAX_NAME_BYTES {
            return Err("its name is longer than 256 bytes");
        }
        if name.chars().any(char::is_control) {
            return Err("its name holds control characters");
        }
        if !schema.is_some_and(|schema| schema.is_object()) {
            return Err("it has no input schema");
        }
        let name: Box<str> = name.into();
        if self.mirrors {
            // A server over HTTP would refuse every call of it.
            let mirrored = mirrored(definition)?;
            if !mirrored.is_empty() {
                self.mirrored.insert(name.clone(), mirrored.into());
            }
        }
        if !self.names.insert(name.clone()) {
            return Err("another tool has the same name");
        }
        Ok(name)
    }

    fn put_aside(&mut self, definition: &Raw, reason: &str) {
        if self.set_aside.len() >= MAX_SET_ASIDE {
            return;
        }
        let name = definition.get("name");
        let name = name.as_ref().and_then(Raw::as_str);
        let shown = |name: Cow<'_, str>| name.chars().take(SHOWN_NAME).collect::<String>().into();
        self.set_aside.push(SetAside { name: name.map(shown), reason: reason.into() });
    }

    pub(super) fn finish(mut self) -> ToolList {
        self.tools.sort_by(|left, right| left.name.cmp(&right.name));
        let Self { tools, set_aside, ttl, mirrored, .. } = self;
        ToolList { tools, set_aside, ttl, mirrored }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Raw {
        Raw::from_text(text).unwrap()
    }

    #[test]
    fn one_bad_tool_is_set_aside_and_the_others_stay() {
        let mut pages = ToolPages::default();
        let text = r#"{"tools":[
            {"name":"b","inputSchema":{},"x":12345678901234567890},
            {"name":5,"inputSchema":{}}, {"name":"","inputSchema":{}}, 7,
            {"name":"c"}, {"name":"b","inputSchema":{}}, {"name":"a","inputSchema":{}}]}"#;
        assert!(matches!(pages.add(&page(text)), Ok(Next::Done)));
        let list = pages.finish();
        let names: Vec<_> = list.tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(list.tools[1].definition.get("x").unwrap().text(), "12345678901234567890");
        assert_eq!(list.set_aside.len(), 5);
        assert_eq!(&*list.set_aside[4].reason, "another tool has the same name");
    }

    #[test]
    fn endless_lists_end() {
        let mut pages = ToolPages::default();
        assert!(matches!(pages.add(&page(r#"{"tools":[],"nextCursor":"a"}"#)), Ok(Next::Page(_))));
        assert!(pages.add(&page(r#"{"tools":[],"nextCursor":"a"}"#)).is_err());
        let mut pages = ToolPages::default();
        let ends = (0..=MAX_PAGES).any(|number| {
            let text = format!(r#"{{"tools":[],"nextCursor":"{number}"}}"#);
            pages.add(&page(&text)).is_err()
        });
        assert!(ends);
        assert!(ToolPages::default().add(&page("{}")).is_err());
    }

    #[test]
    fn an_empty_cursor_is_a_cursor_and_null_is_none() {
        let mut pages = ToolPages::default();
        assert!(matches!(pages.add(&page(r#"{"tools":[],"nextCursor":""}"#)), Ok(Next::Page(_))));
        assert!(matches!(pages.add(&page(r#"{"tools":[],"nextCursor":null}"#)), Ok(Next::Done)));
    }
}
