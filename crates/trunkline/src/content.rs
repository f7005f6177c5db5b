//! Results: text for models, bounds, and binary blocks as files; the full result stays as it is
//! (CALL-3 … CALL-6).

mod block;
mod notice;
mod text;
mod cap;
mod artifact;
mod arguments;
mod addresses;

pub use addresses::with_addresses;
pub use arguments::{BadArguments, check_arguments};
pub use artifact::{Artifact, ArtifactLimits, artifacts, with_artifacts};
pub use block::ResultKind;
pub(crate) use cap::capped_again;
pub use cap::{Capped, capped};
pub use notice::with_untrusted_notices;
pub use text::{Speaker, text_for_model};

use crate::clean::cleaned_json;
use crate::message::Raw;
use crate::protocol::meta::UNTRUSTED;

/// Whether a tool says that it failed. That is a result, not an error of ours (CALL-2).
pub fn is_error(result: &Raw) -> bool {
    result.get("isError").and_then(|value| value.as_bool()) == Some(true)
}

/// The result of an untrusted server: without anything that cannot be seen, and marked (TOOL-10).
///
/// ```
/// use trunkline::content::marked_untrusted;
/// use trunkline::message::Raw;
///
/// let result = r#"{"content":[{"type":"text","text":"\u001b[8mhidden"}],"n":1.50}"#;
/// let marked = marked_untrusted(&Raw::from_text(result).unwrap());
/// assert_eq!(
///     marked.text(),
///     r#"{"content":[{"type":"text","text":"hidden"}],"n":1.50,"_meta":{"io.trunkline/untrusted":true}}"#
/// );
/// ```
#[must_use]
pub fn marked_untrusted(result: &Raw) -> Raw {
    let clean = cleaned_json(result);
    let meta = clean.get("_meta").filter(Raw::is_object);
    let meta = meta.unwrap_or_else(|| Raw::from_value(&serde_json::json!({})));
    let meta = meta.with_unmistakable(UNTRUSTED, &Raw::from_value(&true.into()));
    clean.with_unmistakable("_meta", &meta)
}
