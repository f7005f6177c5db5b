//! Visits to addresses that servers want of a client: who hears that one is over.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use trunkline::message::{Notification, Raw};
use trunkline::name::ServerName;
use trunkline::protocol::ELICITATION_COMPLETE;

use super::channel::Talk;

/// Visits that are remembered of one session. Nobody makes more of them at a time.
const MAX_VISITS: usize = 64;

/// Bytes of a number that is remembered. Servers use short ones.
const MAX_ID: usize = 256;

/// The visits that one session was asked for, the latest ones last.
#[derive(Default)]
pub(crate) struct Visits {
    wanted: Mutex<VecDeque<Visit>>,
}

struct Visit {
    server: ServerName,
    id: Box<str>,
    /// The way to whoever was asked for it in a call.
    talk: Option<Talk>,
    is_over: bool,
}

/// What it means to a session that a visit is over.
pub(crate) enum End {
    /// It was not asked for it.
    Foreign,
    /// It has heard so already.
    Repeated,
    /// It has not, and was asked in a call if there is a way to that.
    New(Option<Talk>),
}

/// The visit that is over, if that is what a server says.
pub(crate) fn over(notification: &Notification) -> Option<Box<str>> {
    let params =
        notification.params.as_ref().filter(|_| &*notification.method == ELICITATION_COMPLETE);
    id_of(params?)
}

/// The number by which a server knows a visit that it wants.
fn id_of(visit: &Raw) -> Option<Box<str>> {
    let id = visit.get("elicitationId")?;
    id.as_str().filter(|id| id.len() <= MAX_ID).map(Into::into)
}

impl Visits {
    /// Notes that a server wants a visit, asked for in this call if it goes on.
    pub(crate) fn note(&self, server: &ServerName, visit: &Raw, talk: Option<&Talk>) {
        let Some(id) = id_of(visit) else { return };
        let mut wanted = self.lock();
        wanted.retain(|it| it.id != id || it.server != *server);
        if wanted.len() >= MAX_VISITS {
            wanted.pop_front();
        }
        let (server, talk) = (server.clone(), talk.cloned());
        wanted.push_back(Visit { server, id, talk, is_over: false });
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Whether a server wanted this visit.
    pub(crate) fn contain(&self, server: &ServerName, id: &str) -> bool {
        self.lock().iter().any(|it| *it.id == *id && it.server == *server)
    }

    /// Takes note that a visit is over. Whoever passes that on may hear of it in several ways.
    pub(crate) fn end(&self, server: &ServerName, id: &str) -> End {
        let mut wanted = self.lock();
        let visit = wanted.iter_mut().find(|it| *it.id == *id && it.server == *server);
        match visit {
            None => End::Foreign,
            Some(visit) if visit.is_over => End::Repeated,
            Some(visit) => {
                visit.is_over = true;
                End::New(visit.talk.take())
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Visit>> {
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
        let visits = Visits::default();
        visits.note(&one, &Raw::empty_object(), None);
        visits.note(&one, &visit(&"x".repeat(MAX_ID + 1)), None);
        assert!(visits.is_empty());
        for number in 0..=MAX_VISITS {
            visits.note(&one, &visit(&number.to_string()), None);
            visits.note(&one, &visit("again"), None);
        }
        let last = MAX_VISITS.to_string();
        assert!(visits.contain(&one, &last) && visits.contain(&one, "again"));
        assert!(!visits.contain(&other, &last) && !visits.contain(&one, "0"));
    }
}
