//! FormFields of forms and queries, in their order.

use axum::extract::Query;

/// FormFields of a form or query, several of which may have one name.
#[derive(Debug, Default)]
pub(super) struct FormFields(pub(super) Vec<(String, String)>);

impl FormFields {
    /// Reads a body or query; `None` if it is not in the format of forms.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let address = format!("/?{text}").parse().ok()?;
        Query::try_from_uri(&address).ok().map(|Query(fields)| Self(fields))
    }

    /// The first value of a field; empty if there is none.
    pub(super) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(it, _)| it == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    /// The first value of a field, unless it is empty.
    pub(super) fn given(&self, name: &str) -> Option<String> {
        Some(self.get(name)).filter(|value| !value.is_empty()).map(str::to_owned)
    }
}
