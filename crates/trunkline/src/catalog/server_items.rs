//! What one server has, looked into once, when its lists come.

use std::collections::HashSet;
use std::sync::Arc;

use crate::item::{Item, ItemKind};

/// Everything one server has. Made once, and shared by every catalog that holds it.
#[derive(Clone, Debug, Default)]
pub struct ServerItems {
    items: Vec<Arc<Item>>,
    declares_resources: bool,
    has_unasked_resources: bool,
    are_tools_listed: bool,
    has_unasked_names: bool,
}

impl ServerItems {
    /// Everything one server has; of things with the same name, the first.
    pub fn new(items: impl IntoIterator<Item = impl Into<Arc<Item>>>) -> Self {
        let mut seen: HashSet<(_, Box<str>)> = HashSet::new();
        let mut is_new = |item: &Arc<Item>| seen.insert((item.kind(), Box::from(item.name())));
        let items = items.into_iter().map(Into::into).filter(|item| is_new(item)).collect();
        Self { items, ..Self::default() }
    }

    /// The same, of a server that declares the capability `resources`, or does not.
    #[must_use]
    pub fn declare_resources(self, declares_resources: bool) -> Self {
        Self { declares_resources, ..self }
    }

    /// The same, of a server that may have resources or templates for which it was not asked yet, or has
    /// none.
    #[must_use]
    pub fn with_unlisted_resources(self, has_unasked_resources: bool) -> Self {
        Self { has_unasked_resources, ..self }
    }

    /// Whether the server may have resources or templates for which it was not asked yet.
    pub(crate) fn has_unlisted_resources(&self) -> bool {
        self.has_unasked_resources
    }

    /// The same, of a server whose tools are known, be it from disk, or are not.
    #[must_use]
    pub fn with_listed_tools(self, are_tools_listed: bool) -> Self {
        Self { are_tools_listed, ..self }
    }

    /// Whether the tools of the server are known.
    pub(crate) fn are_tools_listed(&self) -> bool {
        self.are_tools_listed
    }

    /// The same, of a server that may have tools or prompts for which it was not asked yet, or has none.
    #[must_use]
    pub fn with_unlisted_names(self, has_unasked_names: bool) -> Self {
        Self { has_unasked_names, ..self }
    }

    /// Whether the server may have tools or prompts for which it was not asked yet.
    pub(crate) fn has_unlisted_names(&self) -> bool {
        self.has_unasked_names
    }

    /// Whether the server lists resources or templates, or declares the capability.
    pub(crate) fn serves_resources(&self) -> bool {
        let is_resource =
            |item: &Arc<Item>| item.kind().capability() == ItemKind::Resource.capability();
        self.declares_resources || self.items.iter().any(is_resource)
    }

    /// Its things, in the order of its lists.
    pub fn items(&self) -> &[Arc<Item>] {
        &self.items
    }

    /// The same without anything that could deceive.
    #[must_use]
    pub fn cleaned(&self) -> Self {
        let items = self.items.iter().map(|item| Arc::new(item.cleaned())).collect();
        Self { items, ..*self }
    }
}
