//! Fair division of a limited resource between principals.

use std::collections::HashSet;

use foldhash::HashMap;

use super::Principal;

/// Counts the items of a limited resource that each principal holds, and divides them fairly.
///
/// There are two ways to use it. If items cannot be taken back, such as calls in flight, a
/// principal [gets another item](Self::admits) only while it holds fewer than are still free. One
/// principal alone gets half of the capacity, and each further one half of the rest, so that the
/// first items of a newcomer always fit. If items can be evicted, one principal alone gets
/// everything, and [the principal with the most](Self::makes_room) makes room. Items that can be
/// evicted only while they are not in use are counted in both ways.
#[derive(Debug)]
pub struct FairShare {
    capacity: usize,
    total: usize,
    held: HashMap<Principal, usize>,
}

/// An item that a principal holds, and that cannot be evicted while it is in use.
pub trait Evictable {
    /// The order of items by their last use.
    type LastUse: Ord;

    /// The principal that holds the item.
    fn holder(&self) -> &Principal;

    /// Whether the item is in use now.
    fn is_in_use(&self) -> bool;

    /// When the item was last used.
    fn last_use(&self) -> Self::LastUse;
}

impl FairShare {
    /// A resource with `capacity` items, all free.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, total: 0, held: HashMap::default() }
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

    /// The shares of the items that are in use, which cannot be evicted.
    pub(crate) fn of_items_in_use<'i, I: Evictable + 'i>(
        capacity: usize,
        items: impl IntoIterator<Item = &'i I>,
    ) -> Self {
        let in_use = items.into_iter().filter(|item| item.is_in_use());
        Self::with_holders(capacity, in_use.map(I::holder))
    }

    /// The shares of a newcomer and of principals with an unused item: one of them makes room.
    pub(crate) fn of_evictable_items<'i, I: Evictable + 'i>(
        capacity: usize,
        items: impl IntoIterator<Item = &'i I> + Clone,
        newcomer: &Principal,
    ) -> Self {
        let unused = items.clone().into_iter().filter(|item| !item.is_in_use());
        let evictable: HashSet<_> = unused.map(I::holder).collect();
        let holders = items.into_iter().map(I::holder);
        let counted = holders.filter(|it| *it == newcomer || evictable.contains(it));
        Self::with_holders(capacity, counted)
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

    /// Whether a principal gets `count` more items, by the rule of [`admits`](Self::admits).
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

    /// The key of the item to evict for an item of `newcomer`: the least recently used one that is
    /// not in use, of a principal that [makes room](Self::makes_room). Among principals with
    /// equally many, the newcomer itself comes first.
    pub fn evict_for<'i, K, I: Evictable + 'i>(
        &self,
        newcomer: &Principal,
        items: impl IntoIterator<Item = (K, &'i I)>,
    ) -> Option<K> {
        let is_evictable = |item: &I| self.makes_room(item.holder(), newcomer) && !item.is_in_use();
        let unused = items.into_iter().filter(|(_, item)| is_evictable(item));
        let order = |item: &I| (item.holder() != newcomer, item.last_use());
        unused.min_by_key(|(_, item)| order(item)).map(|(key, _)| key)
    }

    /// Counts an item that a principal acquired.
    pub fn add(&mut self, principal: &Principal) {
        self.add_many(principal, 1);
    }

    /// Counts `count` items that a principal acquired.
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

    /// Removes `count` items that a principal released.
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
    use proptest::prelude::*;

    use super::*;

    /// An item whose last use is a number.
    #[derive(Clone, Debug)]
    struct Item {
        holder: Principal,
        is_in_use: bool,
        last_use: usize,
    }

    impl Evictable for Item {
        type LastUse = usize;

        fn holder(&self) -> &Principal {
            &self.holder
        }

        fn is_in_use(&self) -> bool {
            self.is_in_use
        }

        fn last_use(&self) -> usize {
            self.last_use
        }
    }

    fn token(number: usize) -> Principal {
        Principal::Token(format!("token {number}").into())
    }

    /// Items of up to four principals in any order of use.
    fn items() -> impl Strategy<Value = Vec<Item>> {
        let uses = prop::collection::vec((0..4_usize, any::<bool>()), 0..12);
        let item = |(last_use, (holder, is_in_use)): (usize, (usize, bool))| Item {
            holder: token(holder),
            is_in_use,
            last_use,
        };
        uses.prop_map(move |it| it.into_iter().enumerate().map(item).collect()).prop_shuffle()
    }

    /// The item that the rule in words evicts: counts every holder, and the newcomer once more.
    fn expected(items: &[Item], newcomer: &Principal) -> Option<usize> {
        let count = |principal: &Principal| {
            let held = items.iter().filter(|item| item.holder == *principal).count();
            held + usize::from(principal == newcomer)
        };
        let most = items.iter().map(|item| count(&item.holder)).max()?;
        let of_most = |item: &&Item| count(&item.holder) == most && !item.is_in_use;
        let mut evictable: Vec<_> = items.iter().filter(of_most).collect();
        if evictable.iter().any(|item| item.holder == *newcomer) {
            evictable.retain(|item| item.holder == *newcomer);
        }
        evictable.iter().map(|item| item.last_use).min()
    }

    proptest! {
        #[test]
        fn eviction_takes_the_oldest_unused_item_of_the_largest_holder(
            items in items(),
            newcomer in 0..5_usize,
        ) {
            let newcomer = token(newcomer);
            let share = FairShare::with_holders(items.len(), items.iter().map(Item::holder));
            let keyed = items.iter().map(|item| (item.last_use, item));
            prop_assert_eq!(share.evict_for(&newcomer, keyed), expected(&items, &newcomer));
        }

        #[test]
        fn an_unused_item_is_evicted_unless_the_newcomer_holds_more(
            items in items(),
            newcomer in 0..5_usize,
        ) {
            let newcomer = token(newcomer);
            let share = FairShare::of_evictable_items(items.len(), &items, &newcomer);
            let evicted = share.evict_for(&newcomer, items.iter().map(|item| (item, item)));
            let of_newcomer = share.held_by(&newcomer);
            match evicted {
                Some(item) => prop_assert!(
                    !item.is_in_use
                        && (item.holder == newcomer || share.held_by(&item.holder) > of_newcomer)
                ),
                None => prop_assert!(items.iter().all(
                    |it| it.is_in_use || share.held_by(&it.holder) <= of_newcomer
                )),
            }
        }
    }

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
    fn each_principal_gets_at_most_half_of_the_remainder() {
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
    fn largest_holder_is_evicted() {
        let [ann, bob, cy] = principals();
        let share = FairShare::with_holders(4, [&ann, &ann, &ann, &bob]);
        assert!(share.is_full());
        assert!(share.makes_room(&ann, &bob) && share.makes_room(&ann, &cy));
        assert!(share.makes_room(&ann, &ann));
        assert!(!share.makes_room(&bob, &ann) && !share.makes_room(&bob, &cy));
        let even = FairShare::with_holders(4, [&ann, &ann, &bob, &bob]);
        assert!(
            even.makes_room(&ann, &ann) && !even.makes_room(&bob, &ann),
            "the newcomer is first"
        );
        assert!(even.makes_room(&ann, &cy) && even.makes_room(&bob, &cy));
    }

    #[test]
    fn only_principals_with_unused_items_make_room() {
        let [ann, bob, cy] = principals();
        let item =
            |holder: &Principal, is_in_use| Item { holder: holder.clone(), is_in_use, last_use: 0 };
        let items = [item(&ann, true), item(&ann, true), item(&bob, true), item(&bob, false)];
        let used = FairShare::of_items_in_use(8, &items);
        assert_eq!((used.held_by(&ann), used.held_by(&bob)), (2, 1));
        let for_cy = FairShare::of_evictable_items(4, &items, &cy);
        assert!(for_cy.makes_room(&bob, &cy), "ann has more, and all of it is in use");
        let for_ann = FairShare::of_evictable_items(4, &items, &ann);
        assert!(!for_ann.makes_room(&bob, &ann), "who has most does not take from others");
    }

    #[test]
    fn unheld_entries_are_not_released() {
        let [ann, bob, _] = principals();
        let mut share = FairShare::with_holders(2, [&ann]);
        share.remove(&bob);
        share.remove(&ann);
        share.remove(&ann);
        assert_eq!((share.total, share.held.len()), (0, 0));
    }
}
