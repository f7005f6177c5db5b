//! Calls that wait for their client, and states of requests: given to it, and taken back when it comes
//! with the answers.

use trunkline::call::{CallError, CallErrorKind};
use trunkline::host::RelayMethod;
use trunkline::message::{Raw, RpcError};
use trunkline::protocol::Era;

use super::gateway::Gateway;
use crate::client::caller::Caller;
use crate::client::parked::{CallProgress, ParkedCall, ResumeError};
use crate::client::state_codec::{OpenError, SealContext};
use crate::request::errors::invalid;
use crate::request::response::RpcResult;
use crate::request::translate;

/// What our own request states begin with; those of servers are passed on as they are.
const OURS: &str = "trunkline.";

/// What a state of a server is sealed for that begins in the same way.
const PASSED: &str = "state";

impl Gateway {
    /// Goes on with a call until the server has answered, or needs something of the client.
    pub(crate) async fn drive(&self, caller: &Caller, params: &Raw, call: ParkedCall) -> RpcResult {
        match call.advance().await {
            CallProgress::Over(outcome) => outcome,
            CallProgress::Asks(call) => self.park(caller, params, call),
        }
    }

    /// Keeps a call until its client comes back, and says what it has to come back with.
    fn park(&self, caller: &Caller, params: &Raw, mut call: ParkedCall) -> RpcResult {
        call.detach(&self.parked);
        let number = self.parked.next_id();
        let owner = owner(caller, params);
        let uses = SealContext { purpose: "call", owner: &owner };
        let holds = Some(self.parked.longest());
        let state = self.codec.codec(&number.to_string(), uses, holds);
        let result = call.to_input_required(&format!("{OURS}{state}"));
        self.parked.put(number, &caller.requester().principal, call)?;
        Ok(translate::result(Era::Modern, RelayMethod::Call, &result))
    }

    /// The state of a server that was sealed on its way to the client, if this is one.
    pub(crate) fn relayed_state(
        &self,
        caller: &Caller,
        params: &Raw,
        state: &str,
    ) -> Option<String> {
        let owner = owner(caller, params);
        self.codec.open(state, SealContext { purpose: PASSED, owner: &owner }).ok()
    }

    /// A result whose state begins as our own do, such as that of another gateway, with the state
    /// sealed: what comes back is ours, whoever made what is in it.
    pub(crate) fn seal_state(&self, caller: &Caller, params: &Raw, result: &Raw) -> Option<Raw> {
        let state = result.get("requestState")?;
        let theirs = state.as_str().filter(|state| state.starts_with(OURS))?;
        let owner = owner(caller, params);
        let sealed =
            self.codec.codec(&theirs, SealContext { purpose: PASSED, owner: &owner }, None);
        Some(result.with("requestState", &Raw::from_string(&format!("{OURS}{sealed}"))))
    }

    /// Goes on with a call for which its client has come back. If the client may not have what it called
    /// any more, the call is given up instead, which cancels it.
    pub(crate) async fn resume(
        &self,
        caller: &Caller,
        (relay_method, params): (RelayMethod, &Raw),
        state: &str,
        missing: Option<CallError>,
    ) -> RpcResult {
        let mut call = self.parked_call(caller, params, state)?;
        if let Some(error) = missing.filter(|it| it.kind() == CallErrorKind::Unknown) {
            drop(call);
            return self.error_response(&caller.client, relay_method, params, &error);
        }
        call.inputs.set_channel(caller.channel.clone());
        let answers = params.get("inputResponses").unwrap_or_else(Raw::empty_object);
        match call.take(&answers) {
            true => self.drive(caller, params, call).await,
            false => self.park(caller, params, call),
        }
    }

    /// The call for which its client has come back, if it still waits.
    fn parked_call(
        &self,
        caller: &Caller,
        params: &Raw,
        state: &str,
    ) -> Result<ParkedCall, RpcError> {
        let owner = owner(caller, params);
        let uses = SealContext { purpose: "call", owner: &owner };
        let refused = |why: &str| invalid(&format!("{why}; make the call again without it"));
        let foreign = || refused("the request state is not one of this call");
        let late = |longest| {
            refused(&format!(
                "the request state is too old: no answer came within {longest:?}, and its call was \
                 given up"
            ))
        };
        let number = self.codec.open(state, uses).map_err(|why| match why {
            OpenError::Foreign => foreign(),
            OpenError::Late => late(self.parked.longest()),
        })?;
        let number = number.parse().map_err(|_| foreign())?;
        self.parked.take(number).map_err(|why| match why {
            ResumeError::Gone => {
                refused("the request state was used before, or its call was given up")
            }
            ResumeError::Late(longest) => late(longest),
        })
    }
}

/// Whose call it is, and of what: a state is good for nothing else.
fn owner(caller: &Caller, params: &Raw) -> String {
    let [name, uri, arguments] = params.get_all(["name", "uri", "arguments"]);
    let subject = name.or(uri).map(|subject| subject.text().to_owned()).unwrap_or_default();
    let arguments = arguments.as_ref().map_or_else(|| "{}".to_owned(), canonical);
    format!("{}\n{subject}\n{arguments}", caller.identity.as_owner())
}

/// A value, however it is written: who comes back may have put its members in another order. One that
/// is too deep to be looked into is as it was written.
fn canonical(value: &Raw) -> String {
    let parsed = serde_json::from_str::<serde_json::Value>(value.text());
    parsed.map_or_else(|_| value.text().to_owned(), |value| value.to_string())
}

/// A state of the gateway in a request.
pub(crate) fn own_state(state: &Raw) -> Option<String> {
    state.as_str()?.strip_prefix(OURS).map(str::to_owned)
}
