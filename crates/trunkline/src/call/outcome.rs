//! Outcome of a call: the server's result within its size limit.

use super::artifacts::ArtifactDir;
use crate::config::Trust;
use crate::content::{
    AppPages, ArtifactLimits, ResultKind, SourceTrust, TruncatedResult, artifacts, is_error,
    mark_untrusted, text_for_model, to_tool_result, truncate_again, with_artifacts, with_notices,
    without_note,
};
use crate::message::Raw;
use crate::name::ServerName;

/// The outcome of a call.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The server's result, byte for byte, unless it was truncated, the server is untrusted, binary
    /// blocks were stored as files, or it contains URIs that are exposed differently.
    pub result: Raw,
    /// Whether the tool reports an error. It is a result all the same (CALL-2).
    pub is_error: bool,
    /// Number of bytes that were cut.
    pub missing: usize,
    kind: ResultKind,
    is_modern: bool,
    apps: AppPages,
    /// `None` if the host itself answered.
    server: Option<ServerName>,
    trust: Trust,
    bound: usize,
}

impl Outcome {
    pub(super) fn new(
        (kind, result): (ResultKind, &Raw),
        (server, trust): (&ServerName, Trust),
        bound: usize,
    ) -> Self {
        let is_error = kind == ResultKind::ToolCall && is_error(result);
        let capped = truncate_again(kind, (result, result.missing()), bound);
        let result = match trust {
            Trust::Untrusted => mark_untrusted(&capped.result),
            Trust::Trusted => capped.result,
        };
        let (missing, is_modern, server) = (capped.missing, false, Some(server.clone()));
        let apps = AppPages::None;
        Self { result, is_error, missing, kind, is_modern, apps, server, trust, bound }
    }

    /// The outcome of a tool that the host itself answers.
    pub(crate) fn of_host(result: Raw) -> Self {
        Self {
            is_error: is_error(&result),
            result,
            missing: 0,
            kind: ResultKind::ToolCall,
            is_modern: false,
            apps: AppPages::None,
            server: None,
            trust: Trust::Trusted,
            bound: usize::MAX,
        }
    }

    /// The kind of the result, by the method that was called.
    pub fn kind(&self) -> ResultKind {
        self.kind
    }

    /// Sets whether the session used version 2026-07-28.
    pub(super) fn in_modern_era(self, is_modern: bool) -> Self {
        Self { is_modern, ..self }
    }

    /// The same, which may hold user interfaces or not.
    pub(super) fn with_apps(self, apps: AppPages) -> Self {
        Self { apps, ..self }
    }

    /// Whether the server answered in revision 2026-07-28, which gives keys such as `resultType` a meaning.
    pub fn is_modern(&self) -> bool {
        self.is_modern
    }

    /// The outcome for a client whose model reads the result: for an untrusted server, with notices
    /// around the text (TOOL-10).
    #[must_use]
    pub fn for_model(self) -> Self {
        match self.untrusted_server() {
            None => self,
            Some(server) => {
                let result = with_notices(self.kind, &self.result, server, self.apps);
                Self { result, ..self }
            }
        }
    }

    /// The outcome of a read or a prompt in the form of a tool call, for a model that can only call
    /// tools, within the same size limit. A result that requires input stays as it is.
    #[must_use]
    pub fn into_tool_result(self) -> Self {
        let kind = self.result.get("resultType").filter(|_| self.is_modern);
        if kind.as_ref().and_then(Raw::as_str).is_some_and(|kind| kind == "input_required") {
            return self;
        }
        // The note on missing bytes is written again, with those that this form has no room for.
        let converted = match self.missing {
            0 => to_tool_result(self.kind, &self.result),
            _ => to_tool_result(self.kind, &without_note(self.kind, &self.result)),
        };
        let capped = truncate_again(ResultKind::ToolCall, (&converted, self.missing), self.bound);
        let TruncatedResult { result, missing } = capped;
        Self { result, missing, kind: ResultKind::ToolCall, ..self }
    }

    /// The server of the result; `None` if the host itself answered, as for a search of tools.
    pub fn server(&self) -> Option<&ServerName> {
        self.server.as_ref()
    }

    fn untrusted_server(&self) -> Option<&ServerName> {
        self.server.as_ref().filter(|_| self.trust == Trust::Untrusted)
    }

    /// The result as text for a model (CALL-3).
    pub fn text(&self) -> String {
        let speaker = self.untrusted_server().map_or(SourceTrust::Trusted, SourceTrust::Untrusted);
        text_for_model(self.kind, &self.result, speaker)
    }

    /// Replaces binary blocks with files. Blocks that cannot be written stay in the result.
    pub(super) async fn with_artifacts_in(self, folder: &ArtifactDir) -> Self {
        let found = artifacts(self.kind, &self.result, ArtifactLimits::default());
        if found.is_empty() {
            return self;
        }
        let (found, addresses) = folder.save(found).await;
        let written: Vec<_> = found
            .iter()
            .zip(&addresses)
            .filter_map(|(artifact, address)| Some((artifact, address.as_deref()?)))
            .collect();
        Self { result: with_artifacts(self.kind, &self.result, &written), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: the note of a result that was truncated in both forms counted only the bytes of
    /// the second time.
    #[test]
    fn note_of_a_tool_result_counts_all_missing_bytes() {
        let server = ServerName::new("a").unwrap();
        let text = "x".repeat(60_000);
        let read = format!(r#"{{"contents":[{{"uri":"x://a","text":"{text}"}}]}}"#);
        let message = format!(r#"{{"role":"user","content":{{"type":"text","text":"{text}"}}}}"#);
        let got = format!(r#"{{"messages":[{message}]}}"#);
        for (kind, result) in [(ResultKind::Resource, read), (ResultKind::Prompt, got)] {
            let result = Raw::from_text(&result).unwrap();
            let direct = Outcome::new((kind, &result), (&server, Trust::Trusted), 50_000);
            let before = direct.missing;
            let outcome = direct.into_tool_result();
            assert!((before..before + 500).contains(&outcome.missing), "{}", outcome.missing);
            assert!(outcome.result.bytes().len() <= 50_000);
            let text = outcome.result.text();
            assert_eq!(text.matches("bytes are missing]").count(), 1);
            assert!(text.contains(&format!("{} of 60", outcome.missing)), "{}", outcome.missing);
        }
    }
}
