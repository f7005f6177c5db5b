//! Fields of forms and queries, in their order.

use url::form_urlencoded;

/// Fields of a form or query, several of which may have one name.
#[derive(Debug, Default)]
pub(super) struct FormFields(pub(super) Vec<(String, String)>);

impl FormFields {
    /// Reads a body or query. Every text is one.
    pub(super) fn parse(text: &str) -> Self {
        Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
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
