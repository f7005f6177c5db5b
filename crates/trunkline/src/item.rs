//! One thing of a server, as the server described it: a tool, a resource, a prompt.

mod digest;

use std::borrow::Cow;
use std::sync::OnceLock;

pub use digest::DefinitionDigest;
pub(crate) use digest::HEADER_MARK;

use crate::message::Raw;
use crate::name::{TemplateForm, UriSpellings};
use crate::sanitize::sanitize_json;

/// What kind of thing a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemKind {
    /// Something that can be called.
    Tool,
    /// Something that can be read.
    Resource,
    /// A pattern of addresses of things that can be read.
    ResourceTemplate,
    /// A text to start from.
    Prompt,
}

impl ItemKind {
    /// Whether things of this kind are called by a URI, or a template of URIs.
    pub(crate) fn is_uri(self) -> bool {
        matches!(self, Self::Resource | Self::ResourceTemplate)
    }

    /// Every kind there is.
    pub const ALL: [Self; 4] = [Self::Tool, Self::Resource, Self::ResourceTemplate, Self::Prompt];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::ResourceTemplate => "resource template",
            Self::Prompt => "prompt",
        }
    }

    /// The method that lists them.
    pub fn list_method(self) -> &'static str {
        match self {
            Self::Tool => "tools/list",
            Self::Resource => "resources/list",
            Self::ResourceTemplate => "resources/templates/list",
            Self::Prompt => "prompts/list",
        }
    }

    /// The kinds of which a notification says that there are others now.
    pub fn list_changed_method(method: &str) -> &'static [Self] {
        match method {
            "notifications/tools/list_changed" => &[Self::Tool],
            "notifications/prompts/list_changed" => &[Self::Prompt],
            "notifications/resources/list_changed" => &[Self::Resource, Self::ResourceTemplate],
            _ => &[],
        }
    }

    /// The key under which a list of them is in its answer.
    pub fn list_key(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Resource => "resources",
            Self::ResourceTemplate => "resourceTemplates",
            Self::Prompt => "prompts",
        }
    }

    /// What a server declares that has any.
    pub fn capability(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Resource | Self::ResourceTemplate => "resources",
            Self::Prompt => "prompts",
        }
    }

    /// The key under which a definition has its name.
    pub fn name_key(self) -> &'static str {
        match self {
            Self::Tool | Self::Prompt => "name",
            Self::Resource => "uri",
            Self::ResourceTemplate => "uriTemplate",
        }
    }
}

/// What a tool says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolAnnotations {
    /// `readOnlyHint`: it changes nothing.
    pub read_only: Option<bool>,
    /// `destructiveHint`: it may destroy something.
    pub destructive: Option<bool>,
}

impl ToolAnnotations {
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

/// The links of a tool, or of its result, to views of MCP Apps: `_meta.ui.resourceUri`, and the older
/// `_meta["ui/resourceUri"]`. Those under keys that are there twice as well, since readers disagree on which
/// of them counts.
pub(crate) fn app_links(value: &Raw) -> Vec<Raw> {
    let mut links = Vec::new();
    for (_, meta) in value.get_alike(["_meta"]) {
        for (number, value) in meta.get_alike(["ui", "ui/resourceUri"]) {
            match number {
                0 => links.extend(value.get_alike(["resourceUri"]).into_iter().map(|it| it.1)),
                _ => links.push(value),
            }
        }
    }
    links
}

/// One thing of a server, as the server described it.
#[derive(Clone, Debug)]
pub struct Item {
    kind: ItemKind,
    name: Box<str>,
    definition: Raw,
    hints: ToolAnnotations,
    /// Made when it is first asked for, as the forms of its URI are.
    digest: OnceLock<DefinitionDigest>,
    spellings: OnceLock<Box<UriSpellings>>,
    template: OnceLock<Box<TemplateForm>>,
}

impl Item {
    /// A thing by the server's own name for it: for a resource its address.
    pub fn new(kind: ItemKind, name: &str, definition: Raw) -> Self {
        // Readers disagree on which of two values under one key counts: what is judged has to be what
        // is shown.
        let definition = definition.deduplicated();
        let hints = match kind {
            ItemKind::Tool => ToolAnnotations::of(&definition),
            _ => ToolAnnotations::default(),
        };
        Self {
            kind,
            name: name.into(),
            definition,
            hints,
            digest: OnceLock::new(),
            spellings: OnceLock::new(),
            template: OnceLock::new(),
        }
    }

    /// The same without anything that could deceive, for a server that is not trusted (TOOL-10).
    /// Its name is what goes over the wire and stays.
    #[must_use]
    pub fn cleaned(&self) -> Self {
        let definition = sanitize_json(&self.definition);
        Self { definition, digest: OnceLock::new(), ..self.clone() }
    }

    /// What kind of thing it is.
    pub fn kind(&self) -> ItemKind {
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

    /// The digest of its definition, by which definitions of tools are compared.
    pub fn digest(&self) -> DefinitionDigest {
        *self.digest.get_or_init(|| DefinitionDigest::of(&self.definition))
    }

    /// The spellings of the URI of a resource.
    pub(crate) fn spellings(&self) -> &UriSpellings {
        self.spellings.get_or_init(|| Box::new(UriSpellings::of(&self.name)))
    }

    /// The forms of a URI template.
    pub(crate) fn template(&self) -> &TemplateForm {
        self.template.get_or_init(|| Box::new(TemplateForm::of(&self.name)))
    }

    /// What it says of itself.
    pub fn annotations(&self) -> ToolAnnotations {
        self.hints
    }

    /// What it says it does or is.
    pub fn description(&self) -> Option<String> {
        self.definition.get("description")?.as_str().map(Cow::into_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seen: what was judged was the last of two, and both were shown.
    #[test]
    fn a_key_is_there_once() {
        let text = r#"{"name":"x","annotations":{"readOnlyHint":true},"n":1.0,"name":"y","annotations":{"readOnlyHint":false}}"#;
        let item = Item::new(ItemKind::Tool, "y", Raw::from_text(text).unwrap());
        let expected = r#"{"n":1.0,"name":"y","annotations":{"readOnlyHint":false}}"#;
        assert_eq!(item.definition().text(), expected);
        assert!(item.annotations().declares_writing());
    }

    #[test]
    fn an_item_and_the_same_cleaned_have_digests_of_their_own() {
        let text = "{\"name\":\"x\",\"description\":\"a\u{200b}b\"}";
        let item = Item::new(ItemKind::Tool, "x", Raw::from_text(text).unwrap());
        let digest = item.digest();
        let cleaned = item.cleaned();
        assert_ne!(cleaned.digest(), digest);
        assert_eq!(cleaned.digest(), DefinitionDigest::of(cleaned.definition()));
    }
}
