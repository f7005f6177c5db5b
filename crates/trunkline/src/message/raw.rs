//! A JSON value kept as its text: looked into one level at a time, edited by splicing.

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

/// Bytes of a message beside its payload that the payload may keep in memory: the envelope, and members
/// that nobody looks at.
const MAX_BESIDE_BYTES: usize = 4 * 1024;

/// A JSON value as it was written.
///
/// Cheap to clone, and to cut out of a larger one: both share the bytes.
#[derive(Clone)]
pub struct Raw {
    /// Valid JSON, without white space around it.
    text: Bytes,
    /// Where its members stand, if that was noted when it was read.
    outline: Option<ObjectIndex>,
    /// Bytes that were left out of it while it was read.
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
    /// Checks that bytes are one JSON value and keeps them as they are.
    pub fn read(bytes: &Bytes) -> Result<Self, InvalidJson> {
        let value: &RawValue = serde_json::from_slice(bytes).map_err(InvalidJson)?;
        Ok(Self::of(bytes.slice_ref(value.get().as_bytes())))
    }

    /// The same for a message, whose payload is going to be looked into several times. Says whether it
    /// is nested too deep as well.
    pub(super) fn read_message(bytes: &Bytes) -> Option<(Self, bool)> {
        let read = reader::read(bytes)?;
        let outline = read.outline.map(ObjectIndex::new);
        let text = bytes.slice(read.value);
        Some((Self { text, outline, missing: 0 }, read.is_too_deep))
    }

    /// Bytes that are JSON.
    fn of(text: impl Into<Bytes>) -> Self {
        Self { text: text.into(), outline: None, missing: 0 }
    }

    /// Checks that a text is one JSON value and keeps it.
    pub fn from_text(text: &str) -> Result<Self, InvalidJson> {
        Self::read(&Bytes::copy_from_slice(text.as_bytes()))
    }

    /// The value of anything that can be written as JSON.
    pub fn from_value(value: &serde_json::Value) -> Self {
        Self::written(value)
    }

    /// A JSON string.
    pub fn from_string(text: &str) -> Self {
        Self::written(text)
    }

    /// A whole number.
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

    /// The same value, of which so many bytes were left out while it was read.
    #[must_use]
    pub(crate) fn shortened_by(self, missing: usize) -> Self {
        Self { missing, ..self }
    }

    /// Bytes that were left out of it while it was read, because the message was too long. Ask before
    /// editing the value: edits may lose the number.
    pub fn missing(&self) -> usize {
        self.missing
    }

    /// The bytes of the text.
    pub fn bytes(&self) -> &Bytes {
        &self.text
    }

    /// The same value in bytes of its own, so that it keeps nothing else in memory.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self::of(Bytes::copy_from_slice(&self.text))
    }

    /// The same value, in bytes of its own if it is a small part of so many. What is kept of a message
    /// is counted by its own bytes, so that it must not keep many more in memory.
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

    /// The text of a string.
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

    /// The value of a whole number that is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        self.text().parse().ok()
    }

    /// The value as a tree, for what has to be understood in depth; nothing if it is nested too deeply
    /// for one, or has a number that is too large.
    pub fn as_value(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&self.text).ok()
    }

    /// The value as a tree, and `null` where [`as_value`](Self::as_value) has none. Two values that
    /// cannot become trees look the same, so that foreign ones must not be compared like this.
    pub fn to_value(&self) -> serde_json::Value {
        self.as_value().unwrap_or(serde_json::Value::Null)
    }

    /// The value under a key, if this is an object that has it; the last one, if it is there twice.
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

    /// The values under several keys, unless one of them is there twice.
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

    /// The members of an object, in their order; nothing for any other value.
    pub fn members(&self) -> Vec<(String, Self)> {
        self.parts().map(|it| (it.key().into_owned(), self.part(&it))).collect()
    }

    /// The items of an array; nothing for any other value.
    pub fn items(&self) -> Vec<Self> {
        scan::items(&self.text).map(|item| Self::of(self.text.slice(item))).collect()
    }

    /// The same object with another value under a key, which is added at the end if it was not
    /// there. Every other byte stays.
    ///
    /// A value that is no object is returned as it is.
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
            return self.spliced(place.start, place.end, &[&value.text]);
        }
        let key = Self::from_string(key);
        let comma: &[u8] = if end_of_last.is_some() { b"," } else { b"" };
        let place = end_of_last.unwrap_or(1);
        self.spliced(place, place, &[comma, &key.text, b":", &value.text])
    }

    /// The same object with members at its end that it does not have yet. Nothing of it is looked
    /// through, however long it is. Every other byte stays.
    ///
    /// A value that is no object is returned as it is.
    #[must_use]
    pub fn append_members(&self, members: &[(&str, &Self)]) -> Self {
        if !self.is_object() || members.is_empty() {
            return self.clone();
        }
        let (inside, end) = self.split_tail();
        let mut comma: &[u8] = if self.is_empty() { b"" } else { b"," };
        let length = members.iter().map(|(key, value)| key.len() + value.text.len() + 4);
        let mut text = Vec::with_capacity(self.text.len() + length.sum::<usize>());
        text.extend_from_slice(&inside);
        for (key, value) in members {
            let key = Self::from_string(key);
            for part in [comma, &key.text, b":", &value.text] {
                text.extend_from_slice(part);
            }
            comma = b",";
        }
        text.extend_from_slice(&end);
        Self::of(text)
    }

    /// The bytes of an object up to where another member would be added, and those after it; all
    /// bytes of any other value, and none.
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

    /// The same object without a key. Every byte of the other members stays.
    ///
    /// A value that is no object is returned as it is.
    #[must_use]
    pub fn without(&self, key: &str) -> Self {
        self.without_members(|member| member.is(key))
    }

    /// The same object without some of its members. Every byte of the others stays.
    pub(super) fn without_members(&self, is_meant: impl Fn(&ScannedMember<'_>) -> bool) -> Self {
        let mut text = Vec::with_capacity(self.text.len());
        // What is before `from` is in the new text, or cut. A member goes with the comma before it,
        // or with the one after it if nothing stays before it.
        let (mut from, mut end_of_last, mut stays_any) = (0, 1, false);
        for member in self.parts() {
            if !is_meant(&member) {
                stays_any = true;
            } else if stays_any {
                text.extend_from_slice(&self.text[from..end_of_last]);
                from = member.value.end;
            } else {
                text.extend_from_slice(&self.text[from..1.max(from)]);
                from = scan::after_comma(&self.text, member.value.end);
            }
            end_of_last = member.value.end;
        }
        if from == 0 {
            return self.clone();
        }
        text.extend_from_slice(&self.text[from..]);
        Self::of(text)
    }

    /// The same value with others in place of some of its parts, each of which was got out of it.
    /// Every other byte stays.
    #[must_use]
    pub fn replace_slices(&self, edits: &[(Self, Self)]) -> Self {
        let mut edits: Vec<(Range<usize>, &Self)> =
            edits.iter().filter_map(|(part, value)| Some((self.range_of(part)?, value))).collect();
        edits.sort_by_key(|(place, _)| place.start);
        self.edited(&edits)
    }

    /// The same value with another in place of one of its parts, which was got out of it. Every other
    /// byte stays.
    #[must_use]
    pub fn replace_slice(&self, part: &Self, value: &Self) -> Self {
        match self.range_of(part) {
            Some(place) => self.edited(&[(place, value)]),
            None => self.clone(),
        }
    }

    /// Where a part stands that was got out of this.
    fn range_of(&self, part: &Self) -> Option<Range<usize>> {
        let start = part.text.as_ptr().addr().checked_sub(self.text.as_ptr().addr())?;
        let place = start..start + part.text.len();
        (place.end <= self.text.len()).then_some(place)
    }

    /// The same value with others in some places, in their order.
    fn edited(&self, edits: &[(Range<usize>, &Self)]) -> Self {
        let lengths = edits.iter().map(|(place, value)| (place.clone(), value.text.len()));
        let outline = self.outline.as_ref().map(|outline| outline.after(&lengths));
        let (old, new) =
            lengths.fold((0, 0), |(old, new), edit| (old + edit.0.len(), new + edit.1));
        // With just the room that is needed: sharing it costs nothing then.
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

    fn spliced(&self, start: usize, end: usize, inserted: &[&[u8]]) -> Self {
        let length = inserted.iter().map(|part| part.len()).sum::<usize>();
        let mut text = Vec::with_capacity(self.text.len() - (end - start) + length);
        text.extend_from_slice(&self.text[..start]);
        for part in inserted {
            text.extend_from_slice(part);
        }
        text.extend_from_slice(&self.text[end..]);
        Self::of(text)
    }

    /// Its members, from what was noted of them if it was.
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
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::from_text(text).unwrap()
    }

    #[test]
    fn members_are_found_whatever_their_keys_look_like() {
        let object = raw(r#" { "a\u0062" : [1, 2] , "c":{"d" :null},"ab2":"x\n" } "#);
        assert_eq!(object.get("ab").unwrap().text(), "[1, 2]");
        assert!(object.get("c").unwrap().get("d").unwrap().is_null());
        assert_eq!(object.get("ab2").unwrap().as_str().unwrap(), "x\n");
        assert_eq!(object.get("d"), None);
        assert_eq!(object.get("ab").unwrap().items()[1].as_u64(), Some(2));
        let [c, none] = object.get_all(["c", "none"]);
        assert!(c.is_some() && none.is_none());
    }

    #[test]
    fn edits_leave_every_other_byte_alone() {
        let object = raw(r#"{ "a" : 1 , "b":  2,"c" : 3 }"#);
        assert_eq!(object.with("b", &raw("[]")).text(), r#"{ "a" : 1 , "b":  [],"c" : 3 }"#);
        assert_eq!(object.with("d", &raw("4")).text(), r#"{ "a" : 1 , "b":  2,"c" : 3,"d":4 }"#);
        assert_eq!(object.without("a").text(), r#"{ "b":  2,"c" : 3 }"#);
        assert_eq!(object.without("b").text(), r#"{ "a" : 1,"c" : 3 }"#);
        assert_eq!(object.without("c").text(), r#"{ "a" : 1 , "b":  2 }"#);
        assert_eq!(raw("{ }").with("a", &raw("1")).text(), r#"{"a":1 }"#);
        let (one, two) = (raw("1"), raw("[2]"));
        let new = [("d", &one), ("e\"", &two)];
        assert_eq!(
            object.append_members(&new).text(),
            r#"{ "a" : 1 , "b":  2,"c" : 3,"d":1,"e\"":[2] }"#
        );
        assert_eq!(raw("{ }").append_members(&new).text(), r#"{"d":1,"e\"":[2] }"#);
        assert_eq!(Raw::empty_object().append_members(&new[..1]).text(), r#"{"d":1}"#);
        assert_eq!(object.append_members(&[]), object);
        assert_eq!(raw(r#"{ "a": 1 }"#).without("a").text(), "{ }");
    }

    #[test]
    fn a_key_that_is_there_twice_is_the_last_and_removed_whole() {
        let object = raw(r#"{"a":1,"b":2,"a":3}"#);
        assert_eq!(object.get("a").unwrap().text(), "3");
        assert_eq!(object.with("a", &raw("4")).text(), r#"{"a":1,"b":2,"a":4}"#);
        assert_eq!(object.without("a").text(), r#"{"b":2}"#);
        let object = raw(r#"{ "a":1 , "a":2,"b" : 3, "a" : 4 ,"c":5 ,"a":6}"#);
        assert_eq!(object.without("a").text(), r#"{"b" : 3 ,"c":5}"#);
        assert_eq!(raw(r#"{"a":1,"a":2 }"#).without("a").text(), "{ }");
    }

    #[test]
    fn a_key_that_is_there_very_often_is_removed_in_one_go() {
        let text = format!("{{{}\"b\":1}}", "\"a\":0,".repeat(200_000));
        assert_eq!(raw(&text).without("a").text(), r#"{"b":1}"#);
    }

    #[test]
    fn what_is_no_object_has_no_members_and_cannot_be_edited() {
        for text in ["1", "[1]", "\"a\"", "null"] {
            let value = raw(text);
            assert!(value.members().is_empty() && value.get("a").is_none());
            assert_eq!(value.with("a", &raw("1")), value);
            assert_eq!(value.without("a"), value);
            assert_eq!(value.append_members(&[("a", &raw("1"))]), value);
        }
    }

    #[test]
    fn deep_values_are_passed_on_without_recursion() {
        let text = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(raw(&text).get("a").unwrap().text().len(), 200_000);
    }
}
