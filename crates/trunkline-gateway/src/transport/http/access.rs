//! Access control of HTTP requests: by `Host`, `Origin`, token and request rate.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::http::header::{AUTHORIZATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use trunkline::principal::Principal;

use super::cors::CorsOrigin;
use super::origin;
use crate::access::scope::{CallerIdentity, CallerScope, Scope};
use crate::client::caller::Lease;
use crate::options::GatewayOptions;

/// Burst size of the rate limit, in seconds.
const BURST: f64 = 2.0;

/// The reason why a request is rejected.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rejection {
    NoToken,
    WrongToken,
    TooMany,
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let challenge = |error: &'static str| [(WWW_AUTHENTICATE, error)];
        match self {
            Self::NoToken => {
                let text = "a token is needed: send it as `Authorization: Bearer …`\n";
                (StatusCode::UNAUTHORIZED, challenge("Bearer"), text).into_response()
            }
            Self::WrongToken => {
                let challenge = challenge("Bearer error=\"invalid_token\"");
                (StatusCode::UNAUTHORIZED, challenge, "the token is not known here\n")
                    .into_response()
            }
            Self::TooMany => {
                let text = "too many requests; wait a second\n";
                (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, "1")], text).into_response()
            }
        }
    }
}

/// The remaining requests of a principal.
struct TokenBucket {
    left: f64,
    seen: Instant,
}

/// Checks requests against the options of the gateway.
pub(super) struct AccessControl {
    options: GatewayOptions,
    /// The identity of callers without a token at the endpoint without limits.
    anonymous: Arc<CallerIdentity>,
    allowances: Mutex<HashMap<Box<str>, TokenBucket>>,
}

impl AccessControl {
    pub(super) fn new(options: GatewayOptions) -> Self {
        let anonymous = CallerIdentity::new(Scope::default(), Principal::Anonymous);
        Self { options, anonymous: Arc::new(anonymous), allowances: Mutex::default() }
    }

    /// Rejects requests with a foreign `Host` or `Origin`.
    pub(super) fn check_host_and_origin(
        &self,
        headers: &HeaderMap,
        target: &Uri,
    ) -> Result<(), &'static str> {
        origin::check((headers, target), &self.options.hosts, &self.options.origins)
    }

    /// The CORS origin of a request, if it is one of the configured origins.
    pub(super) fn page(&self, headers: &HeaderMap) -> Option<CorsOrigin> {
        CorsOrigin::of(headers, &self.options.origins)
    }

    /// The identity of a caller: its principal, and the limits of endpoint and token.
    pub(super) fn identify(
        &self,
        headers: &HeaderMap,
        scope: &Scope,
    ) -> Result<Arc<CallerIdentity>, Rejection> {
        let identity = self.known(headers, scope);
        // Unauthenticated requests share one bucket, so guessing tokens is rate-limited too.
        let principal = identity.as_ref().map_or("", |identity| identity.principal.as_str());
        match self.options.limits.requests_per_second {
            Some(rate) if !self.take_permit(principal, f64::from(rate)) => Err(Rejection::TooMany),
            _ => identity,
        }
    }

    fn known(&self, headers: &HeaderMap, scope: &Scope) -> Result<Arc<CallerIdentity>, Rejection> {
        if self.options.tokens.is_empty() {
            return Ok(match *scope == Scope::default() {
                true => Arc::clone(&self.anonymous),
                false => Arc::new(CallerIdentity::new(scope.clone(), Principal::Anonymous)),
            });
        }
        let token = bearer(headers).ok_or(Rejection::NoToken)?;
        let token = self.options.tokens.find(token).ok_or(Rejection::WrongToken)?;
        let scope = CallerScope::new(scope.clone(), token.scope);
        let principal = Principal::Token(token.name.as_str().into());
        Ok(Arc::new(CallerIdentity::new(scope, principal)))
    }

    /// The authorization of a long-lived stream; `None` if the token is unknown now.
    pub(super) fn admission(&self, headers: &HeaderMap) -> Option<Lease> {
        if self.options.tokens.is_empty() {
            return Some(Lease::Request);
        }
        self.options.tokens.pass(bearer(headers)?).map(Lease::Token)
    }

    /// The identity and lease of a caller at this time: the token may have changed since the
    /// request was admitted.
    pub(super) fn identity_with_lease(
        &self,
        headers: &HeaderMap,
        scope: &Scope,
    ) -> Result<(Arc<CallerIdentity>, Lease), Rejection> {
        let lease = self.admission(headers).ok_or(Rejection::WrongToken)?;
        Ok((self.known(headers, scope)?, lease))
    }

    /// Takes one request from the bucket of a principal, if there is one.
    fn take_permit(&self, principal: &str, rate: f64) -> bool {
        let now = Instant::now();
        let mut allowances = self.allowances.lock().unwrap_or_else(PoisonError::into_inner);
        let allowance = allowances
            .entry(principal.into())
            .or_insert_with(|| TokenBucket { left: rate * BURST, seen: now });
        let earned = now.duration_since(allowance.seen).as_secs_f64() * rate;
        allowance.left = (allowance.left + earned).min(rate * BURST);
        allowance.seen = now;
        let has_one = allowance.left >= 1.0;
        if has_one {
            allowance.left -= 1.0;
        }
        has_one
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::tokens::{Token, digest_of};

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn guard() -> AccessControl {
        let mut options = GatewayOptions::default();
        options.tokens.insert(
            digest_of("secret"),
            Token { name: "ann".to_owned(), scope: Scope::of_agent("reader") },
        );
        AccessControl::new(options)
    }

    #[test]
    fn token_determines_principal_and_scope() {
        let guard = guard();
        let identify =
            |pairs: &[(&'static str, &str)], scope: &Scope| guard.identify(&headers(pairs), scope);
        let all = Scope::default();
        assert_eq!(identify(&[], &all).unwrap_err(), Rejection::NoToken);
        let basic = [("authorization", "Basic secret")];
        assert_eq!(identify(&basic, &all).unwrap_err(), Rejection::NoToken);
        let wrong = [("authorization", "Bearer other")];
        assert_eq!(identify(&wrong, &all).unwrap_err(), Rejection::WrongToken);
        let right = [("authorization", "bearer secret")];
        let identity = identify(&right, &all).unwrap();
        let reader = Scope::of_agent("reader");
        assert_eq!(identity.principal.as_str(), "ann");
        assert_eq!(identity.scope, CallerScope::new(all, reader.clone()));
        // The endpoint of another agent is another limit.
        let writer = Scope::of_agent("writer");
        let both = CallerScope::new(writer.clone(), reader);
        assert_eq!(identify(&right, &writer).unwrap().scope, both);
    }

    #[test]
    fn requests_of_a_principal_are_rate_limited() {
        let mut options = GatewayOptions::default();
        options.limits.requests_per_second = Some(5);
        let guard = AccessControl::new(options);
        let all = Scope::default();
        let made = (0..50).filter(|_| guard.identify(&HeaderMap::new(), &all).is_ok()).count();
        assert!((10..15).contains(&made), "{made}");
    }

    #[test]
    fn token_guesses_are_rate_limited() {
        let mut guard = guard();
        guard.options.limits.requests_per_second = Some(5);
        let wrong = headers(&[("authorization", "Bearer other")]);
        let all = Scope::default();
        let tried: Vec<_> = (0..50).map(|_| guard.identify(&wrong, &all).unwrap_err()).collect();
        assert_eq!((&tried[0], &tried[49]), (&Rejection::WrongToken, &Rejection::TooMany));
        // Requests with a valid token are not affected.
        let right = headers(&[("authorization", "Bearer secret")]);
        assert!(guard.identify(&right, &all).is_ok());
    }
}
