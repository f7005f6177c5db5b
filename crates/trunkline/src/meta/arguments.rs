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

/// Why the arguments of a meta tool cannot be used, for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentError(String);

impl ArgumentError {
    fn new(tool: MetaTool, problem: &str) -> Self {
        Self::of_tool(tool.name(), problem)
    }

    pub(super) fn of_tool(name: &str, problem: &str) -> Self {
        Self(format!("{name}: {problem}"))
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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
    /// If there is no query with a word, or a member has another type.
    pub fn read(arguments: &Raw) -> Result<Self, ArgumentError> {
        let error = |problem: &str| ArgumentError::new(MetaTool::Search, problem);
        let written = arguments.get("queries").or_else(|| arguments.get("query"));
        let queries = written.as_ref().and_then(texts);
        let queries = queries.ok_or_else(|| error("`queries` must be an array of strings"))?;
        if queries.len() > MAX_QUERIES {
            return Err(error(&format!("`queries` may have {MAX_QUERIES} texts")));
        }
        if queries.iter().all(|query| query.trim().is_empty()) {
            return Err(error("`queries` is empty: say what the tool should do"));
        }
        let limit = match arguments.get("limit").filter(|limit| !limit.is_null()) {
            None => DEFAULT_LIMIT,
            Some(limit) => {
                let number = limit.as_u64().and_then(|it| usize::try_from(it).ok());
                let number = number.filter(|it| (1..=MAX_LIMIT).contains(it));
                number.ok_or_else(|| error(&format!("`limit` must be 1 to {MAX_LIMIT}")))?
            }
        };
        let server = arguments.get("server").filter(|server| !server.is_null());
        let server =
            server.map(|server| text(&server).ok_or_else(|| error("`server` must be a string")));
        Ok(Self { queries, server: server.transpose()?, limit })
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
    /// If there is no name, or a member has another type.
    pub fn read(arguments: &Raw) -> Result<Self, ArgumentError> {
        let error = |problem: &str| ArgumentError::new(MetaTool::Describe, problem);
        let written = arguments.get("names").or_else(|| arguments.get("name"));
        let names = written.as_ref().and_then(texts);
        let names = names.ok_or_else(|| error("`names` must be an array of strings"))?;
        if names.is_empty() {
            return Err(error("`names` is empty: find names with trunkline_search"));
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
        let error = |problem: &str| ArgumentError::new(MetaTool::Call, problem);
        let is_unknown = |(key, _): &(String, Raw)| !matches!(&**key, "name" | "arguments");
        if let Some((key, _)) = arguments.members().iter().find(|it| is_unknown(it)) {
            let key: String = key.chars().take(40).collect();
            let key = escape_control(&key);
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

/// The strings of an array, or one string.
fn texts(value: &Raw) -> Option<Vec<String>> {
    match text(value) {
        Some(text) => Some(vec![text]),
        None if value.text().starts_with('[') => value.items().iter().map(text).collect(),
        None => None,
    }
}

pub(super) fn text(value: &Raw) -> Option<String> {
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
        assert!(DescribeArguments::read(&raw(r#"{"names":[]}"#)).is_err());
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
