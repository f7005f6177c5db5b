//! Relays requests about tasks. A task ID is sealed: it contains the server, the tool and the
//! upstream ID, and is bound to its owner.

use std::sync::Arc;

use trunkline::call::CallOptions;
use trunkline::connection::InputRequired;
use trunkline::host::{RelayMethod, TaskOrigin};
use trunkline::message::{Raw, RpcError};
use trunkline::name::ServerName;
use trunkline::protocol::{Era, meta};

use super::error_codes::{FailedRequest, Failure};
use super::gateway::Gateway;
use super::request_log;
use crate::client::caller::Caller;
use crate::client::state_codec::{SealContext, StateCodec};
use crate::request::errors::{missing_capability, unknown_task};
use crate::request::incoming::IncomingRequest;
use crate::request::response::RpcResult;
use crate::request::translate;

/// Member with the task ID.
const KEY: &str = "taskId";

/// A task of a server.
pub(crate) struct SealedTask {
    pub(crate) server: ServerName,
    /// The upstream name of the tool that created it.
    tool: String,
    /// The upstream task ID.
    pub(crate) own: String,
}

impl SealedTask {
    pub(crate) fn origin(&self) -> TaskOrigin<'_> {
        TaskOrigin { server: &self.server, tool: &self.tool }
    }
}

/// Seals and opens task IDs.
pub(crate) struct TaskCodec<'g> {
    pub(crate) codec: &'g StateCodec,
    /// The owner of the tasks.
    pub(crate) owner: String,
}

impl TaskCodec<'_> {
    fn uses(&self) -> SealContext<'_> {
        SealContext { purpose: "task", owner: &self.owner }
    }

    /// Replaces the upstream task ID in a message by the sealed one.
    pub(crate) fn with_sealed_id(&self, origin: TaskOrigin<'_>, message: &Raw) -> Raw {
        let Some(own) = message.get(KEY) else { return message.clone() };
        let Some(own) = own.as_str() else { return message.clone() };
        // With its length, because tool names may contain any character.
        let TaskOrigin { server, tool } = origin;
        let text = format!("{server}\n{}\n{tool}{own}", tool.len());
        let number = self.codec.seal(&text, self.uses(), None);
        message.with(KEY, &Raw::from_string(&number))
    }

    /// The task that a request is about.
    pub(crate) fn find(&self, params: &Raw) -> Result<SealedTask, RpcError> {
        // A duplicate member could make the server read another task ID than this gateway.
        let number = params.get_unique(KEY).ok().flatten();
        let number = number.as_ref().and_then(Raw::as_str).ok_or_else(unknown_task)?;
        self.open(&number).ok_or_else(unknown_task)
    }

    /// Opens a sealed task ID, if it belongs to this caller.
    pub(crate) fn open(&self, number: &str) -> Option<SealedTask> {
        let opened = self.codec.open(number, self.uses()).ok()?;
        let (server, rest) = opened.split_once('\n')?;
        let (length, rest) = rest.split_once('\n')?;
        let (tool, own) = rest.split_at_checked(length.parse().ok()?)?;
        let server = ServerName::new(server).ok()?;
        Some(SealedTask { server, tool: tool.to_owned(), own: own.to_owned() })
    }

    /// Replaces the sealed task ID in parameters by the upstream one.
    pub(crate) fn upstream_params(&self, params: &Raw, task: &SealedTask) -> Raw {
        params.with(KEY, &Raw::from_string(&task.own))
    }
}

impl Gateway {
    /// Relays a request about a task.
    pub(crate) async fn relay_task(
        self: &Arc<Self>,
        caller: Caller,
        incoming: &IncomingRequest,
    ) -> RpcResult {
        if !caller.client.declares(&["extensions", meta::TASKS_EXTENSION]) {
            let needed = serde_json::json!({ "extensions": { meta::TASKS_EXTENSION: {} } });
            return Err(missing_capability(&needed, "this needs tasks"));
        }
        let tasks = self.tasks(&caller);
        let (method, params) = (&*incoming.method, &incoming.params);
        let task = tasks.find(params)?;
        let sent = tasks.upstream_params(params, &task);
        let handler = self.handler_for(caller.clone(), incoming.wants_progress(), None);
        request_log::record_server(Some(&task.server));
        let handler = handler.with_server(Some(&task.server));
        let engaged = self.register_call(&handler, &task.server);
        let requester = caller.requester();
        let options = CallOptions {
            handler: &*handler,
            rounds: InputRequired::Return,
            client: engaged.client(),
            requester: Some(&requester),
            ..CallOptions::default()
        };
        let view = self.view(&caller)?;
        match self.host.relay_task(&view, task.origin(), (method, sent), options).await {
            Ok(outcome) => {
                let result = tasks.with_sealed_id(task.origin(), &outcome.result);
                Ok(translate::result(Era::Modern, RelayMethod::Call, &result))
            }
            Err(error) => {
                FailedRequest::task(&caller.client, params).response(&Failure::from(&error))
            }
        }
    }

    pub(crate) fn tasks<'g>(&'g self, caller: &'g Caller) -> TaskCodec<'g> {
        TaskCodec { codec: &self.codec, owner: caller.identity.as_owner() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_id_names_the_called_tool() {
        let (codec, server) = (StateCodec::new(), ServerName::new("x").unwrap());
        let tasks = TaskCodec { codec: &codec, owner: "ann".to_owned() };
        let message = Raw::from_text(r#"{"taskId":"7\n8"}"#).unwrap();
        for tool in ["plain", "", "two\nlines", "1\nä"] {
            let sealed = tasks.with_sealed_id(TaskOrigin { server: &server, tool }, &message);
            let task = tasks.find(&sealed).unwrap();
            assert_eq!((&task.server, &*task.tool, &*task.own), (&server, tool, "7\n8"));
        }
    }
}
