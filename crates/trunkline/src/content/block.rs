//! One block of a result, looked into as far as needed.

use crate::message::Raw;

/// What a block holds.
pub(super) enum ContentBlock {
    /// A text, and the resource it is in, if it is in one.
    Text(Raw, Option<Raw>),
    /// Bytes: what they are, in base64, and where in the block they stand.
    Binary(BinaryContent),
    /// The address of something that is elsewhere.
    Address(String),
    /// A kind of block that is not known here.
    Other(String),
}

/// Bytes in a block.
pub(super) struct BinaryContent {
    /// `image`, `audio` or `resource`.
    pub(super) kind: String,
    pub(super) media_type: Option<String>,
    /// The address of a resource.
    pub(super) uri: Option<String>,
    /// The bytes, in base64.
    pub(super) data: Raw,
}

impl BinaryContent {
    /// How many bytes there are, without looking at them.
    pub(super) fn size(&self) -> usize {
        let encoded = self.data.bytes().len().saturating_sub(2);
        let text = self.data.bytes();
        let padding = text.iter().rev().skip(1).take_while(|byte| **byte == b'=').count().min(2);
        (encoded - padding.min(encoded)) * 3 / 4
    }
}

impl ContentBlock {
    /// A block of a result, or an item of what was read of a resource.
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

/// The kind of a result, by the method that it answers. A result may have any other key, so that its keys
/// do not tell.
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
    /// The kind of the results of a method.
    pub fn of_method(method: &str) -> Self {
        match method {
            "tools/call" => Self::ToolCall,
            "prompts/get" => Self::Prompt,
            "resources/read" => Self::Resource,
            "completion/complete" => Self::Completion,
            _ => Self::Other,
        }
    }

    /// The form of the list that results of this kind hold.
    pub(super) fn form(self) -> Option<ListForm> {
        match self {
            Self::ToolCall => Some(ListForm::Content),
            Self::Prompt => Some(ListForm::Messages),
            Self::Resource => Some(ListForm::Contents),
            Self::Completion | Self::Other => None,
        }
    }

    /// The items of the list of a result.
    pub(super) fn items(self, result: &Raw) -> Vec<Raw> {
        let list = self.form().and_then(|form| result.get(form.key())).filter(is_list);
        list.map(|list| list.items()).unwrap_or_default()
    }

    /// The blocks of a result, those of all its messages included. Each is a part of it.
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
    /// Blocks: the result of a call.
    Content,
    /// Resources: what was read.
    Contents,
    /// Messages, each with a block or several: a prompt.
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

/// A block of text.
pub(super) fn text_block(text: &str) -> Raw {
    Raw::from_value(&serde_json::json!({ "type": "text", "text": text }))
}

pub(super) fn string(value: Option<Raw>) -> Option<String> {
    Some(value?.as_str()?.into_owned())
}
