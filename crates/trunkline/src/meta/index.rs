//! The search index over the tools of a catalog.

use std::sync::{Arc, Weak};

use trunkline_search::{Document, Index, Query, Visible};

use super::SearchArguments;
use crate::catalog::{Catalog, Entry, ItemKind};
use crate::message::Raw;
use crate::name::ServerName;
use crate::view::View;

/// A search index of one catalog. Tools that a caller may not see do not influence its results.
#[derive(Debug)]
pub struct ToolIndex {
    catalog: Weak<Catalog>,
    index: Index,
}

/// A tool that was found.
#[derive(Clone, Copy, Debug)]
pub struct SearchHit<'v> {
    /// The tool.
    pub entry: &'v Entry,
    /// Comparable within one search only.
    pub score: f32,
}

impl ToolIndex {
    /// Builds the index of a catalog. `describe` returns the description of a server.
    pub fn build(catalog: &Arc<Catalog>, describe: impl Fn(&ServerName) -> String) -> Self {
        let documents = catalog.entries(ItemKind::Tool).iter();
        let index = Index::build(documents.map(|entry| document(entry, &describe)));
        Self { catalog: Arc::downgrade(catalog), index }
    }

    /// Whether this is the index of a catalog.
    pub fn is_of(&self, catalog: &Arc<Catalog>) -> bool {
        std::ptr::eq(self.catalog.as_ptr(), Arc::as_ptr(catalog))
    }

    /// The tools of a view that fit a search, best first.
    pub fn search<'v>(&self, view: &'v View, search: &SearchArguments) -> Vec<SearchHit<'v>> {
        let found = |key: &str| view.route(ItemKind::Tool, key).ok();
        let visible = Visible::new(&self.index, |document| found(document.key()).is_some());
        let query = Query {
            texts: search.queries.iter().map(String::as_str).collect(),
            server: search.server.as_deref(),
            limit: search.limit,
        };
        let hits = self.index.search_visible(&query, &visible);
        let hit = |hit: trunkline_search::Hit<'_>| {
            Some(SearchHit { entry: found(hit.document.key())?, score: hit.score })
        };
        hits.into_iter().filter_map(hit).collect()
    }
}

fn document(entry: &Entry, describe: &impl Fn(&ServerName) -> String) -> Document {
    let [title, description, schema] =
        entry.definition().get_all(["title", "description", "inputSchema"]);
    let text =
        |raw: Option<Raw>| raw.as_ref().and_then(Raw::as_str).unwrap_or_default().into_owned();
    let properties = schema.and_then(|schema| schema.get("properties"));
    let parameters = properties.iter().flat_map(Raw::members);
    Document {
        key: entry.exposed().to_owned(),
        server: entry.server().name.to_string(),
        name: entry.name().to_owned(),
        title: text(title),
        description: text(description),
        parameters: parameters
            .map(|(name, schema)| (name, text(schema.get("description"))))
            .collect(),
        server_description: describe(&entry.server().name),
    }
}
