//! One request's caller: who it is, what it can do, and the way to it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use tokio::sync::watch;
use trunkline::call::{self as host, CallError};
use trunkline::connection::{Answering, CallHandler, LogLevel, Question};
use trunkline::message::{Notification, Raw, RpcError};
use trunkline::name::ServerName;
use trunkline::principal::{ClientId, Requester};
use trunkline::protocol::{Era, code, is_mcp_method, meta};

use crate::asked::Client;
use crate::desk::Desk;
use crate::level;
use crate::own::{Own, OwnCall, OwnCalls, Way};
use crate::parked::Parked;
use crate::scope::Identity;
use crate::session::Session;
use crate::talk::{Talk, WayAfter};
use crate::tokens::Pass;
use crate::translate::visits_first;
use crate::visits::{COMPLETE, over};

/// How long a client that has no session may be away before servers of its own are ended.
const LONGEST_ABSENCE: Duration = Duration::from_secs(600);

/// Who asks for something.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) client: Arc<Client>,
    pub(crate) identity: Arc<Identity>,
    /// From which level on it wants lines of logs.
    pub(crate) level: Option<LogLevel>,
    pub(crate) talk: Talk,
    /// The session of a legacy client.
    pub(crate) session: Option<Arc<Session>>,
    /// For how long it may hear things without asking again.
    pub(crate) admission: Admission,
}

/// What lets a caller hear things without asking again, for as long as it does.
#[derive(Clone)]
pub(crate) enum Admission {
    /// That it has asked.
    Asked,
    /// A token.
    Token(Pass),
    /// The stream on which it asks, which says whether it is closed.
    Stream(watch::Receiver<bool>),
}

impl Admission {
    /// Waits until it does so no more.
    pub(crate) async fn lost(&self) {
        match self {
            Self::Asked => std::future::pending().await,
            Self::Token(pass) => pass.lost().await,
            Self::Stream(closed) => {
                let _ = closed.clone().wait_for(|is_closed| *is_closed).await;
            }
        }
    }
}

impl Caller {
    pub(crate) fn era(&self) -> Era {
        self.client.era
    }

    /// The caller as the host knows it, for a server of which each client has its own.
    fn on_behalf(&self, own: &Own, calls: &Arc<OwnCalls>) -> host::Client {
        // Its server lives longer than the request in which it said what it is.
        let client = Arc::new(self.client.detached());
        let (id, capabilities) = (own.client.clone(), client.capabilities.clone());
        let owner = self.identity.principal.clone();
        if let Some(session) = &self.session {
            let (session, own) = (Arc::downgrade(session), own.clone());
            let attendant = Arc::new(OfSession { session, own, calls: Arc::clone(calls) });
            let (attendant, log_level) = (Some(attendant as _), self.level);
            return host::Client { id, owner, capabilities, attendant, log_level, idle: None };
        }
        let (own, calls) = (own.clone(), Arc::clone(calls));
        let attendant = Arc::new(OfAnyCall { own, client, calls });
        let idle = Some(LONGEST_ABSENCE);
        let (attendant, log_level) = (Some(attendant as _), self.level);
        host::Client { id, owner, capabilities, attendant, log_level, idle }
    }

    /// The client and principal its requests are made for.
    pub(crate) fn requester(&self) -> Requester {
        let client = self.id();
        let principal = self.identity.principal.of_client(&client);
        Requester { client, principal }
    }

    /// Who it is, for those who keep something for it.
    fn id(&self) -> ClientId {
        match &self.session {
            Some(session) => session.id.clone(),
            None => id_without_session(&self.client, &self.identity),
        }
    }

    /// Id under which the last list of a client without a session is known: over streams there is one
    /// client, elsewhere a digest of its token, its limits and its name. What it offers is left out,
    /// because clients may offer other things with each request.
    pub(crate) fn list_id(&self) -> ClientId {
        if let Admission::Stream(_) = self.admission {
            return ClientId::default();
        }
        let info = self.client.info.as_ref().map_or("", Raw::text);
        digest_id(&format!("{}\n{info}", self.identity.as_owner()))
    }

    /// Parameters that say for whom they are passed on, as servers of the modern generation want to
    /// know. Connections take it away where a server is of the other.
    pub(crate) fn introduced(&self, params: &Raw) -> Raw {
        if self.era() == Era::Modern {
            return params.clone();
        }
        let said = params.get("_meta").filter(Raw::is_object).unwrap_or_else(Raw::empty_object);
        let mut said = said.with(meta::CLIENT_CAPABILITIES, &self.client.capabilities);
        if let Some(info) = &self.client.info {
            said = said.with(meta::CLIENT_INFO, info);
        }
        if let Some(level) = self.level {
            said = said.with(meta::LOG_LEVEL, &Raw::from_string(level.as_str()));
        }
        params.with("_meta", &said)
    }
}

/// Id of a client that has no session: a digest of its token, its name and its capabilities. Nothing
/// else tells clients apart that say everything anew each time. As a digest it has a bounded length.
pub(crate) fn id_without_session(client: &Client, identity: &Identity) -> ClientId {
    let info = client.info.as_ref().map_or("", Raw::text);
    let principal = identity.principal.as_str();
    let said = format!("{principal:?}\n{info}\n{}", client.capabilities);
    digest_id(&said)
}

/// Id of a client by everything that it is known by.
fn digest_id(said: &str) -> ClientId {
    let digest = ring::digest::digest(&ring::digest::SHA256, said.as_bytes());
    URL_SAFE_NO_PAD.encode(digest).as_str().into()
}

/// Answers what the server of a session asks outside of any call, or without saying about which: all
/// are of the same client.
struct OfSession {
    session: Weak<Session>,
    own: Own,
    calls: Arc<OwnCalls>,
}

impl OfSession {
    /// Sends a message on a stream that is open, and returns the way for another one: the stream for
    /// what belongs to no call, or that of a call of this server. Without one it would wait for somebody
    /// who may never read it.
    fn send(&self, session: &Session, message: Bytes) -> Option<WayAfter> {
        if session.standing.is_read() {
            session.standing.tell(message);
            let standing = Arc::clone(&session.standing);
            return Some(Box::new(move |message| standing.tell(message)));
        }
        self.calls.ways(&self.own).iter().find_map(|way| match way {
            Way::Stream(talk) => talk.send_first(message.clone()),
            Way::Desk(_) => None,
        })
    }
}

impl CallHandler for OfSession {
    /// Whatever such a server says is for this client. Lists are those of the one that all share.
    fn on_notification(&self, notification: &Notification) {
        let Some(session) = self.session.upgrade() else { return };
        let said = match &*notification.method {
            "notifications/message" => {
                level::is_wanted(notification, Some(session.level())).then(|| notification.clone())
            }
            "notifications/resources/updated" => {
                session.addresses.updated(&self.own.server, notification)
            }
            method => (method == COMPLETE || !is_mcp_method(method)).then(|| notification.clone()),
        };
        if let Some(said) = said {
            session.tell(&self.own.server, &said);
        }
    }

    fn asked(&self, question: Question) -> Answering<'_> {
        Box::pin(async move {
            let gone = || RpcError::new(code::INTERNAL_ERROR, "the client is gone");
            let session = self.session.upgrade().ok_or_else(gone)?;
            require_offered(&session.client, &question)?;
            let send = |message| self.send(&session, message);
            session.questions.ask(in_words_of_legacy(question), send).await
        })
    }
}

/// Answers what a modern client's own server asks without saying about which call. Clients that look
/// the same share it, so that only the client of the only call can be the right one.
struct OfAnyCall {
    own: Own,
    client: Arc<Client>,
    calls: Arc<OwnCalls>,
}

impl CallHandler for OfAnyCall {
    fn asked(&self, question: Question) -> Answering<'_> {
        Box::pin(async move {
            require_offered(&self.client, &question)?;
            match &*self.calls.ways(&self.own) {
                [] => Err(RpcError::new(code::INTERNAL_ERROR, "no call is being made")),
                [Way::Desk(desk)] => desk.ask(question).await,
                [Way::Stream(talk)] => talk.ask(question).await,
                several => {
                    several.iter().filter_map(Way::desk).for_each(Desk::hurry);
                    Err(unclear(&question))
                }
            }
        })
    }
}

fn unclear(question: &Question) -> RpcError {
    let message = format!(
        "`{}` is refused: several calls are being made, and it does not say which of them it \
         belongs to; clients with the same token, name and capabilities share this process",
        question.method
    );
    RpcError::new(code::INVALID_REQUEST, &message)
}

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
}

impl Attending {
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

    /// Notes that this is a call of a server of which the client has its own, and says who that is.
    pub(crate) fn on_behalf(
        &self,
        server: &ServerName,
        calls: &Arc<OwnCalls>,
    ) -> (host::Client, OwnCall) {
        let own = Own { client: self.caller.id(), server: server.clone() };
        let way = match &self.desk {
            Some(desk) => Way::Desk(Arc::clone(desk)),
            None => Way::Stream(self.caller.talk.clone()),
        };
        let call = calls.begin(&own, way);
        (self.caller.on_behalf(&call.own, calls), call)
    }
}

impl CallHandler for Attending {
    fn wants_progress(&self) -> bool {
        self.follows
    }

    fn on_notification(&self, notification: &Notification) {
        let is_wanted = match &*notification.method {
            "notifications/progress" => self.follows,
            "notifications/message" => level::is_wanted(notification, self.caller.level),
            // What is about no call has ways of its own.
            "notifications/cancelled"
            | "notifications/resources/updated"
            | "notifications/tasks" => false,
            COMPLETE => return self.visited(notification),
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
fn require_offered(client: &Client, question: &Question) -> Result<(), RpcError> {
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
fn in_words_of_legacy(question: Question) -> Question {
    let needs_id = wants_visit(&question)
        && question.params.as_ref().is_some_and(|it| it.get("elicitationId").is_none());
    if !needs_id {
        return question;
    }
    let id = Raw::from_string(&crate::seal::unguessable());
    let params = question.params.map(|params| params.with("elicitationId", &id));
    Question { params, ..question }
}

/// Whether somebody is to visit an address, rather than fill in a form.
fn wants_visit(question: &Question) -> bool {
    let mode = question.params.as_ref().and_then(|params| params.get("mode"));
    mode.as_ref().and_then(Raw::as_str).as_deref() == Some("url")
}
