//! The handler of one call: passes on what the server sends before it responds.

use std::sync::{Arc, OnceLock};

use trunkline::call::CallError;
use trunkline::connection::{Answering, CallHandler, Question};
use trunkline::message::{Notification, Raw, RpcError};
use trunkline::name::ServerName;
use trunkline::protocol::{ELICITATION_COMPLETE, code};

use super::caller::Caller;
use super::channel::Talk;
use super::input_queue::Desk;
use super::log_filter;
use super::parked::Parked;
use super::url_elicitations::over;
use crate::request::incoming::Client;
use crate::request::translate::visits_first;

/// Attends to one call for its caller: passes on what the server tells and asks.
pub(crate) struct Attending {
    pub(crate) caller: Caller,
    /// Whether the caller wants to hear of progress.
    pub(crate) follows: bool,
    /// Where questions to a modern client are kept until it calls again.
    pub(crate) desk: Option<Arc<Desk>>,
    /// The server that is called, once it is known.
    pub(crate) server: Option<ServerName>,
    /// The calls that may be in the way of its questions.
    pub(crate) parked: Arc<Parked>,
    /// Error with which a server request was declined, if that ended the call.
    declined: OnceLock<RpcError>,
}

impl Attending {
    pub(crate) fn new(
        caller: Caller,
        follows: bool,
        desk: Option<Arc<Desk>>,
        parked: Arc<Parked>,
    ) -> Self {
        Self { caller, follows, desk, server: None, parked, declined: OnceLock::new() }
    }

    /// Why the client could not be asked something, if that ended the call. It is "method not found" of
    /// the client, which says nothing of the method that the client called.
    pub(crate) fn declined(&self) -> Option<&RpcError> {
        self.declined.get()
    }

    /// Says which server is called.
    pub(crate) fn with_server(self, server: Option<&ServerName>) -> Self {
        if let (Some(desk), Some(server)) = (&self.desk, server) {
            desk.is_of(server);
        }
        Self { server: server.cloned(), ..self }
    }

    /// The way to the client, which is another one whenever it calls again.
    fn talk(&self) -> Talk {
        self.desk.as_ref().map_or_else(|| self.caller.talk.clone(), |desk| desk.talk())
    }

    /// Remembers whom it concerns when a visit is over that the server wants.
    fn wants_visit(&self, visit: &Raw, talk: Option<&Talk>) {
        if let (Some(session), Some(server)) = (&self.caller.session, &self.server) {
            session.visits.note(server, visit, talk);
        }
    }

    /// Says that a visit is over, if this call or another one of the session has asked for it. It is
    /// said to all calls, before they are answered.
    fn visited(&self, notification: &Notification) {
        let (Some(session), Some(server)) = (&self.caller.session, &self.server) else { return };
        if over(notification).is_some_and(|id| session.visits.contain(server, &id)) {
            session.tell(server, notification);
        }
    }

    /// Takes note of why the call came to no result: visits may be wanted first.
    pub(crate) fn failed(&self, error: &CallError) {
        let visits = error.refusal().map(visits_first).unwrap_or_default();
        visits.iter().for_each(|visit| self.wants_visit(visit, None));
    }
}

impl CallHandler for Attending {
    fn wants_progress(&self) -> bool {
        self.follows
    }

    fn on_notification(&self, notification: &Notification) {
        let is_wanted = match &*notification.method {
            "notifications/progress" => self.follows,
            "notifications/message" => log_filter::is_wanted(notification, self.caller.level),
            // What is about no call has ways of its own.
            "notifications/cancelled"
            | "notifications/resources/updated"
            | "notifications/tasks" => false,
            ELICITATION_COMPLETE => return self.visited(notification),
            method => !method.ends_with("/list_changed"),
        };
        if is_wanted {
            self.talk().tell(notification.clone());
        }
    }

    fn asked(&self, question: Question) -> Answering<'_> {
        Box::pin(async move {
            require_offered(&self.caller.client, &question)?;
            match &self.desk {
                Some(desk) => desk.ask(question).await,
                None => {
                    if let Some(visit) = question.params.as_ref().filter(|_| wants_visit(&question))
                    {
                        self.wants_visit(visit, Some(&self.caller.talk));
                    }
                    self.caller.talk.ask(in_words_of_legacy(question)).await
                }
            }
        })
    }

    fn ended_by(&self, refusal: &RpcError) {
        if refusal.code() == code::METHOD_NOT_FOUND {
            let _ = self.declined.set(refusal.clone());
        }
    }

    fn last_words(&self) -> Option<Raw> {
        self.talk().last_words()
    }

    fn passed_over(&self) {
        if let Some(server) = &self.server {
            self.parked.hurry(server);
        }
    }
}

/// Servers may only ask for what this very client offers.
pub(crate) fn require_offered(client: &Client, question: &Question) -> Result<(), RpcError> {
    let is_offered = match &*question.method {
        "elicitation/create" if wants_visit(question) => client.declares(&["elicitation", "url"]),
        // Whoever says nothing more of it means forms, as they were there before addresses.
        "elicitation/create" => {
            client.declares(&["elicitation"])
                && (client.declares(&["elicitation", "form"])
                    || !client.declares(&["elicitation", "url"]))
        }
        "sampling/createMessage" => client.declares(&["sampling"]),
        "roots/list" => client.declares(&["roots"]),
        _ => false,
    };
    if is_offered {
        return Ok(());
    }
    let message = format!("the client of this call does not offer `{}`", question.method);
    Err(RpcError::new(code::METHOD_NOT_FOUND, &message))
}

/// A question as legacy clients know it.
pub(crate) fn in_words_of_legacy(question: Question) -> Question {
    let needs_id = wants_visit(&question)
        && question.params.as_ref().is_some_and(|it| it.get("elicitationId").is_none());
    if !needs_id {
        return question;
    }
    let id = Raw::from_string(&crate::client::state_codec::unguessable());
    let params = question.params.map(|params| params.with("elicitationId", &id));
    Question { params, ..question }
}

/// Whether somebody is to visit an address, rather than fill in a form.
fn wants_visit(question: &Question) -> bool {
    let mode = question.params.as_ref().and_then(|params| params.get("mode"));
    mode.as_ref().and_then(Raw::as_str).as_deref() == Some("url")
}
