//! Budgets for bytes kept in memory for clients: a total, and a share per principal, so that no
//! principal uses up the memory of others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;
use trunkline::principal::Principal;

/// A limit on bytes of one kind.
#[derive(Debug)]
pub(crate) struct ByteBudget {
    total: usize,
    share: usize,
    used: Mutex<UsedBytes>,
    /// Notified whenever bytes are released.
    freed: Notify,
}

#[derive(Debug, Default)]
struct UsedBytes {
    all: usize,
    by_principal: HashMap<Principal, usize>,
}

/// The reason why a reservation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BudgetExhausted {
    /// The principal has used up its share.
    Share,
    /// All principals together have used up the budget.
    Total,
}

/// Bytes reserved for one principal. Dropping it releases them.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<ByteBudget>,
    principal: Principal,
    bytes: usize,
}

impl ByteBudget {
    /// Creates a budget with a total and a share per principal.
    pub(crate) fn new(total: usize, share: usize) -> Arc<Self> {
        Arc::new(Self { total, share, used: Mutex::default(), freed: Notify::new() })
    }

    /// An empty reservation.
    pub(crate) fn begin(self: &Arc<Self>, principal: &Principal) -> Reservation {
        Reservation { budget: Arc::clone(self), principal: principal.clone(), bytes: 0 }
    }

    /// Reserves bytes within the limits.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        principal: &Principal,
        bytes: usize,
    ) -> Result<Reservation, BudgetExhausted> {
        let mut reservation = self.begin(principal);
        reservation.try_grow(bytes).map(|()| reservation)
    }

    /// Reserves bytes if the principal then has at most its share, and at most half of the bytes
    /// left by others, so that there are always some for another principal.
    pub(crate) fn reserve_half(
        self: &Arc<Self>,
        principal: &Principal,
        bytes: usize,
    ) -> Result<Reservation, BudgetExhausted> {
        let used = self.lock();
        let own = used.by_principal.get(principal).copied().unwrap_or(0);
        let left = self.total.saturating_sub(used.all - own);
        drop(used);
        if own.saturating_add(bytes) > left / 2 {
            return Err(BudgetExhausted::Total);
        }
        self.reserve(principal, bytes)
    }

    /// The principal with the most reserved bytes.
    pub(crate) fn largest(&self) -> Option<Principal> {
        let used = self.lock();
        let largest = used.by_principal.iter().max_by_key(|(_, bytes)| **bytes);
        largest.map(|(principal, _)| principal.clone())
    }

    /// Whether any bytes are left.
    pub(crate) fn has_room(&self) -> bool {
        self.lock().all < self.total
    }

    /// The reserved bytes of all principals.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.lock().all
    }

    /// Reserves bytes without a check of the limits: they are in memory already.
    pub(crate) fn take(self: &Arc<Self>, principal: &Principal, bytes: usize) -> Reservation {
        let mut used = self.lock();
        used.all += bytes;
        *used.by_principal.entry(principal.clone()).or_default() += bytes;
        drop(used);
        Reservation { budget: Arc::clone(self), principal: principal.clone(), bytes }
    }

    fn lock(&self) -> MutexGuard<'_, UsedBytes> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// Reserves more bytes within the limits.
    pub(crate) fn try_grow(&mut self, bytes: usize) -> Result<(), BudgetExhausted> {
        let mut used = self.budget.lock();
        let own = used.by_principal.get(&self.principal).copied().unwrap_or(0);
        if own.saturating_add(bytes) > self.budget.share {
            return Err(BudgetExhausted::Share);
        }
        if used.all.saturating_add(bytes) > self.budget.total {
            return Err(BudgetExhausted::Total);
        }
        used.all += bytes;
        *used.by_principal.entry(self.principal.clone()).or_default() += bytes;
        self.bytes += bytes;
        Ok(())
    }

    /// Reserves more bytes, waiting until the limits permit it.
    pub(crate) async fn grow(&mut self, bytes: usize) {
        let budget = Arc::clone(&self.budget);
        loop {
            let mut freed = std::pin::pin!(budget.freed.notified());
            freed.as_mut().enable();
            if self.try_grow(bytes).is_ok() {
                return;
            }
            freed.await;
        }
    }
}

/// Counts the unread messages of one principal.
#[derive(Clone, Debug)]
pub(crate) struct UnreadMessages {
    budget: Arc<ByteBudget>,
    principal: Principal,
}

impl UnreadMessages {
    pub(crate) fn new(budget: &Arc<ByteBudget>, principal: Principal) -> Self {
        Self { budget: Arc::clone(budget), principal }
    }

    /// Reserves the bytes of a message.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<Arc<Reservation>, BudgetExhausted> {
        self.budget.reserve_half(&self.principal, bytes).map(Arc::new)
    }

    /// The same message, counted until all slices of it are dropped.
    pub(crate) fn count(&self, message: Bytes) -> Result<Bytes, BudgetExhausted> {
        self.reserve(message.len()).map(|reservation| counted(message, &reservation))
    }
}

/// Bytes that hold a reservation until the last clone of them is dropped. A body cannot report when
/// it was written, but the transport drops the bytes it has written.
pub(crate) fn counted(bytes: Bytes, reservation: &Arc<Reservation>) -> Bytes {
    Bytes::from_owner(CountedBytes { bytes, _reservation: Arc::clone(reservation) })
}

struct CountedBytes {
    bytes: Bytes,
    _reservation: Arc<Reservation>,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut used = self.budget.lock();
        used.all -= self.bytes;
        if let Some(own) = used.by_principal.get_mut(&self.principal) {
            *own -= self.bytes;
            if *own == 0 {
                used.by_principal.remove(&self.principal);
            }
        }
        drop(used);
        self.budget.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn token(name: &str) -> Principal {
        Principal::Token(name.into())
    }

    #[test]
    fn each_principal_is_limited_to_a_share_of_the_total() {
        let budget = ByteBudget::new(100, 60);
        let ann = budget.reserve(&token("ann"), 60).unwrap();
        assert_eq!(budget.reserve(&token("ann"), 1).unwrap_err(), BudgetExhausted::Share);
        let bob = budget.reserve(&token("bob"), 40).unwrap();
        assert_eq!(budget.reserve(&token("bob"), 1).unwrap_err(), BudgetExhausted::Total);
        assert_eq!(budget.reserve(&token("bob"), usize::MAX).unwrap_err(), BudgetExhausted::Share);
        assert_eq!(budget.largest(), Some(token("ann")));
        drop(ann);
        assert_eq!(budget.largest(), Some(token("bob")));
        drop(bob);
        assert!(budget.largest().is_none());
        assert!(budget.reserve(&token("ann"), 60).is_ok());
    }

    #[test]
    fn later_principal_gets_half_of_the_remainder() {
        let budget = ByteBudget::new(100, 60);
        let reserve = |name: &str, bytes| budget.reserve_half(&token(name), bytes);
        assert_eq!(reserve("ann", 51).unwrap_err(), BudgetExhausted::Total);
        let ann = reserve("ann", 50).unwrap();
        assert_eq!(reserve("ann", 1).unwrap_err(), BudgetExhausted::Total);
        assert_eq!(reserve("bob", 26).unwrap_err(), BudgetExhausted::Total);
        let _bob = reserve("bob", 25).unwrap();
        let _eve = reserve("eve", 12).unwrap();
        drop(ann);
        assert!(reserve("dan", 31).is_ok());
    }

    #[test]
    fn a_message_counts_until_the_last_part_of_it_is_dropped() {
        let budget = ByteBudget::new(100, 60);
        let unread = UnreadMessages::new(&budget, token("ann"));
        let message = unread.count(Bytes::from(vec![b'x'; 40])).unwrap();
        assert_eq!(unread.count(Bytes::from(vec![b'x'; 20])).unwrap_err(), BudgetExhausted::Total);
        let part = message.slice(3..5);
        drop(message);
        assert_eq!((&part[..], budget.used()), (&b"xx"[..], 40));
        drop(part);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn waiting_reservation_continues_when_bytes_are_released() {
        let budget = ByteBudget::new(100, 60);
        let first = budget.reserve(&token("ann"), 50).unwrap();
        let mut second = budget.begin(&token("ann"));
        let mut waiting = std::pin::pin!(second.grow(20));
        assert!(waiting.as_mut().now_or_never().is_none());
        assert!(
            budget.begin(&token("bob")).grow(20).now_or_never().is_some(),
            "others do not wait"
        );
        drop(first);
        assert!(waiting.now_or_never().is_some());
    }
}
