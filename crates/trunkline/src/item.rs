//! Items of servers: tools, resources, resource templates and prompts, as the server listed them.

mod digest;

use std::borrow::Cow;
use std::sync::OnceLock;

pub use digest::DefinitionDigest;
pub(crate) use digest::HEADER_MARK;

use crate::message::Raw;
use crate::name::{TemplateForm, UriSpellings};
use crate::sanitize::sanitize_json;

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemKind {
    /// A tool, which can be called.
    Tool,
    /// A resource, which can be read.
    Resource,
    /// A template for URIs of resources.
    ResourceTemplate,
    /// A prompt.
    Prompt,
}

impl ItemKind {
    /// Whether items of this kind are identified by a URI or a URI template.
    pub(crate) fn is_uri(self) -> bool {
        matches!(self, Self::Resource | Self::ResourceTemplate)
    }

    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Tool, Self::Resource, Self::ResourceTemplate, Self::Prompt];

    /// The name of the kind.
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

    /// The kinds whose lists changed, by the method of a notification.
    pub fn list_changed_method(method: &str) -> &'static [Self] {
        match method {
            "notifications/tools/list_changed" => &[Self::Tool],
            "notifications/prompts/list_changed" => &[Self::Prompt],
            "notifications/resources/list_changed" => &[Self::Resource, Self::ResourceTemplate],
            _ => &[],
        }
    }

    /// The key of the list in a response.
    pub fn list_key(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Resource => "resources",
            Self::ResourceTemplate => "resourceTemplates",
            Self::Prompt => "prompts",
        }
    }

    /// The capability that a server with such items declares.
    pub fn capability(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Resource | Self::ResourceTemplate => "resources",
            Self::Prompt => "prompts",
        }
    }

    /// The key of the name in a definition.
    pub fn name_key(self) -> &'static str {
        match self {
            Self::Tool | Self::Prompt => "name",
            Self::Resource => "uri",
            Self::ResourceTemplate => "uriTemplate",
        }
    }
}

/// The annotations of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolAnnotations {
    /// `readOnlyHint`: the tool does not modify anything.
    pub read_only: Option<bool>,
    /// `destructiveHint`: the tool may perform destructive updates.
    pub destructive: Option<bool>,
}

impl ToolAnnotations {
    /// The annotations of a definition.
    pub(crate) fn of(definition: &Raw) -> Self {
        let Some(annotations) = definition.get("annotations") else { return Self::default() };
        let [read_only, destructive] = annotations.get_all(["readOnlyHint", "destructiveHint"]);
        let switch = |value: Option<Raw>| value.and_then(|value| value.as_bool());
        Self { read_only: switch(read_only), destructive: switch(destructive) }
    }

    /// Whether it declares that it modifies something.
    pub fn declares_writing(self) -> bool {
        // A destructive tool writes, even if it does not set `readOnlyHint`.
        self.read_only == Some(false)
            || (self.read_only.is_none() && self.destructive == Some(true))
    }
}

/// The links of a tool, or of its result, to MCP Apps views: `_meta.ui.resourceUri`, and the older
/// `_meta["ui/resourceUri"]`. Includes duplicate keys, because parsers disagree on which of them
/// counts.
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

/// An item of a server, with its definition.
#[derive(Clone, Debug)]
pub struct Item {
    kind: ItemKind,
    name: Box<str>,
    definition: Raw,
    hints: ToolAnnotations,
    /// Computed when it is first needed, like the forms of the URI.
    digest: OnceLock<DefinitionDigest>,
    spellings: OnceLock<Box<UriSpellings>>,
    template: OnceLock<Box<TemplateForm>>,
}

impl Item {
    /// Creates an item by its upstream name, for a resource its URI.
    pub fn new(kind: ItemKind, name: &str, definition: Raw) -> Self {
        // Parsers disagree on which of two duplicate keys counts: the value that rules judge must
        // be the one that clients see.
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

    /// The item without deceptive characters, for an untrusted server (TOOL-10). Its name is sent
    /// in requests and stays.
    #[must_use]
    pub fn cleaned(&self) -> Self {
        let definition = sanitize_json(&self.definition);
        Self { definition, digest: OnceLock::new(), ..self.clone() }
    }

    /// The kind of the item.
    pub fn kind(&self) -> ItemKind {
        self.kind
    }

    /// The upstream name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The definition as the server listed it, without duplicate keys.
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

    /// The annotations; empty unless it is a tool.
    pub fn annotations(&self) -> ToolAnnotations {
        self.hints
    }

    /// The description of the item.
    pub fn description(&self) -> Option<String> {
        self.definition.get("description")?.as_str().map(Cow::into_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seen: of two duplicate keys the last was judged, and both were shown.
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
