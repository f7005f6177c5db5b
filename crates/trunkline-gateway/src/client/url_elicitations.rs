//! Tracks URL elicitations per session, to route `notifications/elicitation/complete`.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use trunkline::message::{Notification, Raw};
use trunkline::name::ServerName;
use trunkline::protocol::ELICITATION_COMPLETE;

use super::channel::ClientChannel;

/// URL elicitations of one session that are remembered: more than a user has open at a time.
const MAX_VISITS: usize = 64;

/// Limit of an `elicitationId` that is remembered, in bytes. Servers use short ones.
const MAX_ID: usize = 256;

/// The URL elicitations of one session, latest last.
#[derive(Default)]
pub(crate) struct UrlElicitations {
    wanted: Mutex<VecDeque<UrlElicitation>>,
}

struct UrlElicitation {
    server: ServerName,
    id: Box<str>,
    /// The channel of the call that it was part of.
    channel: Option<ClientChannel>,
    is_over: bool,
}

/// The relation of a completed elicitation to a session.
pub(crate) enum ElicitationEnd {
    /// The session has not received the elicitation.
    Foreign,
    /// The session has been notified before.
    Repeated,
    /// Not notified yet. Has the channel of the call that it was part of, if any.
    New(Option<ClientChannel>),
}

/// The `elicitationId` of a completion notification.
pub(crate) fn completed_id(notification: &Notification) -> Option<Box<str>> {
    let params =
        notification.params.as_ref().filter(|_| &*notification.method == ELICITATION_COMPLETE);
    id_of(params?)
}

/// The `elicitationId` of an elicitation.
fn id_of(elicitation: &Raw) -> Option<Box<str>> {
    let id = elicitation.get("elicitationId")?;
    id.as_str().filter(|id| id.len() <= MAX_ID).map(Into::into)
}

impl UrlElicitations {
    /// Records an elicitation, with the channel of its call while that is running.
    pub(crate) fn add(
        &self,
        server: &ServerName,
        elicitation: &Raw,
        channel: Option<&ClientChannel>,
    ) {
        let Some(id) = id_of(elicitation) else { return };
        let mut wanted = self.lock();
        wanted.retain(|it| it.id != id || it.server != *server);
        if wanted.len() >= MAX_VISITS {
            wanted.pop_front();
        }
        let (server, channel) = (server.clone(), channel.cloned());
        wanted.push_back(UrlElicitation { server, id, channel, is_over: false });
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Whether a server sent this elicitation to the session.
    pub(crate) fn contains(&self, server: &ServerName, id: &str) -> bool {
        self.lock().iter().any(|it| *it.id == *id && it.server == *server)
    }

    /// Marks an elicitation as complete. A completion may arrive on several connections.
    pub(crate) fn end(&self, server: &ServerName, id: &str) -> ElicitationEnd {
        let mut wanted = self.lock();
        let elicitation = wanted.iter_mut().find(|it| *it.id == *id && it.server == *server);
        match elicitation {
            None => ElicitationEnd::Foreign,
            Some(elicitation) if elicitation.is_over => ElicitationEnd::Repeated,
            Some(elicitation) => {
                elicitation.is_over = true;
                ElicitationEnd::New(elicitation.channel.take())
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<UrlElicitation>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_visits_of_each_server_are_remembered() {
        let [one, other] = ["one", "other"].map(|name| ServerName::new(name).unwrap());
        let elicitation =
            |id: &str| Raw::empty_object().with("elicitationId", &Raw::from_string(id));
        let elicitations = UrlElicitations::default();
        elicitations.add(&one, &Raw::empty_object(), None);
        elicitations.add(&one, &elicitation(&"x".repeat(MAX_ID + 1)), None);
        assert!(elicitations.is_empty());
        for number in 0..=MAX_VISITS {
            elicitations.add(&one, &elicitation(&number.to_string()), None);
            elicitations.add(&one, &elicitation("again"), None);
        }
        let last = MAX_VISITS.to_string();
        assert!(elicitations.contains(&one, &last) && elicitations.contains(&one, "again"));
        assert!(!elicitations.contains(&other, &last) && !elicitations.contains(&one, "0"));
    }
}
