//! Headers that a program prints (`headersCommand`), for servers with other schemes than OAuth.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::header::HeaderName;
use serde_json::{Map, Value};
use tokio::sync::Mutex as AsyncMutex;

use crate::auth::{AfterRefusal, AuthFuture, AuthHeaders, AuthRefusal, AuthRequest, RequestAuth};
use crate::config::{ResolvedStdio, Secret, TRANSPORT_HEADERS};
use crate::error::{Error, ErrorKind};
use crate::transport::{ChildOptions, RunLimits, program_output};

/// Limits of the program: as long as other hosts give it, and far more than headers need.
const LIMITS: RunLimits = RunLimits { time: Duration::from_secs(10), bytes: 64 * 1024 };

/// Authorizes requests with the headers that a program prints. It is run before the first request, and again
/// when the server refuses them.
pub(crate) struct HeadersCommand {
    program: ResolvedStdio,
    options: ChildOptions,
    current: Mutex<Option<AuthHeaders>>,
    /// The values of the headers, to mask them.
    values: Mutex<Vec<Secret>>,
    /// Held while the program runs, so that it runs once.
    running: AsyncMutex<()>,
}

impl HeadersCommand {
    pub(crate) fn new(program: ResolvedStdio, options: ChildOptions) -> Self {
        let (current, values) = (Mutex::default(), Mutex::default());
        Self { program, options, current, values, running: AsyncMutex::default() }
    }

    fn current(&self) -> MutexGuard<'_, Option<AuthHeaders>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Headers other than the rejected ones, from memory or from the program.
    async fn headers_after(&self, rejected: Option<&Secret>) -> Result<AuthHeaders, Error> {
        let usable = || {
            let current = self.current().clone();
            current.filter(|headers| rejected.is_none() || headers.credential.as_ref() != rejected)
        };
        if let Some(headers) = usable() {
            return Ok(headers);
        }
        let _running = self.running.lock().await;
        if let Some(headers) = usable() {
            return Ok(headers);
        }
        let output = program_output(&self.program, &self.options, LIMITS).await;
        let output = output.map_err(|error| explained(&error))?;
        let headers = self.read(&output)?;
        *self.current() = Some(headers.clone());
        Ok(headers)
    }

    /// Reads the output: an object of strings. Errors do not quote it.
    fn read(&self, output: &[u8]) -> Result<AuthHeaders, Error> {
        let object: Map<String, Value> =
            serde_json::from_slice(output).map_err(|_| unreadable())?;
        let mut headers = AuthHeaders::default();
        let mut all = Vec::new();
        for (name, value) in object {
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unreadable())?;
            let value = Secret::new(value.as_str().ok_or_else(unreadable)?);
            if TRANSPORT_HEADERS.contains(&header.as_str()) {
                let message = format!("its `headersCommand` prints the header `{header}`");
                return Err(Error::new(ErrorKind::UnusableValue, message)
                    .with_hint("leave it out: the client sets it"));
            }
            headers.push(header, &value)?;
            all.push(value);
        }
        let joined: Vec<_> = all.iter().map(Secret::expose).collect();
        headers.credential = Some(Secret::new(joined.join("\n")));
        *self.values.lock().unwrap_or_else(PoisonError::into_inner) = all;
        Ok(headers)
    }
}

impl RequestAuth for HeadersCommand {
    fn headers<'a>(&'a self, _: AuthRequest<'a>) -> AuthFuture<'a, AuthHeaders> {
        Box::pin(self.headers_after(None))
    }

    fn on_refused<'a>(&'a self, refusal: AuthRefusal<'a>) -> AuthFuture<'a, AfterRefusal> {
        Box::pin(async move {
            let rejected = refusal.sent.credential.as_ref();
            let headers = self.headers_after(rejected).await?;
            let is_same = headers.credential.as_ref() == rejected;
            Ok(if is_same { AfterRefusal::Accept } else { AfterRefusal::Retry })
        })
    }

    fn secrets(&self) -> Vec<Secret> {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let token = |value: &Secret| Some(Secret::new(value.expose().split_once(' ')?.1));
        let tokens: Vec<_> = values.iter().filter_map(token).collect();
        values.into_iter().chain(tokens).collect()
    }
}

fn explained(error: &Error) -> Error {
    let message = format!("its `headersCommand` failed: {}", error.message());
    Error::new(ErrorKind::UnreadableSecret, message)
        .with_hint("run it by hand: it prints a JSON object of headers within 10 s")
}

fn unreadable() -> Error {
    let message = "its `headersCommand` printed something that is not a JSON object of headers";
    Error::new(ErrorKind::UnreadableSecret, message)
        .with_hint(r#"expected something like `{"Authorization": "Bearer …"}`"#)
}

/// Authorization by a program, to share.
pub(crate) fn by_command(program: ResolvedStdio, options: ChildOptions) -> Arc<dyn RequestAuth> {
    Arc::new(HeadersCommand::new(program, options))
}
