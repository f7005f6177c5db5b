//! Limits the bytes of events retained for clients that resume streams: per session, per principal
//! and in total. Beyond a limit, the oldest events are evicted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use trunkline::principal::{ClientId, Principal};

use crate::request::response::MAX_KEPT_OF_ALL;

/// Limit on the retained bytes of one session: read events, and events of finished streams. A
/// client that missed more has to send its request again.
const MAX_KEPT: usize = 4 * 1024 * 1024;

/// Limit on the retained bytes of all sessions of one principal.
const MAX_KEPT_OF_ONE: usize = 64 * 1024 * 1024;

/// A stream with retained events.
pub(super) trait Evict: Send + Sync {
    /// Evicts the event with a number; without a number, all that were read.
    fn evict(&self, place: Option<u64>);
}

/// The retained events of all sessions.
pub(super) struct RetainedEvents {
    bounds: Bounds,
    state: Mutex<State>,
}

/// The limits on retained bytes.
#[derive(Clone, Copy)]
struct Bounds {
    session: usize,
    principal: usize,
    all: usize,
}

#[derive(Default)]
struct State {
    /// The number of the next entry; older entries have lower numbers.
    next: u64,
    bytes: usize,
    entries: BTreeMap<u64, Entry>,
    sessions: HashMap<ClientId, Holdings>,
    principals: HashMap<Principal, Holdings>,
}

/// One event, or all events of a finished stream.
struct Entry {
    holder: Arc<Holder>,
    stream: Weak<dyn Evict>,
    place: Option<u64>,
    bytes: usize,
}

/// The entries of a session or of a principal.
#[derive(Default)]
struct Holdings {
    bytes: usize,
    entries: BTreeSet<u64>,
}

struct Holder {
    session: ClientId,
    principal: Principal,
}

/// Counts the retained events of one session. Clones share their state.
#[derive(Clone)]
pub(super) struct SessionRetention {
    all: Arc<RetainedEvents>,
    holder: Arc<Holder>,
}

/// Bytes that count as retained. Dropping it releases them.
pub(super) struct RetainedStream {
    all: Arc<RetainedEvents>,
    number: u64,
}

impl Default for RetainedEvents {
    fn default() -> Self {
        Self::with_bounds(Bounds {
            session: MAX_KEPT,
            principal: MAX_KEPT_OF_ONE,
            all: MAX_KEPT_OF_ALL,
        })
    }
}

impl RetainedEvents {
    fn with_bounds(bounds: Bounds) -> Self {
        Self { bounds, state: Mutex::default() }
    }

    /// The counter of a session.
    pub(super) fn of_session(
        self: &Arc<Self>,
        session: ClientId,
        principal: Principal,
    ) -> SessionRetention {
        let holder = Arc::new(Holder { session, principal });
        SessionRetention { all: Arc::clone(self), holder }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionRetention {
    /// Counts an event of a stream, or the whole stream. The caller may hold the lock of the
    /// stream, and has to call [`SessionRetention::evict_excess`] after releasing it.
    pub(super) fn retain(
        &self,
        stream: Weak<dyn Evict>,
        place: Option<u64>,
        bytes: usize,
    ) -> RetainedStream {
        let entry = Entry { holder: Arc::clone(&self.holder), stream, place, bytes };
        let number = self.all.lock().add(entry);
        RetainedStream { all: Arc::clone(&self.all), number }
    }

    /// Evicts the oldest events until this session, its principal and all sessions together are
    /// within their limits. The caller must hold no lock of a stream.
    pub(super) fn evict_excess(&self) {
        loop {
            let evicted = self.all.lock().take_excess(&self.holder, self.all.bounds);
            let Some(entry) = evicted else { return };
            if let Some(stream) = entry.stream.upgrade() {
                stream.evict(entry.place);
            }
        }
    }
}

impl State {
    fn add(&mut self, entry: Entry) -> u64 {
        let number = self.next;
        self.next += 1;
        self.bytes += entry.bytes;
        let Holder { session, principal } = &*entry.holder;
        self.sessions.entry(session.clone()).or_default().add(number, entry.bytes);
        self.principals.entry(principal.clone()).or_default().add(number, entry.bytes);
        self.entries.insert(number, entry);
        number
    }

    fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.entries.remove(&number)?;
        self.bytes -= entry.bytes;
        remove_from(&mut self.sessions, &entry.holder.session, number, entry.bytes);
        remove_from(&mut self.principals, &entry.holder.principal, number, entry.bytes);
        Some(entry)
    }

    /// Removes the next entry to evict: the oldest of the session, of its principal, or of the
    /// principal with the most bytes.
    fn take_excess(&mut self, holder: &Holder, bounds: Bounds) -> Option<Entry> {
        let is_over = |held: &&Holdings, bound: usize| held.bytes > bound;
        let session = self.sessions.get(&holder.session);
        let principal = self.principals.get(&holder.principal);
        let excess = session
            .filter(|it| is_over(it, bounds.session))
            .or_else(|| principal.filter(|it| is_over(it, bounds.principal)))
            .or_else(|| self.largest().filter(|_| self.bytes > bounds.all))?;
        let oldest = excess.entries.first().copied()?;
        self.remove(oldest)
    }

    fn largest(&self) -> Option<&Holdings> {
        self.principals.values().max_by_key(|it| it.bytes)
    }
}

impl Holdings {
    fn add(&mut self, number: u64, bytes: usize) {
        self.bytes += bytes;
        self.entries.insert(number);
    }
}

fn remove_from<K: Eq + Hash>(
    holdings: &mut HashMap<K, Holdings>,
    key: &K,
    number: u64,
    bytes: usize,
) {
    let Some(held) = holdings.get_mut(key) else { return };
    held.bytes -= bytes;
    held.entries.remove(&number);
    if held.entries.is_empty() {
        holdings.remove(key);
    }
}

impl Drop for RetainedStream {
    fn drop(&mut self) {
        self.all.lock().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that records its evicted events, and holds its retained ones.
    #[derive(Default)]
    struct Stream {
        retained: Mutex<HashMap<u64, RetainedStream>>,
    }

    impl Evict for Stream {
        fn evict(&self, place: Option<u64>) {
            let retained = self.retained.lock().unwrap().remove(&place.unwrap());
            assert!(retained.is_some(), "evicted once");
        }
    }

    impl Stream {
        fn push(self: &Arc<Self>, retention: &SessionRetention, place: u64, bytes: usize) {
            let weak: Weak<Self> = Arc::downgrade(self);
            let retained = retention.retain(weak, Some(place), bytes);
            self.retained.lock().unwrap().insert(place, retained);
            retention.evict_excess();
        }

        fn places(&self) -> Vec<u64> {
            let mut places: Vec<_> = self.retained.lock().unwrap().keys().copied().collect();
            places.sort_unstable();
            places
        }
    }

    fn retained_events() -> Arc<RetainedEvents> {
        Arc::new(RetainedEvents::with_bounds(Bounds { session: 100, principal: 150, all: 200 }))
    }

    fn session(all: &Arc<RetainedEvents>, id: &str, token: &str) -> SessionRetention {
        all.of_session(id.into(), Principal::Token(token.into()))
    }

    #[test]
    fn a_session_keeps_its_newest_events() {
        let all = retained_events();
        let (retention, stream) = (session(&all, "one", "ann"), Arc::<Stream>::default());
        for place in 1..=5 {
            stream.push(&retention, place, 30);
        }
        assert_eq!(stream.places(), [3, 4, 5]);
        stream.push(&retention, 6, 101);
        assert_eq!(stream.places(), [0; 0], "not even one that is too long");
        assert_eq!(all.lock().bytes, 0);
    }

    #[test]
    fn sessions_of_one_principal_share_a_bound() {
        let all = retained_events();
        let streams = [Arc::<Stream>::default(), Arc::default(), Arc::default()];
        let ids = ["one", "two", "three"];
        for (stream, id) in streams.iter().zip(ids) {
            stream.push(&session(&all, id, "ann"), 1, 30);
            stream.push(&session(&all, id, "ann"), 2, 30);
        }
        let [first, second, third] = streams.each_ref().map(|stream| stream.places());
        assert_eq!((first, second, third), (vec![2], vec![1, 2], vec![1, 2]));
    }

    #[test]
    fn the_principal_with_most_makes_room_for_others() {
        let all = retained_events();
        let [ann, bob] = [Arc::<Stream>::default(), Arc::default()];
        for (place, id) in (1..).zip(["one", "one", "two"]) {
            ann.push(&session(&all, id, "ann"), place, 50);
        }
        for place in 1..=3 {
            bob.push(&session(&all, "three", "bob"), place, 30);
        }
        assert_eq!(ann.places(), [2, 3]);
        assert_eq!(bob.places(), [1, 2, 3]);
    }

    #[test]
    fn events_that_are_gone_are_not_counted() {
        let all = retained_events();
        let (retention, stream) = (session(&all, "one", "ann"), Arc::<Stream>::default());
        stream.push(&retention, 1, 60);
        stream.retained.lock().unwrap().clear();
        let state = all.lock();
        assert_eq!((state.bytes, state.entries.len()), (0, 0));
        assert!(state.sessions.is_empty() && state.principals.is_empty());
    }
}
