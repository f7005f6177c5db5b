//! The values that an enumeration allows, with their titles, and the answers of a user that name them.

use serde_json::Value;

/// The values of an enumeration, in the order of the schema.
#[derive(Debug, Default)]
pub(super) struct EnumChoices(Vec<EnumChoice>);

/// A value of an enumeration.
#[derive(Debug)]
struct EnumChoice {
    value: Value,
    title: Option<String>,
}

impl EnumChoice {
    /// The value as a user writes it, with its title: `hero-1 (Superman)`.
    fn shown(&self) -> String {
        match self.title.as_ref().filter(|it| self.value.as_str() != Some(it)) {
            Some(title) => format!("{} ({title})", written(&self.value)),
            None => written(&self.value),
        }
    }
}

impl EnumChoices {
    /// The choices of the first of some schemas that has any. All the schemas hold.
    pub(super) fn of(schemas: &[&Value]) -> Self {
        let choices = schemas.iter().map(|schema| Self::of_schema(schema));
        choices.into_iter().find(|it| !it.is_empty()).unwrap_or_default()
    }

    /// The choices of `enum`, with the titles of `enumNames`, or of `const` in each schema of `oneOf` or `anyOf`.
    fn of_schema(schema: &Value) -> Self {
        let list = |key: &str| schema.get(key).and_then(Value::as_array);
        let text = |it: &Value| it.as_str().map(str::to_owned);
        if let Some(values) = list("enum") {
            let titles = list("enumNames").filter(|it| it.len() == values.len());
            let title = |at: usize| text(titles?.get(at)?);
            let choice = |(at, value): (usize, &Value)| EnumChoice {
                value: value.clone(),
                title: title(at),
            };
            return Self(values.iter().enumerate().map(choice).collect());
        }
        let choice = |schema: &Value| {
            let title = schema.get("title").and_then(text);
            Some(EnumChoice { value: schema.get("const")?.clone(), title })
        };
        // A schema without `const` allows other values too.
        let alternatives = list("oneOf").or_else(|| list("anyOf")).into_iter().flatten();
        Self(alternatives.map(choice).collect::<Option<_>>().unwrap_or_default())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains(&self, value: &Value) -> bool {
        self.0.iter().any(|it| it.value == *value)
    }

    /// All values with their titles, for a question.
    pub(super) fn listed(&self, separator: &str) -> String {
        self.0.iter().map(EnumChoice::shown).collect::<Vec<_>>().join(separator)
    }

    /// The value that an answer names: by itself, or by a title that no other value has.
    pub(super) fn value(&self, answer: &str) -> Option<&Value> {
        let answer = answer.trim();
        let is_value = |it: &&EnumChoice| match &it.value {
            Value::String(text) if text == answer => true,
            value => serde_json::from_str(answer).is_ok_and(|json: Value| json == *value),
        };
        let only = |is_meant: &dyn Fn(&str) -> bool| {
            let is_meant = |it: &&EnumChoice| it.title.as_deref().is_some_and(is_meant);
            let mut meant = self.0.iter().filter(is_meant);
            meant.next().filter(|_| meant.next().is_none())
        };
        let lower = answer.to_lowercase();
        let found = self.0.iter().find(is_value);
        let found = found.or_else(|| only(&|title| title == answer));
        let found = found.or_else(|| only(&|title| title.to_lowercase() == lower));
        found.map(|it| &it.value)
    }

    /// The values that an answer names, separated by commas. The error is the first part that names none.
    pub(super) fn values<'t>(&self, answer: &'t str) -> Result<Vec<Value>, &'t str> {
        if let Some(one) = self.value(answer) {
            return Ok(vec![one.clone()]);
        }
        let parts = answer.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(|part| self.value(part).cloned().ok_or(part)).collect()
    }
}

/// A value as a user writes it: a text without quotes, unless it would look like something else.
pub(super) fn written(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        other => other.to_string(),
    }
}

fn is_plain(text: &str) -> bool {
    let is_json = serde_json::from_str::<Value>(text).is_ok();
    !text.is_empty() && text.trim() == text && !text.contains([',', '(', '"']) && !is_json
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn heroes() -> EnumChoices {
        EnumChoices::of(&[&json!({ "oneOf": [
            { "const": "hero-1", "title": "Superman" },
            { "const": "hero-2", "title": "Twin" },
            { "const": "hero-3", "title": "Twin" },
            { "const": "Superman", "title": "hero-2" },
            { "const": 4 },
        ] })])
    }

    #[test]
    fn values_are_shown_with_their_titles() {
        assert_eq!(
            heroes().listed(" or "),
            "hero-1 (Superman) or hero-2 (Twin) or hero-3 (Twin) or Superman (hero-2) or 4"
        );
        let named = json!({ "enum": ["a", "b, c", "1"], "enumNames": ["A", "b, c", "One"] });
        assert_eq!(EnumChoices::of(&[&named]).listed("; "), r#"a (A); "b, c"; "1" (One)"#);
    }

    #[test]
    fn an_answer_names_a_value_or_a_title_of_one() {
        let heroes = heroes();
        for (answer, value) in [
            ("hero-1", json!("hero-1")),
            ("\"hero-1\"", json!("hero-1")),
            ("4", json!(4)),
            // A value is preferred to a title.
            ("Superman", json!("Superman")),
            ("superman", json!("hero-1")),
            ("hero-2", json!("hero-2")),
        ] {
            assert_eq!(heroes.value(answer), Some(&value), "{answer}");
        }
        assert_eq!(heroes.value("Twin"), None, "two values have this title");
        assert_eq!(heroes.value("hero"), None);
    }

    #[test]
    fn several_answers_are_separated_by_commas() {
        let fish = json!({ "anyOf": [
            { "const": "fish-1", "title": "Tuna" },
            { "const": "fish-2", "title": "Cod, salted" },
        ] });
        let fish = EnumChoices::of(&[&json!({}), &fish]);
        assert_eq!(fish.values("Tuna, fish-2,"), Ok(vec![json!("fish-1"), json!("fish-2")]));
        assert_eq!(fish.values("Cod, salted"), Ok(vec![json!("fish-2")]));
        assert_eq!(fish.values("Tuna, Trout"), Err("Trout"));
    }

    #[test]
    fn an_alternative_without_a_value_allows_others() {
        let open = json!({ "anyOf": [{ "const": "auto" }, { "type": "integer" }] });
        assert!(EnumChoices::of(&[&open]).is_empty());
    }
}
