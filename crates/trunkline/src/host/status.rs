//! Status of every server of a configuration, including those that are not started (CON-11).

use std::sync::Arc;

use super::Host;
use crate::config::ConsentHold;
use crate::connection::{State, Status};
use crate::name::{AgentName, ServerName};

/// Status of one server of a configuration.
#[derive(Clone, Debug)]
pub struct ServerStatus {
    /// Its name.
    pub server: ServerName,
    /// Its status, or why it is not started.
    pub condition: ServerCondition,
}

/// The status of a server, or why it is not started.
#[derive(Clone, Debug)]
pub enum ServerCondition {
    /// It is in use.
    Enabled(Box<Status>),
    /// It is disabled in the configuration.
    Disabled,
    /// It comes from a configuration file that the user has not trusted.
    Held(Arc<ConsentHold>),
    /// Its entry in the configuration has errors.
    Broken,
}

impl ServerCondition {
    /// Its name: that of its state, `needs-login`, `disabled` or `not-trusted`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Enabled(status) => status.name(),
            Self::Disabled => "disabled",
            Self::Held(_) => "not-trusted",
            Self::Broken => State::Failed.as_str(),
        }
    }
}

impl Host {
    /// The names of the agents of the configuration, including those in files.
    pub fn agent_names(&self) -> Vec<AgentName> {
        self.shared.active.borrow().rules.agent_names().cloned().collect()
    }

    /// Status of every server of the configuration, sorted by name. Never waits or starts a server.
    pub fn status(&self) -> Vec<ServerStatus> {
        let config = self.config();
        let configured = config.servers().filter_map(|server| {
            let condition = match (server.enabled, &server.hold) {
                (true, _) => {
                    let connection = self.shared.servers.get(server.name.as_str())?;
                    ServerCondition::Enabled(Box::new(connection.status()))
                }
                (false, Some(hold)) => ServerCondition::Held(Arc::clone(hold)),
                (false, None) => ServerCondition::Disabled,
            };
            Some(ServerStatus { server: server.name.clone(), condition })
        });
        let broken = config.broken().iter().map(|server| ServerStatus {
            server: server.clone(),
            condition: ServerCondition::Broken,
        });
        let mut statuses: Vec<_> = configured.chain(broken).collect();
        statuses.sort_by(|one, other| one.server.cmp(&other.server));
        statuses
    }
}
