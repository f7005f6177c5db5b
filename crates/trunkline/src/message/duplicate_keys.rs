//! Access to object members whose key occurs twice, or again in another case. JSON parsers disagree
//! on which of two duplicates wins, and some ignore case, so a value checked here could differ from
//! the value that the recipient reads.

use std::collections::{HashMap, HashSet};

use super::invalid::DuplicateMember;
use super::raw::Raw;

impl Raw {
    /// The value under a key that is security relevant: returned only if every parser finds the
    /// same one, including parsers that take the first of two duplicates or ignore case.
    ///
    /// # Errors
    ///
    /// When several members match the key.
    pub fn get_unique(&self, key: &str) -> Result<Option<Self>, DuplicateMember> {
        let mut alike = self.parts().filter(|member| member.is_like(key));
        let Some(found) = alike.next() else { return Ok(None) };
        match alike.next() {
            None => Ok(found.is(key).then(|| self.part(&found))),
            Some(_) => Err(DuplicateMember),
        }
    }

    /// The value under an optional key: `None` only if no parser finds a value under it.
    ///
    /// # Errors
    ///
    /// When several members match the key, or the only one differs in case.
    pub fn get_unambiguous(&self, key: &str) -> Result<Option<Self>, DuplicateMember> {
        let mut alike = self.parts().filter(|member| member.is_like(key));
        match (alike.next(), alike.next()) {
            (None, _) => Ok(None),
            (Some(found), None) if found.is(key) => Ok(Some(self.part(&found))),
            _ => Err(DuplicateMember),
        }
    }

    /// The number of members that some parser may find under each of these keys, and the first of them under
    /// exactly this key, in one pass.
    pub(crate) fn count_alike<const N: usize>(
        &self,
        keys: [&str; N],
    ) -> [(usize, Option<Self>); N] {
        let mut found = [const { (0, None) }; N];
        for member in self.parts() {
            for ((count, value), key) in found.iter_mut().zip(keys) {
                if member.is_like(key) {
                    *count += 1;
                    if value.is_none() && member.is(key) {
                        *value = Some(self.part(&member));
                    }
                    // Keys that are alike are the same key.
                    break;
                }
            }
        }
        found
    }

    /// All values that some parser may find under one of these keys, each with the index of the
    /// key, in one pass.
    pub(crate) fn get_alike<const N: usize>(&self, keys: [&str; N]) -> Vec<(usize, Self)> {
        let found = self.parts().filter_map(|member| {
            let number = keys.iter().position(|key| member.is_like(key))?;
            Some((number, self.part(&member)))
        });
        found.collect()
    }

    /// The object with one value under a key, and no other that some parser may find under it.
    #[must_use]
    pub(crate) fn with_unambiguous(&self, key: &str, value: &Self) -> Self {
        match self.get_unambiguous(key) {
            Ok(_) => self.with(key, value),
            Err(DuplicateMember) => {
                self.without_members(|member| member.is_like(key)).with(key, value)
            }
        }
    }

    /// The object with each duplicate key reduced to its last value. All other bytes stay the same;
    /// without duplicates the object is unchanged.
    #[must_use]
    pub(crate) fn deduplicated(self) -> Self {
        let mut keys: Vec<_> = self.parts().map(|member| member.key()).collect();
        keys.sort_unstable();
        if keys.windows(2).all(|pair| pair[0] != pair[1]) {
            drop(keys);
            return self;
        }
        let mut last = HashMap::new();
        let mut doubles = HashSet::new();
        for (place, member) in self.parts().enumerate() {
            if last.insert(member.key(), place).is_some() {
                doubles.insert(member.key());
            }
        }
        let is_last = |place: usize, key: &str| last.get(key) == Some(&place);
        let kept = self.parts().enumerate().filter_map(|(place, member)| {
            let key = member.key();
            let is_kept = doubles.contains(&key) && is_last(place, &key);
            is_kept.then(|| (key, self.part(&member)))
        });
        let kept: Vec<_> = kept.collect();
        let kept: Vec<_> = kept.iter().map(|(key, value)| (&**key, value)).collect();
        self.without_members(|member| doubles.contains(&member.key())).append_members(&kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::from_text(text).unwrap()
    }

    #[test]
    fn decisive_keys_must_be_unique() {
        let alone = |text: &str| raw(text).get_unique("task").map(|it| it.map(|it| it.to_value()));
        assert_eq!(alone(r#"{"a":0,"t\u0061sk":1,"tasks":2,"tas":3}"#), Ok(Some(1.into())));
        assert_eq!(alone(r#"{"Task":1}"#), Ok(None));
        for double in ["task", "Task", "\\u0074ask", "ta\\u0053k", "taſk", "tas\u{212a}"] {
            for text in
                [format!(r#"{{"task":1,"{double}":2}}"#), format!(r#"{{"{double}":2,"task":1}}"#)]
            {
                assert_eq!(alone(&text), Err(DuplicateMember), "{text}");
            }
        }
    }

    #[test]
    fn nothing_is_mistaken_for_a_key_that_is_absent() {
        let found =
            |text: &str| raw(text).get_unambiguous("_meta").map(|it| it.map(|it| it.to_value()));
        assert_eq!(found(r#"{"a":0,"meta":1}"#), Ok(None));
        assert_eq!(found(r#"{"_met\u0061":1}"#), Ok(Some(1.into())));
        for text in [r#"{"_META":1}"#, r#"{"_meta":1,"_Meta":2}"#, r#"{"_meta":1,"_meta":1}"#] {
            assert_eq!(found(text), Err(DuplicateMember), "{text}");
            let alone = raw(text).with_unambiguous("_meta", &raw("3"));
            assert_eq!(alone.text(), r#"{"_meta":3}"#);
        }
        let edited = raw(r#"{ "_meta" : 1,"b":2 }"#).with_unambiguous("_meta", &raw("3"));
        assert_eq!(edited.text(), r#"{ "_meta" : 3,"b":2 }"#);
    }

    #[test]
    fn keys_are_there_once_with_their_last_value() {
        let text = r#"{"a":1,"b":2,"\u0061":3,"c":4,"b":5,"a":6}"#;
        assert_eq!(raw(text).deduplicated().text(), r#"{"c":4,"b":5,"a":6}"#);
        let plain = r#"{ "a":1, "A" : 2 }"#;
        assert_eq!(raw(plain).deduplicated().text(), plain);
        assert_eq!(raw("[1,1]").deduplicated().text(), "[1,1]");
    }
}
