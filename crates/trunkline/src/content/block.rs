//! Content blocks of results, decoded as far as needed.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::message::Raw;

/// Base64 with optional padding: some servers omit it.
pub(super) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The content of a block.
pub(super) enum ContentBlock {
    /// A text, and the embedded resource that contains it, if any.
    Text(Raw, Option<Raw>),
    /// Binary data in base64.
    Binary(BinaryContent),
    /// The URI of content that is not included.
    Address(String),
    /// An unknown type of block.
    Other(String),
}

/// Binary data in a block.
pub(super) struct BinaryContent {
    /// `image`, `audio` or `resource`.
    pub(super) kind: String,
    pub(super) media_type: Option<String>,
    /// The URI of a resource.
    pub(super) uri: Option<String>,
    /// The bytes, in base64.
    pub(super) data: Raw,
}

impl BinaryContent {
    /// The decoded size, computed from the encoded one.
    pub(super) fn size(&self) -> usize {
        let encoded = self.data.bytes().len().saturating_sub(2);
        let text = self.data.bytes();
        let padding = text.iter().rev().skip(1).take_while(|byte| **byte == b'=').count().min(2);
        (encoded - padding.min(encoded)) * 3 / 4
    }

    /// Whether the data is valid base64.
    pub(super) fn is_decodable(&self) -> bool {
        self.data.as_str().is_some_and(|text| BASE64.decode(text.as_bytes()).is_ok())
    }
}

impl ContentBlock {
    /// Decodes a block of a result, or an item of a `resources/read` result.
    pub(super) fn of(block: &Raw) -> Self {
        let [kind, text, data, media_type, resource, uri] =
            block.get_all(["type", "text", "data", "mimeType", "resource", "uri"]);
        let kind = string(kind).unwrap_or_else(|| "resource".to_owned());
        match &*kind {
            "text" => Self::Text(text.unwrap_or_else(|| Raw::from_string("")), None),
            "image" | "audio" => match data {
                Some(data) => {
                    let (media_type, uri) = (string(media_type), None);
                    Self::Binary(BinaryContent { kind, media_type, uri, data })
                }
                None => Self::Other(kind),
            },
            "resource" => match resource {
                Some(resource) => Self::of_resource(&resource, Some(&resource)),
                None => Self::of_resource(block, None),
            },
            "resource_link" => Self::Address(string(uri).unwrap_or_default()),
            _ => Self::Other(kind),
        }
    }

    fn of_resource(resource: &Raw, within: Option<&Raw>) -> Self {
        let [text, blob, media_type, uri] = resource.get_all(["text", "blob", "mimeType", "uri"]);
        match (text, blob) {
            (Some(text), _) if text.as_str().is_some() => Self::Text(text, within.cloned()),
            (_, Some(data)) if data.as_str().is_some() => Self::Binary(BinaryContent {
                kind: "resource".to_owned(),
                media_type: string(media_type),
                uri: string(uri),
                data,
            }),
            _ => Self::Address(string(uri).unwrap_or_default()),
        }
    }
}

/// The kind of a result, by the method of its request. The keys of a result are ambiguous, because
/// it may contain any others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// Of `tools/call`.
    ToolCall,
    /// Of `prompts/get`.
    Prompt,
    /// Of `resources/read`.
    Resource,
    /// Of `completion/complete`.
    Completion,
    /// Of a method whose results have no content.
    Other,
}

impl ResultKind {
    /// Returns the kind of the results of a method.
    pub fn of_method(method: &str) -> Self {
        match method {
            "tools/call" => Self::ToolCall,
            "prompts/get" => Self::Prompt,
            "resources/read" => Self::Resource,
            "completion/complete" => Self::Completion,
            _ => Self::Other,
        }
    }

    /// The form of the list in results of this kind.
    pub(super) fn form(self) -> Option<ListForm> {
        match self {
            Self::ToolCall => Some(ListForm::Content),
            Self::Prompt => Some(ListForm::Messages),
            Self::Resource => Some(ListForm::Contents),
            Self::Completion | Self::Other => None,
        }
    }

    /// The items of the list in a result.
    pub(super) fn items(self, result: &Raw) -> Vec<Raw> {
        let list = self.form().and_then(|form| result.get(form.key())).filter(is_list);
        list.map(|list| list.items()).unwrap_or_default()
    }

    /// The blocks of a result, including those of all its messages, as slices of the result.
    pub(super) fn blocks(self, result: &Raw) -> Vec<Raw> {
        let items = self.items(result);
        match self.form() {
            Some(ListForm::Messages) => items.iter().flat_map(message_blocks).collect(),
            _ => items,
        }
    }
}

/// The form of the list in a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListForm {
    /// Content blocks, of `tools/call`.
    Content,
    /// Resource contents, of `resources/read`.
    Contents,
    /// Messages with one or more blocks each, of `prompts/get`.
    Messages,
}

impl ListForm {
    /// The key of the list.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::Contents => "contents",
            Self::Messages => "messages",
        }
    }
}

/// The blocks of a message: one, or a list of them.
pub(super) fn message_blocks(message: &Raw) -> Vec<Raw> {
    match message.get("content") {
        Some(list) if is_list(&list) => list.items(),
        Some(block) => vec![block],
        None => Vec::new(),
    }
}

pub(super) fn is_list(value: &Raw) -> bool {
    value.bytes().starts_with(b"[")
}

/// Creates a text block.
pub(super) fn text_block(text: &str) -> Raw {
    Raw::from_value(&serde_json::json!({ "type": "text", "text": text }))
}

pub(super) fn string(value: Option<Raw>) -> Option<String> {
    Some(value?.as_str()?.into_owned())
}
