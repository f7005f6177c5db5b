//! A login on another device (RFC 8628): a short code to enter there, and polling until it is entered.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::{Instant, sleep};
use url::Url;

use super::form::FormRequest;
use super::login::{LoginFlow, LoginKind, LoginOutcome, LoginRequest};
use super::quote::quoted;
use super::server_auth::ServerAuth;
use super::token::{Grant, GrantError};
use crate::config::Secret;
use crate::error::{Error, ErrorKind};

/// Delay between polls, unless the server names another, and what is added when it asks for less.
const POLL_INTERVAL: u64 = 5;
const SLOW_DOWN: u64 = 5;

/// Limits on what a server may ask for, in seconds.
const MAX_INTERVAL: u64 = 60;
const MAX_LIFETIME: u64 = 1800;

/// A login that waits for the user to enter a code on another device.
#[must_use = "a login is completed with `finish`"]
pub struct DeviceLogin {
    flow: LoginFlow,
    device_code: Secret,
    user_code: String,
    verification: Url,
    interval: u64,
    lifetime: Duration,
}

impl fmt::Debug for DeviceLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceLogin")
    }
}

/// The response of the device authorization endpoint.
#[derive(Deserialize)]
struct DeviceResponse {
    device_code: String,
    user_code: String,
    verification_uri: Url,
    expires_in: Option<u64>,
    interval: Option<u64>,
}

impl ServerAuth {
    /// Begins a login on another device.
    pub(crate) async fn begin_device_login(
        &self,
        request: &LoginRequest,
    ) -> Result<DeviceLogin, Error> {
        let flow = self.flow(request, None, LoginKind::Device).await?;
        let endpoint = flow.discovery.authorization.device_endpoint()?;
        let response = flow.device_response(endpoint).await?;
        self.target.http.check(&response.verification_uri)?;
        let lifetime = response.expires_in.unwrap_or(MAX_LIFETIME).min(MAX_LIFETIME);
        Ok(DeviceLogin {
            device_code: Secret::new(response.device_code),
            user_code: quoted(&response.user_code, Vec::new()),
            verification: response.verification_uri,
            interval: response.interval.unwrap_or(POLL_INTERVAL).clamp(1, MAX_INTERVAL),
            lifetime: Duration::from_secs(lifetime),
            flow,
        })
    }
}

impl LoginFlow {
    async fn device_response(&self, endpoint: &Url) -> Result<DeviceResponse, Error> {
        let mut fields = vec![("resource", self.discovery.resource.clone())];
        if !self.scopes.is_empty() {
            fields.push(("scope", self.scopes.join(" ")));
        }
        let form = FormRequest::new(fields).authenticate(self.identity())?;
        let response = form.send(&self.auth.target.http, endpoint).await?;
        let read = serde_json::from_slice(&response.body).ok();
        read.filter(|_| response.status.is_success()).ok_or_else(|| {
            let message = format!("its authorization server answered {}", response.status);
            Error::new(ErrorKind::HttpStatus(response.status.as_u16()), message)
                .with_hint("log in with a browser instead")
        })
    }
}

impl DeviceLogin {
    /// The code that the user enters.
    pub fn user_code(&self) -> &str {
        &self.user_code
    }

    /// The page where the user enters it.
    pub fn verification_url(&self) -> &Url {
        &self.verification
    }

    /// Waits until the user has entered the code, and stores the credential.
    ///
    /// # Errors
    ///
    /// If the user refuses, the code expires, or the tokens cannot be obtained or stored.
    pub async fn finish(self) -> Result<LoginOutcome, Error> {
        let server = self.flow.auth.target.server.clone();
        self.poll().await.map_err(|error| error.of(&server))
    }

    async fn poll(self) -> Result<LoginOutcome, Error> {
        let deadline = Instant::now() + self.lifetime;
        let mut interval = self.interval;
        loop {
            sleep(Duration::from_secs(interval)).await;
            match self.flow.request(Grant::Device(&self.device_code)).await {
                Ok(response) => return self.flow.store(response).await,
                Err(GrantError::Refused { code, error }) => match &*code {
                    "authorization_pending" => {}
                    "slow_down" => interval = (interval + SLOW_DOWN).min(MAX_INTERVAL),
                    _ => return Err(error),
                },
                // A poll that was lost is repeated.
                Err(GrantError::Failed(error)) if !error.kind().is_retryable() => {
                    return Err(error);
                }
                Err(GrantError::Failed(_)) => {}
            }
            if Instant::now() >= deadline {
                let message = "the code has expired before it was entered";
                return Err(Error::new(ErrorKind::TimedOut, message).with_hint("begin again"));
            }
        }
    }
}
