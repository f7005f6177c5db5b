//! A labelled set: tools, and queries with the tools that answer them.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use trunkline_search::{Document, Schema, parameter_texts};

/// A set of tools with queries.
pub(crate) struct LabelledSet {
    pub(crate) name: String,
    pub(crate) documents: Vec<Document>,
    pub(crate) queries: Vec<LabelledQuery>,
}

/// A query with the keys of the tools that answer it.
pub(crate) struct LabelledQuery {
    pub(crate) text: String,
    /// Relevance of each tool, by key; 1 unless it is graded.
    pub(crate) relevant: HashMap<String, f64>,
}

/// Reads every folder that has `tools.jsonl` and `queries.jsonl`, in the order of their names.
pub(crate) fn read_all(folder: &Path) -> Result<Vec<LabelledSet>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut folders = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.join("tools.jsonl").is_file() && path.join("queries.jsonl").is_file() {
            folders.push(path);
        }
    }
    if folders.is_empty() {
        bail!("no folder in {} has tools.jsonl and queries.jsonl", folder.display());
    }
    folders.sort();
    folders.iter().map(|path| LabelledSet::read(path)).collect()
}

impl LabelledSet {
    fn read(folder: &Path) -> Result<Self> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let tools = read_lines(&folder.join("tools.jsonl"))?;
        let queries = read_lines(&folder.join("queries.jsonl"))?;
        Ok(Self {
            name,
            documents: tools.iter().map(document).collect(),
            queries: queries.iter().map(LabelledQuery::read).collect(),
        })
    }
}

impl LabelledQuery {
    fn read(line: &Value) -> Self {
        let keys = line["relevant"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let grade = |key: &str| line["grades"][key].as_f64().unwrap_or(1.0);
        let relevant = keys.map(|key| (key.to_owned(), grade(key))).collect();
        Self { text: text(&line["text"]), relevant }
    }
}

fn read_lines(path: &Path) -> Result<Vec<Value>> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let parse = |(number, line)| {
        serde_json::from_str(line)
            .with_context(|| format!("{}:{} is not JSON", path.display(), number + 1))
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(parse).collect()
}

/// The document of a tool in `tools.jsonl`.
fn document(tool: &Value) -> Document {
    let (server, name) = (text(&tool["server"]), text(&tool["name"]));
    Document {
        key: format!("{server}/{name}"),
        title: text(&tool["title"]),
        description: text(&tool["description"]),
        parameters: parameter_texts(&SchemaValue(&tool["input_schema"])),
        server_description: text(&tool["server_description"]),
        server,
        name,
    }
}

/// A part of an input schema.
struct SchemaValue<'v>(&'v Value);

impl Schema for SchemaValue<'_> {
    fn get_all<const N: usize>(&self, names: [&str; N]) -> [Option<Self>; N] {
        names.map(|name| self.0.get(name).map(Self))
    }

    fn members(&self) -> Vec<(String, Self)> {
        let members = self.0.as_object().into_iter().flatten();
        members.map(|(name, value)| (name.clone(), Self(value))).collect()
    }

    fn items(&self) -> Vec<Self> {
        self.0.as_array().into_iter().flatten().map(Self).collect()
    }

    fn as_text(&self) -> Option<String> {
        self.0.as_str().map(str::to_owned)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
