//! The thread that talks to the keychain, so that no operation waits longer than its timeout.
//!
//! A keychain may ask the user for a password and block until the answer. The thread also keeps blocking
//! calls out of asynchronous code.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use keyring_core::Error;
use keyring_core::api::CredentialStore;
use trunkline::secrets::StoreError;

use super::{FILE_HINT, WaitNotice, failed};

/// Time after which the user is told what an operation waits for.
const NOTICE_DELAY: Duration = Duration::from_secs(1);

/// Connects to the keychain.
pub(super) type Connect = Box<dyn Fn() -> Result<Arc<CredentialStore>, Error> + Send>;

/// An operation. It returns whether the connection can be used again.
type Operation = Box<dyn FnOnce(Result<&CredentialStore, Error>) -> bool + Send>;

/// An operation that is not started after its deadline.
struct Job {
    deadline: Instant,
    operation: Operation,
}

pub(super) struct Worker {
    jobs: Sender<Job>,
    notice: WaitNotice,
}

impl Worker {
    /// Starts the thread. It connects for the first operation, and ends with the worker.
    pub(super) fn start(connect: Connect, notice: WaitNotice) -> Self {
        let (jobs, receiver) = mpsc::channel();
        thread::spawn(move || work(&connect, &receiver));
        Self { jobs, notice }
    }

    /// Runs an operation within a timeout.
    pub(super) fn run<T: Send + 'static>(
        &self,
        timeout: Duration,
        action: &'static str,
        operation: impl FnOnce(&CredentialStore) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, result) = mpsc::sync_channel(1);
        let operation: Operation = Box::new(move |store| {
            let result = store.and_then(operation);
            let is_usable = !matches!(result, Err(Error::PlatformFailure(_)));
            // The caller may have given up.
            let _ = sender.try_send(result.map_err(|error| failed(action, error)));
            is_usable
        });
        let gone = || StoreError::new("the thread of the keychain has ended");
        let job = Job { deadline: Instant::now() + timeout, operation };
        self.jobs.send(job).map_err(|_| gone())?;
        match self.wait(&result, timeout) {
            Ok(result) => result,
            Err(RecvTimeoutError::Disconnected) => Err(gone()),
            Err(RecvTimeoutError::Timeout) => {
                let waited = timeout.as_secs();
                let message = format!("the keychain did not answer within {waited} s");
                let hint = format!("unlock it, if it asks for its password, {FILE_HINT}");
                Err(StoreError::new(message).with_hint(hint))
            }
        }
    }

    fn wait<T>(&self, result: &Receiver<T>, timeout: Duration) -> Result<T, RecvTimeoutError> {
        let first = NOTICE_DELAY.min(timeout);
        match result.recv_timeout(first) {
            Err(RecvTimeoutError::Timeout) => {
                (self.notice)("waiting for the keychain, which may be asking for its password");
                result.recv_timeout(timeout - first)
            }
            result => result,
        }
    }
}

fn work(connect: &Connect, jobs: &Receiver<Job>) {
    let mut connected: Option<Arc<CredentialStore>> = None;
    for Job { deadline, operation } in jobs {
        // Its caller has been told that it failed.
        if Instant::now() >= deadline {
            continue;
        }
        let store = match &connected {
            Some(store) => Ok(Arc::clone(store)),
            None => connect(),
        };
        connected = match store {
            Ok(store) => operation(Ok(&*store)).then_some(store),
            Err(error) => {
                operation(Err(error));
                None
            }
        };
    }
}

/// Runs a function on a thread of its own; `None` if it takes longer than the timeout.
pub(super) fn bounded<T: Send + 'static>(
    timeout: Duration,
    function: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, result) = mpsc::sync_channel(1);
    thread::spawn(move || sender.try_send(function()));
    result.recv_timeout(timeout).ok()
}
