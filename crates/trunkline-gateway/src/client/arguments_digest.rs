//! Digests of arguments, which bind a `requestState` to the arguments of its request.

use std::fmt;
use std::hash::{BuildHasher as _, Hash, Hasher as _, RandomState};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use trunkline::message::Raw;

/// Digests arguments with a key that only this gateway has, so that a client cannot search for
/// collisions. The arguments are not parsed into a tree.
#[derive(Clone, Default)]
pub(crate) struct ArgumentsHasher(RandomState);

/// A digest of arguments. It does not depend on the order of members, white space, or the escaping
/// of strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArgumentsDigest(u64);

impl ArgumentsHasher {
    /// The digest of arguments. If they are nested too deeply to be parsed, it is that of their
    /// bytes.
    pub(crate) fn digest(&self, arguments: &Raw) -> ArgumentsDigest {
        let mut reader = serde_json::Deserializer::from_str(arguments.text());
        let read = ValueDigest(&self.0).deserialize(&mut reader);
        ArgumentsDigest(read.unwrap_or_else(|_| self.0.hash_one((Kind::Text, arguments.bytes()))))
    }
}

impl fmt::Display for ArgumentsDigest {
    /// As sixteen characters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Separates values of different JSON types.
#[derive(Clone, Copy, Hash)]
enum Kind {
    Text,
    Null,
    Bool,
    Unsigned,
    Signed,
    Float,
    String,
    Array,
    Member,
    Object,
}

/// Deserializes one value into its digest.
#[derive(Clone, Copy)]
struct ValueDigest<'k>(&'k RandomState);

impl ValueDigest<'_> {
    fn digest<E>(self, kind: Kind, value: impl Hash) -> Result<u64, E> {
        Ok(self.0.hash_one((kind, value)))
    }
}

impl<'de> DeserializeSeed<'de> for ValueDigest<'_> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueDigest<'_> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<u64, E> {
        self.digest(Kind::Null, ())
    }

    fn visit_bool<E>(self, value: bool) -> Result<u64, E> {
        self.digest(Kind::Bool, value)
    }

    fn visit_u64<E>(self, value: u64) -> Result<u64, E> {
        self.digest(Kind::Unsigned, value)
    }

    fn visit_i64<E>(self, value: i64) -> Result<u64, E> {
        self.digest(Kind::Signed, value)
    }

    fn visit_f64<E>(self, value: f64) -> Result<u64, E> {
        self.digest(Kind::Float, value.to_bits())
    }

    fn visit_str<E>(self, value: &str) -> Result<u64, E> {
        self.digest(Kind::String, value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<u64, A::Error> {
        let mut hasher = self.0.build_hasher();
        Kind::Array.hash(&mut hasher);
        while let Some(item) = items.next_element_seed(self)? {
            hasher.write_u64(item);
        }
        Ok(hasher.finish())
    }

    /// Digests of members are added, so that their order makes no difference.
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<u64, A::Error> {
        let (mut count, mut sum) = (0_u64, 0_u64);
        while let Some(member) = members.next_entry_seed(self, self)? {
            count += 1;
            sum = sum.wrapping_add(self.digest(Kind::Member, member)?);
        }
        self.digest(Kind::Object, (count, sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::from_text(text).unwrap()
    }

    #[test]
    fn order_white_space_and_escapes_make_no_other_arguments() {
        let hasher = ArgumentsHasher::default();
        let one = hasher.digest(&raw(r#"{"a":{"x":1,"y":["é",null]},"b":true}"#));
        for same in [
            r#"{"b":true,"a":{"y":["é",null],"x":1}}"#,
            r#"{ "a" : { "x": 1, "y": [ "\u00e9", null ] }, "b": true }"#,
        ] {
            assert_eq!(hasher.digest(&raw(same)), one, "{same}");
        }
        assert_ne!(ArgumentsHasher::default().digest(&raw("{}")), hasher.digest(&raw("{}")));
    }

    #[test]
    fn everything_else_makes_other_arguments() {
        let hasher = ArgumentsHasher::default();
        let texts = [
            "{}",
            r#"{"a":{}}"#,
            r#"{"a":[]}"#,
            r#"{"a":null}"#,
            r#"{"a":""}"#,
            r#"{"a":"1"}"#,
            r#"{"a":1}"#,
            r#"{"a":-1}"#,
            r#"{"a":1.0}"#,
            r#"{"a":true}"#,
            r#"{"b":1}"#,
            r#"{"a":1,"b":1}"#,
            r#"{"a":[1,2]}"#,
            r#"{"a":[2,1]}"#,
            r#"{"a":[[1],2]}"#,
            r#"{"a":{"b":1},"c":2}"#,
            r#"{"a":{"c":2},"b":1}"#,
            r#"{"a":{"b":1,"c":2}}"#,
        ];
        let digests = texts.map(|text| hasher.digest(&raw(text)));
        for (place, digest) in digests.iter().enumerate() {
            let same = digests.iter().position(|it| it == digest);
            assert_eq!(same, Some(place), "{}", texts[place]);
        }
    }

    #[test]
    fn arguments_that_are_too_deep_count_byte_for_byte() {
        let hasher = ArgumentsHasher::default();
        let deep = |inner: &str| raw(&format!("{}{inner}{}", "[".repeat(200), "]".repeat(200)));
        assert_eq!(hasher.digest(&deep("1")), hasher.digest(&deep("1")));
        assert_ne!(hasher.digest(&deep("1")), hasher.digest(&deep(" 1")));
    }
}
