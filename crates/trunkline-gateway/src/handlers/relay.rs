//! Calls, prompts, resources and completions: passed on to the server that has them.

use std::sync::Arc;

use trunkline::call::{self, CallError, CallErrorKind, CallOptions, NoResult, Outcome};
use trunkline::config::Share;
use trunkline::connection::Rounds;
use trunkline::host::{Found, Relayed};
use trunkline::item::Kind;
use trunkline::message::{Raw, RpcError};
use trunkline::name::ServerName;
use trunkline::protocol::{Era, code, meta};
use trunkline::view::View;

use super::gateway::Gateway;
use super::mrtr::our_state;
use super::route_fallback::owners;
use super::tasks::Tasks;
use crate::changes::{Teller, renew};
use crate::client::call_handler::Attending;
use crate::client::caller::Caller;
use crate::client::input_queue::Desk;
use crate::client::parked::Conversation;
use crate::request::errors::{invalid, lacks};
use crate::request::incoming::{Asked, Client};
use crate::request::param_headers;
use crate::request::response::{Answer, Reply};
use crate::request::translate::{self, Looked};
use crate::routing::dedicated::{OwnCall, begin_call};

/// A call that is being made, noted where questions and notifications of its server look for it.
pub(crate) enum Engaged {
    /// Of a server that all share.
    Shared,
    /// Of a server that the client has for itself.
    Own(
        call::Client,
        #[expect(dead_code, reason = "held for as long as the call is made")] OwnCall,
    ),
}

impl Engaged {
    /// On whose behalf the call is made, if that matters to the server.
    pub(crate) fn client(&self) -> Option<&call::Client> {
        match self {
            Self::Shared => None,
            Self::Own(client, _) => Some(client),
        }
    }
}

impl Gateway {
    /// Passes a request on, in the way of the client's generation.
    pub(crate) async fn relay(
        self: &Arc<Self>,
        caller: Caller,
        relayed: Relayed,
        asked: Asked,
    ) -> Answer {
        let follows = asked.wants_progress();
        if caller.era() == Era::Legacy || relayed == Relayed::Completion {
            let attending = self.attending(caller, follows, None);
            // In a box, as below: what is moved around until it is begun is small.
            return Box::pin(Arc::clone(self).relay_for(attending, relayed, asked)).await;
        }
        let asked = match asked.state.as_ref().and_then(our_state) {
            Some(state) => match self.passed_state(&caller, &asked.params, &state) {
                Some(theirs) => asked.with_state(&theirs),
                None => {
                    let view = self.view(&caller)?;
                    let found = self.host.find(&view, relayed, &asked.params);
                    require_repeated(&asked, &found)?;
                    let request = (relayed, &asked.params);
                    return self.resume(&caller, request, &state, found.err()).await;
                }
            },
            None => asked,
        };
        let (desk, questions) = Desk::new(caller.talk.clone());
        let attending = self.attending(caller.clone(), follows, Some(desk.clone()));
        let params = asked.params.clone();
        let call = Box::pin(Arc::clone(self).relay_for(attending, relayed, asked));
        self.follow(&caller, &params, Conversation::new(call, desk, questions)).await
    }

    /// Who attends to a call for its caller.
    pub(crate) fn attending(
        &self,
        caller: Caller,
        follows: bool,
        desk: Option<Arc<Desk>>,
    ) -> Attending {
        Attending::new(caller, follows, desk, Arc::clone(&self.parked))
    }

    /// Passes a request on and waits for what comes of it.
    async fn relay_for(
        self: Arc<Self>,
        attending: Attending,
        relayed: Relayed,
        asked: Asked,
    ) -> Answer {
        let sent = attending.caller.introduced(&asked.params);
        let view = self.view(&attending.caller)?;
        let request = (relayed, &asked.params);
        match self.host.find(&view, relayed, &sent) {
            found if is_worth_a_look(&found) => {}
            found => {
                let found = found.and_then(|it| self.require_as_shown(&attending.caller, it));
                require_repeated(&asked, &found)?;
                return self.relay_found(attending, &view, request, found).await;
            }
        }
        // In boxes: it is nearly never so, and needs as much room again.
        let look = self.view_after_look(&attending.caller, &view, request);
        let view = Box::pin(look).await?;
        let found = self.host.find(&view, relayed, &sent);
        let found = found.and_then(|it| self.require_as_shown(&attending.caller, it));
        require_repeated(&asked, &found)?;
        Box::pin(self.relay_found(attending, &view, request, found)).await
    }

    /// Passes a request on to the server that has what it is about, if one was found.
    async fn relay_found(
        &self,
        attending: Attending,
        view: &View,
        (relayed, params): (Relayed, &Raw),
        found: Result<Found<'_>, CallError>,
    ) -> Answer {
        let server = found.as_ref().ok().map(|found| found.entry().server().name.clone());
        let server = server.as_ref();
        let attending = attending.with_server(server);
        let caller = &attending.caller;
        let rounds = match caller.era() {
            Era::Legacy => Rounds::Driven,
            Era::Modern => Rounds::Passed,
        };
        let engaged = server.map(|server| self.engaged(&attending, server));
        let client = engaged.as_ref().and_then(Engaged::client);
        let requester = caller.requester();
        let options = CallOptions {
            attendant: &attending,
            rounds,
            client,
            older_era: (caller.era() == Era::Legacy).then_some(&caller.client.capabilities),
            requester: Some(&requester),
            ..CallOptions::default()
        };
        let outcome = match found {
            Ok(found) => {
                let outcome = self.host.relay(view, found, options).await;
                outcome.inspect_err(|error| attending.failed(error))
            }
            Err(error) => Err(error),
        };
        match outcome {
            Ok(outcome) => Ok(self.translated(caller, (relayed, params), &outcome.for_model())),
            Err(error) => {
                if let Some(down) = self.down_owner(view, (relayed, params), &error) {
                    return down.answer(caller.era(), relayed);
                }
                match attending.declined() {
                    Some(unable) => not_asked(server, relayed, unable),
                    None => self.refused(&caller.client, relayed, params, &error),
                }
            }
        }
    }

    /// A result in the words of its client.
    fn translated(
        &self,
        caller: &Caller,
        (relayed, params): (Relayed, &Raw),
        outcome: &Outcome,
    ) -> Reply {
        let looked = Looked::at_outcome(outcome);
        if looked.asks()
            && let Some(sealed) = self.with_state_sealed(caller, params, &outcome.result)
        {
            return translate::result(caller.era(), relayed, &sealed);
        }
        if looked.is_task() {
            let named = self.tasks(caller).named(outcome.server(), &outcome.result);
            return translate::result(caller.era(), relayed, &named);
        }
        looked.for_client(caller.era(), relayed)
    }

    /// A view in which what a request is about has been looked for, where it was not known.
    pub(crate) async fn view_with(
        &self,
        caller: &Caller,
        request: (Relayed, &Raw),
    ) -> Result<View, RpcError> {
        let view = self.view(caller)?;
        if !is_worth_a_look(&self.host.find(&view, request.0, request.1)) {
            return Ok(view);
        }
        self.view_after_look(caller, &view, request).await
    }

    /// A view after servers that have not been asked yet were, and one that is down got another
    /// chance.
    async fn view_after_look(
        &self,
        caller: &Caller,
        view: &View,
        (relayed, params): (Relayed, &Raw),
    ) -> Result<View, RpcError> {
        let (kinds, owners) = (kinds(relayed), owners(view, relayed, params));
        // Whoever says whose something is waits for that server, and for no other.
        if !self.wait_for(owners, kinds).await {
            self.gather(kinds).await;
        }
        self.view(caller)
    }

    /// Notes that somebody calls a server, while it does.
    pub(crate) fn engaged(&self, attending: &Attending, server: &ServerName) -> Engaged {
        let config = self.host.config();
        let share = config.server(server.as_str()).map(|server| server.behaviour.share);
        match share {
            Some(Share::PerClient) => {
                let (client, call) = begin_call(attending, server, &self.own_calls);
                self.renew_own(&attending.caller, server, &client);
                Engaged::Own(client, call)
            }
            _ => {
                self.recent.note(server, attending.caller.session.as_ref());
                Engaged::Shared
            }
        }
    }

    /// Lets a process that has taken the place of another, or of the one that all share, tell a session
    /// what the other was to tell.
    fn renew_own(&self, caller: &Caller, server: &ServerName, client: &call::Client) {
        let Some(session) = &caller.session else { return };
        if session.addresses.are_of(server)
            && let Ok(connection) = self.host.connection_for(server, Some(client))
        {
            renew(&session.addresses, (&connection, Teller::Own), &Teller::ALL);
        }
    }

    /// The answer to a request that came to no result.
    pub(crate) fn refused(
        &self,
        client: &Client,
        relayed: Relayed,
        params: &Raw,
        error: &CallError,
    ) -> Answer {
        let era = client.era;
        if let Some(refusal) = error.refusal() {
            let outcome = translate::error(client, relayed, params, refusal);
            return outcome.map(|result| translate::result(era, relayed, &result));
        }
        match error.kind() {
            CallErrorKind::BadArguments => Err(invalid(&error.to_string())),
            CallErrorKind::Unknown => {
                let words = match error.hint() {
                    Some(hint) => format!("{error}; to change that: {hint}"),
                    None => error.to_string(),
                };
                let error = invalid(&words);
                let error = match params.get("uri") {
                    Some(uri) => error.with_data(&Raw::empty_object().with("uri", &uri)),
                    None => error,
                };
                translate::error(client, relayed, params, &error).map(Reply::from)
            }
            _ if relayed == Relayed::Call => {
                Ok(translate::result(era, relayed, &error.to_result()))
            }
            _ => Err(translate::failed(error)),
        }
    }

    /// Passes on a request about a task.
    pub(crate) async fn relay_task(
        self: &Arc<Self>,
        caller: Caller,
        method: &str,
        params: &Raw,
    ) -> Answer {
        if !caller.client.declares(&["extensions", meta::TASKS_EXTENSION]) {
            let needed = serde_json::json!({ "extensions": { meta::TASKS_EXTENSION: {} } });
            return Err(lacks(&needed, "this needs tasks"));
        }
        let tasks = self.tasks(&caller);
        let task = tasks.find(params)?;
        let sent = tasks.in_words_of_server(params, &task);
        let attending = self.attending(caller.clone(), false, None).with_server(Some(&task.server));
        let engaged = self.engaged(&attending, &task.server);
        let requester = caller.requester();
        let options = CallOptions {
            attendant: &attending,
            rounds: Rounds::Passed,
            client: engaged.client(),
            requester: Some(&requester),
            ..CallOptions::default()
        };
        let view = self.view(&caller)?;
        match self.host.relay_to(&view, &task.server, (method, sent), options).await {
            Ok(outcome) => {
                let result = tasks.named(outcome.server(), &outcome.result);
                Ok(translate::result(Era::Modern, Relayed::Call, &result))
            }
            Err(error) => match error.refusal() {
                Some(refusal) => Err(refusal.clone()),
                None => Err(translate::failed(&error)),
            },
        }
    }

    /// On whose behalf a server is asked, if each client has its own of it.
    pub(crate) fn client(&self, caller: &Caller, server: &ServerName) -> Option<call::Client> {
        let attending = self.attending(caller.clone(), false, None);
        match self.engaged(&attending, server) {
            Engaged::Own(client, _) => Some(client),
            Engaged::Shared => None,
        }
    }

    pub(crate) fn tasks<'g>(&'g self, caller: &'g Caller) -> Tasks<'g> {
        Tasks { seal: &self.seal, owner: caller.identity.as_owner() }
    }
}

/// Fails unless a call repeats those arguments in headers that the tool wants repeated which was found.
fn require_repeated(asked: &Asked, found: &Result<Found<'_>, CallError>) -> Result<(), RpcError> {
    match found {
        Ok(found) if found.entry().kind() == Kind::Tool => {
            param_headers::check_repeated(asked, found.entry().definition())
        }
        _ => Ok(()),
    }
}

/// Whether something that cannot be had may be there if servers are asked again. A resource that no list
/// has may be listed by a server whose list is not known yet.
fn is_worth_a_look(found: &Result<Found<'_>, CallError>) -> bool {
    match found {
        Ok(found) => !found.entry().is_listed(),
        Err(error) => {
            matches!(error.kind(), CallErrorKind::Unknown | CallErrorKind::Unavailable)
        }
    }
}

/// The answer to a legacy client that cannot be asked what the server of its call has to know.
fn not_asked(server: Option<&ServerName>, relayed: Relayed, unable: &RpcError) -> Answer {
    let server = server.map(ServerName::as_str).unwrap_or_default();
    let words = format!("server `{server}` has a question, and {}", unable.message());
    if relayed == Relayed::Call {
        let result = NoResult::Failed.result(&words, false);
        return Ok(translate::result(Era::Legacy, relayed, &result));
    }
    let data = Raw::from_value(&serde_json::json!({ "retry": false }));
    Err(RpcError::new(code::INTERNAL_ERROR, &words).with_data(&data))
}

/// The lists in which what a request is about would be.
fn kinds(relayed: Relayed) -> &'static [Kind] {
    match relayed {
        Relayed::Call => &[Kind::Tool],
        Relayed::Prompt => &[Kind::Prompt],
        Relayed::Read => &[Kind::Resource, Kind::ResourceTemplate],
        Relayed::Completion => &[Kind::Prompt, Kind::ResourceTemplate],
    }
}
