//! Expiry of sessions and finished streams, in paused time.

use axum::http::HeaderValue;
use tokio::time::sleep;
use trunkline::config::{self, EmptyResolver};
use trunkline::connection::{ChildOptions, ConnectionOptions, HttpOptions};
use trunkline::host::{Host, HostOptions};
use trunkline::message::{Id, Raw};

use super::*;
use crate::access::scope::Scope;

const IDLE: Duration = Duration::from_secs(600);

/// Until a sweep finds an idle session: a sweep at the very end of the idle time keeps it.
const EXPIRED: Duration = Duration::from_secs(600 + 2 * SWEEP.as_secs());

/// Sessions of one anonymous client that expire after [`IDLE`].
struct TestSessions {
    sessions: Arc<Sessions>,
    identity: Arc<CallerIdentity>,
}

impl TestSessions {
    fn new() -> Self {
        let child = ChildOptions::from_environment(std::iter::empty());
        let options =
            ConnectionOptions::new(Arc::new(EmptyResolver), child, HttpOptions::default());
        let config = config::parse("mcp.json", "{}").config;
        let host = Host::start(config, Default::default(), HostOptions::new(options));
        let limits = Limits { session_idle: IDLE, ..Limits::default() };
        let sessions = Sessions::new(Gateway::new(host, &limits, None), limits);
        let identity = Arc::new(CallerIdentity::new(Scope::default(), Principal::Anonymous));
        Self { sessions, identity }
    }

    fn open(&self) -> Arc<HttpSession> {
        let client = ClientProfile::of_initialize(&Raw::empty_object()).unwrap();
        let session = self.sessions.prepare(client, &self.identity);
        assert!(self.sessions.open(&session));
        session
    }

    /// Whether a request finds the session, which counts as use of it.
    fn finds(&self, session: &HttpSession) -> bool {
        let id = HeaderValue::from_str(session.session.id.as_str()).unwrap();
        let headers = HeaderMap::from_iter([(SESSION.clone(), id)]);
        self.sessions.find(&self.identity, &headers).is_ok()
    }
}

#[tokio::test(start_paused = true)]
async fn idle_session_expires_after_its_last_request() {
    let test = TestSessions::new();
    let session = test.open();
    for _ in 0..3 {
        sleep(IDLE.mul_f32(0.9)).await;
        assert!(test.finds(&session), "each request extends it");
    }
    sleep(EXPIRED).await;
    assert!(!test.finds(&session));
}

#[tokio::test(start_paused = true)]
async fn session_with_a_request_in_flight_does_not_expire() {
    let test = TestSessions::new();
    let session = test.open();
    let request = session.requests.begin(&Id::number(1)).unwrap();
    sleep(IDLE * 5).await;
    drop(request);
    sleep(IDLE.mul_f32(0.9)).await;
    assert!(test.finds(&session), "the end of a request counts as use");
    sleep(EXPIRED).await;
    assert!(!test.finds(&session));
}

#[tokio::test(start_paused = true)]
async fn session_whose_stream_is_read_does_not_expire() {
    let test = TestSessions::new();
    let session = test.open();
    let reading = session.body(&session.stream, 0);
    sleep(IDLE * 5).await;
    drop(reading);
    sleep(IDLE.mul_f32(0.9)).await;
    assert!(test.finds(&session), "the end of reading counts as use");
    sleep(EXPIRED).await;
    assert!(!test.finds(&session));
}

#[tokio::test(start_paused = true)]
async fn finished_stream_can_be_resumed_for_a_while() {
    let test = TestSessions::new();
    let session = test.open();
    let (finished, running) = (session.stream(), session.stream());
    test.sessions.finish(&session, &finished);
    sleep(KEPT.mul_f32(0.9)).await;
    assert!(session.find(finished.number()).is_some());
    sleep(SWEEP * 2).await;
    assert!(session.find(finished.number()).is_none());
    assert!(session.find(running.number()).is_some(), "one that runs has no time limit");
}
