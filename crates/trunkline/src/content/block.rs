//! One block of a result, looked into as far as needed.

use crate::message::Raw;

/// What a block holds.
pub(super) enum Block {
    /// A text, and the resource it is in, if it is in one.
    Text(Raw, Option<Raw>),
    /// Bytes: what they are, in base64, and where in the block they stand.
    Binary(Binary),
    /// The address of something that is elsewhere.
    Address(String),
    /// A kind of block that is not known here.
    Other(String),
}

/// Bytes in a block.
pub(super) struct Binary {
    /// `image`, `audio` or `resource`.
    pub(super) kind: String,
    pub(super) media_type: Option<String>,
    /// The address of a resource.
    pub(super) uri: Option<String>,
    /// The bytes, in base64.
    pub(super) data: Raw,
}

impl Binary {
    /// How many bytes there are, without looking at them.
    pub(super) fn size(&self) -> usize {
        let encoded = self.data.bytes().len().saturating_sub(2);
        let text = self.data.bytes();
        let padding = text.iter().rev().skip(1).take_while(|byte| **byte == b'=').count().min(2);
        (encoded - padding.min(encoded)) * 3 / 4
    }
}

impl Block {
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
                    Self::Binary(Binary { kind, media_type, uri, data })
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
            (_, Some(data)) if data.as_str().is_some() => Self::Binary(Binary {
                kind: "resource".to_owned(),
                media_type: string(media_type),
                uri: string(uri),
                data,
            }),
            _ => Self::Address(string(uri).unwrap_or_default()),
        }
    }
}

/// The blocks of a result: of a call under `content`, of a resource under `contents`.
pub(super) fn blocks(result: &Raw) -> Option<(&'static str, Vec<Raw>)> {
    let [content, contents] = result.get_all(["content", "contents"]);
    let found = |key, list: Option<Raw>| {
        let list = list.filter(|list| list.bytes().starts_with(b"["))?;
        Some((key, list.items()))
    };
    found("content", content).or_else(|| found("contents", contents))
}

/// A block of text.
pub(super) fn text_block(text: &str) -> Raw {
    Raw::from_value(&serde_json::json!({ "type": "text", "text": text }))
}

pub(super) fn string(value: Option<Raw>) -> Option<String> {
    Some(value?.as_str()?.into_owned())
}
