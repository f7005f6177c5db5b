//! What one server has, looked into once, when its lists come.

use std::collections::HashSet;
use std::sync::Arc;

use crate::item::Item;

/// Everything one server has. Made once, and shared by every catalog that holds it.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    items: Vec<Arc<Item>>,
}

impl Listing {
    /// Everything one server has; of things with the same name, the first.
    pub fn new(items: impl IntoIterator<Item = impl Into<Arc<Item>>>) -> Self {
        let mut seen: HashSet<(_, Box<str>)> = HashSet::new();
        let mut is_new = |item: &Arc<Item>| seen.insert((item.kind(), Box::from(item.name())));
        let items = items.into_iter().map(Into::into).filter(|item| is_new(item)).collect();
        Self { items }
    }

    /// Its things, in the order of its lists.
    pub fn items(&self) -> &[Arc<Item>] {
        &self.items
    }

    /// The same without anything that could deceive.
    #[must_use]
    pub fn cleaned(&self) -> Self {
        Self { items: self.items.iter().map(|item| Arc::new(item.cleaned())).collect() }
    }
}
