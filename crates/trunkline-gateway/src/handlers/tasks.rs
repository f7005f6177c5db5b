//! Tasks of servers, under numbers that say where they run, whose they are, and which tool was called.

use trunkline::host::TaskOrigin;
use trunkline::message::{Raw, RpcError};
use trunkline::name::ServerName;

use crate::client::state_codec::{SealContext, StateCodec};
use crate::request::errors::invalid;

/// The key of a task's number.
const KEY: &str = "taskId";

/// A task of a server.
pub(crate) struct SealedTask {
    pub(crate) server: ServerName,
    /// The tool whose call it was, in the words of the server.
    tool: String,
    /// Its number, in the words of the server.
    pub(crate) own: String,
}

impl SealedTask {
    pub(crate) fn origin(&self) -> TaskOrigin<'_> {
        TaskOrigin { server: &self.server, tool: &self.tool }
    }
}

/// Finds and names tasks.
pub(crate) struct TaskCodec<'g> {
    pub(crate) codec: &'g StateCodec,
    /// Whose they are.
    pub(crate) owner: String,
}

impl TaskCodec<'_> {
    fn uses(&self) -> SealContext<'_> {
        SealContext { purpose: "task", owner: &self.owner }
    }

    /// Something a server says of a task, under the number that clients know it by.
    pub(crate) fn with_sealed_id(&self, origin: TaskOrigin<'_>, said: &Raw) -> Raw {
        let Some(own) = said.get(KEY) else { return said.clone() };
        let Some(own) = own.as_str() else { return said.clone() };
        // With a length, because a tool may have any name.
        let TaskOrigin { server, tool } = origin;
        let text = format!("{server}\n{}\n{tool}{own}", tool.len());
        let number = self.codec.codec(&text, self.uses(), None);
        said.with(KEY, &Raw::from_string(&number))
    }

    /// The task that a request is about.
    pub(crate) fn find(&self, params: &Raw) -> Result<SealedTask, RpcError> {
        // Whoever may see one task must not reach another under its number.
        let number = params.get_unique(KEY).ok().flatten();
        let number = number.as_ref().and_then(Raw::as_str).ok_or_else(unknown_task)?;
        self.open(&number).ok_or_else(unknown_task)
    }

    /// The task of a number, if it is one of this caller.
    pub(crate) fn open(&self, number: &str) -> Option<SealedTask> {
        let opened = self.codec.open(number, self.uses()).ok()?;
        let (server, rest) = opened.split_once('\n')?;
        let (length, rest) = rest.split_once('\n')?;
        let (tool, own) = rest.split_at_checked(length.parse().ok()?)?;
        let server = ServerName::new(server).ok()?;
        Some(SealedTask { server, tool: tool.to_owned(), own: own.to_owned() })
    }

    /// Parameters with the server's own number of a task.
    pub(crate) fn upstream_params(&self, params: &Raw, task: &SealedTask) -> Raw {
        params.with(KEY, &Raw::from_string(&task.own))
    }
}

/// The refusal of a request about a task that its client does not have.
pub(crate) fn unknown_task() -> RpcError {
    invalid("there is no such task")
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
