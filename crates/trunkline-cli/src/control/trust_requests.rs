//! Configuration files that wait for a decision, for the control API (SEC-1).

use trunkline::config::{Consent, ContentDigest, FileReach, LoadOptions};
use trunkline_control::types::{TrustRequest, TrustedServer};
use trunkline_control::{TrustDecision, UnknownTrustRequest};

use crate::arguments::quoted;
use crate::config::consent::Review;
use crate::environment::ProcessEnv;

/// How a project finds its configuration.
#[derive(Clone)]
pub(crate) struct ProjectFiles {
    pub(crate) project: String,
    pub(crate) options: LoadOptions,
    pub(crate) environment: ProcessEnv,
}

impl ProjectFiles {
    /// The file of the project, if it is not trusted.
    fn review(&self) -> Option<Review> {
        // A file that was named needs no trust.
        if self.options.path.is_some() {
            return None;
        }
        let review = Review::of(&self.options, &self.environment).ok()??;
        matches!(review.consent, Consent::Withheld(_)).then_some(review)
    }

    fn request(&self, review: &Review) -> TrustRequest {
        let path = review.file.path.to_string_lossy();
        let is_blocked = self.environment.trust_store().is_ok_and(|it| it.blocks(&review.file));
        TrustRequest {
            id: id_of(review),
            project: self.project.clone(),
            file: path.clone().into_owned(),
            state: if is_blocked { "blocked" } else { "pending" }.to_owned(),
            servers: review
                .by_server()
                .into_iter()
                .map(|(name, runs)| TrustedServer { name, runs })
                .collect(),
            command: format!("trunkline trust {}", quoted(&path)),
        }
    }
}

/// Names a file with its content.
fn id_of(review: &Review) -> String {
    let text = format!("{}\n{}", review.file.path.display(), review.file.digest);
    ContentDigest::of(text.as_bytes()).to_string().chars().take(32).collect()
}

/// What waits for a decision in these projects. A file of several projects is one request.
pub(crate) fn requests(projects: &[ProjectFiles]) -> Vec<TrustRequest> {
    let mut requests: Vec<TrustRequest> = Vec::new();
    for files in projects {
        let Some(review) = files.review() else { continue };
        let request = files.request(&review);
        if requests.iter().all(|it| it.id != request.id) {
            requests.push(request);
        }
    }
    requests
}

/// Decides on exactly the content that was shown.
pub(crate) fn decide(
    projects: &[ProjectFiles],
    id: &str,
    decision: TrustDecision,
) -> Result<Result<(), UnknownTrustRequest>, String> {
    let found = projects.iter().find_map(|files| {
        let review = files.review().filter(|review| id_of(review) == id)?;
        Some((files, review))
    });
    let Some((files, review)) = found else { return Ok(Err(UnknownTrustRequest)) };
    let decided = match decision {
        TrustDecision::Trust => review
            .require_usable()
            .and_then(|()| review.remember(FileReach::Workspace, &files.environment)),
        TrustDecision::Block => review.block(&files.environment),
    };
    decided.map(Ok).map_err(|error| format!("{error:#}"))
}
