//! The one project of `serve` and `demo`, for the control API.

use std::path::PathBuf;

use trunkline::host::Host;
use trunkline_control::types::{Project, TrustRequest};
use trunkline_control::{ControlSource, OpenProject, TrustDecision, UnknownTrustRequest};

use super::count_tokens;
use super::trust_requests::{self, ProjectFiles};
use crate::gateway::reload::ReloadStatus;

/// The ID of the only project.
pub(crate) const PROJECT: &str = "main";

/// The host of a gateway.
pub(crate) struct ServedHost {
    pub(crate) host: Host,
    pub(crate) directory: PathBuf,
    /// The state of its files, if they are followed.
    pub(crate) status: ReloadStatus,
    /// How its configuration was found; `None` if it needs no trust.
    pub(crate) files: Option<ProjectFiles>,
}

impl ControlSource for ServedHost {
    fn projects(&self) -> Vec<OpenProject> {
        let info = Project {
            id: PROJECT.to_owned(),
            directory: self.directory.to_string_lossy().into_owned(),
            clients: None,
            problem: self.status.problem(&self.host),
        };
        vec![OpenProject { info, host: self.host.clone() }]
    }

    fn trust_requests(&self) -> Vec<TrustRequest> {
        trust_requests::requests(self.files.as_slice())
    }

    fn decide(
        &self,
        id: &str,
        decision: TrustDecision,
    ) -> Result<Result<(), UnknownTrustRequest>, String> {
        trust_requests::decide(self.files.as_slice(), id, decision)
    }

    fn tokens(&self, definition: &str) -> Option<usize> {
        count_tokens(definition)
    }
}
