//! Event streams of legacy clients, which can be resumed after a disconnect.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream::unfold;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::retained_events::{Evict, RetainedStream, SessionRetention};
use super::unread::MAX_UNCOUNTED_BYTES;
use crate::access::budget::{BudgetExhausted, Reservation, UnreadMessages, counted};

/// Interval of heartbeats on an idle stream.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A heartbeat: an SSE comment.
pub(super) const HEARTBEAT: &[u8] = b": \n\n";

/// The `retry` field: milliseconds until a client resumes a broken stream.
const RETRY: u32 = 1000;

/// Limit of events stored for replay.
const MAX_EVENTS: usize = 1024;

/// Limit of bytes stored for replay; a single event may be longer.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Bytes counted for an event in addition to its message.
const EVENT_OVERHEAD_BYTES: usize = 256;

/// Limit of bytes of short events in one chunk. Further events stay in the counted queue.
const MAX_CHUNK_BYTES: usize = 64 * 1024;

/// The end of an SSE event.
const EVENT_END: &[u8] = b"\n\n";

/// An event stream that stores its events for replay.
pub(super) struct EventStream {
    number: u64,
    /// Counts unread events.
    unread: UnreadMessages,
    /// Counts read events, and all events once the stream is finished.
    retention: SessionRetention,
    state: Mutex<EventStreamState>,
    changed: Notify,
}

/// An event of a stream.
struct StoredEvent {
    /// Its number on the stream, from one.
    place: u64,
    message: Bytes,
    /// Its part of the unread budget, until a reader takes it.
    reservation: Option<Arc<Reservation>>,
    /// Whether a reader has taken it.
    was_read: bool,
    /// Its part of the retained bytes, from then until the stream is finished.
    retained: Option<RetainedStream>,
}

#[derive(Default)]
struct EventStreamState {
    events: VecDeque<StoredEvent>,
    bytes: usize,
    last: u64,
    /// The last event that a reader has taken.
    read: u64,
    /// Whether the stream is finished.
    is_over: bool,
    /// The retained bytes of the finished stream.
    retained: Option<RetainedStream>,
    /// Whether the finished stream was evicted and cannot be resumed.
    is_evicted: bool,
    /// The current reader, which is the latest one.
    reader: u64,
    is_read: bool,
    /// Time at which the last reader disconnected.
    left: Option<Instant>,
}

impl EventStream {
    pub(super) fn new(
        number: u64,
        unread: UnreadMessages,
        retention: SessionRetention,
    ) -> Arc<Self> {
        let (state, changed) = Default::default();
        Arc::new(Self { number, unread, retention, state, changed })
    }

    /// Adds a response, if the budget permits it. A short one is always added.
    pub(super) fn push_answer(&self, message: Bytes) -> Result<(), BudgetExhausted> {
        let reservation = match message.len() <= MAX_UNCOUNTED_BYTES {
            true => None,
            false => Some(self.unread.reserve(message.len())?),
        };
        self.add(message, reservation);
        Ok(())
    }

    /// Adds a notification or server request. Dropped if the budget is exhausted.
    pub(super) fn push(&self, message: Bytes) {
        if let Ok(reservation) = self.unread.reserve(message.len()) {
            self.add(message, Some(reservation));
        }
    }

    /// Adds an event, and drops the oldest ones beyond the limits. Of equal `list_changed`
    /// notifications only the last is stored, because a client requests the list after it.
    fn add(&self, message: Bytes, reservation: Option<Arc<Reservation>>) {
        let mut state = self.lock();
        if says_list_changed(&message)
            && let Some(place) = state.events.iter().position(|it| it.message == message)
        {
            state.events.remove(place);
            state.bytes -= message.len();
        }
        state.last += 1;
        state.bytes += message.len();
        let place = state.last;
        let (was_read, retained) = (false, None);
        state.events.push_back(StoredEvent { place, message, reservation, was_read, retained });
        while state.events.len() > 1 && (state.events.len() > MAX_EVENTS || state.bytes > MAX_BYTES)
        {
            if let Some(forgotten) = state.events.pop_front() {
                state.bytes -= forgotten.message.len();
            }
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Finishes the stream. From now on it is retained and evicted as a whole.
    pub(super) fn finish(self: &Arc<Self>) {
        let mut state = self.lock();
        state.is_over = true;
        state.events.iter_mut().for_each(|event| event.retained = None);
        let bytes = state.bytes + (1 + state.events.len()) * EVENT_OVERHEAD_BYTES;
        state.retained = Some(self.retention.retain(self.evictable(), None, bytes));
        drop(state);
        self.retention.evict_excess();
        self.changed.notify_waiters();
    }

    fn evictable(self: &Arc<Self>) -> Weak<dyn Evict> {
        let weak: Weak<Self> = Arc::downgrade(self);
        weak
    }

    /// Marks the events between two numbers as read. On an open stream they are retained from now
    /// on.
    fn on_read(self: &Arc<Self>, state: &mut EventStreamState, after: u64, last: u64) {
        if state.is_evicted {
            state.remove_events(|event| event.place <= last);
            return;
        }
        let is_given = |event: &StoredEvent| event.place > after && event.place <= last;
        for event in state.events.iter_mut().filter(|it| is_given(it) && !it.was_read) {
            (event.was_read, event.reservation) = (true, None);
            if !state.is_over {
                let bytes = event.message.len() + EVENT_OVERHEAD_BYTES;
                let retained = self.retention.retain(self.evictable(), Some(event.place), bytes);
                event.retained = Some(retained);
            }
        }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Whether the stream is finished and can no longer be resumed.
    pub(super) fn is_evicted(&self) -> bool {
        self.lock().is_evicted
    }

    /// The last event that a reader has taken: a reader without `Last-Event-ID` continues after it.
    pub(super) fn read(&self) -> u64 {
        self.lock().read
    }

    /// Time at which the last reader disconnected.
    pub(super) fn last_disconnect(&self) -> Option<Instant> {
        self.lock().left
    }

    pub(super) fn is_read(&self) -> bool {
        self.lock().is_read
    }

    /// The stream after an event, as a response body. Replaces the current reader.
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
        let reading = StreamReader {
            replay: Arc::clone(self),
            reader,
            after,
            next: first.into_iter().collect(),
        };
        Body::from_stream(unfold(reading, |mut reading| async {
            let chunk = reading.next().await?;
            Some((Ok::<_, std::convert::Infallible>(chunk), reading))
        }))
    }

    fn lock(&self) -> MutexGuard<'_, EventStreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventStreamState {
    fn remove_events(&mut self, is_removed: impl Fn(&StoredEvent) -> bool) {
        self.events.retain(|event| !is_removed(event));
        self.bytes = self.events.iter().map(|event| event.message.len()).sum();
    }
}

impl Evict for EventStream {
    fn evict(&self, place: Option<u64>) {
        let mut state = self.lock();
        match place {
            Some(place) => {
                let position = state.events.binary_search_by_key(&place, |event| event.place);
                if let Some(event) = position.ok().and_then(|it| state.events.remove(it)) {
                    state.bytes -= event.message.len();
                }
            }
            None => {
                state.is_evicted = true;
                // A connected reader still receives the unread events, which count as unread until
                // then.
                let is_read = state.is_read;
                state.remove_events(|event| event.was_read || !is_read);
            }
        }
    }
}

/// Whether a message is a `list_changed` notification.
fn says_list_changed(message: &[u8]) -> bool {
    const LONGEST: usize = 128;
    const METHOD_END: &[u8] = b"/list_changed\"";
    message.len() <= LONGEST && message.windows(METHOD_END.len()).any(|part| part == METHOD_END)
}

/// A reader of a stream.
struct StreamReader {
    replay: Arc<EventStream>,
    reader: u64,
    after: u64,
    /// The next chunks to return.
    next: VecDeque<Bytes>,
}

/// The result of a poll for events.
enum NextEvent {
    Events,
    Nothing,
    End,
}

impl StreamReader {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(next) = self.next.pop_front() {
                return Some(next);
            }
            let replay = Arc::clone(&self.replay);
            let changed = replay.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // Registered before the poll, to miss no event between the poll and the wait.
            changed.as_mut().enable();
            match self.look() {
                NextEvent::Events => {}
                NextEvent::End => return None,
                NextEvent::Nothing => {
                    if timeout(KEEP_ALIVE, changed).await.is_err() {
                        return Some(Bytes::from_static(HEARTBEAT));
                    }
                }
            }
        }
    }

    fn look(&mut self) -> NextEvent {
        let next = self.take_events();
        if matches!(next, NextEvent::Events) {
            self.replay.retention.evict_excess();
        }
        next
    }

    fn take_events(&mut self) -> NextEvent {
        let mut state = self.replay.lock();
        if state.reader != self.reader {
            return NextEvent::End;
        }
        let (mut chunk, after) = (Vec::new(), self.after);
        for event in state.events.iter_mut().filter(|event| event.place > after) {
            let is_long = event.message.len() > MAX_UNCOUNTED_BYTES;
            if !chunk.is_empty() && (is_long || chunk.len() >= MAX_CHUNK_BYTES) {
                break;
            }
            let head = format!("id: {}-{}\ndata: ", self.replay.number, event.place);
            self.after = event.place;
            if is_long {
                let Some(message) = event.counted(&self.replay.unread) else {
                    return NextEvent::End;
                };
                self.next.extend([head.into(), message, Bytes::from_static(EVENT_END)]);
                state.read = self.after;
                self.replay.on_read(&mut state, after, self.after);
                return NextEvent::Events;
            }
            for part in [head.as_bytes(), &event.message[..], EVENT_END] {
                chunk.extend_from_slice(part);
            }
        }
        if chunk.is_empty() {
            self.after = state.last;
        }
        state.read = self.after;
        self.replay.on_read(&mut state, after, self.after);
        match (chunk.is_empty(), state.is_over) {
            (false, _) => {
                self.next.push_back(chunk.into());
                NextEvent::Events
            }
            (true, true) => NextEvent::End,
            (true, false) => NextEvent::Nothing,
        }
    }
}

impl StoredEvent {
    /// The message for a reader, counted until it is written; `None` if the budget does not permit
    /// another copy of an event that was read before.
    fn counted(&mut self, unread: &UnreadMessages) -> Option<Bytes> {
        let reservation = match self.reservation.take() {
            Some(reservation) => reservation,
            None => unread.reserve(self.message.len()).ok()?,
        };
        Some(counted(self.message.clone(), &reservation))
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        let mut state = self.replay.lock();
        if state.reader == self.reader {
            state.is_read = false;
            state.left = Some(Instant::now());
            if state.is_evicted {
                state.remove_events(|_| true);
            }
        }
    }
}

/// Parses an event ID into the stream and event numbers.
pub(super) fn place(id: &str) -> Option<(u64, u64)> {
    let (number, place) = id.split_once('-')?;
    Some((number.parse().ok()?, place.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use trunkline::principal::Principal;

    use super::super::retained_events::RetainedEvents;
    use super::*;
    use crate::access::budget::ByteBudget;

    /// Budget for one of the long messages of these tests.
    const ROOM: usize = 300_000;

    fn replay() -> Arc<EventStream> {
        replay_with_room(ROOM)
    }

    fn replay_with_room(room: usize) -> Arc<EventStream> {
        let budget = ByteBudget::new(room, room);
        let retained = Arc::<RetainedEvents>::default();
        let retention = retained.of_session("one".into(), Principal::Anonymous);
        EventStream::new(0, UnreadMessages::new(&budget, Principal::Anonymous), retention)
    }

    /// A message so long that a session does not retain four.
    fn huge() -> Bytes {
        vec![b'x'; 1_300_000].into()
    }

    /// Reads the next event, which is a long one.
    async fn read_event(body: &mut Body) -> Bytes {
        let [_, message, _] = [next(body).await, next(body).await, next(body).await];
        message
    }

    fn long() -> Bytes {
        vec![b'x'; ROOM / 3].into()
    }

    async fn next(body: &mut Body) -> Bytes {
        body.frame().await.unwrap().unwrap().into_data().unwrap()
    }

    #[tokio::test]
    async fn queued_events_are_counted_until_written() {
        let replay = replay();
        assert!(replay.push_answer(long()).is_ok());
        assert!(replay.push_answer(long()).is_err());
        replay.push(long());
        assert_eq!(replay.lock().events.len(), 1, "notifications are missed");
        assert!(replay.push_answer(Bytes::from_static(b"{}")).is_ok(), "short answers are not");
        let mut body = replay.body(0, false);
        assert_eq!(next(&mut body).await, "id: 0-1\ndata: ");
        let given = next(&mut body).await;
        assert_eq!(given, long());
        assert!(replay.push_answer(long()).is_err(), "it may not be written yet");
        drop(given);
        assert!(replay.push_answer(long()).is_ok());
        assert_eq!(next(&mut body).await, EVENT_END);
        assert_eq!(next(&mut body).await, "id: 0-2\ndata: {}\n\n");
        assert_eq!(next(&mut body).await, "id: 0-3\ndata: ");
    }

    #[tokio::test(start_paused = true)]
    async fn heartbeats_are_sent_while_there_are_no_events() {
        let stream = replay();
        let mut body = stream.body(0, false);
        let begin = Instant::now();
        for beats in 1..=3 {
            assert_eq!(next(&mut body).await, HEARTBEAT);
            assert_eq!(begin.elapsed(), KEEP_ALIVE * beats);
        }
        stream.push(Bytes::from_static(b"{}"));
        assert_eq!(next(&mut body).await, "id: 0-1\ndata: {}\n\n");
        assert_eq!(begin.elapsed(), KEEP_ALIVE * 3, "an event is sent at once");
        assert_eq!(next(&mut body).await, HEARTBEAT);
        assert_eq!(begin.elapsed(), KEEP_ALIVE * 4);
    }

    #[tokio::test]
    async fn an_event_that_was_given_once_is_not_given_again_without_room() {
        let replay = replay();
        replay.push_answer(long()).unwrap();
        let mut first = replay.body(0, false);
        next(&mut first).await;
        let unwritten = next(&mut first).await;
        let mut second = replay.body(0, false);
        assert!(second.frame().await.is_none(), "the stream ends");
        drop(unwritten);
        let mut third = replay.body(0, false);
        assert_eq!(next(&mut third).await, "id: 0-1\ndata: ");
    }

    #[tokio::test]
    async fn events_that_were_read_are_retained_within_a_bound() {
        let stream = replay_with_room(100_000_000);
        let mut body = stream.body(0, false);
        for _ in 0..6 {
            stream.push(huge());
            assert_eq!(read_event(&mut body).await, huge());
        }
        let places = |stream: &EventStream| -> Vec<u64> {
            stream.lock().events.iter().map(|event| event.place).collect()
        };
        assert_eq!(places(&stream), [4, 5, 6], "the newest can be resumed");
        for _ in 0..4 {
            stream.push(huge());
        }
        assert_eq!(places(&stream).last(), Some(&10), "unread ones are not evicted");
        for _ in 0..4 {
            assert_eq!(read_event(&mut body).await, huge());
        }
        assert_eq!(places(&stream), [8, 9, 10]);
    }

    #[tokio::test]
    async fn a_reader_gets_the_end_of_a_stream_that_is_too_long_to_be_retained() {
        let stream = replay_with_room(100_000_000);
        let mut body = stream.body(0, false);
        for _ in 0..4 {
            stream.push_answer(huge()).unwrap();
        }
        stream.finish();
        assert!(stream.is_evicted());
        for _ in 0..4 {
            assert_eq!(read_event(&mut body).await, huge());
        }
        assert_eq!(stream.lock().events.len(), 0);
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn nothing_is_kept_of_an_evicted_stream_without_a_reader() {
        let stream = replay_with_room(100_000_000);
        let body = stream.body(0, false);
        for _ in 0..4 {
            stream.push_answer(huge()).unwrap();
        }
        stream.finish();
        assert_eq!(stream.lock().events.len(), 4);
        drop(body);
        assert_eq!(stream.lock().events.len(), 0);
    }

    #[test]
    fn list_change_is_queued_once() {
        let replay = replay();
        let notification =
            |method: &str| Bytes::from(format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#));
        for _ in 0..100 {
            replay.push(notification("notifications/tools/list_changed"));
            replay.push(notification("notifications/x"));
            replay.push(notification("notifications/prompts/list_changed"));
        }
        let state = replay.lock();
        assert_eq!((state.events.len(), state.last), (102, 300));
        let bytes: usize = state.events.iter().map(|event| event.message.len()).sum();
        assert_eq!(state.bytes, bytes);
        let last = state.events.iter().map(|event| event.place).max();
        assert_eq!(last, Some(300), "where it was said last");
    }
}
