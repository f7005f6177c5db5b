//! Index of the members of an object, built while a message is parsed, because a forwarded message
//! is accessed many times.

use std::ops::Range;
use std::sync::Arc;

/// Limit on the indexed members of one object. An object with more members, or with an escaped key,
/// is scanned on every access.
pub(super) const MOST: usize = 8;

/// Depth of the index: the message, its payload, and the `_meta` of the payload.
pub(super) const LEVELS: usize = 3;

/// Positions of the members of nested objects, each relative to the start of its object.
#[derive(Clone, Debug, Default)]
pub(super) struct MemberIndex {
    objects: [IndexedObject; LEVELS],
}

#[derive(Clone, Debug, Default)]
struct IndexedObject {
    members: [MemberSpan; MOST],
    count: usize,
    /// The index of the member whose value is the indexed object of the next level.
    inner: Option<usize>,
}

/// Position of a member.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MemberSpan {
    key: ByteSpan,
    value: ByteSpan,
}

/// A byte range. Messages are shorter than 4 GiB.
#[derive(Clone, Copy, Debug, Default)]
struct ByteSpan {
    start: u32,
    end: u32,
}

impl ByteSpan {
    fn new(range: &Range<usize>) -> Option<Self> {
        Some(Self { start: range.start.try_into().ok()?, end: range.end.try_into().ok()? })
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl MemberSpan {
    /// Position of the key, between its quotes.
    pub(super) fn key(&self) -> Range<usize> {
        self.key.range()
    }

    pub(super) fn value(&self) -> Range<usize> {
        self.value.range()
    }
}

impl MemberIndex {
    /// Whether no object at this level has been indexed.
    pub(super) fn is_free(&self, level: usize) -> bool {
        self.objects[level].count == 0
    }

    /// Adds a member to the object at a level. Returns `false` if it does not fit.
    #[must_use]
    pub(super) fn note(&mut self, level: usize, key: &Range<usize>, value: &Range<usize>) -> bool {
        let object = &mut self.objects[level];
        let (Some(room), Some((key, value))) =
            (object.members.get_mut(object.count), ByteSpan::new(key).zip(ByteSpan::new(value)))
        else {
            return false;
        };
        *room = MemberSpan { key, value };
        object.count += 1;
        true
    }

    /// Records that the last member added is the object at the next level.
    pub(super) fn enters(&mut self, level: usize) {
        let object = &mut self.objects[level];
        object.inner = object.count.checked_sub(1);
    }
}

/// The index of one of the nested objects.
#[derive(Clone, Debug)]
pub(super) struct ObjectIndex {
    outline: Arc<MemberIndex>,
    level: usize,
}

impl ObjectIndex {
    /// The index of the outermost object.
    pub(super) fn new(outline: MemberIndex) -> Self {
        Self { outline: Arc::new(outline), level: 0 }
    }

    fn object(&self) -> &IndexedObject {
        &self.outline.objects[self.level]
    }

    pub(super) fn members(&self) -> &[MemberSpan] {
        let object = self.object();
        &object.members[..object.count]
    }

    /// The index of the value of a member, if that value was indexed as well.
    pub(super) fn inside(&self, member: usize) -> Option<Self> {
        let is_inner = self.object().inner == Some(member);
        is_inner.then(|| Self { outline: Arc::clone(&self.outline), level: self.level + 1 })
    }

    /// The index of the object with another member, which comes after all others and moves none of them;
    /// `None` if it does not fit. The key has no escapes.
    pub(super) fn with_member(&self, key: &Range<usize>, value: &Range<usize>) -> Option<Self> {
        let mut outline = MemberIndex::clone(&self.outline);
        let fits = outline.note(self.level, key, value);
        fits.then(|| Self { outline: Arc::new(outline), level: self.level })
    }

    /// The index of the object after edits, given as the replaced ranges in order and their new
    /// lengths.
    pub(super) fn after(
        &self,
        edits: &(impl Iterator<Item = (Range<usize>, usize)> + Clone),
    ) -> Self {
        let moved = |at: u32| {
            let before = edits.clone().take_while(|(old, _)| old.end <= at as usize);
            let grown = before.map(|(old, new)| new as i64 - old.len() as i64).sum::<i64>();
            u32::try_from(i64::from(at) + grown).unwrap_or(u32::MAX)
        };
        let moved = |place: ByteSpan| ByteSpan { start: moved(place.start), end: moved(place.end) };
        let is_same = |value: Range<usize>| {
            edits.clone().all(|(old, _)| old.end <= value.start || value.end <= old.start)
        };
        let mut outline = MemberIndex::clone(&self.outline);
        let object = &mut outline.objects[self.level];
        let members = &mut object.members[..object.count];
        object.inner = object.inner.filter(|inner| is_same(members[*inner].value()));
        for member in members {
            *member = MemberSpan { key: moved(member.key), value: moved(member.value) };
        }
        Self { outline: Arc::new(outline), level: self.level }
    }
}
