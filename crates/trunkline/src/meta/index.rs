//! The search index over the tools of a catalog.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Weak};

use trunkline_search::{
    Document, Field, Index, Query, Schema, TermContribution, Visible, parameter_texts,
};

use super::SearchArguments;
use super::visible_tools::VisibleTools;
use crate::catalog::{Catalog, DefinitionDigest, Entry, ItemKind};
use crate::message::Raw;
use crate::name::ServerName;
use crate::view::View;

/// A search index of one catalog. Tools that a caller may not see do not influence its results.
#[derive(Debug, Default)]
pub struct ToolIndex {
    catalog: Weak<Catalog>,
    index: Index,
    /// What was indexed of each server, to index only changes.
    servers: HashMap<ServerName, IndexedServer>,
    visible: VisibleTools,
}

/// The tools of a server, by exposed name.
type IndexedServer = Vec<(Box<str>, DefinitionDigest)>;

/// A tool that was found.
#[derive(Clone, Debug)]
pub struct SearchHit<'v> {
    /// The tool.
    pub entry: &'v Entry,
    /// Comparable within one search only.
    pub score: f32,
    /// Tools with nearly the same words, best first.
    pub similar: Vec<&'v Entry>,
}

impl ToolIndex {
    /// Builds the index of a catalog. Only servers that differ from `before` are indexed.
    pub fn build(catalog: &Arc<Catalog>, before: Option<&Self>) -> Self {
        // In the order of their names, so that equal catalogs have equal indexes.
        let mut entries: BTreeMap<&ServerName, Vec<&Entry>> = BTreeMap::new();
        for entry in catalog.entries(ItemKind::Tool) {
            entries.entry(&entry.server().name).or_default().push(entry);
        }
        let mut index = before.map(|before| before.index.clone()).unwrap_or_default();
        let known = before.map(|before| &before.servers);
        for gone in known.into_iter().flat_map(HashMap::keys).filter(|it| !entries.contains_key(it))
        {
            index.remove_server(gone.as_str());
        }
        let mut servers = HashMap::new();
        for (name, entries) in entries {
            let tools = entries.iter().map(|entry| (entry.exposed().into(), entry.digest()));
            let server: IndexedServer = tools.collect();
            if known.and_then(|known| known.get(name)) != Some(&server) {
                let documents = entries.iter().map(|entry| document(entry));
                index.replace_server(name.as_str(), documents);
            }
            servers.insert(name.clone(), server);
        }
        let visible = VisibleTools::default();
        Self { catalog: Arc::downgrade(catalog), index, servers, visible }
    }

    /// Whether this is the index of a catalog.
    pub fn is_of(&self, catalog: &Arc<Catalog>) -> bool {
        std::ptr::eq(self.catalog.as_ptr(), Arc::as_ptr(catalog))
    }

    /// The tools of a view that fit a search, best first.
    pub fn search<'v>(&self, view: &'v View, search: &SearchArguments) -> Vec<SearchHit<'v>> {
        let found = |key: &str| view.route(ItemKind::Tool, key).ok();
        let visible = self.visible(view);
        let query = Query {
            texts: search.queries.iter().map(String::as_str).collect(),
            server: search.server.as_deref(),
            limit: search.limit,
            collapse: true,
        };
        let hits = self.index.search_visible(&query, &visible);
        let hit = |hit: trunkline_search::Hit<'_>| {
            let similar = hit.similar.iter().filter_map(|it| found(it.key())).collect();
            Some(SearchHit { entry: found(hit.document.key())?, score: hit.score, similar })
        };
        hits.into_iter().filter_map(hit).collect()
    }

    /// The tools of a view. The rules are asked once for all views that show the same.
    fn visible(&self, view: &View) -> Arc<Visible> {
        self.visible.get(view, || {
            // Not by routing each name: a hidden one costs a search for names to suggest.
            let names: HashSet<&str> = view.entries(ItemKind::Tool).map(Entry::exposed).collect();
            Visible::new(&self.index, |document| names.contains(document.key()))
        })
    }
}

impl ToolIndex {
    /// The words of a search that a tool of a view has, best first, each with the part of the tool
    /// that has them, and the similarity of meaning in percent.
    pub fn explain(&self, view: &View, search: &SearchArguments, entry: &Entry) -> Vec<String> {
        let visible = self.visible(view);
        let document = document(entry);
        let mut lines = Vec::new();
        for query in &search.queries {
            let explanation = self.index.explain(query, &document, Some(&visible));
            let term = |it: &TermContribution| {
                let field = it.fields.first().map_or("text", |(field, _)| field_name(*field));
                format!("{} in its {field}", it.term)
            };
            let mut parts: Vec<_> = explanation.terms.iter().map(term).collect();
            if explanation.similarity > 0.0 {
                parts.push(format!("meaning {:.0} %", explanation.similarity * 100.0));
            }
            lines.extend((!parts.is_empty()).then(|| parts.join(", ")));
        }
        lines
    }
}

fn field_name(field: Field) -> &'static str {
    match field {
        Field::Name => "name",
        Field::Title => "title",
        Field::Server => "server",
        Field::Description => "description",
        Field::ParameterNames | Field::ParameterDescriptions => "parameters",
        Field::ServerDescription => "server's description",
    }
}

fn document(entry: &Entry) -> Document {
    let [title, description, schema] =
        entry.definition().get_all(["title", "description", "inputSchema"]);
    let text =
        |raw: Option<Raw>| raw.as_ref().and_then(Raw::as_str).unwrap_or_default().into_owned();
    Document {
        key: entry.exposed().to_owned(),
        server: entry.server().name.to_string(),
        name: entry.name().to_owned(),
        title: text(title),
        description: text(description),
        parameters: schema.map(|it| parameter_texts(&SchemaText(it))).unwrap_or_default(),
        // Equal for all tools of a server, which would make them near-duplicates, and unknown until
        // the server has started.
        server_description: String::new(),
    }
}

/// A part of an input schema.
struct SchemaText(Raw);

impl Schema for SchemaText {
    fn get_all<const N: usize>(&self, names: [&str; N]) -> [Option<Self>; N] {
        self.0.get_all(names).map(|value| value.map(Self))
    }

    fn members(&self) -> Vec<(String, Self)> {
        self.0.members().into_iter().map(|(name, value)| (name, Self(value))).collect()
    }

    fn items(&self) -> Vec<Self> {
        self.0.items().into_iter().map(Self).collect()
    }

    fn as_text(&self) -> Option<String> {
        self.0.as_str().map(Cow::into_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_a_definition_are_read_with_their_values() {
        let schema = r#"{"type":"object","properties":{
            "unit":{"description":"Scale","enum":["celsius",1,"kelvin"]},
            "place":{"type":"object","properties":{"city":{"description":"Name of the city"}}},
            "any":true}}"#;
        let texts = parameter_texts(&SchemaText(Raw::from_text(schema).unwrap()));
        let texts: Vec<_> = texts.iter().map(|(name, text)| (&**name, &**text)).collect();
        let expected = [
            ("unit", "Scale celsius kelvin"),
            ("place", ""),
            ("city", "Name of the city"),
            ("any", ""),
        ];
        assert_eq!(texts, expected);
    }
}
