//! What came of a call: the server's result within its bound, and how to read it.

use super::keeping::ArtifactFolder;
use crate::config::Trust;
use crate::content::{
    ArtifactLimits, Speaker, artifacts, capped, is_error, marked_untrusted, text_for_model,
    with_artifacts,
};
use crate::message::Raw;
use crate::name::ServerName;

/// What came of a call.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The server's result, byte for byte, unless it was cut, the server is not trusted, binary
    /// blocks were kept as files, or callers know addresses in it otherwise.
    pub result: Raw,
    /// Whether the tool says that it failed. That is a result all the same (CALL-2).
    pub is_error: bool,
    /// How many bytes were cut.
    pub missing: usize,
    server: ServerName,
    trust: Trust,
}

impl Outcome {
    pub(super) fn new(result: &Raw, server: &ServerName, trust: Trust, bound: usize) -> Self {
        let is_error = is_error(result);
        let capped = capped(result, bound);
        let result = match trust {
            Trust::Untrusted => marked_untrusted(&capped.result),
            Trust::Trusted => capped.result,
        };
        Self { result, is_error, missing: capped.missing, server: server.clone(), trust }
    }

    /// The server it comes from.
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// The result as text for a model (CALL-3).
    pub fn text(&self) -> String {
        let speaker = match self.trust {
            Trust::Trusted => Speaker::Trusted,
            Trust::Untrusted => Speaker::Untrusted(&self.server),
        };
        text_for_model(&self.result, speaker)
    }

    /// The same, with files in place of binary blocks. What cannot be written stays in it.
    pub(super) async fn with_files_in(self, folder: &ArtifactFolder) -> Self {
        let found = artifacts(&self.result, ArtifactLimits::default());
        if found.is_empty() {
            return self;
        }
        let (found, addresses) = folder.keep(found).await;
        let written: Vec<_> = found
            .iter()
            .zip(&addresses)
            .filter_map(|(artifact, address)| Some((artifact, address.as_deref()?)))
            .collect();
        Self { result: with_artifacts(&self.result, &written), ..self }
    }
}
