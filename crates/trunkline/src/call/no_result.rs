//! Results for calls that failed before their tool returned one, in a form that a model can read
//! (CALL-2).

use serde_json::json;

use crate::message::Raw;
use crate::protocol::meta::RETRY;

/// Why the tool returned no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoResult {
    /// Its server is down or unreachable.
    Unreachable,
    /// Its server was reached and returned no result, or the call was refused before.
    Failed,
    /// Its server is no longer configured.
    Removed,
}

impl NoResult {
    /// The error result of the call.
    ///
    /// ```
    /// use trunkline::call::NoResult;
    ///
    /// let result = NoResult::Unreachable.result("server `docs` is down: it ended", true);
    /// assert_eq!(
    ///     result.text(),
    ///     r#"{"_meta":{"io.trunkline/retry":true},"content":[{"text":"MCP server unreachable: server `docs` is down: it ended. Trying again later may help.","type":"text"}],"isError":true}"#
    /// );
    /// ```
    pub fn result(self, message: &str, is_retryable: bool) -> Raw {
        let content = json!([{ "type": "text", "text": self.text(message, is_retryable) }]);
        let retry = json!({ RETRY: is_retryable });
        Raw::from_value(&json!({ "content": content, "isError": true, "_meta": retry }))
    }

    pub(super) fn text(self, message: &str, is_retryable: bool) -> String {
        let what = match self {
            Self::Unreachable => "MCP server unreachable",
            Self::Failed | Self::Removed => "The call failed",
        };
        let advice = match (is_retryable, self) {
            (true, _) => "Trying again later may help.",
            (false, Self::Removed) => "Trying again will not help: list the tools again.",
            (false, _) => "Trying again will not help until the cause is fixed.",
        };
        format!("{what}: {message}. {advice}")
    }
}
