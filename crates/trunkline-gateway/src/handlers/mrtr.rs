//! Calls that wait for their client, and states of requests: given to it, and taken back when it comes
//! with the answers.

use tokio::task::spawn_blocking;
use trunkline::call::{CallError, CallErrorKind};
use trunkline::host::RelayMethod;
use trunkline::message::{Raw, RpcError};
use trunkline::principal::Requester;
use trunkline::protocol::Era;

use super::gateway::Gateway;
use super::list::ending;
use crate::client::arguments_digest::ArgumentsDigest;
use crate::client::caller::Caller;
use crate::client::parked::{CallProgress, ParkedCall, ResumeError};
use crate::client::state_codec::{OpenError, SealContext};
use crate::request::errors::invalid;
use crate::request::response::RpcResult;
use crate::request::{panics, translate};

/// What our own request states begin with; those of servers are passed on as they are.
const OURS: &str = "trunkline.";

/// What the number of a parked call is sealed for.
const PARKED: &str = "call";

/// What a state of a server is sealed for that begins in the same way.
const PASSED: &str = "state";

/// Letters of the digest of the arguments, which a sealed text begins with.
const DIGEST_LETTERS: usize = 16;

/// Arguments up to this size are digested where they are; longer ones take time that others need.
const MAX_INLINE_DIGEST_BYTES: usize = 64 * 1024;

impl Gateway {
    /// Goes on with a call until the server has answered, or needs something of the client.
    pub(crate) async fn drive(&self, caller: &Caller, params: &Raw, call: ParkedCall) -> RpcResult {
        match call.advance().await {
            CallProgress::Over(outcome) => outcome,
            CallProgress::Asks(call) => self.park(caller, params, call).await,
        }
    }

    /// Keeps a call until its client comes back, and says what it has to come back with.
    async fn park(&self, caller: &Caller, params: &Raw, mut call: ParkedCall) -> RpcResult {
        let digest = self.arguments_digest(caller, params).await?;
        call.detach(&self.parked);
        let number = self.parked.next_id();
        let owner = owner(caller, params);
        let uses = SealContext { purpose: PARKED, owner: &owner };
        let holds = Some(self.parked.longest());
        let state = self.codec.codec(&format!("{digest}{number}"), uses, holds);
        let result = call.to_input_required(&format!("{OURS}{state}"));
        self.parked.put(number, &caller.requester().principal, call)?;
        Ok(translate::result(Era::Modern, RelayMethod::Call, &result))
    }

    /// The state of a server that was sealed on its way to the client, if this is one.
    pub(crate) async fn relayed_state(
        &self,
        caller: &Caller,
        params: &Raw,
        state: &str,
    ) -> Option<String> {
        self.open_state(caller, params, (PASSED, state)).await.ok()?.ok()
    }

    /// Opens a sealed state, and only then looks at the arguments: anybody can make up a state. The outer
    /// error is that of a request which cannot be looked at now.
    async fn open_state(
        &self,
        caller: &Caller,
        params: &Raw,
        (purpose, state): (&str, &str),
    ) -> Result<Result<String, OpenError>, RpcError> {
        let owner = owner(caller, params);
        let opened = match self.codec.open(state, SealContext { purpose, owner: &owner }) {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error)),
        };
        let digest = self.arguments_digest(caller, params).await?.to_string();
        let text = opened.split_at_checked(DIGEST_LETTERS).filter(|(sealed, _)| *sealed == digest);
        Ok(text.map(|(_, text)| text.to_owned()).ok_or(OpenError::Foreign))
    }

    /// The digest of the arguments of a request. Long ones are digested beside the workers and in the turn of
    /// their principal.
    async fn arguments_digest(
        &self,
        caller: &Caller,
        params: &Raw,
    ) -> Result<ArgumentsDigest, RpcError> {
        let arguments = params.get("arguments").unwrap_or_else(Raw::empty_object);
        if arguments.bytes().len() <= MAX_INLINE_DIGEST_BYTES {
            return Ok(self.arguments.digest(&arguments));
        }
        let Requester { principal, .. } = caller.requester();
        let slot = tokio::select! {
            slot = self.pages.slots.acquire(&principal) => slot,
            () = self.host.shutdown_started() => return Err(ending()),
        };
        let hasher = self.arguments.clone();
        let made = spawn_blocking(move || {
            let digest = hasher.digest(&arguments);
            // The turn ends with the work: the request may be over before.
            drop(slot);
            digest
        });
        made.await.map_err(|_| panics::internal_error())
    }

    /// A result whose state begins as our own do, such as that of another gateway, with the state
    /// sealed: what comes back is ours, whoever made what is in it.
    pub(crate) async fn seal_state(
        &self,
        caller: &Caller,
        params: &Raw,
        result: &Raw,
    ) -> Result<Option<Raw>, RpcError> {
        let state = result.get("requestState");
        let theirs = state.as_ref().and_then(Raw::as_str).filter(|it| it.starts_with(OURS));
        let Some(theirs) = theirs else { return Ok(None) };
        let digest = self.arguments_digest(caller, params).await?;
        let owner = owner(caller, params);
        let uses = SealContext { purpose: PASSED, owner: &owner };
        let sealed = self.codec.codec(&format!("{digest}{theirs}"), uses, None);
        let sealed = Raw::from_string(&format!("{OURS}{sealed}"));
        Ok(Some(result.with("requestState", &sealed)))
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
        let mut call = self.parked_call(caller, params, state).await?;
        if let Some(error) = missing.filter(|it| it.kind() == CallErrorKind::Unknown) {
            drop(call);
            return self.error_response(&caller.client, relay_method, params, &error);
        }
        call.inputs.set_channel(caller.channel.clone());
        let answers = params.get("inputResponses").unwrap_or_else(Raw::empty_object);
        match call.take(&answers) {
            true => self.drive(caller, params, call).await,
            false => self.park(caller, params, call).await,
        }
    }

    /// The call for which its client has come back, if it still waits.
    async fn parked_call(
        &self,
        caller: &Caller,
        params: &Raw,
        state: &str,
    ) -> Result<ParkedCall, RpcError> {
        let refused = |why: &str| invalid(&format!("{why}; make the call again without it"));
        let foreign = || refused("the request state is not one of this call");
        let late = |longest| {
            refused(&format!(
                "the request state is too old: no answer came within {longest:?}, and its call was \
                 given up"
            ))
        };
        let opened = self.open_state(caller, params, (PARKED, state)).await?;
        let number = opened.map_err(|why| match why {
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

/// Whose call it is, and of what: a state is good for nothing else. The arguments are not part of it, since
/// they may be long and a state made up.
fn owner(caller: &Caller, params: &Raw) -> String {
    let [name, uri] = params.get_all(["name", "uri"]);
    let subject = name.or(uri).map(|subject| subject.text().to_owned()).unwrap_or_default();
    format!("{}\n{subject}", caller.identity.as_owner())
}

/// A state of the gateway in a request.
pub(crate) fn own_state(state: &Raw) -> Option<String> {
    state.as_str()?.strip_prefix(OURS).map(str::to_owned)
}
