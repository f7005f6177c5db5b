//! References in the spelling of hosts that write `$NAME`, as references of ours.

use serde_json::Value;

/// Translates the references in an entry of a host. Returns whether there were any.
pub(super) fn translate(host: &str, entry: &mut Value) -> bool {
    let prefix = match host {
        "gemini" => "$",
        "mcporter" => "$env:",
        _ => return false,
    };
    let mut is_found = false;
    translate_value(entry, prefix, &mut is_found);
    is_found
}

fn translate_value(value: &mut Value, prefix: &str, is_found: &mut bool) {
    match value {
        Value::String(text) => {
            let translated = translated(text, prefix);
            *is_found |= translated != *text;
            *text = translated;
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| translate_value(item, prefix, is_found));
        }
        Value::Object(members) => {
            members.values_mut().for_each(|it| translate_value(it, prefix, is_found));
        }
        _ => {}
    }
}

/// `$NAME` as `${NAME}`. Everything else stays as it is.
fn translated(text: &str, prefix: &str) -> String {
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(prefix) {
        shown += before;
        let length = after.find(|it| !is_name(it)).unwrap_or(after.len());
        let (name, after) = after.split_at_checked(length).unwrap_or((after, ""));
        let is_reference = name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
        // `$${` is an escaped reference of ours.
        match is_reference && !before.ends_with('$') {
            true => shown += &format!("${{{name}}}"),
            false => shown += &format!("{prefix}{name}"),
        }
        rest = after;
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::translated;

    #[test]
    fn only_names_are_references() {
        for (text, expected) in [
            ("$TOKEN", "${TOKEN}"),
            ("Bearer $TOKEN!", "Bearer ${TOKEN}!"),
            ("${TOKEN}", "${TOKEN}"),
            ("$${x}", "$${x}"),
            ("costs $5", "costs $5"),
            ("a$", "a$"),
        ] {
            assert_eq!(translated(text, "$"), expected, "{text}");
        }
        assert_eq!(translated("$env:TOKEN $HOME", "$env:"), "${TOKEN} $HOME");
    }
}
