//! Fair division of a limited resource between principals.

use std::collections::HashMap;

use super::Principal;

/// Counts the items that each principal holds of a limited resource, and divides them fairly.
///
/// There are two ways to use it. Where items cannot be revoked, such as calls in flight, a
/// principal [gets another item](Self::admits) only while it holds fewer than are still free. A
/// single principal gets half of the capacity and each further one half of the rest, so there is
/// always room for the first items of a new principal. Where items can be evicted, a single
/// principal gets the whole capacity, and [the principal with the most items](Self::makes_room)
/// loses one.
#[derive(Debug)]
pub struct FairShare {
    capacity: usize,
    total: usize,
    held: HashMap<Principal, usize>,
}

impl FairShare {
    /// A resource with `capacity` items, all free.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, total: 0, held: HashMap::new() }
    }

    /// A resource with the items that principals already hold.
    pub fn with_holders<'p>(
        capacity: usize,
        holders: impl IntoIterator<Item = &'p Principal>,
    ) -> Self {
        let mut share = Self::new(capacity);
        holders.into_iter().for_each(|holder| share.add(holder));
        share
    }

    /// Whether no item is free.
    pub fn is_full(&self) -> bool {
        self.total >= self.capacity
    }

    /// Number of items that a principal holds.
    pub fn held_by(&self, principal: &Principal) -> usize {
        self.held.get(principal).copied().unwrap_or_default()
    }

    /// Whether a principal gets another item of a resource without eviction: it holds fewer items
    /// than are free.
    pub fn admits(&self, principal: &Principal) -> bool {
        self.admits_many(principal, 1)
    }

    /// Whether a principal gets so many items more, by the rule of [`admits`](Self::admits).
    pub fn admits_many(&self, principal: &Principal, count: usize) -> bool {
        let free = self.capacity.saturating_sub(self.total);
        self.held_by(principal).saturating_add(count) <= free
    }

    /// Whether an item of `holder` is to be evicted for an item of `newcomer`: with the new item,
    /// no principal would hold more than `holder`.
    pub fn makes_room(&self, holder: &Principal, newcomer: &Principal) -> bool {
        let with_new =
            |principal: &Principal, held: usize| held + usize::from(principal == newcomer);
        let most = self.held.iter().map(|(principal, held)| with_new(principal, *held)).max();
        with_new(holder, self.held_by(holder)) >= most.unwrap_or_default().max(1)
    }

    /// Counts an item that a principal acquired.
    pub fn add(&mut self, principal: &Principal) {
        self.add_many(principal, 1);
    }

    /// Counts so many items that a principal holds from now on.
    pub fn add_many(&mut self, principal: &Principal, count: usize) {
        self.total += count;
        match self.held.get_mut(principal) {
            Some(held) => *held += count,
            None => drop(self.held.insert(principal.clone(), count)),
        }
    }

    /// Removes an item that a principal released.
    pub fn remove(&mut self, principal: &Principal) {
        self.remove_many(principal, 1);
    }

    /// Counts so many items no more that a principal held.
    pub fn remove_many(&mut self, principal: &Principal, count: usize) {
        let Some(held) = self.held.get_mut(principal) else { return };
        let count = count.min(*held);
        *held -= count;
        self.total -= count;
        if *held == 0 {
            self.held.remove(principal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn principals() -> [Principal; 3] {
        ["ann", "bob", "cy"].map(|name| Principal::Token(name.into()))
    }

    fn fill(share: &mut FairShare, principal: &Principal) -> usize {
        let before = share.held_by(principal);
        while share.admits(principal) {
            share.add(principal);
        }
        share.held_by(principal) - before
    }

    #[test]
    fn nobody_takes_the_last_of_what_cannot_be_evicted() {
        let [ann, bob, cy] = principals();
        let mut share = FairShare::new(1024);
        assert_eq!(fill(&mut share, &ann), 512, "half of all");
        assert_eq!(fill(&mut share, &bob), 256, "half of the rest");
        assert_eq!(fill(&mut share, &ann), 0);
        assert_eq!(fill(&mut share, &cy), 128);
        (0..512).for_each(|_| share.remove(&ann));
        assert_eq!(fill(&mut share, &cy), 256, "what others give back is divided anew");
        let mut one = FairShare::new(1);
        assert_eq!(fill(&mut one, &ann), 1);
        assert!(one.is_full() && !one.admits(&bob));
    }

    #[test]
    fn whoever_holds_most_makes_room() {
        let [ann, bob, cy] = principals();
        let share = FairShare::with_holders(4, [&ann, &ann, &ann, &bob]);
        assert!(share.is_full());
        assert!(share.makes_room(&ann, &bob) && share.makes_room(&ann, &cy));
        assert!(share.makes_room(&ann, &ann));
        assert!(!share.makes_room(&bob, &ann) && !share.makes_room(&bob, &cy));
        let even = FairShare::with_holders(4, [&ann, &ann, &bob, &bob]);
        assert!(
            even.makes_room(&ann, &ann) && !even.makes_room(&bob, &ann),
            "whoever asks is first"
        );
        assert!(even.makes_room(&ann, &cy) && even.makes_room(&bob, &cy));
    }

    #[test]
    fn what_was_never_held_is_not_given_back() {
        let [ann, bob, _] = principals();
        let mut share = FairShare::with_holders(2, [&ann]);
        share.remove(&bob);
        share.remove(&ann);
        share.remove(&ann);
        assert_eq!((share.total, share.held.len()), (0, 0));
    }
}
