//! CON-12: authorization servers that are broken or hostile. A login fails with a clear message, in bounded
//! time, and stores nothing.

use std::time::Duration;

use trunkline::Host;
use trunkline::error::{Error, ErrorKind};
use trunkline::secrets::MemoryStore;
use trunkline_testkit::oauth_server::{Misbehaviour, OAuthServer, OAuthServerOptions};

use crate::support::file_driven_server::{pass_time, poll_until, within};
use crate::support::oauth_host::{call, host, log_in, oauth, whoami};
use crate::support::secret_stores::credentials;

/// What a login says about a misbehaviour: the kind of the error, words of its message, words of its hint.
fn expected(misbehaviour: Misbehaviour) -> Option<(ErrorKind, &'static str, &'static str)> {
    use Misbehaviour as M;
    let violation = ErrorKind::ProtocolViolation;
    let operator = "tell the operator";
    Some(match misbehaviour {
        M::NoChallengeMetadata | M::MetadataRedirect => return None,
        M::NoPkce | M::PlainPkce => {
            (violation, "does not support PKCE with S256", "operator has to enable it")
        }
        M::WrongIssuer => (violation, "names another issuer", "`oauth.metadataUrl`"),
        M::NoIssuer | M::HtmlMetadata => {
            (violation, "metadata of its authorization server cannot be read", "tell its operator")
        }
        M::MissingIss => {
            (violation, "does not say which authorization server it comes from", operator)
        }
        M::WrongIss | M::UnadvertisedWrongIss => {
            (violation, "comes from another authorization server", operator)
        }
        M::WrongState => (violation, "does not belong to this login", "newest link"),
        M::ResourceMismatch => (violation, "describes another resource", operator),
        M::LinkLocalEndpoints
        | M::LinkLocalAuthorizationServer
        | M::LinkLocalResourceMetadata
        | M::MetadataRedirectLinkLocal
        | M::ResourceMetadataRedirectLinkLocal => {
            (violation, "http://169.254.169.254 is not reached: it is not encrypted", operator)
        }
        M::FileEndpoints | M::FileAuthorizationServer | M::FileResourceMetadata => {
            (violation, "file:… is not reached: it is not a plain web address", operator)
        }
        M::TokenRedirect => {
            (violation, "redirects a request with credentials", "name the final address")
        }
        M::HugeMetadata | M::HugeResourceMetadata => {
            (ErrorKind::TooLarge, "sent more than 256 KiB", "tell its operator")
        }
        M::SlowMetadata | M::SlowResourceMetadata => {
            (ErrorKind::TimedOut, "did not answer within 20 s", "try again later")
        }
    })
}

/// Logs in to a server that misbehaves.
async fn log_in_to(server: &OAuthServer, misbehaviour: Misbehaviour) -> Result<Host, Error> {
    server.set_misbehaviours(&[misbehaviour]).await;
    let store = MemoryStore::default();
    let host = host(server, oauth(store.clone())).await;
    let result = log_in(&host).await;
    assert_eq!(result.is_ok(), !credentials(&store).is_empty(), "{misbehaviour:?}");
    let statistics = server.statistics().await;
    assert_eq!(statistics.count("stolen"), 0, "{misbehaviour:?}");
    match result {
        Ok(_) => Ok(host),
        Err(error) => {
            within(host.shutdown()).await;
            Err(error)
        }
    }
}

/// Lets time pass once a slow answer is waited for.
async fn pass_slow_answer(server: &OAuthServer, misbehaviour: Misbehaviour) {
    let endpoint = match misbehaviour {
        Misbehaviour::SlowMetadata => "metadata",
        Misbehaviour::SlowResourceMetadata => "resource_metadata",
        _ => return,
    };
    poll_until(async || server.statistics().await.count(endpoint) > 0).await;
    pass_time(Duration::from_secs(21)).await;
}

#[tokio::test]
async fn every_misbehaviour_is_an_error_that_says_what_to_do_or_is_harmless() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    for misbehaviour in Misbehaviour::ALL {
        server.reset().await;
        let login = log_in_to(&server, misbehaviour);
        let (result, ()) = tokio::join!(login, pass_slow_answer(&server, misbehaviour));
        match (result, expected(misbehaviour)) {
            (Ok(host), None) => {
                assert_eq!(whoami(&host).await["subject"], "alice", "{misbehaviour:?}");
                within(host.shutdown()).await;
            }
            (Err(error), Some((kind, message, hint))) => {
                assert_eq!(error.kind(), kind, "{misbehaviour:?}: {error}");
                assert!(error.message().contains(message), "{misbehaviour:?}: {error}");
                let said = error.hint().unwrap_or_default();
                assert!(said.contains(hint), "{misbehaviour:?}: {error}: {said}");
                assert!(error.to_string().starts_with("server `docs`: "), "{misbehaviour:?}");
            }
            (result, expected) => panic!("{misbehaviour:?}: {:?}, {expected:?}", result.err()),
        }
    }
}

/// Codes and tokens are not sent to an address that a redirect names.
#[tokio::test]
async fn token_endpoint_that_redirects_a_refresh_keeps_the_login() {
    let server = OAuthServer::start(OAuthServerOptions::new()).await;
    let store = MemoryStore::default();
    let host = host(&server, oauth(store.clone())).await;
    log_in(&host).await.unwrap();
    whoami(&host).await;
    let before = credentials(&store);
    server.set_misbehaviours(&[Misbehaviour::TokenRedirect]).await;
    server.revoke_access_tokens().await;
    let error = call(&host, "whoami").await.unwrap_err();
    assert!(error.to_string().contains("redirects a request with credentials"), "{error}");
    assert_eq!(server.statistics().await.count("stolen"), 0);
    assert_eq!(credentials(&store), before);
    server.set_misbehaviours(&[]).await;
    whoami(&host).await;
    within(host.shutdown()).await;
}
