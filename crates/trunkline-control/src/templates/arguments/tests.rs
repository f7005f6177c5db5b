//! Forms and the arguments they stand for.

use serde_json::{Value, json};

use super::form_arguments;

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["query", "limit"],
        "properties": {
            "query": {"type": "string"},
            "note": {"type": "string"},
            "limit": {"type": "integer"},
            "ratio": {"type": "number"},
            "deep": {"type": "boolean"},
            "sort": {"enum": ["up", "down", 3, null]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "since": {"type": ["string", "null"]},
            "options": {
                "type": "object",
                "required": ["mode"],
                "properties": {"mode": {"type": "string"}, "size": {"type": "integer"}}
            },
            "filter": {"oneOf": [{"type": "string"}, {"type": "object"}]},
            "a/b~c": {"type": "string"},
        }
    })
}

fn arguments(fields: &[(&str, &str)]) -> Result<Value, String> {
    let owned: Vec<_> =
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    form_arguments(&schema(), &owned)
}

/// The fields of a form in which the required ones are filled, and these.
fn filled(fields: &[(&str, &str)]) -> Result<Value, String> {
    let mut all = vec![("project", "p"), ("name", "t"), ("/query", "rust"), ("/limit", "5")];
    all.retain(|(name, _)| !fields.iter().any(|(other, _)| other == name));
    all.extend(fields);
    arguments(&all)
}

#[test]
fn empty_optional_fields_are_left_out() {
    let empty = ["/note", "/ratio", "/deep", "/sort", "/tags", "/since", "/filter"];
    let fields: Vec<_> = empty.iter().map(|name| (*name, "")).collect();
    assert_eq!(filled(&fields), Ok(json!({"query": "rust", "limit": 5})));
}

#[test]
fn values_have_the_types_of_the_schema() {
    let fields = [
        ("/query", "5"),
        ("/ratio", "0.25"),
        ("/deep", "false"),
        ("/sort", "\"down\""),
        ("/tags", "a b\r\n\r\nc"),
        ("/since", "null"),
        ("/filter", "{\"x\": [1]}"),
        ("/a~1b~0c", " kept "),
    ];
    let expected = json!({
        "query": "5", "limit": 5, "ratio": 0.25, "deep": false, "sort": "down", "tags": ["a b", "c"],
        "since": "null", "filter": {"x": [1]}, "a/b~c": " kept ",
    });
    assert_eq!(filled(&fields), Ok(expected));
}

#[test]
fn choices_keep_the_type_of_their_values() {
    assert_eq!(filled(&[("/sort", "3")]).unwrap()["sort"], json!(3));
    assert_eq!(filled(&[("/sort", "null")]).unwrap()["sort"], Value::Null);
    assert!(filled(&[("/sort", "\"sideways\"")]).unwrap_err().contains("not one of"));
}

#[test]
fn large_integers_are_exact() {
    assert_eq!(filled(&[("/limit", "18446744073709551615")]).unwrap()["limit"], json!(u64::MAX));
    assert_eq!(filled(&[("/limit", "-9223372036854775808")]).unwrap()["limit"], json!(i64::MIN));
    for text in ["1.5", "1e3", "99999999999999999999", "0x10", "five"] {
        let problem = filled(&[("/limit", text)]).unwrap_err();
        assert!(problem.contains("/limit") && problem.contains("not an integer"), "{problem}");
    }
}

#[test]
fn required_values_must_be_there_except_strings() {
    assert!(filled(&[("/limit", "")]).unwrap_err().contains("/limit: a value is required"));
    assert_eq!(filled(&[("/query", "")]).unwrap()["query"], json!(""));
    let nullable = json!({"type": "object", "required": ["x"],
        "properties": {"x": {"type": ["integer", "null"]}}});
    assert_eq!(form_arguments(&nullable, &[]), Ok(json!({"x": null})));
}

#[test]
fn an_object_is_left_out_unless_one_of_its_fields_is_filled() {
    let untouched = filled(&[("/options/mode", ""), ("/options/size", "")]).unwrap();
    assert!(untouched.get("options").is_none());
    let sized = filled(&[("/options/mode", ""), ("/options/size", "2")]).unwrap();
    assert_eq!(sized["options"], json!({"mode": "", "size": 2}));
}

#[test]
fn line_ends_are_the_same_with_and_without_scripts() {
    assert_eq!(filled(&[("/query", "a\r\nb")]), filled(&[("/query", "a\nb")]));
}

#[test]
fn fields_of_another_schema_are_an_error() {
    assert!(filled(&[("/gone", "x")]).unwrap_err().contains("/gone"));
    assert!(filled(&[("/options", "{}")]).is_err());
    assert!(arguments(&[("/query", "a"), ("/query", "b")]).unwrap_err().contains("two fields"));
}

#[test]
fn the_json_field_overrides_the_others() {
    let fields = [("/limit", "five"), ("json", "{\"anything\": [1, null]}")];
    assert_eq!(arguments(&fields), Ok(json!({"anything": [1, null]})));
    assert_eq!(arguments(&[("json", " ")]), Ok(json!({})));
    assert!(arguments(&[("json", "[1]")]).unwrap_err().contains("JSON object"));
    assert!(arguments(&[("json", "{")]).unwrap_err().contains("not JSON"));
}

#[test]
fn a_schema_that_no_form_can_express_needs_the_json_field() {
    let schema = json!({"oneOf": []});
    assert!(form_arguments(&schema, &[]).is_err());
    let fields = [("json".to_owned(), "{\"a\": 1}".to_owned())];
    assert_eq!(form_arguments(&schema, &fields), Ok(json!({"a": 1})));
}
