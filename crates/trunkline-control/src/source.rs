//! `ControlSource`: the projects, decisions and log that a program gives to its control API.

use trunkline::host::Host;

use crate::types::{Project, TrustRequest};

/// A project that is open in this program.
#[derive(Clone)]
pub struct OpenProject {
    /// Its description. The ID is stable while it is open.
    pub info: Project,
    /// Its host.
    pub host: Host,
}

/// The decision of the user about a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustDecision {
    /// Its servers may be started.
    Trust,
    /// Its servers are not started, and the question is not shown again while the file stays as it is.
    Block,
}

/// There is no such question: the file has changed, or was decided on elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTrustRequest;

/// The program behind a control API.
pub trait ControlSource: Send + Sync + 'static {
    /// The open projects.
    fn projects(&self) -> Vec<OpenProject>;

    /// The configuration files that wait for a decision, or are blocked. Called on a thread for blocking work.
    fn trust_requests(&self) -> Vec<TrustRequest> {
        Vec::new()
    }

    /// Decides on a file, by the ID of its request. Called on a thread for blocking work.
    ///
    /// # Errors
    ///
    /// Returns a message if the decision could not be stored.
    fn decide(
        &self,
        _id: &str,
        _decision: TrustDecision,
    ) -> Result<Result<(), UnknownTrustRequest>, String> {
        Ok(Err(UnknownTrustRequest))
    }

    /// The last lines of the log of the program, the oldest first. Called on a thread for blocking work.
    fn log(&self, _lines: usize) -> Vec<String> {
        Vec::new()
    }

    /// The number of tokens of a definition in the context of a model, if it can be counted.
    fn tokens(&self, _definition: &str) -> Option<usize> {
        None
    }
}
