//! Seals task IDs: a sealed ID contains the server, the tool and the upstream ID, and is bound to
//! its owner.

use trunkline::host::TaskOrigin;
use trunkline::message::{Raw, RpcError};
use trunkline::name::ServerName;

use crate::client::state_codec::{SealContext, StateCodec};
use crate::request::errors::unknown_task;

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
    pub(crate) fn with_sealed_id(&self, origin: TaskOrigin<'_>, said: &Raw) -> Raw {
        let Some(own) = said.get(KEY) else { return said.clone() };
        let Some(own) = own.as_str() else { return said.clone() };
        // With its length, because tool names may contain any character.
        let TaskOrigin { server, tool } = origin;
        let text = format!("{server}\n{}\n{tool}{own}", tool.len());
        let number = self.codec.seal(&text, self.uses(), None);
        said.with(KEY, &Raw::from_string(&number))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_task_says_which_tool_was_called() {
        let (codec, server) = (StateCodec::new(), ServerName::new("x").unwrap());
        let tasks = TaskCodec { codec: &codec, owner: "ann".to_owned() };
        let said = Raw::from_text(r#"{"taskId":"7\n8"}"#).unwrap();
        for tool in ["plain", "", "two\nlines", "1\nä"] {
            let sealed = tasks.with_sealed_id(TaskOrigin { server: &server, tool }, &said);
            let task = tasks.find(&sealed).unwrap();
            assert_eq!((&task.server, &*task.tool, &*task.own), (&server, tool, "7\n8"));
        }
    }
}
