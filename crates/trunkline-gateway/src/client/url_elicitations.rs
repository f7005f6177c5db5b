//! Visits to addresses that servers want of a client: who hears that one is over.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use trunkline::message::{Notification, Raw};
use trunkline::name::ServerName;
use trunkline::protocol::ELICITATION_COMPLETE;

use super::channel::ClientChannel;

/// Visits that are remembered of one session. Nobody makes more of them at a time.
const MAX_VISITS: usize = 64;

/// Bytes of a number that is remembered. Servers use short ones.
const MAX_ID: usize = 256;

/// The visits that one session was asked for, the latest ones last.
#[derive(Default)]
pub(crate) struct UrlElicitations {
    wanted: Mutex<VecDeque<UrlElicitation>>,
}

struct UrlElicitation {
    server: ServerName,
    id: Box<str>,
    /// The way to whoever was asked for it in a call.
    channel: Option<ClientChannel>,
    is_over: bool,
}

/// What it means to a session that a visit is over.
pub(crate) enum ElicitationEnd {
    /// It was not asked for it.
    Foreign,
    /// It has heard so already.
    Repeated,
    /// It has not, and was asked in a call if there is a way to that.
    New(Option<ClientChannel>),
}

/// The visit that is over, if that is what a server says.
pub(crate) fn completed_id(notification: &Notification) -> Option<Box<str>> {
    let params =
        notification.params.as_ref().filter(|_| &*notification.method == ELICITATION_COMPLETE);
    id_of(params?)
}

/// The number by which a server knows a visit that it wants.
fn id_of(visit: &Raw) -> Option<Box<str>> {
    let id = visit.get("elicitationId")?;
    id.as_str().filter(|id| id.len() <= MAX_ID).map(Into::into)
}

impl UrlElicitations {
    /// Notes that a server wants a visit, asked for in this call if it goes on.
    pub(crate) fn add(&self, server: &ServerName, visit: &Raw, channel: Option<&ClientChannel>) {
        let Some(id) = id_of(visit) else { return };
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

    /// Whether a server wanted this visit.
    pub(crate) fn contains(&self, server: &ServerName, id: &str) -> bool {
        self.lock().iter().any(|it| *it.id == *id && it.server == *server)
    }

    /// Takes note that a visit is over. Whoever passes that on may hear of it in several ways.
    pub(crate) fn end(&self, server: &ServerName, id: &str) -> ElicitationEnd {
        let mut wanted = self.lock();
        let visit = wanted.iter_mut().find(|it| *it.id == *id && it.server == *server);
        match visit {
            None => ElicitationEnd::Foreign,
            Some(visit) if visit.is_over => ElicitationEnd::Repeated,
            Some(visit) => {
                visit.is_over = true;
                ElicitationEnd::New(visit.channel.take())
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
        let visit = |id: &str| Raw::empty_object().with("elicitationId", &Raw::from_string(id));
        let elicitations = UrlElicitations::default();
        elicitations.add(&one, &Raw::empty_object(), None);
        elicitations.add(&one, &visit(&"x".repeat(MAX_ID + 1)), None);
        assert!(elicitations.is_empty());
        for number in 0..=MAX_VISITS {
            elicitations.add(&one, &visit(&number.to_string()), None);
            elicitations.add(&one, &visit("again"), None);
        }
        let last = MAX_VISITS.to_string();
        assert!(elicitations.contains(&one, &last) && elicitations.contains(&one, "again"));
        assert!(!elicitations.contains(&other, &last) && !elicitations.contains(&one, "0"));
    }
}
