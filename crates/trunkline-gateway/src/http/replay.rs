//! Streams of events to legacy clients, which may break and be taken up again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use futures_util::stream::unfold;
use tokio::sync::Notify;
use tokio::time::timeout;

/// How often a stream on which nothing happens shows that it is alive.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What shows that a stream is alive.
pub(super) const HEARTBEAT: &[u8] = b": \n\n";

/// After how many milliseconds clients are to take up a stream that broke.
const RETRY: u32 = 1000;

/// Events that are kept for those who missed them.
const MAX_EVENTS: usize = 1024;

/// Bytes that are kept for those who missed them; one event may be longer.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// A stream of events. Everything on it is kept for a while.
pub(super) struct Replay {
    number: u64,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// Events with their places, which begin with one.
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    last: u64,
    /// The last event that somebody was given to read.
    read: u64,
    /// Whether nothing more comes.
    is_over: bool,
    /// Who reads: whoever came last.
    reader: u64,
    is_read: bool,
    /// When the last one went.
    left: Option<Instant>,
}

impl Replay {
    pub(super) fn new(number: u64) -> Arc<Self> {
        Arc::new(Self { number, state: Mutex::default(), changed: Notify::new() })
    }

    /// Puts a message on the stream. What nobody has fetched for long is forgotten first. That a list has
    /// changed is kept once, where it was said last: whoever reads it asks for the list as it is then.
    pub(super) fn push(&self, message: Bytes) {
        let mut state = self.lock();
        if says_list_changed(&message)
            && let Some(place) = state.events.iter().position(|(_, earlier)| *earlier == message)
        {
            state.events.remove(place);
            state.bytes -= message.len();
        }
        state.last += 1;
        state.bytes += message.len();
        let place = state.last;
        state.events.push_back((place, message));
        while state.events.len() > 1 && (state.events.len() > MAX_EVENTS || state.bytes > MAX_BYTES)
        {
            if let Some((_, forgotten)) = state.events.pop_front() {
                state.bytes -= forgotten.len();
            }
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Says that nothing more comes.
    pub(super) fn finish(&self) {
        self.lock().is_over = true;
        self.changed.notify_waiters();
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Bytes that are kept.
    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// The last event that somebody was given to read: whoever does not say what they have seen goes
    /// on after it.
    pub(super) fn read(&self) -> u64 {
        self.lock().read
    }

    /// When the last one went who read it.
    pub(super) fn left(&self) -> Option<Instant> {
        self.lock().left
    }

    pub(super) fn is_read(&self) -> bool {
        self.lock().is_read
    }

    /// The stream after an event, as the body of an answer. Whoever read it before does so no more.
    pub(super) fn body(self: &Arc<Self>, after: u64, primes: bool) -> Body {
        let reader = {
            let mut state = self.lock();
            state.reader += 1;
            state.is_read = true;
            state.reader
        };
        self.changed.notify_waiters();
        let first = primes.then(|| {
            Bytes::from(format!("id: {}-{after}\nretry: {RETRY}\ndata: \n\n", self.number))
        });
        let reading = Reading { replay: Arc::clone(self), reader, after, first };
        Body::from_stream(unfold(reading, |mut reading| async {
            let chunk = reading.next().await?;
            Some((Ok::<_, std::convert::Infallible>(chunk), reading))
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a message only says that a list has changed.
fn says_list_changed(message: &[u8]) -> bool {
    const LONGEST: usize = 128;
    const METHOD_END: &[u8] = b"/list_changed\"";
    message.len() <= LONGEST && message.windows(METHOD_END.len()).any(|part| part == METHOD_END)
}

/// Somebody who reads a stream.
struct Reading {
    replay: Arc<Replay>,
    reader: u64,
    after: u64,
    first: Option<Bytes>,
}

/// What there is to read.
enum Found {
    Events(Bytes),
    Nothing,
    End,
}

impl Reading {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            let replay = Arc::clone(&self.replay);
            let changed = replay.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // What comes between the look and the wait must not be missed.
            changed.as_mut().enable();
            match self.look() {
                Found::Events(events) => return Some(events),
                Found::End => return None,
                Found::Nothing => {
                    if timeout(KEEP_ALIVE, changed).await.is_err() {
                        return Some(Bytes::from_static(HEARTBEAT));
                    }
                }
            }
        }
    }

    fn look(&mut self) -> Found {
        let mut state = self.replay.lock();
        if state.reader != self.reader {
            return Found::End;
        }
        let mut events = Vec::new();
        for (place, message) in state.events.iter().filter(|(place, _)| *place > self.after) {
            events.extend_from_slice(
                format!("id: {}-{place}\ndata: ", self.replay.number).as_bytes(),
            );
            events.extend_from_slice(message);
            events.extend_from_slice(b"\n\n");
        }
        self.after = state.last;
        state.read = state.last;
        match (events.is_empty(), state.is_over) {
            (false, _) => Found::Events(events.into()),
            (true, true) => Found::End,
            (true, false) => Found::Nothing,
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut state = self.replay.lock();
        if state.reader == self.reader {
            state.is_read = false;
            state.left = Some(Instant::now());
        }
    }
}

/// The stream and the place that the id of an event names.
pub(super) fn place(id: &str) -> Option<(u64, u64)> {
    let (number, place) = id.split_once('-')?;
    Some((number.parse().ok()?, place.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_a_list_has_changed_is_kept_once() {
        let replay = Replay::new(0);
        let told =
            |method: &str| Bytes::from(format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#));
        for _ in 0..100 {
            replay.push(told("notifications/tools/list_changed"));
            replay.push(told("notifications/x"));
            replay.push(told("notifications/prompts/list_changed"));
        }
        let state = replay.lock();
        assert_eq!((state.events.len(), state.last), (102, 300));
        let bytes: usize = state.events.iter().map(|(_, event)| event.len()).sum();
        assert_eq!(state.bytes, bytes);
        let last = state.events.iter().map(|(place, _)| *place).max();
        assert_eq!(last, Some(300), "where it was said last");
    }
}
