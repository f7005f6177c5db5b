//! Words of a command line as arguments of tools with various schemas.

use serde_json::json;

use super::*;

fn schema(input: &serde_json::Value) -> ArgumentSchema {
    ArgumentSchema::of(&Raw::from_value(&json!({ "inputSchema": input })))
}

fn typed(input: &serde_json::Value, words: &[&str]) -> Result<String, String> {
    let words: Result<Vec<_>> = words.iter().map(|word| parse_word(word)).collect();
    let words = words.and_then(ArgumentWords::new).map_err(|error| error.to_string())?;
    let read = |file: &str| Ok(format!("content of {file}"));
    let found = words.for_tool(&schema(input), true, &read);
    found.map(|raw| raw.text().to_owned()).map_err(|error| error.to_string())
}

fn mixed() -> serde_json::Value {
    json!({ "type": "object", "required": ["text"], "properties": {
        "text": { "type": "string" },
        "count": { "type": "integer" },
        "ratio": { "type": ["number", "null"] },
        "deep": { "$ref": "#/$defs/deep" },
        "tags": { "type": "array", "items": { "type": "string" } },
        "ids": { "type": "array", "items": { "type": "integer" } },
        "flag": { "anyOf": [{ "type": "boolean" }, { "type": "null" }] },
        "mode": { "enum": ["1", "2"] },
        "mixed": { "enum": [1, "x"] },
        "either": { "type": ["string", "array"] },
        "a.b": { "type": "integer" },
        "free": {},
    }, "$defs": { "deep": { "properties": { "name": { "type": "string" }, "size": { "type": "number" } } } } })
}

#[test]
fn values_have_the_types_of_the_schema() {
    for (words, expected) in [
        (&["text=5"][..], r#"{"text":"5"}"#),
        (&["text=true", "count=5"], r#"{"text":"true","count":5}"#),
        (&["text=null", "ratio=1e2"], r#"{"text":"null","ratio":1e2}"#),
        (&["text=a=b", "flag=true"], r#"{"text":"a=b","flag":true}"#),
        (&["text=", "mode=1"], r#"{"text":"","mode":"1"}"#),
        (&["text=", "mixed=1"], r#"{"text":"","mixed":1}"#),
        (&["text={}", "free={}"], r#"{"text":"{}","free":{}}"#),
        (&["text=x", "either=[1]"], r#"{"text":"x","either":[1]}"#),
        (&["text=x", "either=5"], r#"{"text":"x","either":"5"}"#),
        (&["text=x", "count=abc"], r#"{"text":"x","count":"abc"}"#),
        (
            &["text=x", "count=12345678901234567890123"],
            r#"{"text":"x","count":12345678901234567890123}"#,
        ),
    ] {
        assert_eq!(typed(&mixed(), words).as_deref(), Ok(expected), "{words:?}");
    }
}

#[test]
fn nested_keys_lists_files_and_json() {
    for (words, expected) in [
        (
            &["text=x", "deep.size=2", "deep.name=3"][..],
            r#"{"text":"x","deep":{"size":2,"name":"3"}}"#,
        ),
        (&["text=x", "tags[]=1", "tags[]=b"], r#"{"text":"x","tags":["1","b"]}"#),
        (&["text=x", "ids[]=1", "ids[]:=2"], r#"{"text":"x","ids":[1,2]}"#),
        (&["text=@notes.txt"], r#"{"text":"content of notes.txt"}"#),
        (&[r#"text:="@x""#, "count:=1.0"], r#"{"text":"@x","count":1.0}"#),
        (&["text=x", "a.b=7"], r#"{"text":"x","a.b":7}"#),
    ] {
        assert_eq!(typed(&mixed(), words).as_deref(), Ok(expected), "{words:?}");
    }
}

#[test]
fn one_value_needs_no_name_if_one_argument_is_missing() {
    assert_eq!(typed(&mixed(), &["hello"]).as_deref(), Ok(r#"{"text":"hello"}"#));
    assert_eq!(
        typed(&mixed(), &["count=1", "x + 1 == 2"]).as_deref(),
        Ok(r#"{"count":1,"text":"x + 1 == 2"}"#)
    );
    let one = json!({ "properties": { "only": {} } });
    assert_eq!(typed(&one, &["5"]).as_deref(), Ok(r#"{"only":5}"#));
    let two = json!({ "required": ["a", "b"], "properties": { "a": {}, "b": {} } });
    let problem = typed(&two, &["5"]).unwrap_err();
    assert!(problem.contains("`5` has no name") && problem.contains("`a=5`"), "{problem}");
    let problem = typed(&mixed(), &["hello", "world"]).unwrap_err();
    assert!(problem.contains("quote a text with spaces"), "{problem}");
    let none =
        typed(&json!({ "properties": {}, "additionalProperties": false }), &["5"]).unwrap_err();
    assert!(none.contains("the tool has no arguments"), "{none}");
    // Seen: "the tool has no arguments", of a tool that takes any.
    for open in [json!({ "type": "object" }), json!({ "additionalProperties": true })] {
        let problem = typed(&open, &["5"]).unwrap_err();
        assert!(problem.contains("`5` has no name") && problem.contains("`name=5`"), "{problem}");
        assert_eq!(typed(&open, &["a=5"]).as_deref(), Ok(r#"{"a":5}"#));
    }
}

#[test]
fn mistakes_are_explained() {
    for (words, message) in [
        (&["txet=x"][..], "did you mean `text`?"),
        (&["text=x", "zzzzzz=1"], "it has text, "),
        (&["text=x", "text=y"], "`text=…` is given twice"),
        (&["text=x", "deep=1", "deep.size=2"], "`deep` has a value of its own"),
        (&["text=x", "deep.size=2", "deep=1"], "`deep` has a value of its own"),
        (&["text:={"], "`text:=…` is not JSON"),
        (&[r#"free={"a":1,"a":2}"#], "has the key `a` twice"),
    ] {
        let problem = typed(&mixed(), words).unwrap_err();
        assert!(problem.contains(message), "{words:?}: {problem}");
    }
    let open = json!({ "properties": { "a": {} }, "additionalProperties": true });
    assert!(typed(&open, &["other=1"]).is_ok());
}

#[test]
fn schemas_that_lead_to_themselves_end() {
    let input = json!({ "properties": { "a": { "$ref": "#/properties/a" }, "b": { "anyOf": [{ "$ref": "#" }] } } });
    assert_eq!(typed(&input, &["a=1", "b=x"]).as_deref(), Ok(r#"{"a":1,"b":"x"}"#));
}

/// A schema of a server may refer to itself in many ways.
#[test]
fn texts_of_recursive_schemas_are_checked_once() {
    let own = || serde_json::json!({ "$ref": "#" });
    let schema = serde_json::json!({ "inputSchema": {
        "allOf": vec![own(); 50],
        "properties": { "a": own(), "id": { "type": "string", "pattern": "^x$" } },
    } });
    let schema = ArgumentSchema::of(&Raw::from_value(&schema));
    let value =
        (0..20).fold(serde_json::json!({ "id": "y" }), |it, _| serde_json::json!({ "a": it }));
    let problems = schema.text_problems(&value);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].contains("a.id` must match the pattern `^x$`"), "{problems:?}");
}

/// Seen: `lst.0` here, and `lst[0]` in the messages on types.
#[test]
fn places_in_lists_are_written_as_they_are_typed() {
    let day = json!({ "type": "string", "format": "date" });
    let days = json!({ "type": "array", "items": { "properties": { "day": day } } });
    let schema =
        schema(&json!({ "properties": { "lst": days, "a": { "properties": { "b": day } } } }));
    let given = json!({ "lst": [{ "day": "2026-07-28" }, { "day": "x" }], "a": { "b": "y" } });
    let problems = schema.text_problems(&given);
    assert!(
        problems.iter().any(|it| it.starts_with("`lst[1].day` must be a date")),
        "{problems:?}"
    );
    assert!(problems.iter().any(|it| it.starts_with("`a.b` must be a date")), "{problems:?}");
}

/// Seen: 12 of 47 names, as if they were all.
#[test]
fn names_that_are_left_out_are_counted() {
    let properties: serde_json::Map<_, _> =
        (0..47).map(|at| (format!("p{at}"), json!({}))).collect();
    let problem = typed(&json!({ "properties": properties }), &["zzzzzz=1"]).unwrap_err();
    assert!(problem.contains("it has p0, p1, ") && problem.contains(" and 35 more"), "{problem}");
    let problem = typed(&json!({ "properties": properties }), &["zzzzzz"]).unwrap_err();
    assert!(
        problem.contains("the arguments are p0, ") && problem.contains(" and 35 more"),
        "{problem}"
    );
}

/// Seen: `day=null` was refused as a date, and no message said how to send null.
#[test]
fn null_is_no_text_where_no_such_text_fits() {
    let nullable = json!({ "properties": {
        "day": { "type": ["string", "null"], "format": "date" },
        "either": { "anyOf": [{ "type": "string", "format": "uuid" }, { "type": "null" }] },
        "code": { "type": ["string", "null"], "pattern": "^[0-9]+$" },
        "text": { "type": ["string", "null"] },
        "plain": { "anyOf": [{ "type": "string", "format": "date" }, { "type": ["string", "null"] }] },
        "days": { "type": "array", "items": { "type": ["string", "null"], "format": "date" } },
    } });
    for (word, expected) in [
        ("day=null", r#"{"day":null}"#),
        ("either=null", r#"{"either":null}"#),
        ("code=null", r#"{"code":null}"#),
        ("text=null", r#"{"text":"null"}"#),
        ("plain=null", r#"{"plain":"null"}"#),
        ("days[]=null", r#"{"days":[null]}"#),
        ("day=2026-07-28", r#"{"day":"2026-07-28"}"#),
    ] {
        assert_eq!(typed(&nullable, &[word]).as_deref(), Ok(expected), "{word}");
    }
}

/// Seen: `items[0].name=x` was sent as the text of the only argument.
#[test]
fn parts_of_items_are_errors() {
    for word in ["tags[0]=a", "tags[].name=a", "tags[0].name=a", "deep.list[2]:=1"] {
        let error = typed(&mixed(), &[word]).unwrap_err();
        assert!(error.contains("names a part of one item of a list"), "{word}: {error}");
        assert!(error.contains("[]:='{…}'"), "{word}: {error}");
    }
    for word in ["a[i] = 5", "x[0] + y = 2"] {
        let text = serde_json::to_string(word).unwrap();
        assert_eq!(typed(&mixed(), &[word]).unwrap(), format!("{{\"text\":{text}}}"));
    }
}
