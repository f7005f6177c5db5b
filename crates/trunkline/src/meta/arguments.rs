//! Arguments of the meta tools, which come from models.

use std::borrow::Cow;
use std::fmt;

use super::MetaTool;
use crate::config::escape_control;
use crate::message::Raw;

/// Most queries of one search.
pub(super) const MAX_QUERIES: usize = 8;

/// Most results of one search.
pub(super) const MAX_LIMIT: usize = 50;

/// Results of a search that names no limit.
const DEFAULT_LIMIT: usize = 5;

/// Most tools that are described at once.
pub(super) const MAX_NAMES: usize = 20;

/// Characters of a wrong key or value that are repeated.
const MAX_WORD_CHARS: usize = 40;

/// Why the arguments of a meta tool cannot be used, for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentError {
    tool: Box<str>,
    problem: Box<str>,
}

impl ArgumentError {
    fn of_tool(name: &str, problem: &str) -> Self {
        Self { tool: name.into(), problem: problem.into() }
    }

    /// The reason without the name of the tool, for a caller that is not a model.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.tool, self.problem)
    }
}

impl std::error::Error for ArgumentError {}

/// Arguments of [`MetaTool::Search`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchArguments {
    /// Texts that describe the tools.
    pub queries: Vec<String>,
    /// Search only this server.
    pub server: Option<String>,
    /// Number of results.
    pub limit: usize,
}

impl SearchArguments {
    /// Reads the arguments. Models write one query without an array, too.
    ///
    /// # Errors
    ///
    /// If there is no query with a word, or a member is unknown, written twice or of another type.
    pub fn read(arguments: &Raw) -> Result<Self, ArgumentError> {
        let reader = ArgumentReader { tool: MetaTool::Search.name(), arguments };
        reader.require_known(&["queries", "query", "server", "limit"])?;
        let queries = reader.texts("queries", "query")?;
        let limit = reader.number("limit", MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT);
        let search = Self { queries, server: reader.string("server")?, limit };
        search.validate()?;
        Ok(search)
    }

    /// Checks arguments that do not come from a model.
    ///
    /// # Errors
    ///
    /// If there is no query with a word, or a number is beyond its limit.
    pub fn validate(&self) -> Result<(), ArgumentError> {
        let error = |problem: &str| ArgumentError::of_tool(MetaTool::Search.name(), problem);
        if self.queries.len() > MAX_QUERIES {
            return Err(error(&format!("`queries` may have {MAX_QUERIES} texts")));
        }
        if self.queries.iter().all(|query| query.trim().is_empty()) {
            return Err(error("`queries` is empty: say what the tool should do"));
        }
        match (1..=MAX_LIMIT).contains(&self.limit) {
            true => Ok(()),
            false => Err(error(&format!("`limit` must be 1 to {MAX_LIMIT}"))),
        }
    }
}

/// Arguments of [`MetaTool::Describe`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeArguments {
    /// Exposed names, each once.
    pub names: Vec<String>,
    /// Number of names above the limit, which are not described.
    pub left_out: usize,
}

impl DescribeArguments {
    /// Reads the arguments. Models write one name without an array, too.
    ///
    /// # Errors
    ///
    /// If there is no name, or a member is unknown, written twice or of another type.
    pub fn read(arguments: &Raw) -> Result<Self, ArgumentError> {
        let reader = ArgumentReader { tool: MetaTool::Describe.name(), arguments };
        reader.require_known(&["names", "name"])?;
        let names = reader.texts("names", "name")?;
        if names.is_empty() {
            return Err(reader.error("`names` is empty: find names with trunkline_search"));
        }
        let mut unique: Vec<String> = Vec::new();
        let mut left_out = 0;
        for name in names {
            if unique.len() == MAX_NAMES {
                left_out += 1;
            } else if !unique.contains(&name) {
                unique.push(name);
            }
        }
        Ok(Self { names: unique, left_out })
    }
}

/// Arguments of [`MetaTool::Call`].
#[derive(Clone, Debug)]
pub struct CallArguments {
    /// The name of the tool to call, as it is written.
    pub name: Raw,
    /// The arguments of the tool to call, unchanged.
    pub arguments: Option<Raw>,
}

impl CallArguments {
    /// Reads the arguments.
    ///
    /// # Errors
    ///
    /// If there is no name, or a member is written twice: another tool could run than the one that
    /// a rule was checked for.
    pub fn read(arguments: &Raw) -> Result<Self, ArgumentError> {
        let reader = ArgumentReader { tool: MetaTool::Call.name(), arguments };
        let error = |problem: &str| reader.error(problem);
        let is_unknown = |(key, _): &(String, Raw)| !matches!(&**key, "name" | "arguments");
        if let Some((key, _)) = arguments.members().iter().find(|it| is_unknown(it)) {
            let key = cut(key);
            return Err(error(&format!(
                "unknown `{key}`: arguments of the tool are in `arguments`"
            )));
        }
        let unique = |key| {
            let found = arguments.get_unique(key);
            found.map_err(|_| error(&format!("`{key}` is written twice")))
        };
        let name = unique("name")?.filter(|name| name.as_str().is_some());
        let name = name.ok_or_else(|| error("`name` must be the name of a tool"))?;
        let arguments = unique("arguments")?.filter(|arguments| !arguments.is_null());
        Ok(Self { name, arguments })
    }
}

/// Reads arguments of one tool. A member that is unknown or written twice is an error: another
/// program could read another request.
pub(super) struct ArgumentReader<'a> {
    /// The name of the tool.
    pub(super) tool: &'static str,
    pub(super) arguments: &'a Raw,
}

impl ArgumentReader<'_> {
    pub(super) fn error(&self, problem: &str) -> ArgumentError {
        ArgumentError::of_tool(self.tool, problem)
    }

    pub(super) fn require_known(&self, known: &[&str]) -> Result<(), ArgumentError> {
        if !self.arguments.is_object() {
            return Err(self.error("the arguments must be an object"));
        }
        let members = self.arguments.members();
        match members.iter().find(|(key, _)| !known.contains(&&**key)) {
            Some((key, _)) => {
                let known = known.join("`, `");
                Err(self.error(&format!("unknown `{}`; it has `{known}`", cut(key))))
            }
            None => Ok(()),
        }
    }

    pub(super) fn optional(&self, key: &str) -> Result<Option<Raw>, ArgumentError> {
        let found = self.arguments.get_unique(key);
        let found = found.map_err(|_| self.error(&format!("`{key}` is written twice")))?;
        Ok(found.filter(|value| !value.is_null()))
    }

    pub(super) fn string(&self, key: &str) -> Result<Option<String>, ArgumentError> {
        let written = self.optional(key)?;
        written.map(|it| text(&it).ok_or_else(|| self.not_a_string(key))).transpose()
    }

    pub(super) fn number(&self, key: &str, most: usize) -> Result<Option<usize>, ArgumentError> {
        let read = |written: Raw| {
            let number = written.as_u64().and_then(|it| usize::try_from(it).ok());
            let number = number.filter(|it| (1..=most).contains(it));
            number.ok_or_else(|| self.error(&format!("`{key}` must be 1 to {most}")))
        };
        self.optional(key)?.map(read).transpose()
    }

    /// The strings under a key, or under the singular that models also write.
    fn texts(&self, key: &str, singular: &str) -> Result<Vec<String>, ArgumentError> {
        let written = match (self.optional(key)?, self.optional(singular)?) {
            (Some(_), Some(_)) => {
                return Err(self.error(&format!("`{singular}` is the same as `{key}`: pass one")));
            }
            (one, other) => one.or(other),
        };
        let found = written.as_ref().and_then(texts);
        found.ok_or_else(|| self.error(&format!("`{key}` must be an array of strings")))
    }

    pub(super) fn not_a_string(&self, key: &str) -> ArgumentError {
        self.error(&format!("`{key}` must be a string"))
    }
}

/// The beginning of a word that a model wrote.
pub(super) fn cut(word: &str) -> String {
    escape_control(&word.chars().take(MAX_WORD_CHARS).collect::<String>())
}

/// The strings of an array, or one string.
fn texts(value: &Raw) -> Option<Vec<String>> {
    match text(value) {
        Some(text) => Some(vec![text]),
        None if value.text().starts_with('[') => value.items().iter().map(text).collect(),
        None => None,
    }
}

fn text(value: &Raw) -> Option<String> {
    value.as_str().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::from_text(text).unwrap()
    }

    #[test]
    fn search_arguments_have_defaults_and_limits() {
        let read = SearchArguments::read(&raw(r#"{"queries":["a","b"],"server":"s"}"#)).unwrap();
        assert_eq!((read.queries.len(), read.server.as_deref(), read.limit), (2, Some("s"), 5));
        let one = SearchArguments::read(&raw(r#"{"query":"a","limit":3,"server":null}"#)).unwrap();
        assert_eq!((&*one.queries[0], one.server, one.limit), ("a", None, 3));
        for wrong in [
            "{}",
            r#"{"queries":[]}"#,
            r#"{"queries":[" "]}"#,
            r#"{"queries":[1]}"#,
            r#"{"queries":{}}"#,
            r#"{"queries":["a"],"limit":0}"#,
            r#"{"queries":["a"],"limit":51}"#,
            r#"{"queries":["a"],"limit":"5"}"#,
            r#"{"queries":["a"],"server":1}"#,
            r#"{"queries":["1","2","3","4","5","6","7","8","9"]}"#,
            r#"{"queries":["a"],"queries":["b"]}"#,
            r#"{"queries":["a"],"query":"b"}"#,
            r#"{"queries":["a"],"servers":"s"}"#,
            r#"{"queries":["a"],"limit":1,"limit":2}"#,
            "[]",
        ] {
            assert!(SearchArguments::read(&raw(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_beyond_the_limit_are_counted() {
        let names: Vec<_> = (0..1000).map(|number| format!("\"t{number}\"")).collect();
        let read = DescribeArguments::read(&raw(&format!(r#"{{"names":[{}]}}"#, names.join(","))));
        let read = read.unwrap();
        assert_eq!((read.names.len(), read.left_out), (MAX_NAMES, 1000 - MAX_NAMES));
        let twice = DescribeArguments::read(&raw(r#"{"names":["a","a"]}"#)).unwrap();
        assert_eq!((twice.names.len(), twice.left_out), (1, 0));
        for wrong in [
            r#"{"names":[]}"#,
            r#"{"names":["a"],"names":["b"]}"#,
            r#"{"names":["a"],"name":"b"}"#,
            r#"{"names":["a"],"server":"s"}"#,
        ] {
            assert!(DescribeArguments::read(&raw(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_call_names_one_tool() {
        let read = CallArguments::read(&raw(r#"{"name":"t","arguments":{"a":1}}"#)).unwrap();
        assert_eq!((read.name.text(), read.arguments.unwrap().text()), ("\"t\"", r#"{"a":1}"#));
        let wrong = [
            "{}",
            r#"{"name":1}"#,
            r#"{"name":"a","name":"b"}"#,
            r#"{"name":"a","Arguments":{}}"#,
            r#"{"name":"a","path":"/x"}"#,
        ];
        for wrong in wrong {
            assert!(CallArguments::read(&raw(wrong)).is_err(), "{wrong}");
        }
    }
}
