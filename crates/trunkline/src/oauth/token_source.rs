//! The tokens of one credential in this process: used from memory while they are fresh, renewed once
//! for all requests and all processes.
//!
//! A renewal is a transaction: the lock of this process, the lock of the store, the stored credential
//! once more. If another process has renewed it, its token is adopted; else it is refreshed, stored, and
//! only then used. It runs as a task of its own: a caller that leaves does not interrupt it between the
//! refresh and the store, where a rotated refresh token would be lost.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::challenge::Challenge;
use super::credential::Credential;
use super::discovery::Discovery;
use crate::config::Secret;
use crate::error::{Error, ErrorKind};
use crate::secrets::{SecretKey, SecretStore, StoreError, StoreGuard};

/// Replaced tokens that are still masked in messages: requests with them may be under way.
const MAX_PAST_TOKENS: usize = 4;

/// Time between attempts to renew a token that is still valid, after one has failed.
const EARLY_RENEWAL_PAUSE: Duration = Duration::from_secs(10);

/// The tokens of one credential.
pub(super) struct TokenSource {
    key: SecretKey,
    store: Arc<dyn SecretStore>,
    state: Mutex<SourceState>,
    /// Held during a renewal.
    flight: Arc<AsyncMutex<()>>,
}

#[derive(Default)]
struct SourceState {
    credential: Option<Arc<Credential>>,
    /// When the credential was published.
    published: Option<Instant>,
    /// When the last renewal before the expiry failed.
    early_failure: Option<Instant>,
    /// Whether the store was read.
    is_loaded: bool,
    /// Whether the credential could not be stored.
    is_unsaved: bool,
    past: VecDeque<Secret>,
    /// The token of a refresh after a refusal, until the server accepts it.
    unproven: Option<Secret>,
    nonce: Option<Box<str>>,
    challenge: Option<Challenge>,
    discovery: Option<Arc<Discovery>>,
    /// The last renewal that failed, for callers that waited for it.
    failure: Option<(Instant, Error)>,
}

impl SourceState {
    fn is_early_renewal_paused(&self) -> bool {
        self.early_failure.is_some_and(|at| at.elapsed() < EARLY_RENEWAL_PAUSE)
    }
}

/// What is known without a renewal.
pub(super) enum KnownToken {
    /// A token that can be used.
    Fresh(Arc<Credential>),
    /// There is no credential.
    Absent,
    /// The store was not read yet, or the token has expired.
    Stale,
}

impl TokenSource {
    pub(super) fn new(key: SecretKey, store: Arc<dyn SecretStore>) -> Self {
        Self { key, store, state: Mutex::default(), flight: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, SourceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The token in memory.
    pub(super) fn known(&self) -> KnownToken {
        let state = self.state();
        match &state.credential {
            Some(credential) if credential.is_fresh() => KnownToken::Fresh(Arc::clone(credential)),
            // The authorization server has just failed to renew it.
            Some(credential) if credential.is_valid() && state.is_early_renewal_paused() => {
                KnownToken::Fresh(Arc::clone(credential))
            }
            None if state.is_loaded => KnownToken::Absent,
            _ => KnownToken::Stale,
        }
    }

    /// The credential in memory, fresh or not.
    pub(super) fn current(&self) -> Option<Arc<Credential>> {
        self.state().credential.clone()
    }

    /// Forgets what the store contained, so that it is read again.
    pub(super) fn forget(&self) {
        let mut state = self.state();
        if !state.is_unsaved {
            state.is_loaded = false;
        }
    }

    /// A token in memory that is not the rejected one: a fresh one, or one that was published since the caller
    /// began to wait.
    fn usable(&self, rejected: Option<&Secret>, since: Instant) -> Option<Arc<Credential>> {
        let (credential, published) = {
            let state = self.state();
            (state.credential.clone()?, state.published)
        };
        let is_rejected = rejected.is_some_and(|token| credential.has_token(token));
        let is_new = credential.is_valid() && published.is_some_and(|at| at >= since);
        ((credential.is_fresh() || is_new) && !is_rejected).then_some(credential)
    }

    /// Records that a token could not be renewed before its expiry: it is used for a while before the next
    /// attempt.
    pub(super) fn pause_early_renewal(&self) {
        self.state().early_failure = Some(Instant::now());
    }

    /// Publishes a credential to all requests of this process.
    pub(super) fn publish(&self, credential: Option<Credential>) -> Option<Arc<Credential>> {
        let credential = credential.map(Arc::new);
        let mut state = self.state();
        let replaced = state.credential.take();
        if let Some(token) = replaced.and_then(|it| it.access_token.clone())
            && !credential.as_ref().is_some_and(|it| it.has_token(&token))
        {
            state.past.push_front(token);
            state.past.truncate(MAX_PAST_TOKENS);
        }
        state.credential.clone_from(&credential);
        state.published = Some(Instant::now());
        state.is_loaded = true;
        state.failure = None;
        credential
    }

    /// Everything that must not be printed.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        let state = self.state();
        let current = state.credential.iter().flat_map(|credential| credential.secrets());
        current.chain(state.past.iter().cloned()).collect()
    }

    pub(super) fn nonce(&self) -> Option<Box<str>> {
        self.state().nonce.clone()
    }

    /// Records the nonce of a response.
    pub(super) fn set_nonce(&self, nonce: Box<str>) {
        self.state().nonce = Some(nonce);
    }

    /// Whether this token is that of a refresh after a refusal, and was not accepted yet.
    pub(super) fn is_unproven(&self, token: &Secret) -> bool {
        self.state().unproven.as_ref() == Some(token)
    }

    pub(super) fn set_unproven(&self, token: Option<Secret>) {
        self.state().unproven = token;
    }

    pub(super) fn challenge(&self) -> Option<Challenge> {
        self.state().challenge.clone()
    }

    /// Records what the server asked for, for the next login.
    pub(super) fn set_challenge(&self, challenge: Challenge) {
        self.state().challenge = Some(challenge);
    }

    pub(super) fn discovery(&self) -> Option<Arc<Discovery>> {
        self.state().discovery.clone()
    }

    pub(super) fn set_discovery(&self, discovery: Option<Arc<Discovery>>) {
        self.state().discovery = discovery;
    }

    /// Renews the token, unless another caller has done so since. `work` runs to its end even if this
    /// future is dropped.
    pub(super) async fn renew<F>(
        self: &Arc<Self>,
        rejected: Option<&Secret>,
        work: F,
    ) -> Result<Option<Arc<Credential>>, Error>
    where
        F: Future<Output = Result<Option<Arc<Credential>>, Error>> + Send + 'static,
    {
        let since = Instant::now();
        let flight = Arc::clone(&self.flight).lock_owned().await;
        if let Some(credential) = self.usable(rejected, since) {
            return Ok(Some(credential));
        }
        let failure = self.state().failure.clone();
        if let Some((_, error)) = failure.filter(|(at, _)| *at >= since) {
            return Err(error);
        }
        let source = Arc::clone(self);
        let renewal = tokio::spawn(async move {
            let result = work.await;
            // Before the next caller may renew, and also if this one has left.
            if let Err(error) = &result {
                source.state().failure = Some((Instant::now(), error.clone()));
            }
            drop(flight);
            result
        });
        renewal.await.unwrap_or_else(|_| Err(interrupted()))
    }

    /// Waits for the right to change the stored credential, among all processes.
    pub(super) async fn lock(&self) -> Result<StoreGuard, Error> {
        let (store, key) = (Arc::clone(&self.store), self.key.clone());
        blocking(move || store.lock(&key)).await
    }

    /// Reads the stored credential.
    pub(super) async fn load(&self) -> Result<Option<Credential>, Error> {
        let (store, key) = (Arc::clone(&self.store), self.key.clone());
        blocking(move || store.get(&key)?.as_ref().map(Credential::from_secret).transpose()).await
    }

    /// Stores a credential. It is durable when this returns.
    pub(super) async fn save(&self, credential: &Credential) -> Result<(), Error> {
        let (store, key) = (Arc::clone(&self.store), self.key.clone());
        let text = credential.to_secret()?;
        blocking(move || store.set(&key, &text)).await?;
        self.state().is_unsaved = false;
        debug!(key = self.key.id(), "credential stored");
        Ok(())
    }

    /// Stores a renewed credential and publishes it. If it cannot be stored, it is used from memory: the
    /// stored refresh token is used up, so that dropping it would end the login.
    pub(super) async fn save_and_publish(&self, credential: Credential) -> Option<Arc<Credential>> {
        if let Err(error) = self.save(&credential).await {
            warn!(%error, "a renewed login could not be stored, and lasts until this process ends");
            let published = self.publish(Some(credential));
            self.state().is_unsaved = true;
            return published;
        }
        self.publish(Some(credential))
    }

    /// The credential that could not be stored, if there is one. What is in the store is older.
    pub(super) fn unsaved(&self) -> Option<Arc<Credential>> {
        let state = self.state();
        state.credential.clone().filter(|_| state.is_unsaved)
    }

    /// Removes the stored credential, and the one in memory.
    pub(super) async fn remove(&self) -> Result<bool, Error> {
        let (store, key) = (Arc::clone(&self.store), self.key.clone());
        let was_there = blocking(move || store.remove(&key)).await?;
        self.publish(None);
        self.state().is_unsaved = false;
        Ok(was_there)
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Error> {
    let result = tokio::task::spawn_blocking(work).await;
    Ok(result.unwrap_or_else(|_| Err(StoreError::new("the store of logins failed")))?)
}

fn interrupted() -> Error {
    Error::new(ErrorKind::ShuttingDown, "the renewal of its login was interrupted")
}
