//! Parses lines of an `envFile`: `NAME=value`, in the format of other hosts.

use super::secret::Secret;

/// The names of the variables in an `envFile`.
pub fn env_file_names(text: &str) -> Vec<Box<str>> {
    text.lines().filter_map(variable_line).map(|(name, _)| name).collect()
}

/// Parses a line of an `envFile`: `NAME=value`, optionally exported or quoted.
pub(super) fn variable_line(line: &str) -> Option<(Box<str>, Option<Secret>)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() || name.starts_with('#') {
        return None;
    }
    let quoted = |quote| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    let plain = || value.split(" #").next().unwrap_or_default().trim_end();
    let value = quoted('"').or_else(|| quoted('\'')).unwrap_or_else(plain);
    Some((name.into(), Some(Secret::new(value))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_an_env_file_are_read_as_other_hosts_read_them() {
        let read = |line| {
            variable_line(line).map(|(name, value)| format!("{name}={}", value.unwrap().expose()))
        };
        assert_eq!(read("A=1"), Some("A=1".to_owned()));
        assert_eq!(read("export B = 'two words' "), Some("B=two words".to_owned()));
        assert_eq!(read("C=\"x#y\""), Some("C=x#y".to_owned()));
        assert_eq!(read("D=x # comment"), Some("D=x".to_owned()));
        assert_eq!(read("# E=1"), None);
        assert_eq!(read("nonsense"), None);
    }
}
