//! One request with its context: the client, earlier input responses, and requests back to the
//! client.

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

/// State of a legacy client's connection.
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

/// Reason why a request ends without its result.
pub(crate) enum Exit {
    /// The client has to fulfil input requests and retry.
    Ask(InputRequiredResult),
    Fail(ErrorData),
}

impl From<ErrorData> for Exit {
    fn from(error: ErrorData) -> Self {
        Self::Fail(error)
    }
}

/// A request whose handler may send requests to the client.
pub(crate) struct Call {
    pub(crate) world: Arc<World>,
    pub(crate) session: Arc<Session>,
    pub(crate) context: RequestContext<RoleServer>,
    pub(crate) arguments: JsonObject,
    /// The client's responses to the input requests of the previous round.
    pub(crate) answers: InputResponses,
    /// The `requestState` that the client returned, still sealed.
    pub(crate) state: Option<String>,
}

impl Call {
    /// A string argument; empty if it is missing.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.arguments.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether the request is of the modern era.
    pub(crate) fn is_modern(&self) -> bool {
        let modern = ProtocolVersion::V_2026_07_28;
        self.context.protocol_version().is_some_and(|version| version.as_str() >= modern.as_str())
    }

    /// The client's capabilities, from this request or its handshake.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        self.context.client_capabilities().unwrap_or_default()
    }

    /// Whether the client handles requests with this method.
    pub(crate) fn can_answer(&self, method: &str) -> bool {
        let capabilities = self.capabilities();
        match method {
            "sampling/createMessage" => capabilities.sampling.is_some(),
            "elicitation/create" => capabilities.elicitation.is_some(),
            _ => capabilities.roots.is_some(),
        }
    }

    /// Returns the responses to all input requests: in the legacy era by server requests, in the
    /// modern one by a round trip. `questions` is an object of requests.
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

    /// The same for a tool that ignores the modern era: in the `SdkExample` profile it sends server
    /// requests to clients of either era.
    pub(crate) async fn ask_in_either_era(&self, questions: Value) -> Result<InputResponses, Exit> {
        match self.world.profile {
            Profile::Strict => self.ask(questions, None).await,
            Profile::SdkExample => self.ask_in_requests(questions).await,
        }
    }

    /// Ends this round: the client has to fulfil these input requests.
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

    /// Opens the returned `requestState`; `None` in the first round.
    pub(crate) fn opened_state(&self) -> Result<Option<String>, Exit> {
        let Some(sealed) = &self.state else { return Ok(None) };
        let opened = self.world.open(sealed);
        if opened.is_none() {
            let message = "requestState is not as it was given out";
            return Err(Exit::Fail(ErrorData::invalid_params(message, None)));
        }
        Ok(opened)
    }

    /// Sends a log message, if the client accepts messages of this level.
    pub(crate) async fn log(&self, level: LoggingLevel, text: &str) {
        let wanted = if self.is_modern() {
            self.context.meta.log_level()
        } else {
            let chosen = self.session.level.lock().unwrap_or_else(PoisonError::into_inner);
            // A legacy server chooses the level until the client sets one.
            Some(chosen.unwrap_or(LoggingLevel::Debug))
        };
        if wanted.is_some_and(|wanted| level as u8 >= wanted as u8) {
            let message = LoggingMessageNotificationParam::new(level, json!(text));
            // The client may have disconnected.
            let _ = self.context.peer.notify_logging_message(message).await;
        }
    }
}

/// The error for a client without a required capability; `capability` in the form clients declare.
pub(crate) fn missing(capability: Value) -> ErrorData {
    let capability = from_value(capability).expect("invariant: it is a capability");
    ErrorData::missing_required_client_capability(capability)
}

fn requests(questions: Value) -> InputRequests {
    from_value(questions).expect("invariant: questions are requests")
}

/// The method of an input request, and the client capability that it requires.
fn needs(request: &InputRequest) -> (&'static str, Value) {
    match request {
        InputRequest::CreateMessage(_) => ("sampling/createMessage", json!({ "sampling": {} })),
        InputRequest::Elicitation(_) => ("elicitation/create", json!({ "elicitation": {} })),
        _ => ("roots/list", json!({ "roots": {} })),
    }
}
