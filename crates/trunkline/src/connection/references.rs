//! Resolves the references of a server on a separate thread: a file may be on a file system that
//! never responds, and the threads of the runtime are shared.

use std::sync::Arc;
use std::thread;

use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};

use super::options::ConnectionOptions;
use crate::config::{self, ResolvedTransport, Server};
use crate::error::{Error, ErrorKind};

/// Resolves the references of a server, or returns the error, at the latest at the deadline.
/// Dropping the future leaves the thread behind.
pub(super) async fn resolve_transport(
    server: &Server,
    options: &ConnectionOptions,
    deadline: Instant,
) -> Result<ResolvedTransport, Error> {
    if !server.has_references() {
        return first(config::resolve(server, &*options.resolver()));
    }
    let resolvers = Arc::clone(options.resolvers());
    let work = on_thread(server.clone(), options, resolvers);
    timeout_at(deadline, work).await.unwrap_or_else(|_| Err(no_answer()))
}

async fn on_thread(
    server: Server,
    options: &ConnectionOptions,
    resolvers: Arc<Semaphore>,
) -> Result<ResolvedTransport, Error> {
    let permit = resolvers.acquire_owned().await.map_err(|_| no_answer())?;
    let resolver = options.resolver();
    let (done, answer) = oneshot::channel();
    let work = move || {
        let transport = first(config::resolve(&server, &*resolver));
        drop(permit);
        // The caller may have stopped waiting.
        let _ = done.send(transport);
    };
    let thread = thread::Builder::new().name("trunkline-resolve".to_owned()).spawn(work);
    thread.map_err(|error| {
        Error::new(ErrorKind::UnreadableSecret, format!("no thread can be started: {error}"))
    })?;
    // A thread that panics sends nothing.
    answer.await.unwrap_or_else(|_| Err(defect()))
}

fn defect() -> Error {
    let message = "a defect ended the reading of what its entry refers to; the log says where";
    Error::new(ErrorKind::Broken, message)
}

fn first(resolved: Result<ResolvedTransport, Vec<Error>>) -> Result<ResolvedTransport, Error> {
    resolved.map_err(|mut errors| errors.swap_remove(0))
}

fn no_answer() -> Error {
    let message = "what its entry refers to was not there within `timeouts.connect`";
    Error::new(ErrorKind::UnreadableSecret, message).with_hint(
        "a file of `${file:…}` or `envFile` may be on a file system that does not answer, or the keychain \
         may be asking for its password",
    )
}
