//! Credentials of requests to remote servers: providers of the embedding host, and the interface that
//! transports use (CON-12).

mod provider;

use std::fmt;
use std::pin::Pin;

use hyper::Method;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use url::Url;

pub(crate) use provider::ProviderAuth;
pub use provider::{AuthProvider, CredentialRequest};

use crate::config::Secret;
use crate::error::{Error, ErrorKind};

/// The future of a method that authorizes requests.
pub type AuthFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Authorizes the requests to one server. Shared by all requests, and by all connections to it.
pub(crate) trait RequestAuth: Send + Sync {
    /// The headers that authorize a request; none if there is no credential yet.
    fn headers<'a>(&'a self, request: AuthRequest<'a>) -> AuthFuture<'a, AuthHeaders>;

    /// Handles a response with status 401 or 403. An error takes the place of the response.
    fn on_refused<'a>(&'a self, refusal: AuthRefusal<'a>) -> AuthFuture<'a, AfterRefusal>;

    /// Handles any other response to a request with these headers.
    fn on_accepted(&self, _sent: &AuthHeaders, _response: &HeaderMap) {}

    /// The credentials that the server has received or may receive, to mask them in its messages.
    fn secrets(&self) -> Vec<Secret>;
}

/// A request that needs credentials.
#[derive(Clone, Copy)]
pub(crate) struct AuthRequest<'a> {
    pub(crate) method: &'a Method,
    pub(crate) url: &'a Url,
}

/// A response with status 401 or 403.
#[derive(Clone, Copy)]
pub(crate) struct AuthRefusal<'a> {
    pub(crate) status: u16,
    pub(crate) headers: &'a HeaderMap,
    /// The headers that were refused.
    pub(crate) sent: &'a AuthHeaders,
}

/// What happens after a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterRefusal {
    /// The request is sent again, with other headers.
    Retry,
    /// The response stands.
    Accept,
}

/// Headers that authorize a request. `Debug` prints none of their values.
#[derive(Clone, Default)]
pub(crate) struct AuthHeaders {
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The credential in them, which a refusal names.
    pub(crate) credential: Option<Secret>,
}

impl fmt::Debug for AuthHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.headers.iter().map(|(name, _)| name)).finish()
    }
}

impl AuthHeaders {
    /// The `Authorization` header with this value.
    pub(crate) fn authorization(value: &Secret) -> Result<Self, Error> {
        let mut headers = Self::default();
        headers.push(AUTHORIZATION, value)?;
        headers.credential = Some(value.clone());
        Ok(headers)
    }

    /// The `Authorization` header with a token.
    pub(crate) fn token(scheme: &str, token: &Secret) -> Result<Self, Error> {
        let value = Secret::new(format!("{scheme} {}", token.expose()));
        Ok(Self { credential: Some(token.clone()), ..Self::authorization(&value)? })
    }

    /// Adds a header.
    pub(crate) fn push(&mut self, name: HeaderName, value: &Secret) -> Result<(), Error> {
        let mut header = HeaderValue::from_str(value.expose()).map_err(|_| {
            let message = format!("the value of the header `{name}` cannot be sent");
            Error::new(ErrorKind::UnusableValue, message)
        })?;
        header.set_sensitive(true);
        self.headers.push((name, header));
        Ok(())
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.headers.is_empty()
    }

    /// Adds them to the headers of a request, in place of others with the same name.
    pub(crate) fn apply(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
    }
}
