//! Completion of arguments of prompts and resource templates (TOOL-12).

use serde_json::json;

use super::{CallError, CallErrorKind, CallOptions, Outcome, Route, empty};
use crate::content::ResultKind;
use crate::message::Raw;
use crate::protocol::code;

/// A prompt or template whose argument is completed, by its name in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionRef<'c> {
    /// A prompt.
    Prompt(&'c str),
    /// A resource template.
    Template(&'c str),
}

/// A completion request for one argument.
#[derive(Clone, Copy, Debug)]
pub struct Completion<'c> {
    /// The prompt or template.
    pub of: CompletionRef<'c>,
    /// The name of the argument.
    pub argument: &'c str,
    /// Its value so far.
    pub value: &'c str,
    /// The other known arguments: an object of strings.
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
    /// Sends a completion request. For a server without completions the result is empty, which is
    /// no error.
    pub(crate) async fn complete(
        &self,
        params: Raw,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        // Its capabilities are known once it runs.
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
