//! Tests of raw values: access, edits, and the index.

use proptest::collection::vec;
use proptest::prelude::*;

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
fn non_object_has_no_members_and_cannot_be_edited() {
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

/// Keys with and without escapes, in other cases, and too many for the index.
fn key() -> impl Strategy<Value = String> {
    let known = ["a", "A", "_meta", "_Meta", "k\u{212a}", "é", "q\"", "b\\", ""];
    prop_oneof![
        proptest::sample::select(known.to_vec()).prop_map(str::to_owned),
        "[a-l]".prop_map(String::from),
    ]
}

fn value() -> impl Strategy<Value = Raw> {
    let known = ["1", "null", "[1, 2]", r#"{"a":{"b":[]}}"#, r#""}\\""#, "{ }"];
    proptest::sample::select(known.to_vec()).prop_map(raw)
}

proptest! {
    /// An index follows every edit: what it finds is what a scan of the text finds.
    #[test]
    fn an_index_stays_true(
        members in vec((key(), value()), 0..10),
        edits in vec((key(), value()), 0..6),
    ) {
        let written = |(key, value): &(String, Raw)| format!("{}: {value}", Raw::from_string(key));
        let members = members.iter().map(written).collect::<Vec<_>>().join(" ,");
        let message = format!(r#"{{"jsonrpc":"2.0","method":"m","params": {{ {members} }}}}"#);
        let message = Raw::read_message(&Bytes::from(message)).unwrap().0;
        let mut indexed = message.get("params").unwrap();
        for (key, value) in &edits {
            let scanned = raw(indexed.text());
            indexed = indexed.with(key, value);
            prop_assert_eq!(&indexed, &scanned.with(key, value));
        }
        let scanned = raw(indexed.text());
        for key in ["a", "_meta", "kk", "é", "q\"", "b\\", "", "c"] {
            prop_assert_eq!(indexed.get(key), scanned.get(key));
            prop_assert_eq!(indexed.get_unique(key), scanned.get_unique(key));
            let [(count, value)] = indexed.count_alike([key]);
            let expected = match (count, value) {
                (0, None) => Ok(None),
                (1, Some(value)) => Ok(Some(value)),
                _ => Err(DuplicateMember),
            };
            prop_assert_eq!(expected, scanned.get_unambiguous(key));
        }
        prop_assert_eq!(indexed.members(), scanned.members());
    }
}
