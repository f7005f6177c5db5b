//! A JSON value kept as its text: accessed one level at a time, edited by splicing.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::index::ObjectIndex;
use super::invalid::{DuplicateMember, InvalidJson};
use super::reader;
use super::scan::{self, ScannedMember};

/// Bytes of a message that its payload may keep in memory besides itself: the envelope and unused
/// members.
const MAX_BESIDE_BYTES: usize = 4 * 1024;

/// A JSON value as it was written.
///
/// Cheap to clone, and to slice out of a larger value: both share the bytes.
#[derive(Clone)]
pub struct Raw {
    /// Valid JSON, without white space around it.
    text: Bytes,
    /// Positions of the members, if the value was indexed while it was parsed.
    outline: Option<ObjectIndex>,
    /// Bytes that were dropped while the value was read.
    missing: usize,
}

impl PartialEq for Raw {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Raw {}

impl Hash for Raw {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl Raw {
    /// Validates that bytes are one JSON value and keeps them as they are.
    pub fn read(bytes: &Bytes) -> Result<Self, InvalidJson> {
        let value: &RawValue = serde_json::from_slice(bytes).map_err(InvalidJson)?;
        Ok(Self::of(bytes.slice_ref(value.get().as_bytes())))
    }

    /// Parses a message and indexes its payload, which is accessed several times. Also returns
    /// whether it is nested too deeply.
    pub(super) fn read_message(bytes: &Bytes) -> Option<(Self, bool)> {
        let read = reader::read(bytes)?;
        let outline = read.outline.map(ObjectIndex::new);
        let text = bytes.slice(read.value);
        Some((Self { text, outline, missing: 0 }, read.is_too_deep))
    }

    /// Wraps bytes that are known to be JSON.
    fn of(text: impl Into<Bytes>) -> Self {
        Self { text: text.into(), outline: None, missing: 0 }
    }

    /// Validates that a string is one JSON value and copies it.
    pub fn from_text(text: &str) -> Result<Self, InvalidJson> {
        Self::read(&Bytes::copy_from_slice(text.as_bytes()))
    }

    /// Serializes a JSON value.
    pub fn from_value(value: &serde_json::Value) -> Self {
        Self::written(value)
    }

    /// A JSON string.
    pub fn from_string(text: &str) -> Self {
        Self::written(text)
    }

    /// A non-negative integer.
    pub fn from_number(number: u64) -> Self {
        Self::of(number.to_string())
    }

    /// An object without members.
    pub fn empty_object() -> Self {
        Self::of(Bytes::from_static(b"{}"))
    }

    /// An array of values, byte for byte.
    pub fn from_items(items: &[Self]) -> Self {
        let mut text =
            Vec::with_capacity(2 + items.iter().map(|it| it.text.len() + 1).sum::<usize>());
        text.push(b'[');
        for (at, item) in items.iter().enumerate() {
            text.extend_from_slice(if at == 0 { b"" } else { b"," });
            text.extend_from_slice(&item.text);
        }
        text.push(b']');
        Self::of(text)
    }

    fn written(value: &(impl serde::Serialize + ?Sized)) -> Self {
        let text = serde_json::to_vec(value);
        Self::of(text.expect("invariant: strings and values can be written"))
    }

    /// The value as it was written.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.text).expect("invariant: checked to be JSON, which is UTF-8")
    }

    /// Records that `missing` bytes were dropped while the value was read.
    #[must_use]
    pub(crate) fn shortened_by(self, missing: usize) -> Self {
        Self { missing, ..self }
    }

    /// Bytes that were dropped while the value was read, because the message was too long. Read it
    /// before editing the value: edits may lose the number.
    pub fn missing(&self) -> usize {
        self.missing
    }

    /// The bytes of the text.
    pub fn bytes(&self) -> &Bytes {
        &self.text
    }

    /// A copy in its own allocation, so that it keeps no other bytes in memory.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self::of(Bytes::copy_from_slice(&self.text))
    }

    /// The value, copied to its own allocation if it is a small part of `whole` bytes. Stored
    /// payloads are accounted by their own size, so they must not keep many more bytes in memory.
    #[must_use]
    pub(super) fn detached_from(self, whole: usize) -> Self {
        let beside = whole.saturating_sub(self.text.len());
        match beside > self.text.len().max(MAX_BESIDE_BYTES) {
            true => Self { outline: self.outline.clone(), ..self.detached() },
            false => self,
        }
    }

    /// Whether it is an object.
    pub fn is_object(&self) -> bool {
        self.text.starts_with(b"{")
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        &*self.text == b"null"
    }

    /// The value of a string.
    pub fn as_str(&self) -> Option<Cow<'_, str>> {
        let inside = self.text.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        if memchr::memchr(b'\\', inside).is_some() {
            return serde_json::from_slice(&self.text).ok().map(Cow::Owned);
        }
        std::str::from_utf8(inside).ok().map(Cow::Borrowed)
    }

    /// The value of a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match &*self.text {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        }
    }

    /// The value of a non-negative integer.
    pub fn as_u64(&self) -> Option<u64> {
        self.text().parse().ok()
    }

    /// The parsed value; `None` if it is nested too deeply for `serde_json`, or has a number that
    /// is too large.
    pub fn as_value(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&self.text).ok()
    }

    /// The parsed value, or `null` where [`as_value`](Self::as_value) returns `None`. Two values
    /// that cannot be parsed look the same, so values from servers must not be compared like this.
    pub fn to_value(&self) -> serde_json::Value {
        self.as_value().unwrap_or(serde_json::Value::Null)
    }

    /// The value under a key, if this is an object that has it; the last one, if the key occurs
    /// twice.
    pub fn get(&self, key: &str) -> Option<Self> {
        let found = self.parts().filter(|member| member.is(key)).last();
        found.map(|member| self.part(&member))
    }

    /// The values under several keys, found in one pass.
    pub fn get_all<const N: usize>(&self, keys: [&str; N]) -> [Option<Self>; N] {
        let mut found = [const { None }; N];
        for member in self.parts() {
            if let Some(index) = keys.iter().position(|key| member.is(key)) {
                found[index] = Some(member);
            }
        }
        found.map(|member| member.map(|member| self.part(&member)))
    }

    /// The values under several keys.
    ///
    /// # Errors
    ///
    /// When one of the keys occurs twice.
    pub(super) fn get_all_once<const N: usize>(
        &self,
        keys: [&str; N],
    ) -> Result<[Option<Self>; N], DuplicateMember> {
        let mut found = [const { None }; N];
        for member in self.parts() {
            if let Some(index) = keys.iter().position(|key| member.is(key))
                && found[index].replace(self.part(&member)).is_some()
            {
                return Err(DuplicateMember);
            }
        }
        Ok(found)
    }

    /// The members of an object, in order; empty for any other value.
    pub fn members(&self) -> Vec<(String, Self)> {
        self.parts().map(|it| (it.key().into_owned(), self.part(&it))).collect()
    }

    /// The items of an array; empty for any other value.
    pub fn items(&self) -> Vec<Self> {
        scan::items(&self.text).map(|item| Self::of(self.text.slice(item))).collect()
    }

    /// The object with a value under a key, replaced in place or added at the end. All other bytes
    /// stay the same.
    ///
    /// A value that is not an object is returned unchanged.
    #[must_use]
    pub fn with(&self, key: &str, value: &Self) -> Self {
        if !self.is_object() {
            return self.clone();
        }
        let (mut found, mut end_of_last) = (None, None);
        for member in self.parts() {
            end_of_last = Some(member.value.end);
            if member.is(key) {
                found = Some(member.value);
            }
        }
        if let Some(place) = found {
            return Self { missing: 0, ..self.edited(&[(place, value)]) };
        }
        let key = written_key(key);
        let opening: &[u8] = if end_of_last.is_some() { b",\"" } else { b"\"" };
        let place = end_of_last.unwrap_or(1);
        let outline = self.outline_with((place + opening.len(), &key), value);
        let with = self.inserted(place, &[opening, key.as_bytes(), b"\":", &value.text]);
        Self { outline, ..with }
    }

    /// The index after a member was added at its end, with its key at this position.
    fn outline_with(&self, (at, key): (usize, &Cow<'_, str>), value: &Self) -> Option<ObjectIndex> {
        // Indexed keys contain no escapes.
        let outline = self.outline.as_ref().filter(|_| matches!(key, Cow::Borrowed(_)))?;
        let end = at + key.len();
        let start = end + 2;
        outline.with_member(&(at..end), &(start..start + value.text.len()))
    }

    /// The object with members added at its end, which it must not contain yet. The cost does not
    /// depend on the members it has: they are not scanned. All other bytes stay the same.
    ///
    /// A value that is not an object is returned unchanged.
    #[must_use]
    pub fn append_members(&self, members: &[(&str, &Self)]) -> Self {
        if !self.is_object() || members.is_empty() {
            return self.clone();
        }
        let (inside, end) = self.split_tail();
        let mut opening: &[u8] = if self.is_empty() { b"\"" } else { b",\"" };
        let length = members.iter().map(|(key, value)| key.len() + value.text.len() + 4);
        let mut text = Vec::with_capacity(self.text.len() + length.sum::<usize>());
        text.extend_from_slice(&inside);
        for (key, value) in members {
            let key = written_key(key);
            for part in [opening, key.as_bytes(), b"\":", &value.text] {
                text.extend_from_slice(part);
            }
            opening = b",\"";
        }
        text.extend_from_slice(&end);
        Self::of(text)
    }

    /// Splits the bytes of an object where another member would be added; for any other value, the
    /// second part is empty.
    pub fn split_tail(&self) -> (Bytes, Bytes) {
        let place = match self.is_object() {
            true => self.text[..self.text.len() - 1].trim_ascii_end().len(),
            false => self.text.len(),
        };
        (self.text.slice(..place), self.text.slice(place..))
    }

    /// Whether it is an object without members.
    pub fn is_empty(&self) -> bool {
        self.is_object() && self.text[1..self.text.len() - 1].trim_ascii().is_empty()
    }

    /// The object without a key. All bytes of the other members stay the same.
    ///
    /// A value that is not an object is returned unchanged.
    #[must_use]
    pub fn without(&self, key: &str) -> Self {
        self.without_members(|member| member.is(key))
    }

    /// The parts of the text that stay without some keys, in order and not copied: all of it if it has none of
    /// them, or is not an object.
    pub fn slices_without(&self, keys: &[&str]) -> Vec<Bytes> {
        let stays = self.ranges_without(|member| keys.iter().any(|key| member.is(key)));
        stays.into_iter().map(|range| self.text.slice(range)).collect()
    }

    /// The object without some of its members. All bytes of the others stay the same.
    pub(super) fn without_members(&self, is_meant: impl Fn(&ScannedMember<'_>) -> bool) -> Self {
        let stays = self.ranges_without(is_meant);
        if stays.len() == 1 {
            return self.clone();
        }
        let mut text = Vec::with_capacity(stays.iter().map(Range::len).sum());
        stays.into_iter().for_each(|range| text.extend_from_slice(&self.text[range]));
        Self::of(text)
    }

    /// The parts of the text that stay without some of its members.
    fn ranges_without(&self, is_meant: impl Fn(&ScannedMember<'_>) -> bool) -> Vec<Range<usize>> {
        let mut stays = Vec::new();
        // The bytes before `from` stay or are cut. A member is cut with the comma before it, or
        // with the one after it if no member before it stays.
        let (mut from, mut end_of_last, mut stays_any) = (0, 1, false);
        for member in self.parts() {
            if !is_meant(&member) {
                stays_any = true;
            } else if stays_any {
                stays.push(from..end_of_last);
                from = member.value.end;
            } else {
                stays.push(from..1.max(from));
                from = scan::after_comma(&self.text, member.value.end);
            }
            end_of_last = member.value.end;
        }
        stays.push(from..self.text.len());
        stays
    }

    /// Replaces several parts of the value, each of which was sliced out of it. All other bytes
    /// stay the same.
    #[must_use]
    pub fn replace_slices(&self, edits: &[(Self, Self)]) -> Self {
        let mut edits: Vec<(Range<usize>, &Self)> =
            edits.iter().filter_map(|(part, value)| Some((self.range_of(part)?, value))).collect();
        edits.sort_by_key(|(place, _)| place.start);
        self.edited(&edits)
    }

    /// Replaces one part of the value, which was sliced out of it. All other bytes stay the same.
    #[must_use]
    pub fn replace_slice(&self, part: &Self, value: &Self) -> Self {
        match self.range_of(part) {
            Some(place) => self.edited(&[(place, value)]),
            None => self.clone(),
        }
    }

    /// Position of a part that was sliced out of this value.
    fn range_of(&self, part: &Self) -> Option<Range<usize>> {
        let start = part.text.as_ptr().addr().checked_sub(self.text.as_ptr().addr())?;
        let place = start..start + part.text.len();
        (place.end <= self.text.len()).then_some(place)
    }

    /// Replaces ranges of the value, given in order.
    fn edited(&self, edits: &[(Range<usize>, &Self)]) -> Self {
        let lengths = edits.iter().map(|(place, value)| (place.clone(), value.text.len()));
        let outline = self.outline.as_ref().map(|outline| outline.after(&lengths));
        let (old, new) =
            lengths.fold((0, 0), |(old, new), edit| (old + edit.0.len(), new + edit.1));
        // Exact capacity, so that the conversion to `Bytes` does not copy.
        let mut text = Vec::with_capacity((self.text.len() + new).saturating_sub(old));
        let mut end_of_last = 0;
        for (place, value) in edits {
            text.extend_from_slice(&self.text[end_of_last..place.start]);
            text.extend_from_slice(&value.text);
            end_of_last = place.end;
        }
        text.extend_from_slice(&self.text[end_of_last..]);
        Self { text: text.into(), outline, missing: self.missing }
    }

    /// The value with bytes inserted at a position.
    fn inserted(&self, place: usize, inserted: &[&[u8]]) -> Self {
        let length = inserted.iter().map(|part| part.len()).sum::<usize>();
        let mut text = Vec::with_capacity(self.text.len() + length);
        text.extend_from_slice(&self.text[..place]);
        for part in inserted {
            text.extend_from_slice(part);
        }
        text.extend_from_slice(&self.text[place..]);
        Self::of(text)
    }

    /// Its members, from the index if there is one.
    pub(super) fn parts(&self) -> impl Iterator<Item = ScannedMember<'_>> {
        let noted = self.outline.as_ref().map(ObjectIndex::members);
        let scanned = noted.is_none().then(|| scan::members(&self.text));
        let noted = noted.unwrap_or_default().iter().enumerate();
        let noted = noted.map(|noted| ScannedMember::noted(&self.text, noted));
        noted.chain(scanned.into_iter().flatten())
    }

    pub(super) fn part(&self, member: &ScannedMember<'_>) -> Self {
        let outline = member.number.and_then(|number| self.outline.as_ref()?.inside(number));
        Self { text: self.text.slice(member.value.clone()), outline, missing: 0 }
    }
}

/// A key as it is written between its quotes; borrowed if it needs no escapes.
fn written_key(key: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    if key.bytes().all(is_plain) {
        return Cow::Borrowed(key);
    }
    let quoted = Raw::from_string(key);
    let inside = quoted.text().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    Cow::Owned(inside.unwrap_or_default().to_owned())
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests;
