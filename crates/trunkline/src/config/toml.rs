//! Parses TOML into the same tree as JSON.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeArray, DeInteger, DeTable, DeValue};

use super::jsonc::{Node, ObjectKey, ObjectMember, Value};
use super::source::Span;

/// Maximum number of mistakes that are returned: a text with more is hardly TOML.
const MAX_MISTAKES: usize = 10;

/// A TOML error with its span.
pub(crate) struct InvalidToml {
    pub(crate) message: String,
    pub(crate) span: Span,
}

/// Parses a whole text, or returns the mistakes in it.
pub(crate) fn read(text: &str) -> Result<Node, Vec<InvalidToml>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        let span = Span::new(0, text.len());
        return Ok(Node { span, value: object(table.get_ref()) });
    }
    let end = text.len();
    let mistake = |error: toml::de::Error| InvalidToml {
        message: error.message().to_owned(),
        span: error.span().map_or(Span::new(end, end), |span| Span::new(span.start, span.end)),
    };
    Err(errors.into_iter().take(MAX_MISTAKES).map(mistake).collect())
}

fn object(table: &DeTable<'_>) -> Value {
    let member = |(key, value): (&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
        let key = ObjectKey { text: key.get_ref().as_ref().into(), span: span(key) };
        ObjectMember { key, value: node(value) }
    };
    let mut members: Vec<_> = table.iter().map(member).collect();
    // The table is sorted by name; the order of headers and variables is that of the text.
    members.sort_by_key(|member| member.key.span.start());
    Value::Object(members)
}

fn array(items: &DeArray<'_>) -> Value {
    Value::Array(items.iter().map(node).collect())
}

fn node(value: &Spanned<DeValue<'_>>) -> Node {
    let content = match value.get_ref() {
        DeValue::String(text) => Value::String(text.as_ref().into()),
        DeValue::Integer(number) => integer(number),
        DeValue::Float(number) => match number.as_str() {
            // JSON has no such numbers; as text they are reported as a wrong type.
            special if special.contains(['n', 'i']) => Value::String(special.into()),
            finite => Value::Number(finite.into()),
        },
        DeValue::Boolean(is_on) => Value::Bool(*is_on),
        DeValue::Datetime(time) => Value::String(time.to_string().into()),
        DeValue::Array(items) => array(items),
        DeValue::Table(table) => object(table),
    };
    Node { span: span(value), value: content }
}

/// A number in decimal digits.
fn integer(number: &DeInteger<'_>) -> Value {
    match i64::from_str_radix(number.as_str(), number.radix()) {
        Ok(value) => Value::Number(value.to_string().into()),
        Err(_) => Value::Number(number.as_str().into()),
    }
}

fn span<T>(spanned: &Spanned<T>) -> Span {
    Span::new(spanned.span().start, spanned.span().end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_has_its_place() {
        let text =
            "z = 0x10\nt = 2026-01-02\n[a.'b c']\nx = [1, 2.5, 'é', true]\ny = { k = 'v' }\n";
        let Ok(root) = read(text) else { panic!("not TOML") };
        assert_eq!(root.get("z").unwrap().value, Value::Number("16".into()));
        assert_eq!(root.get("t").unwrap().value, Value::String("2026-01-02".into()));
        let table = root.get("a").and_then(|a| a.get("b c")).unwrap();
        let Value::Array(items) = &table.get("x").unwrap().value else { panic!("no array") };
        let written: Vec<_> =
            items.iter().map(|item| text.get(item.span.range()).unwrap()).collect();
        assert_eq!(written, ["1", "2.5", "'é'", "true"]);
        assert_eq!(table.get("y").unwrap().get("k").unwrap().value, Value::String("v".into()));
    }

    #[test]
    fn members_are_in_the_order_of_the_text() {
        let Ok(root) = read("b = 1\na = 2\n") else { panic!("not TOML") };
        let Value::Object(members) = &root.value else { panic!("no object") };
        assert_eq!(members.iter().map(|it| &*it.key.text).collect::<Vec<_>>(), ["b", "a"]);
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, at) in
            [("a = 1\na = 2\n", 6), ("a = \n", 3), ("x = \"open\n", 4), ("[a\nb = 1", 2)]
        {
            let Err(mistakes) = read(text) else { panic!("{text}") };
            assert!(mistakes[0].span.start() >= at, "{text}: {:?}", mistakes[0].span);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_strange(text in "[a=.\\[\\]{}#'\" \n\t1é]{0,40}") {
            let _ = read(&text);
        }
    }
}
