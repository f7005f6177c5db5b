//! The processes that a request has come through before it reached this one (CON-16).

use std::fmt;
use std::sync::Arc;

/// Ids of the Trunkline processes that have passed a request on, the nearest last. Empty for a request
/// that starts here.
///
/// A gateway adds its own id when it passes the request on, so that a request that comes back is found.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct RequestPath(Option<Arc<str>>);

impl RequestPath {
    /// A path of ids that are separated by commas.
    pub(crate) fn from_ids(ids: &str) -> Self {
        Self((!ids.is_empty()).then(|| ids.into()))
    }

    /// The ids, separated by commas.
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

impl fmt::Debug for RequestPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RequestPath").field(&self.as_str()).finish()
    }
}
