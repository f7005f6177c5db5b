//! Arguments of a call as they are typed: `key=value`, `a.b=1`, `list[]=x`, `key=@file`, `key:=JSON`.
//!
//! The words are parsed before any server is started; the schema of the tool decides their types.

mod json_text;
mod word;
mod text_format;
mod schema;
mod tree;

pub(crate) use json_text::{object, reject_repeated_keys};
pub(crate) use schema::ArgumentSchema;
pub(crate) use word::{ArgumentWord, parse_pair, parse_word};

use anyhow::Result;
use trunkline::config::{closest_match, escape_control};
use trunkline::message::Raw;

use crate::output::exit::{Failure, FailureKind};
use tree::ArgumentTree;
use word::{KeyPath, WordValue};

/// Reads the file that `key=@file` names.
pub(crate) type ReadText<'r> = &'r dyn Fn(&str) -> Result<String>;

/// Words of a command line, which become the arguments of a tool.
#[derive(Debug, Default)]
pub(crate) struct ArgumentWords {
    words: Vec<ArgumentWord>,
}

impl ArgumentWords {
    /// Collects words. A key that occurs twice is an error, unless it is one of a list.
    pub(crate) fn new(words: Vec<ArgumentWord>) -> Result<Self> {
        let mut seen = Vec::new();
        for path in words.iter().filter_map(|word| word.path.as_ref()) {
            if path.is_item {
                continue;
            }
            if seen.contains(&path) {
                let shown = escape_control(&path.to_string());
                let message = format!("`{shown}=…` is given twice");
                let hint = format!("for a list, write `{shown}[]=…` for each item");
                return Err(Failure::new(FailureKind::Usage, message).with_hint(hint).into());
            }
            seen.push(path);
        }
        Ok(Self { words })
    }

    /// The arguments for a tool, as one object. With `checks_names`, an argument that the schema does not
    /// have is an error.
    pub(crate) fn for_tool(
        &self,
        schema: &ArgumentSchema,
        checks_names: bool,
        read: ReadText<'_>,
    ) -> Result<Raw> {
        let mut tree = ArgumentTree::default();
        for word in &self.words {
            let path = match &word.path {
                Some(path) => schema.split(path),
                None => vec![self.only_argument(schema, &word.text)?],
            };
            let name = path.first().map(String::as_str).unwrap_or_default();
            if checks_names && !schema.allows(name) {
                return Err(unknown_argument(schema, name).into());
            }
            let is_item = word.path.as_ref().is_some_and(|path| path.is_item);
            let types = schema.types(&path, is_item);
            let value = match &word.value {
                WordValue::Json(json) => json.clone(),
                WordValue::Text(text) => types.typed(text),
                WordValue::File(file) => types.typed(&read(file)?),
            };
            reject_repeated_keys(&value, &format!("`{}`", word.shown()))?;
            tree.insert(&path, is_item, value).map_err(|shown| conflicting(&shown))?;
        }
        Ok(tree.to_raw())
    }

    /// A hint for JSON that was given where the schema has text: how to pass the same as text.
    pub(crate) fn text_hint(&self, schema: &ArgumentSchema) -> Option<String> {
        let hint = |word: &ArgumentWord| {
            let (path, WordValue::Json(json)) = (word.path.as_ref()?, &word.value) else {
                return None;
            };
            let is_text = schema.types(&schema.split(path), path.is_item).wants_text(json);
            let value = Some(json.text())
                .filter(|it| it.len() <= MAX_VALUE && !it.contains(['[', '{', '"']));
            let item = if path.is_item { "[]" } else { "" };
            let shown = escape_control(&format!("{path}{item}={}", value.unwrap_or("…")));
            is_text.then(|| format!("`:=` takes JSON; `{shown}` passes text"))
        };
        self.words.iter().find_map(hint)
    }

    /// The argument that a value without a name is for: the only one that the tool needs.
    fn only_argument(&self, schema: &ArgumentSchema, text: &str) -> Result<String> {
        let named: Vec<&str> =
            self.words.iter().filter_map(|it| it.path.as_ref()?.first()).collect();
        let bare = self.words.iter().filter(|word| word.path.is_none()).count();
        let missing: Vec<&str> =
            schema.required().into_iter().filter(|name| !named.contains(name)).collect();
        let all = schema.names();
        match (missing.as_slice(), all.as_slice()) {
            ([one], _) | ([], [one]) if bare == 1 => return Ok((*one).to_owned()),
            _ => {}
        }
        let shown = escape_control(text);
        let failure = |message| Failure::new(FailureKind::BadArguments, message);
        let candidates = if missing.is_empty() { &all } else { &missing };
        let Some(first) = candidates.first() else {
            return Err(match schema.allows(text) {
                true => {
                    let message =
                        format!("`{shown}` has no name, and the tool describes no arguments");
                    failure(message).with_hint(format!("give it a name: `name={shown}`"))
                }
                false => failure(format!("the tool has no arguments, and `{shown}` is one")),
            }
            .into());
        };
        let message = match missing.len() {
            0 | 1 if bare > 1 => {
                format!(
                    "`{shown}` is one of {bare} values without a name; quote a text with spaces"
                )
            }
            _ => format!("`{shown}` has no name, and the tool has several arguments"),
        };
        let (first, names) = (escape_control(first), listed(candidates));
        let hint = format!("write `{first}={shown}`; the arguments are {names}");
        Err(failure(message).with_hint(hint).into())
    }
}

/// Characters of a value that is repeated in a message.
const MAX_VALUE: usize = 24;

/// Arguments that are named in one message.
const MAX_NAMED: usize = 12;

/// Names for a message: as many as are useful, and the number of the others.
fn listed(names: &[&str]) -> String {
    let shown: Vec<_> = names.iter().take(MAX_NAMED).map(|it| escape_control(it)).collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        others => format!("{} and {others} more", shown.join(", ")),
    }
}

impl ArgumentSchema {
    /// Checks the names of arguments that are strings, as those of prompts. An unknown one is an error.
    pub(crate) fn check_names<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<()> {
        match names.into_iter().find(|name| !self.allows(name)) {
            Some(name) => Err(unknown_argument(self, name).into()),
            None => Ok(()),
        }
    }

    /// Checks that no argument is missing.
    pub(crate) fn check_required(&self, given: &Raw) -> Result<()> {
        let missing: Vec<_> =
            self.required().into_iter().filter(|name| given.get(name).is_none()).collect();
        let names: Vec<_> = missing.iter().map(|it| format!("`{}`", escape_control(it))).collect();
        let (names, verb) = match names.as_slice() {
            [] => return Ok(()),
            [one] => (one.clone(), "is"),
            [others @ .., last] => (format!("{} and {last}", others.join(", ")), "are"),
        };
        let message = format!("the {} needs {names}, which {verb} missing", self.owner());
        let words: Vec<_> = missing.iter().map(|it| format!("{}=…", escape_control(it))).collect();
        let unchecked = match given.members().is_empty() {
            true => "gets it without them",
            false => "sends the others anyway",
        };
        let hint = format!("add `{}`; `--no-check` {unchecked}", words.join(" "));
        Err(Failure::new(FailureKind::BadArguments, message).with_hint(hint).into())
    }
}

fn unknown_argument(schema: &ArgumentSchema, name: &str) -> Failure {
    let (names, owner) = (schema.names(), schema.owner());
    let shown = escape_control(name);
    let failure = |message: String, step: &str| {
        let hint = format!("{step}; `--no-check` sends it anyway");
        Failure::new(FailureKind::BadArguments, message).with_hint(hint)
    };
    match closest_match(name, names.iter().copied()) {
        Some(near) => {
            let near = escape_control(near);
            let message = format!("the {owner} has no argument `{shown}`; did you mean `{near}`?");
            failure(message, &format!("it has {}", listed(&names))).suggesting(vec![near])
        }
        None if names.is_empty() => {
            failure(format!("the {owner} has no arguments, and `{shown}` is one"), "leave it out")
        }
        None => {
            let names = listed(&names);
            let message = format!("the {owner} has no argument `{shown}`; it has {names}");
            failure(message, "write one of these as `name=value`")
        }
    }
}

fn conflicting(key: &str) -> Failure {
    let shown = escape_control(key);
    let message = format!("`{shown}` has a value of its own and values below it");
    Failure::new(FailureKind::Usage, message)
        .with_hint(format!("write all of it as `{shown}:='…JSON…'`"))
}

impl KeyPath {
    fn first(&self) -> Option<&str> {
        self.keys.first().map(String::as_str)
    }
}

#[cfg(test)]
mod tests;
