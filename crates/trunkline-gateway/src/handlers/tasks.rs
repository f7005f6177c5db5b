//! Tasks of servers, under numbers that say where they run and whose they are.

use trunkline::message::{Raw, RpcError};
use trunkline::name::ServerName;

use crate::client::state_codec::{SealContext, StateCodec};
use crate::request::errors::invalid;

/// The key of a task's number.
const KEY: &str = "taskId";

/// A task of a server.
pub(crate) struct SealedTask {
    pub(crate) server: ServerName,
    /// Its number, in the words of the server.
    pub(crate) own: String,
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
    pub(crate) fn with_sealed_id(&self, server: &ServerName, said: &Raw) -> Raw {
        let Some(own) = said.get(KEY) else { return said.clone() };
        let Some(own) = own.as_str() else { return said.clone() };
        let number = self.codec.codec(&format!("{server}\n{own}"), self.uses(), None);
        said.with(KEY, &Raw::from_string(&number))
    }

    /// The task that a request is about.
    pub(crate) fn find(&self, params: &Raw) -> Result<SealedTask, RpcError> {
        let unknown = || invalid("there is no such task");
        // Whoever may see one task must not reach another under its number.
        let number = params.get_unique(KEY).ok().flatten();
        let number = number.as_ref().and_then(Raw::as_str).ok_or_else(unknown)?;
        self.open(&number).ok_or_else(unknown)
    }

    /// The task of a number, if it is one of this caller.
    pub(crate) fn open(&self, number: &str) -> Option<SealedTask> {
        let opened = self.codec.open(number, self.uses()).ok()?;
        let (server, own) = opened.split_once('\n')?;
        let server = ServerName::new(server).ok()?;
        Some(SealedTask { server, own: own.to_owned() })
    }

    /// Parameters with the server's own number of a task.
    pub(crate) fn upstream_params(&self, params: &Raw, task: &SealedTask) -> Raw {
        params.with(KEY, &Raw::from_string(&task.own))
    }
}
