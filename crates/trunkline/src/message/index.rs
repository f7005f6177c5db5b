//! Where the members of an object stand, noted when it is read: what is passed on is looked into again
//! and again.

use std::ops::Range;
use std::sync::Arc;

/// Members that are noted of one object. One that has more, or a key that is escaped, is looked through
/// each time.
pub(super) const MOST: usize = 8;

/// How deep objects are looked into: the message, its payload, and what that says of itself.
pub(super) const LEVELS: usize = 3;

/// Where the members of objects stand that are in each other, each counted from the beginning of its
/// object.
#[derive(Clone, Debug, Default)]
pub(super) struct MemberIndex {
    objects: [IndexedObject; LEVELS],
}

#[derive(Clone, Debug, Default)]
struct IndexedObject {
    members: [MemberSpan; MOST],
    count: usize,
    /// Which of them is the object that is noted next.
    inner: Option<usize>,
}

/// Where a member stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MemberSpan {
    key: ByteSpan,
    value: ByteSpan,
}

/// A part of a text. Messages are not that long that it would need more.
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
    /// Where the key stands, between its quotes.
    pub(super) fn key(&self) -> Range<usize> {
        self.key.range()
    }

    pub(super) fn value(&self) -> Range<usize> {
        self.value.range()
    }
}

impl MemberIndex {
    /// Whether nothing of an object at this level has been noted.
    pub(super) fn is_free(&self, level: usize) -> bool {
        self.objects[level].count == 0
    }

    /// Notes another member of the object at a level, if there is room for it.
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

    /// Says that the member noted last is the object at the next level.
    pub(super) fn enters(&mut self, level: usize) {
        let object = &mut self.objects[level];
        object.inner = object.count.checked_sub(1);
    }
}

/// The outline of one of the objects.
#[derive(Clone, Debug)]
pub(super) struct ObjectIndex {
    outline: Arc<MemberIndex>,
    level: usize,
}

impl ObjectIndex {
    /// The outermost one.
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

    /// The same of the value of a member, by its number, if that is an object that was noted as well.
    pub(super) fn inside(&self, member: usize) -> Option<Self> {
        let is_inner = self.object().inner == Some(member);
        is_inner.then(|| Self { outline: Arc::clone(&self.outline), level: self.level + 1 })
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
