//! Messages pass byte for byte, and edits change nothing else.

use bytes::Bytes;
use proptest::prelude::*;
use trunkline::message::{Message, Raw};
use trunkline_testkit::invariants;

/// JSON text with unusual white space, large numbers and escapes, which typed relaying would
/// change.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,5})?([eE][+-]?[0-9]{1,2})?",
        "[ -~]{0,12}".prop_map(|text| serde_json::json!(text).to_string()),
        Just(r#""\ud83d\ude00 \u0000 é""#.to_owned()),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let space = "[ \t]{0,2}";
        let key = "[a-z]{0,3}";
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..5), space).prop_map(|(items, space)| format!(
                "[{space}{}]",
                items.join(&format!("{space},"))
            )),
            (prop::collection::vec((key, inner), 0..5), space).prop_map(|(members, space)| {
                let members =
                    members.iter().map(|(key, value)| format!("\"{key}\"{space}:{value}"));
                format!("{{{space}{}{space}}}", members.collect::<Vec<_>>().join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_payload_passes_byte_for_byte(payload in json(), id in "(0|[1-9][0-9]{0,25}|\"[a-z]{0,5}\")") {
        let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m","params":{payload}}}"#);
        let response = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{payload}}}"#);
        let error = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":1,"data":{payload}}}}}"#);
        let told = format!(r#"{{"jsonrpc":"2.0","method":"n","params":{payload}}}"#);
        for text in [request, response, error, told] {
            let bytes = Bytes::from(text);
            let message = Message::read(&bytes).map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
            prop_assert_eq!(message.write(), bytes);
        }
    }

    #[test]
    fn edits_leave_every_other_byte_alone(object in json()) {
        invariants::check_message(object.as_bytes());
        let payload = format!(r#"{{"a":{object}, "_meta" : {object},"b":1}}"#);
        let request = format!(r#"{{"id":1,"method":"m","params": {payload} }}"#);
        invariants::check_message(request.as_bytes());
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        invariants::check_message(&bytes);
    }
}

#[test]
fn a_payload_shares_the_bytes_it_came_in() {
    let bytes = Bytes::from(format!(r#"{{"id":1,"result":"{}"}}"#, "x".repeat(1_000_000)));
    let Ok(Message::Response(response)) = Message::read(&bytes) else { panic!("no response") };
    let result = response.outcome.unwrap();
    assert!(bytes.as_ptr_range().contains(&result.bytes().as_ptr()));
    let detached: Raw = result.detached();
    assert!(!bytes.as_ptr_range().contains(&detached.bytes().as_ptr()));
}
