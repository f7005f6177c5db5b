//! The items of one server, indexed once when its lists arrive.

use std::collections::HashSet;
use std::sync::Arc;

use crate::item::{Item, ItemKind};

/// All items of one server. Created once, and shared by every catalog that contains it.
#[derive(Clone, Debug, Default)]
pub struct ServerItems {
    items: Vec<Arc<Item>>,
    declares_resources: bool,
    has_unasked_resources: bool,
    are_tools_listed: bool,
    has_unasked_names: bool,
}

impl ServerItems {
    /// Collects the items of one server; of items with the same name, the first.
    pub fn new(items: impl IntoIterator<Item = impl Into<Arc<Item>>>) -> Self {
        let mut seen: HashSet<(_, Box<str>)> = HashSet::new();
        let mut is_new = |item: &Arc<Item>| seen.insert((item.kind(), Box::from(item.name())));
        let items = items.into_iter().map(Into::into).filter(|item| is_new(item)).collect();
        Self { items, ..Self::default() }
    }

    /// Sets whether the server declares the capability `resources`.
    #[must_use]
    pub fn declare_resources(self, declares_resources: bool) -> Self {
        Self { declares_resources, ..self }
    }

    /// Sets whether the server may have resources or templates whose list was not requested yet.
    #[must_use]
    pub fn with_unlisted_resources(self, has_unasked_resources: bool) -> Self {
        Self { has_unasked_resources, ..self }
    }

    /// Whether the server may have resources or templates whose list was not requested yet.
    pub(crate) fn has_unlisted_resources(&self) -> bool {
        self.has_unasked_resources
    }

    /// Sets whether the tools of the server are known, be it from the cache on disk.
    #[must_use]
    pub fn with_listed_tools(self, are_tools_listed: bool) -> Self {
        Self { are_tools_listed, ..self }
    }

    /// Whether the tools of the server are known.
    pub(crate) fn are_tools_listed(&self) -> bool {
        self.are_tools_listed
    }

    /// Sets whether the server may have tools or prompts whose list was not requested yet.
    #[must_use]
    pub fn with_unlisted_names(self, has_unasked_names: bool) -> Self {
        Self { has_unasked_names, ..self }
    }

    /// Whether the server may have tools or prompts whose list was not requested yet.
    pub(crate) fn has_unlisted_names(&self) -> bool {
        self.has_unasked_names
    }

    /// Whether the server lists resources or templates, or declares the capability.
    pub(crate) fn serves_resources(&self) -> bool {
        let is_resource =
            |item: &Arc<Item>| item.kind().capability() == ItemKind::Resource.capability();
        self.declares_resources || self.items.iter().any(is_resource)
    }

    /// The items, in the order of its lists.
    pub fn items(&self) -> &[Arc<Item>] {
        &self.items
    }

    /// The items without deceptive characters, for untrusted servers.
    #[must_use]
    pub fn cleaned(&self) -> Self {
        let items = self.items.iter().map(|item| Arc::new(item.cleaned())).collect();
        Self { items, ..*self }
    }
}
