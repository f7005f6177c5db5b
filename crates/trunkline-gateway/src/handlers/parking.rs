//! Parks calls of modern clients that need input, and resumes them when the client retries with its
//! input responses and the `requestState`.

use tokio::task::spawn_blocking;
use trunkline::call::{CallError, CallErrorKind};
use trunkline::host::RelayMethod;
use trunkline::message::{Raw, RpcError};
use trunkline::principal::Requester;
use trunkline::protocol::Era;

use super::error_codes::{FailedRequest, Failure, StateError};
use super::gateway::Gateway;
use crate::client::arguments_digest::ArgumentsDigest;
use crate::client::caller::Caller;
use crate::client::parked::ParkedCall;
use crate::client::state_codec::SealContext;
use crate::request::errors::{handler_panicked, shutting_down};
use crate::request::incoming::IncomingRequest;
use crate::request::response::RpcResult;
use crate::request::translate;

/// Prefix of the gateway's request states; other states of servers are relayed unchanged.
const OURS: &str = "trunkline.";

/// Purpose of a sealed ID of a parked call.
const PARKED: &str = "call";

/// Purpose of a sealed server state that has the same prefix.
const PASSED: &str = "state";

/// Characters of the arguments digest at the start of a sealed text.
const DIGEST_LETTERS: usize = 16;

/// Limit for digests on the async worker; longer arguments are digested on the blocking pool.
const MAX_INLINE_DIGEST_BYTES: usize = 64 * 1024;

impl Gateway {
    /// Parks a call, and returns the `InputRequiredResult`.
    pub(crate) async fn park(
        &self,
        caller: &Caller,
        params: &Raw,
        mut call: ParkedCall,
    ) -> RpcResult {
        let digest = self.arguments_digest(caller, params).await?;
        call.detach(&self.parked);
        let number = self.parked.next_id();
        let owner = owner(caller, params);
        let uses = SealContext { purpose: PARKED, owner: &owner };
        let holds = Some(self.parked.longest());
        let state = self.codec.seal(&format!("{digest}{number}"), uses, holds);
        let result = call.inputs.to_input_required(&format!("{OURS}{state}"));
        self.parked.put(number, &caller.requester().principal, call)?;
        Ok(translate::result(Era::Modern, RelayMethod::Call, &result))
    }

    /// The server's own state in a request, if the gateway had sealed it.
    pub(crate) async fn relayed_state(
        &self,
        caller: &Caller,
        params: &Raw,
        state: &str,
    ) -> Option<String> {
        self.open_state(caller, params, (PASSED, state)).await.ok()
    }

    /// Opens a sealed state, and digests the arguments only if it is authentic, because any client
    /// can send a forged state.
    async fn open_state(
        &self,
        caller: &Caller,
        params: &Raw,
        (purpose, state): (&str, &str),
    ) -> Result<String, RpcError> {
        let owner = owner(caller, params);
        let opened = self.codec.open(state, SealContext { purpose, owner: &owner });
        let opened = opened.map_err(|error| StateError::opening(error, self.parked.longest()))?;
        let digest = self.arguments_digest(caller, params).await?.to_string();
        let text = opened.split_at_checked(DIGEST_LETTERS).filter(|(sealed, _)| *sealed == digest);
        Ok(text.map(|(_, text)| text.to_owned()).ok_or(StateError::Foreign)?)
    }

    /// The digest of a request's arguments. Long ones are digested on the blocking pool, in a slot
    /// of their principal.
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
            () = self.host.shutdown_started() => return Err(shutting_down()),
        };
        let hasher = self.arguments.clone();
        let made = spawn_blocking(move || {
            let digest = hasher.digest(&arguments);
            // The slot is held until the work is done, even if the request is cancelled before.
            drop(slot);
            digest
        });
        made.await.map_err(|_| handler_panicked())
    }

    /// Seals the state of a server's result if it has the prefix of this gateway's states, such as
    /// that of another gateway. A state with the prefix is then always one sealed here.
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
        let sealed = self.codec.seal(&format!("{digest}{theirs}"), uses, None);
        let sealed = Raw::from_string(&format!("{OURS}{sealed}"));
        Ok(Some(result.with("requestState", &sealed)))
    }

    /// Resumes a parked call. If the client can no longer use its item, the call is dropped, which
    /// cancels it.
    pub(crate) async fn resume(
        &self,
        caller: &Caller,
        (relay_method, incoming): (RelayMethod, &IncomingRequest),
        state: &str,
        missing: Option<CallError>,
    ) -> RpcResult {
        let params = &incoming.params;
        let mut call = self.parked_call(caller, params, state).await?;
        if let Some(error) = missing.filter(|it| it.kind() == CallErrorKind::Unknown) {
            drop(call);
            let request = FailedRequest::item(&caller.client, (relay_method, params));
            let request = request.by_item_tool(incoming.is_item_tool);
            return request.response(&Failure::from(&error));
        }
        call.inputs.queue.set_channel(caller.channel.clone());
        let responses = params.get("inputResponses").unwrap_or_else(Raw::empty_object);
        if call.inputs.respond(&responses)
            && let Some(outcome) = call.resume().await
        {
            return outcome;
        }
        self.park(caller, params, call).await
    }

    /// Takes the parked call of a request state.
    async fn parked_call(
        &self,
        caller: &Caller,
        params: &Raw,
        state: &str,
    ) -> Result<ParkedCall, RpcError> {
        let number = self.open_state(caller, params, (PARKED, state)).await?;
        let number = number.parse().map_err(|_| StateError::Foreign)?;
        Ok(self.parked.take(number).map_err(StateError::from)?)
    }
}

/// The owner of a state: the caller and the item. The arguments are not included, because they may
/// be long and the state forged.
fn owner(caller: &Caller, params: &Raw) -> String {
    let [name, uri] = params.get_all(["name", "uri"]);
    let subject = name.or(uri).map(|subject| subject.text().to_owned()).unwrap_or_default();
    format!("{}\n{subject}", caller.identity.as_owner())
}

/// A state with the prefix of this gateway, without the prefix.
pub(crate) fn own_state(state: &Raw) -> Option<String> {
    state.as_str()?.strip_prefix(OURS).map(str::to_owned)
}
