//! What one server has, looked into once, when its lists come.

use std::collections::HashSet;
use std::sync::Arc;

use super::Kind;
use crate::clean::cleaned_json;
use crate::message::Raw;

/// What a tool says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// `readOnlyHint`: it changes nothing.
    pub read_only: Option<bool>,
    /// `destructiveHint`: it may destroy something.
    pub destructive: Option<bool>,
}

impl Hints {
    fn of(definition: &Raw) -> Self {
        let Some(annotations) = definition.get("annotations") else { return Self::default() };
        let [read_only, destructive] = annotations.get_all(["readOnlyHint", "destructiveHint"]);
        let switch = |value: Option<Raw>| value.and_then(|value| value.as_bool());
        Self { read_only: switch(read_only), destructive: switch(destructive) }
    }

    /// Whether it declares that it changes something.
    pub fn declares_writing(self) -> bool {
        // What destroys writes, even if it does not say so twice.
        self.read_only == Some(false)
            || (self.read_only.is_none() && self.destructive == Some(true))
    }
}

/// One thing of a server, as the server described it.
#[derive(Clone, Debug)]
pub struct Item {
    kind: Kind,
    name: Box<str>,
    definition: Raw,
    hints: Hints,
}

impl Item {
    /// A thing by the server's own name for it: for a resource its address.
    pub fn new(kind: Kind, name: &str, definition: Raw) -> Self {
        let hints = match kind {
            Kind::Tool => Hints::of(&definition),
            _ => Hints::default(),
        };
        Self { kind, name: name.into(), definition, hints }
    }

    /// The same without anything that could deceive, for a server that is not trusted (TOOL-10).
    /// Its name is what goes over the wire and stays.
    #[must_use]
    pub fn cleaned(&self) -> Self {
        Self { definition: cleaned_json(&self.definition), ..self.clone() }
    }

    /// What kind of thing it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The server's own name for it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the server said about it.
    pub fn definition(&self) -> &Raw {
        &self.definition
    }

    /// What it says of itself.
    pub fn hints(&self) -> Hints {
        self.hints
    }
}

/// Everything one server has. Made once, and shared by every catalog that holds it.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    items: Vec<Arc<Item>>,
}

impl Listing {
    /// Everything one server has; of things with the same name, the first.
    pub fn new(items: impl IntoIterator<Item = Item>) -> Self {
        let mut seen = HashSet::new();
        let mut is_new = |item: &Item| seen.insert((item.kind, item.name.clone()));
        Self { items: items.into_iter().filter(|item| is_new(item)).map(Arc::new).collect() }
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
