//! Processes results: text for models, truncation, and binary blocks as files; the full result
//! stays unchanged (CALL-3 … CALL-6).

mod block;
mod notice;
mod text;
mod tool_result;
mod truncate;
mod artifact;
mod arguments;
mod uris;

pub use arguments::{InvalidArguments, json_type, validate_arguments};
pub use artifact::{
    Artifact, ArtifactLimits, BlockError, UnusableBlock, artifacts, unusable_blocks, with_artifacts,
};
pub use block::ResultKind;
pub use notice::with_untrusted_notices;
pub(crate) use notice::{AppPages, with_notices};
pub use text::{SourceTrust, text_for_model};
pub use tool_result::to_tool_result;
pub use truncate::{TruncatedResult, truncate};
pub(crate) use truncate::{truncate_again, without_note};
pub use uris::rewrite_uris;

use crate::message::Raw;
use crate::protocol::meta::UNTRUSTED;
use crate::sanitize::sanitize_json;

/// Whether a tool reports that it failed. Such a response is a result, not an error (CALL-2).
pub fn is_error(result: &Raw) -> bool {
    result.get("isError").and_then(|value| value.as_bool()) == Some(true)
}

/// Sanitizes the result of an untrusted server and marks it in `_meta` (TOOL-10).
///
/// ```
/// use trunkline::content::mark_untrusted;
/// use trunkline::message::Raw;
///
/// let result = r#"{"content":[{"type":"text","text":"\u001b[8mhidden"}],"n":1.50}"#;
/// let marked = mark_untrusted(&Raw::from_text(result).unwrap());
/// assert_eq!(
///     marked.text(),
///     r#"{"content":[{"type":"text","text":"hidden"}],"n":1.50,"_meta":{"io.trunkline/untrusted":true}}"#
/// );
/// ```
#[must_use]
pub fn mark_untrusted(result: &Raw) -> Raw {
    let clean = sanitize_json(result);
    let meta = clean.get("_meta").filter(Raw::is_object);
    let meta = meta.unwrap_or_else(|| Raw::from_value(&serde_json::json!({})));
    let meta = meta.with_unambiguous(UNTRUSTED, &Raw::from_value(&true.into()));
    clean.with_unambiguous("_meta", &meta)
}
