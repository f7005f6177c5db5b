//! Tasks of servers, under numbers that say where they run and whose they are.

use trunkline::message::{Raw, RpcError};
use trunkline::name::ServerName;

use crate::client::state_codec::{Seal, Use};
use crate::request::errors::invalid;

/// The key of a task's number.
const KEY: &str = "taskId";

/// A task of a server.
pub(crate) struct Task {
    pub(crate) server: ServerName,
    /// Its number, in the words of the server.
    pub(crate) own: String,
}

/// Finds and names tasks.
pub(crate) struct Tasks<'g> {
    pub(crate) seal: &'g Seal,
    /// Whose they are.
    pub(crate) owner: String,
}

impl Tasks<'_> {
    fn uses(&self) -> Use<'_> {
        Use { purpose: "task", owner: &self.owner }
    }

    /// Something a server says of a task, under the number that clients know it by.
    pub(crate) fn named(&self, server: &ServerName, said: &Raw) -> Raw {
        let Some(own) = said.get(KEY) else { return said.clone() };
        let Some(own) = own.as_str() else { return said.clone() };
        let number = self.seal.close(&format!("{server}\n{own}"), self.uses(), None);
        said.with(KEY, &Raw::from_string(&number))
    }

    /// The task that a request is about.
    pub(crate) fn find(&self, params: &Raw) -> Result<Task, RpcError> {
        let unknown = || invalid("there is no such task");
        // Whoever may see one task must not reach another under its number.
        let number = params.get_alone(KEY).ok().flatten();
        let number = number.as_ref().and_then(Raw::as_str).ok_or_else(unknown)?;
        self.open(&number).ok_or_else(unknown)
    }

    /// The task of a number, if it is one of this caller.
    pub(crate) fn open(&self, number: &str) -> Option<Task> {
        let opened = self.seal.open(number, self.uses()).ok()?;
        let (server, own) = opened.split_once('\n')?;
        let server = ServerName::new(server).ok()?;
        Some(Task { server, own: own.to_owned() })
    }

    /// Parameters with the server's own number of a task.
    pub(crate) fn in_words_of_server(&self, params: &Raw, task: &Task) -> Raw {
        params.with(KEY, &Raw::from_string(&task.own))
    }
}
