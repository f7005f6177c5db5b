//! `Control`: the state that the API, the page and the event stream share.

use std::sync::Arc;
use std::time::Instant;

use tokio::task::spawn_blocking;
use trunkline_gateway::new_token;

use crate::access::{ControlAccess, PAGE_LINK_LIFETIME};
use crate::activity::Activity;
use crate::events::EventHub;
use crate::source::{ControlSource, OpenProject};
use crate::types::LoginLink;

/// Options of a control API.
#[derive(Clone, Debug, Default)]
pub struct ControlOptions {
    /// The token of the owner, for programs. Without one, a new one is made; see [`Control::token`].
    pub token: Option<String>,
    /// Accepted values of the `Host` header, beside those of the local machine.
    pub hosts: Vec<String>,
    /// The version of the program.
    pub version: String,
}

/// The control of a running program. Clones are the same.
#[derive(Clone)]
pub struct Control {
    shared: Arc<ControlShared>,
}

struct ControlShared {
    source: Arc<dyn ControlSource>,
    activity: Activity,
    access: ControlAccess,
    token: String,
    version: String,
    started: Instant,
    events: EventHub,
}

impl Control {
    /// Creates the control of the projects of a source.
    pub fn new(
        source: Arc<dyn ControlSource>,
        activity: Activity,
        options: ControlOptions,
    ) -> Self {
        let token = options.token.unwrap_or_else(new_token);
        let shared = ControlShared {
            access: ControlAccess::new(&token, options.hosts),
            source,
            activity,
            token,
            version: options.version,
            started: Instant::now(),
            events: EventHub::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The token of the owner: opens the API and the metrics, as `Authorization: Bearer …`. Keep it as secret as
    /// the right to start programs.
    pub fn token(&self) -> &str {
        &self.shared.token
    }

    /// A link that opens the page in one browser, below the address of the listener. It can be used once, and for
    /// ten minutes.
    pub fn login_link(&self, address: &str) -> LoginLink {
        let url = format!("{}/login?t={}", address.trim_end_matches('/'), self.access().new_link());
        LoginLink { url, expires_in_seconds: PAGE_LINK_LIFETIME.as_secs() }
    }

    /// Whether a page or a program listens to changes.
    pub fn is_watched(&self) -> bool {
        self.shared.events.has_listeners()
    }

    pub(crate) fn access(&self) -> &ControlAccess {
        &self.shared.access
    }

    pub(crate) fn activity(&self) -> &Activity {
        &self.shared.activity
    }

    pub(crate) fn source(&self) -> &Arc<dyn ControlSource> {
        &self.shared.source
    }

    pub(crate) fn version(&self) -> &str {
        &self.shared.version
    }

    pub(crate) fn started(&self) -> Instant {
        self.shared.started
    }

    pub(crate) fn events(&self) -> &EventHub {
        &self.shared.events
    }

    /// The open project with an ID.
    pub(crate) fn project(&self, id: &str) -> Option<OpenProject> {
        self.shared.source.projects().into_iter().find(|project| project.info.id == id)
    }

    /// Runs a function of the source that may block.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn ControlSource) -> T + Send + 'static,
    ) -> Option<T> {
        let source = Arc::clone(&self.shared.source);
        spawn_blocking(move || work(&*source)).await.ok()
    }
}
