//! The processes that forwarded a request before it reached this one (CON-16).

use std::fmt;
use std::sync::Arc;

/// IDs of the Trunkline processes that forwarded a request, the nearest last. Empty for a request
/// that starts here.
///
/// A gateway adds its own ID when it forwards the request, to detect loops.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct RequestPath(Option<Arc<str>>);

impl RequestPath {
    /// Creates a path from comma-separated IDs.
    pub(crate) fn from_ids(ids: &str) -> Self {
        Self((!ids.is_empty()).then(|| ids.into()))
    }

    /// The IDs, separated by commas.
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

impl fmt::Debug for RequestPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RequestPath").field(&self.as_str()).finish()
    }
}
