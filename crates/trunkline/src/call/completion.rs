//! Completion of arguments: what may stand where somebody has begun to write (TOOL-12).

use super::{CallError, CallErrorKind, CallOptions, Outcome, Route, empty};
use crate::item::Kind;
use crate::message::{Raw, code};

/// What has arguments that can be completed, by the name it has in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionOf<'c> {
    /// A prompt.
    Prompt(&'c str),
    /// A template of addresses.
    Template(&'c str),
}

/// An argument that is to be completed.
#[derive(Clone, Copy, Debug)]
pub struct Completion<'c> {
    /// Whose argument it is.
    pub of: CompletionOf<'c>,
    /// Its name.
    pub argument: &'c str,
    /// What has been written of it.
    pub value: &'c str,
    /// The other arguments, as far as they are known: an object of texts.
    pub known: Option<&'c Raw>,
}

impl Route<'_> {
    /// Asks what an argument may be. A server that completes nothing has nothing to say, which is
    /// no error.
    pub(crate) async fn complete(
        &self,
        completion: &Completion<'_>,
        options: CallOptions<'_>,
    ) -> Result<Outcome, CallError> {
        // What it can do is known once it runs.
        self.connection.connect().await?;
        let capabilities = self.connection.status().capabilities;
        if capabilities.is_some_and(|it| it.get("completions").is_none()) {
            return Ok(self.nothing());
        }
        let params = self.completion_params(completion);
        match self.ask("completion/complete", params, options).await {
            Err(error) if error.kind() == CallErrorKind::Refused(code::METHOD_NOT_FOUND) => {
                Ok(self.nothing())
            }
            answer => answer,
        }
    }

    fn completion_params(&self, completion: &Completion<'_>) -> Raw {
        let own = self.entry.name();
        let reference = match self.entry.kind() {
            Kind::Prompt => serde_json::json!({ "type": "ref/prompt", "name": own }),
            _ => serde_json::json!({ "type": "ref/resource", "uri": own }),
        };
        let argument =
            serde_json::json!({ "name": completion.argument, "value": completion.value });
        let params = empty()
            .with("ref", &Raw::from_value(&reference))
            .with("argument", &Raw::from_value(&argument));
        match completion.known {
            Some(known) => params.with("context", &empty().with("arguments", known)),
            None => params,
        }
    }

    fn nothing(&self) -> Outcome {
        let result = Raw::from_value(&serde_json::json!({ "completion": { "values": [] } }));
        Outcome::new(&result, &self.server.name, self.server.trust, usize::MAX)
    }
}
