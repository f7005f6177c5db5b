//! Completion of arguments: what may stand where somebody has begun to write (TOOL-12).

use serde_json::json;

use super::{CallError, CallErrorKind, CallOptions, Outcome, Route, empty};
use crate::content::ResultKind;
use crate::message::Raw;
use crate::protocol::code;

/// What has arguments that can be completed, by the name it has in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionRef<'c> {
    /// A prompt.
    Prompt(&'c str),
    /// A template of addresses.
    Template(&'c str),
}

/// An argument that is to be completed.
#[derive(Clone, Copy, Debug)]
pub struct Completion<'c> {
    /// Whose argument it is.
    pub of: CompletionRef<'c>,
    /// Its name.
    pub argument: &'c str,
    /// What has been written of it.
    pub value: &'c str,
    /// The other arguments, as far as they are known: an object of texts.
    pub known: Option<&'c Raw>,
}

impl Completion<'_> {
    /// The parameters of the request.
    pub(crate) fn params(&self) -> Raw {
        let reference = match self.of {
            CompletionRef::Prompt(name) => json!({ "type": "ref/prompt", "name": name }),
            CompletionRef::Template(address) => json!({ "type": "ref/resource", "uri": address }),
        };
        let argument = json!({ "name": self.argument, "value": self.value });
        let params = Raw::from_value(&json!({ "ref": reference, "argument": argument }));
        match self.known {
            Some(known) => params.with("context", &empty().with("arguments", known)),
            None => params,
        }
    }
}

impl Route<'_> {
    /// Asks what an argument may be. A server that completes nothing has nothing to say, which is
    /// no error.
    pub(crate) async fn complete(
        &self,
        params: Raw,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        // What it can do is known once it runs.
        self.connection.connect().await?;
        let capabilities = self.connection.watch().borrow().capabilities.clone();
        if capabilities.is_some_and(|it| it.get("completions").is_none()) {
            return Ok(self.empty());
        }
        match self.send("completion/complete", params, options).await {
            Err(error) if error.kind() == CallErrorKind::Refused(code::METHOD_NOT_FOUND) => {
                Ok(self.empty())
            }
            answer => answer,
        }
    }

    fn empty(&self) -> Outcome {
        let result = Raw::from_value(&json!({ "completion": { "values": [] } }));
        let server = (&self.server.name, self.server.trust);
        Outcome::new((ResultKind::Completion, &result), server, usize::MAX)
    }
}
