//! One request and everything that came with it: who asks, what was answered before, how to ask back.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ErrorData, InputRequest, InputRequests, InputRequiredResult,
    InputResponses, JsonObject, LoggingLevel, LoggingMessageNotificationParam, ProtocolVersion,
    ServerRequest,
};
use rmcp::service::RequestContext;
use serde_json::{Value, from_value, json};

use crate::profile::Profile;
use crate::world::World;

/// What a legacy client has set up on its connection.
#[derive(Default)]
pub(crate) struct Session {
    pub(crate) level: Mutex<Option<LoggingLevel>>,
    pub(crate) subscribed: Mutex<HashSet<String>>,
}

impl Session {
    pub(crate) fn is_subscribed(&self, uri: &str) -> bool {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).contains(uri)
    }
}

/// Why a request ends without its result.
pub(crate) enum Exit {
    /// The client has to answer first, and then ask again.
    Ask(InputRequiredResult),
    Fail(ErrorData),
}

impl From<ErrorData> for Exit {
    fn from(error: ErrorData) -> Self {
        Self::Fail(error)
    }
}

/// A request that may ask back.
pub(crate) struct Call {
    pub(crate) world: Arc<World>,
    pub(crate) session: Arc<Session>,
    pub(crate) context: RequestContext<RoleServer>,
    pub(crate) arguments: JsonObject,
    /// What the client has answered to questions of the round before.
    pub(crate) answers: InputResponses,
    /// The state that the client has sent back, still sealed.
    pub(crate) state: Option<String>,
}

impl Call {
    /// An argument that should be a text; empty if it is not there.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.arguments.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether the request is of the generation without sessions.
    pub(crate) fn is_modern(&self) -> bool {
        let modern = ProtocolVersion::V_2026_07_28;
        self.context.protocol_version().is_some_and(|version| version.as_str() >= modern.as_str())
    }

    /// What the client can do, as it says for this very request or in its handshake.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        self.context.client_capabilities().unwrap_or_default()
    }

    /// Whether the client can answer requests of this method.
    pub(crate) fn can_answer(&self, method: &str) -> bool {
        let capabilities = self.capabilities();
        match method {
            "sampling/createMessage" => capabilities.sampling.is_some(),
            "elicitation/create" => capabilities.elicitation.is_some(),
            _ => capabilities.roots.is_some(),
        }
    }

    /// The answers to all questions: asked for on the way in the old generation, and with a round trip
    /// in the new one. `questions` is an object of requests.
    pub(crate) async fn ask(
        &self,
        questions: Value,
        state: Option<&str>,
    ) -> Result<InputResponses, Exit> {
        if !self.is_modern() {
            return self.ask_in_requests(questions).await;
        }
        let is_answered = |key: &String| self.answers.get(key).is_some_and(Value::is_object);
        let keys = questions.as_object().expect("invariant: questions are an object").keys();
        if keys.clone().count() > 0 && keys.clone().all(is_answered) {
            return Ok(self.answers.clone());
        }
        Err(self.question(questions, state))
    }

    /// The answers to all questions, of a tool that does not know the newer era: in that profile it sends
    /// requests to clients of either.
    pub(crate) async fn ask_in_either_era(&self, questions: Value) -> Result<InputResponses, Exit> {
        match self.world.profile {
            Profile::Strict => self.ask(questions, None).await,
            Profile::SdkExample => self.ask_in_requests(questions).await,
        }
    }

    /// The end of this round: the client has to answer these questions.
    pub(crate) fn question(&self, questions: Value, state: Option<&str>) -> Exit {
        let requests = requests(questions);
        for request in requests.values() {
            let (method, capability) = needs(request);
            if !self.can_answer(method) {
                return Exit::Fail(missing(capability));
            }
        }
        let state = state.map(|text| self.world.seal(text));
        Exit::Ask(InputRequiredResult::new(Some(requests), state))
    }

    async fn ask_in_requests(&self, questions: Value) -> Result<InputResponses, Exit> {
        let requests = requests(questions);
        let mut answers = InputResponses::new();
        for (key, request) in requests {
            let (method, _) = needs(&request);
            if !self.can_answer(method) {
                let message = format!("the client does not support {method}");
                return Err(Exit::Fail(ErrorData::invalid_request(message, None)));
            }
            let request = match request {
                InputRequest::CreateMessage(request) => {
                    ServerRequest::CreateMessageRequest(request)
                }
                InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
                InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
                _ => unreachable!("there are three kinds of questions"),
            };
            let answer = self.context.peer.send_request(request).await;
            let answer = answer.map_err(|error| {
                ErrorData::internal_error(format!("no answer to {method}: {error}"), None)
            })?;
            answers.insert(key, json!(answer));
        }
        Ok(answers)
    }

    /// The state that came back, out of its seal; nothing in the first round.
    pub(crate) fn opened_state(&self) -> Result<Option<String>, Exit> {
        let Some(sealed) = &self.state else { return Ok(None) };
        let opened = self.world.open(sealed);
        if opened.is_none() {
            let message = "requestState is not as it was given out";
            return Err(Exit::Fail(ErrorData::invalid_params(message, None)));
        }
        Ok(opened)
    }

    /// Sends a log message, if the client wants messages of this level.
    pub(crate) async fn log(&self, level: LoggingLevel, text: &str) {
        let wanted = if self.is_modern() {
            self.context.meta.log_level()
        } else {
            let chosen = self.session.level.lock().unwrap_or_else(PoisonError::into_inner);
            // A legacy server decides for itself until it is told.
            Some(chosen.unwrap_or(LoggingLevel::Debug))
        };
        if wanted.is_some_and(|wanted| level as u8 >= wanted as u8) {
            let message = LoggingMessageNotificationParam::new(level, json!(text));
            // A client that has gone away needs no messages.
            let _ = self.context.peer.notify_logging_message(message).await;
        }
    }
}

/// The error for a client that lacks what the request needs; `capability` as clients declare it.
pub(crate) fn missing(capability: Value) -> ErrorData {
    let capability = from_value(capability).expect("invariant: it is a capability");
    ErrorData::missing_required_client_capability(capability)
}

fn requests(questions: Value) -> InputRequests {
    from_value(questions).expect("invariant: questions are requests")
}

/// The method of a question, and the capability that a client must declare to be asked.
fn needs(request: &InputRequest) -> (&'static str, Value) {
    match request {
        InputRequest::CreateMessage(_) => ("sampling/createMessage", json!({ "sampling": {} })),
        InputRequest::Elicitation(_) => ("elicitation/create", json!({ "elicitation": {} })),
        _ => ("roots/list", json!({ "roots": {} })),
    }
}
