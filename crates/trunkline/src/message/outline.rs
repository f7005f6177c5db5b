//! Where the members of an object stand, noted when it is read: what is passed on is looked into again
//! and again.

use std::ops::Range;
use std::sync::Arc;

/// Members that are noted of one object. One that has more is looked through each time.
pub(super) const MOST: usize = 8;

/// Where the members of an object stand, counted from its beginning.
#[derive(Debug, Default)]
pub(super) struct Outline {
    members: [Noted; MOST],
    count: usize,
}

/// Where a member stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Noted {
    key: Place,
    value: Place,
    /// The same of its value, if that is an object that is looked into as well.
    inside: Option<Arc<Outline>>,
}

/// A part of a text. Messages are not that long that it would need more.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    start: u32,
    end: u32,
}

impl Place {
    fn new(range: &Range<usize>) -> Option<Self> {
        Some(Self { start: range.start.try_into().ok()?, end: range.end.try_into().ok()? })
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl Noted {
    /// Where the key stands, between its quotes.
    pub(super) fn key(&self) -> Range<usize> {
        self.key.range()
    }

    pub(super) fn value(&self) -> Range<usize> {
        self.value.range()
    }

    pub(super) fn inside(&self) -> Option<&Arc<Outline>> {
        self.inside.as_ref()
    }
}

impl Outline {
    pub(super) fn members(&self) -> &[Noted] {
        &self.members[..self.count]
    }

    /// Notes another member, if there is room for it.
    #[must_use]
    pub(super) fn note(
        &mut self,
        key: &Range<usize>,
        value: &Range<usize>,
        inside: Option<Self>,
    ) -> bool {
        let (Some(room), Some((key, value))) =
            (self.members.get_mut(self.count), Place::new(key).zip(Place::new(value)))
        else {
            return false;
        };
        *room = Noted { key, value, inside: inside.map(Arc::new) };
        self.count += 1;
        true
    }

    /// The outline of the same object after parts of it were replaced: where they stood, in their
    /// order, and how long they are now.
    pub(super) fn after(
        &self,
        edits: &(impl Iterator<Item = (Range<usize>, usize)> + Clone),
    ) -> Self {
        let moved = |at: u32| {
            let before = edits.clone().take_while(|(old, _)| old.end <= at as usize);
            let grown = before.map(|(old, new)| new as i64 - old.len() as i64).sum::<i64>();
            u32::try_from(i64::from(at) + grown).unwrap_or(u32::MAX)
        };
        let moved = |place: Place| Place { start: moved(place.start), end: moved(place.end) };
        let is_same = |value: Range<usize>| {
            edits.clone().all(|(old, _)| old.end <= value.start || value.end <= old.start)
        };
        let mut outline = Self { count: self.count, ..Self::default() };
        for (new, old) in outline.members.iter_mut().zip(self.members()) {
            let inside = old.inside.clone().filter(|_| is_same(old.value()));
            *new = Noted { key: moved(old.key), value: moved(old.value), inside };
        }
        outline
    }
}
