//! Which calls of clients are recorded.

use serde_json::{Value, json};

/// Which calls of clients are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditSettings {
    /// Whether calls are written to the audit log.
    pub log: bool,
    /// Whether arguments and results are kept too.
    pub payloads: bool,
}

impl AuditSettings {
    pub(super) fn to_json(self) -> Value {
        json!({ "log": self.log, "payloads": self.payloads })
    }
}
