//! Extracts binary blocks of a result as files with safe names (CALL-4).

use std::fmt;

use base64::DecodeError;
use base64::Engine as _;

use super::block::{BASE64, BinaryContent, ContentBlock, ResultKind, string};
use crate::message::Raw;
use crate::name::digest;
use crate::protocol::meta::RESOURCE;

/// Length of the digest in a file name: equal bytes always have the same name.
const DIGEST: usize = 16;

/// Maximum length of the part of a name that comes from the server.
const LONGEST_STEM: usize = 40;

/// File extensions by media type.
const ENDINGS: &[(&str, &str)] = &[
    ("image/png", "png"),
    ("image/jpeg", "jpg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
    ("image/svg+xml", "svg"),
    ("audio/wav", "wav"),
    ("audio/x-wav", "wav"),
    ("audio/mpeg", "mp3"),
    ("audio/ogg", "ogg"),
    ("application/pdf", "pdf"),
    ("application/zip", "zip"),
    ("application/gzip", "gz"),
    ("application/json", "json"),
    ("text/plain", "txt"),
    ("text/csv", "csv"),
    ("text/html", "html"),
];

/// Limits on the files of one result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArtifactLimits {
    /// Maximum number of files.
    pub count: usize,
    /// Maximum number of bytes in total.
    pub total_bytes: usize,
}

impl Default for ArtifactLimits {
    fn default() -> Self {
        Self { count: 100, total_bytes: 50 * 1024 * 1024 }
    }
}

/// A binary block that can be a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// The index of the block in the result; counted across all messages.
    pub block: usize,
    /// A safe file name: letters, digits, `-`, and one dot.
    pub suggested_name: String,
    /// The media type declared by the server.
    pub media_type: Option<String>,
    /// The decoded content.
    pub bytes: Vec<u8>,
}

/// A binary block that cannot be a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusableBlock {
    /// The index of the block in the result; counted across all messages.
    pub block: usize,
    /// `image`, `audio` or `resource`.
    pub kind: String,
    /// The media type declared by the server.
    pub media_type: Option<String>,
    /// The URI, of a resource.
    pub uri: Option<String>,
    /// Why it cannot be a file.
    pub reason: BlockError,
}

/// Why a binary block cannot be a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockError {
    /// Its data is not a string.
    NotText,
    /// Its data is not base64, with the reason.
    NotBase64(String),
    /// It is beyond the [`ArtifactLimits`].
    TooMany,
}

impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotText => f.write_str("its data is not a string"),
            Self::NotBase64(reason) => f.write_str(reason),
            Self::TooMany => f.write_str("the result has more binary content than can be saved"),
        }
    }
}

impl From<DecodeError> for BlockError {
    fn from(error: DecodeError) -> Self {
        Self::NotBase64(match error {
            DecodeError::InvalidByte(at, byte) => {
                format!("`{}` at position {at} is not base64", byte.escape_ascii())
            }
            DecodeError::InvalidLength(_) => "its base64 ends in the middle of a byte".to_owned(),
            DecodeError::InvalidPadding => "its base64 has wrong padding".to_owned(),
            _ => "its base64 has bits after the last byte".to_owned(),
        })
    }
}

impl std::error::Error for BlockError {}

/// Returns the binary blocks of a result that can be files. [`unusable_blocks`] returns the others.
///
/// ```
/// use trunkline::content::{ArtifactLimits, ResultKind, artifacts, with_artifacts};
/// use trunkline::message::Raw;
///
/// let text = r#"{"content":[{"type":"image","mimeType":"image/png","data":"iVBORw=="}]}"#;
/// let result = Raw::from_text(text).unwrap();
/// let kind = ResultKind::ToolCall;
/// let found = artifacts(kind, &result, ArtifactLimits::default());
/// assert_eq!(found[0].suggested_name, "image-mfdjo22m3ao5d7sm.png");
/// let replaced = with_artifacts(kind, &result, &[(&found[0], "file:///tmp/image.png")]);
/// assert_eq!(
///     replaced.text(),
///     r#"{"content":[{"type":"resource_link","mimeType":"image/png","uri":"file:///tmp/image.png","name":"image-mfdjo22m3ao5d7sm.png","size":4}]}"#
/// );
/// ```
pub fn artifacts(kind: ResultKind, result: &Raw, limits: ArtifactLimits) -> Vec<Artifact> {
    extract(kind, result, limits).0
}

/// Returns the binary blocks of a result that cannot be files, because their base64 is invalid or
/// they are beyond the limits.
pub fn unusable_blocks(
    kind: ResultKind,
    result: &Raw,
    limits: ArtifactLimits,
) -> Vec<UnusableBlock> {
    extract(kind, result, limits).1
}

fn extract(
    kind: ResultKind,
    result: &Raw,
    limits: ArtifactLimits,
) -> (Vec<Artifact>, Vec<UnusableBlock>) {
    let (mut found, mut unusable) = (Vec::new(), Vec::new());
    let mut room = limits.total_bytes;
    for (block, raw) in kind.blocks(result).iter().enumerate() {
        let ContentBlock::Binary(binary) = ContentBlock::of(raw) else { continue };
        let bytes = match found.len() < limits.count {
            true => decoded(&binary, room),
            false => Err(BlockError::TooMany),
        };
        match bytes {
            Ok(bytes) => {
                room -= bytes.len();
                let suggested_name = suggested_name(&binary, &bytes);
                let media_type = binary.media_type;
                found.push(Artifact { block, suggested_name, media_type, bytes });
            }
            Err(reason) => {
                let BinaryContent { kind, media_type, uri, .. } = binary;
                unusable.push(UnusableBlock { block, kind, media_type, uri, reason });
            }
        }
    }
    (found, unusable)
}

/// The bytes of a block, at most `room`.
fn decoded(binary: &BinaryContent, room: usize) -> Result<Vec<u8>, BlockError> {
    let data = binary.data.as_str().ok_or(BlockError::NotText)?;
    if binary.size() > room {
        return Err(BlockError::TooMany);
    }
    let bytes = BASE64.decode(data.as_bytes())?;
    if bytes.len() > room { Err(BlockError::TooMany) } else { Ok(bytes) }
}

/// Replaces written blocks of a result by links, each to the given URI. Other members of a block
/// are preserved; those of an embedded resource, except its bytes, move to `_meta` of the link,
/// under [`RESOURCE`].
#[must_use]
pub fn with_artifacts(kind: ResultKind, result: &Raw, written: &[(&Artifact, &str)]) -> Raw {
    // Results of `resources/read` cannot contain links.
    if kind == ResultKind::Resource {
        return result.clone();
    }
    let blocks = kind.blocks(result);
    let edit = |(artifact, address): &(&Artifact, &str)| {
        let block = blocks.get(artifact.block)?;
        Some((block.clone(), link(block, artifact, address)))
    };
    result.replace_slices(&written.iter().filter_map(edit).collect::<Vec<_>>())
}

/// Builds the link that replaces a block.
fn link(block: &Raw, artifact: &Artifact, address: &str) -> Raw {
    let mut link = block.without("data").without("resource");
    for (key, value) in
        [("type", "resource_link"), ("uri", address), ("name", &artifact.suggested_name)]
    {
        link = link.with(key, &Raw::from_string(value));
    }
    let size = u64::try_from(artifact.bytes.len()).unwrap_or(u64::MAX);
    link = link.with("size", &Raw::from_number(size));
    let Some(resource) = block.get("resource").filter(|_| is_resource(block)) else { return link };
    if let Some(media_type) = resource.get("mimeType") {
        link = link.with("mimeType", &media_type);
    }
    let meta = block.get("_meta").filter(Raw::is_object);
    let meta = meta.unwrap_or_else(|| Raw::from_value(&serde_json::json!({})));
    link.with("_meta", &meta.with(RESOURCE, &resource.without("blob")))
}

fn is_resource(block: &Raw) -> bool {
    string(block.get("type")).as_deref() == Some("resource")
}

/// Builds a name from the safe part of the server's name for it, and a digest of the content.
fn suggested_name(binary: &BinaryContent, bytes: &[u8]) -> String {
    let path = binary.uri.as_deref().unwrap_or_default();
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let last = path.rsplit(['/', '\\', ':']).next().unwrap_or_default();
    let (stem, ending) = last.rsplit_once('.').unwrap_or((last, ""));
    let stem = harmless(stem, LONGEST_STEM);
    let stem = if stem.is_empty() { &binary.kind } else { &stem };
    let media_type = binary.media_type.as_deref().unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    let known = ENDINGS.iter().find(|(known, _)| media_type.eq_ignore_ascii_case(known));
    let ending = known.map_or_else(|| harmless(ending, 8), |(_, ending)| (*ending).to_owned());
    let ending = if ending.is_empty() { "bin" } else { &ending };
    format!("{stem}-{}.{ending}", digest(&[bytes], DIGEST))
}

/// Reduces a text to letters and digits; each run of other characters becomes one `-`.
fn harmless(text: &str, longest: usize) -> String {
    let words = text.split(|it: char| !it.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    // Bounds the length of the name.
    words.flat_map(|word| ["-", word]).skip(1).flat_map(str::chars).take(longest).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn resource(uri: &str, media_type: &str) -> Raw {
        let resource = serde_json::json!({ "uri": uri, "blob": "AAAA", "mimeType": media_type });
        let block = serde_json::json!({ "type": "resource", "resource": resource });
        Raw::from_value(&serde_json::json!({ "content": [block] }))
    }

    fn name(uri: &str, media_type: &str) -> String {
        let found =
            artifacts(ResultKind::ToolCall, &resource(uri, media_type), ArtifactLimits::default());
        let name = found[0].suggested_name.clone();
        let sign = digest(&[&found[0].bytes], DIGEST);
        name.replace(&sign, "#")
    }

    #[test]
    fn artifact_names_have_a_type_and_no_path() {
        assert_eq!(name("file:///r/annual report.pdf", "application/pdf"), "annual-report-#.pdf");
        assert_eq!(name("x://a/../../etc/passwd", ""), "passwd-#.bin");
        assert_eq!(name("x://..", ""), "resource-#.bin");
        assert_eq!(name("C:\\CON", "image/PNG; x=1"), "CON-#.png");
        assert_eq!(name("x://.bashrc", "text/plain"), "resource-#.txt");
        assert_eq!(name("x://a.t%2Far.gz?x=/../y", ""), "a-t-2Far-#.gz");
    }

    #[test]
    fn oversized_or_invalid_base64_is_kept() {
        let image = |data: &str| serde_json::json!({ "type": "image", "data": data });
        let result = serde_json::json!({ "content": [image("!!"), image("AAAA"), image("AAAA"), image("AA")] });
        let result = Raw::from_value(&result);
        let limits = ArtifactLimits { count: 10, total_bytes: 5 };
        let found: Vec<_> =
            artifacts(ResultKind::ToolCall, &result, limits).iter().map(|it| it.block).collect();
        assert_eq!(found, [1, 3]);
        let unusable = unusable_blocks(ResultKind::ToolCall, &result, limits);
        let reasons: Vec<_> = unusable.iter().map(|it| (it.block, it.reason.to_string())).collect();
        let too_many = "the result has more binary content than can be saved".to_owned();
        let first = (0, "`!` at position 0 is not base64".to_owned());
        assert_eq!(reasons, [first, (2, too_many)]);
        let limits = ArtifactLimits { count: 1, total_bytes: 100 };
        assert_eq!(artifacts(ResultKind::ToolCall, &result, limits).len(), 1);
    }

    /// CALL-4: only the bytes are replaced.
    #[test]
    fn link_keeps_the_metadata_of_its_block() {
        let text = r#"{"messages":[{"role":"user","content":{"type":"image","data":"AAAA","mimeType":"image/png",
            "annotations":{"priority":1.0},"_meta":{"a":1},"later":2}}, {"role":"user","content":[{"type":"text","text":"x"},
            {"type":"resource","resource":{"uri":"x://a.pdf","blob":"AAAA","mimeType":"application/pdf","_meta":{"b":2}},"_meta":{"c":3}}]}],"n":1.50}"#;
        let result = Raw::from_text(text).unwrap();
        let found = artifacts(ResultKind::Prompt, &result, ArtifactLimits::default());
        assert_eq!(found.iter().map(|it| it.block).collect::<Vec<_>>(), [0, 2]);
        let written = [(&found[0], "file:///1"), (&found[1], "file:///2")];
        let linked = with_artifacts(ResultKind::Prompt, &result, &written);
        assert!(linked.text().ends_with(r#""n":1.50}"#), "{linked}");
        let messages = linked.get("messages").unwrap().items();
        let image = messages[0].get("content").unwrap();
        assert_eq!(image.get("annotations").unwrap().text(), r#"{"priority":1.0}"#);
        assert_eq!(image.get("_meta").unwrap().text(), r#"{"a":1}"#);
        assert_eq!(image.get("later").unwrap().text(), "2");
        assert!(image.get("data").is_none());
        let blocks = messages[1].get("content").unwrap().items();
        assert_eq!(blocks[1].get("mimeType").unwrap().text(), r#""application/pdf""#);
        let expected = r#"{"c":3,"io.trunkline/resource":{"uri":"x://a.pdf","mimeType":"application/pdf","_meta":{"b":2}}}"#;
        assert_eq!(blocks[1].get("_meta").unwrap().text(), expected);
    }

    proptest! {
        #[test]
        fn names_are_harmless(uri in "\\PC{0,40}", media_type in "\\PC{0,20}") {
            let found = artifacts(ResultKind::ToolCall, &resource(&uri, &media_type), ArtifactLimits::default());
            let name = &found[0].suggested_name;
            let plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '.';
            prop_assert!(name.chars().all(plain) && name.len() < 80, "{}", name);
            prop_assert!(!name.starts_with(['.', '-']) && name.matches('.').count() == 1);
        }
    }
}
