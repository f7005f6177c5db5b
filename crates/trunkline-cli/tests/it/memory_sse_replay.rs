//! Memory of the gateway when clients read everything: read events are retained for clients that
//! resume the stream.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::memory::{
    Era, assert_within_bounds, call_without_reading, folder_with, session_of, tool_call,
};
use crate::support::gateway::{INITIALIZE, Serving, post};
use crate::support::processes::wait_until;
use crate::support::program::Folder;
use crate::tokens::{add, bearer};

/// Bytes that clients read in an attack: more than the gateway may retain.
const READ_BYTES: usize = 450_000_000;

/// Time for the gateway to send them.
const READ_TIMEOUT: Duration = Duration::from_secs(120);

/// A gateway with the flooding server, and a client with its own token.
struct Attack {
    _folder: Folder,
    serving: Serving,
    authorization: String,
    /// Bytes that were read on all streams.
    read: Arc<AtomicUsize>,
}

impl Attack {
    fn start(mode: &str) -> Self {
        let folder = folder_with(mode);
        let authorization = bearer(&add(&folder, &["ann"]));
        let serving = Serving::start(&folder, &["--tokens", "tokens.json"]);
        let attack = Self { _folder: folder, serving, authorization, read: Arc::default() };
        let session = attack.open_session();
        for method in ["tools/list", "resources/list"] {
            let request = json!({ "jsonrpc": "2.0", "id": 2, "method": method });
            attack.request(&session, &request);
        }
        attack
    }

    fn open_session(&self) -> String {
        let headers = [("authorization", self.authorization.as_str())];
        session_of(&post(self.serving.url(), &headers, INITIALIZE).1)
    }

    fn headers<'s>(&'s self, session: &'s str) -> [(&'s str, &'s str); 2] {
        [("authorization", &self.authorization), ("mcp-session-id", session)]
    }

    fn request(&self, session: &str, request: &Value) -> String {
        post(self.serving.url(), &self.headers(session), &request.to_string()).1
    }

    /// Opens the standing stream of a session.
    fn open_stream(&self, session: &str) -> TcpStream {
        let authority = self.serving.url().split('/').nth(2).unwrap();
        let mut stream = TcpStream::connect(authority).unwrap();
        let mut head =
            format!("GET /mcp HTTP/1.1\r\nhost: {authority}\r\naccept: text/event-stream\r\n");
        for (name, value) in self.headers(session) {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        assert_eq!(status, *b"HTTP/1.1 200");
        stream
    }

    /// Reads everything on a connection until it ends.
    fn read_all(&self, mut stream: TcpStream) {
        let read = Arc::clone(&self.read);
        thread::spawn(move || {
            let mut chunk = [0; 65_536];
            while let Ok(bytes @ 1..) = stream.read(&mut chunk) {
                read.fetch_add(bytes, Ordering::Relaxed);
            }
        });
    }

    fn has_read_enough(&self) -> bool {
        self.read.load(Ordering::Relaxed) > READ_BYTES
    }
}

#[test]
fn updates_that_sessions_have_read_are_not_kept_without_bound() {
    let attack = Attack::start("updates");
    for _ in 0..60 {
        let session = attack.open_session();
        let params = json!({ "uri": "flood://one" });
        let request =
            json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": params });
        let answer = attack.request(&session, &request);
        assert!(answer.contains(r#""result":{}"#), "{answer}");
        attack.read_all(attack.open_stream(&session));
    }
    let caller = attack.open_session();
    // A slow reader misses updates, so one call may not be enough.
    wait_until("updates are read", READ_TIMEOUT, || {
        attack.request(&caller, &tool_call());
        attack.has_read_enough()
    });
    assert_within_bounds(&attack.serving);
}

#[test]
fn progress_that_a_session_has_read_is_not_kept_without_bound() {
    let attack = Attack::start("progress");
    let session = attack.open_session();
    let headers = attack.headers(&session);
    for stream in call_without_reading(attack.serving.url(), &Era::Legacy(&headers), 60) {
        attack.read_all(stream);
    }
    wait_until("progress is read", READ_TIMEOUT, || attack.has_read_enough());
    assert_within_bounds(&attack.serving);
}
