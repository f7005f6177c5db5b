//! Spellings of URIs that a server may treat as equal, and URI templates to match them with.

use std::borrow::Cow;

use super::pattern::PatternPieces;

/// Replaces an expression of a URI template while the rest of it is normalised.
const EXPRESSION: &str = "\u{fffc}";

/// The spellings of a URI that a server may treat as equal: a resource that is hidden under one of
/// them must not be readable under another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UriSpellings {
    whole: Box<str>,
    /// Without the query and without parameters of path segments; `None` if that is the same.
    path: Option<Box<str>>,
}

impl UriSpellings {
    pub(crate) fn of(uri: &str) -> Self {
        let whole = normalised(uri);
        let has_parts = |it: char| matches!(it, '?' | ';') || it.is_whitespace();
        if !whole.contains(has_parts) {
            return Self { whole: whole.into(), path: None };
        }
        let path = whole.split_once('?').map_or(&*whole, |(path, _)| path);
        let plain = |part: &str| part.split(';').next().unwrap_or_default().trim().to_owned();
        let path = normalised(&path.split('/').map(plain).collect::<Vec<_>>().join("/"));
        let path = (path != whole).then(|| path.into());
        Self { whole: whole.into(), path }
    }

    /// The normalised forms: of the whole URI, and of its path if that differs.
    pub(crate) fn forms(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.whole).chain(self.path.as_deref())
    }

    /// The normalised form of the whole URI.
    pub(crate) fn whole(&self) -> &str {
        &self.whole
    }

    /// Whether a URI with this normalised form may be the same.
    pub(crate) fn include(&self, normal_form: &str) -> bool {
        self.forms().any(|form| form == normal_form)
    }

    /// Whether a URI template may produce the URI. An expression matches anything.
    pub(crate) fn fit(&self, template: &TemplateForm) -> bool {
        self.include(&template.plain) || self.forms().any(|form| template.pieces.matches(form))
    }

    /// The spellings that keep the query, with one to three slashes after the scheme.
    pub(crate) fn written_whole(&self) -> Vec<String> {
        with_slashes(&self.whole)
    }

    /// The spellings to match patterns with: with one to three slashes after the scheme.
    pub(crate) fn written(&self) -> Vec<String> {
        self.forms().flat_map(with_slashes).collect()
    }
}

/// A URI template, prepared for matching with URIs and their spellings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TemplateForm {
    /// The literals between the expressions, as written.
    own: PatternPieces,
    /// The normalised literals between the expressions.
    pieces: PatternPieces,
    /// The normalised template without the expressions, which may expand to nothing.
    plain: Box<str>,
}

impl TemplateForm {
    pub(crate) fn of(template: &str) -> Self {
        let marked = normalised(&expressions_replaced(template, EXPRESSION));
        let pieces = PatternPieces::new(marked.split(EXPRESSION));
        let plain = normalised(&expressions_replaced(template, "")).into();
        Self { own: own_pieces(template), pieces, plain }
    }

    /// The literals between the expressions, as written. Every expression matches anything.
    pub(crate) fn own(&self) -> &PatternPieces {
        &self.own
    }

    /// The normalised literals between the expressions.
    pub(crate) fn pieces(&self) -> &PatternPieces {
        &self.pieces
    }

    /// The normalised template without the expressions.
    pub(crate) fn plain(&self) -> &str {
        &self.plain
    }
}

fn with_slashes(text: &str) -> Vec<String> {
    match text.split_once(":/") {
        Some((scheme, rest)) => {
            ["/", "//", "///"].map(|it| format!("{scheme}:{it}{rest}")).to_vec()
        }
        None => vec![text.to_owned()],
    }
}

fn own_pieces(template: &str) -> PatternPieces {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((_, after)) = after.split_once('}') else { break };
        pieces.push(before);
        rest = after;
    }
    pieces.push(rest);
    PatternPieces::new(pieces)
}

/// Replaces each expression of a URI template.
fn expressions_replaced(template: &str, replacement: &str) -> String {
    let mut replaced = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((_, after)) = after.split_once('}') else { break };
        replaced.push_str(before);
        replaced.push_str(replacement);
        rest = after;
    }
    replaced.push_str(rest);
    replaced
}

/// Normalises a URI, so that spellings that a server may treat as equal become equal.
pub(crate) fn normalised(uri: &str) -> String {
    let decoded = percent_decoded(uri).to_lowercase();
    // Some servers treat a NUL as the end of the string.
    let decoded = decoded.split('\0').next().unwrap_or_default().trim();
    let path = decoded.split_once('#').map_or(decoded, |(path, _)| path).trim_end_matches('?');
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split(['/', '\\']) {
        match segment {
            "" | "." => {}
            // The first segment is the scheme.
            ".." => segments.truncate(segments.len().saturating_sub(1).max(1)),
            other => segments.push(other),
        }
    }
    segments.join("/")
}

/// Decodes all percent escapes in one pass, including escapes of escapes: some servers decode
/// twice, and so may a proxy before them. A byte that completes an escape replaces it.
fn percent_decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return text.into();
    }
    let mut bytes: Vec<u8> = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        bytes.push(byte);
        while let Some((rest, value)) = bytes.split_last_chunk::<3>().and_then(|(rest, escape)| {
            let [b'%', digits @ ..] = escape else { return None };
            let are_digits = digits.iter().all(u8::is_ascii_hexdigit);
            let digits = std::str::from_utf8(digits).ok().filter(|_| are_digits)?;
            Some((rest.len(), u8::from_str_radix(digits, 16).ok()?))
        }) {
            bytes.truncate(rest);
            bytes.push(value);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_mean(uri: &str, other: &str) -> bool {
        UriSpellings::of(uri).include(&normalised(other))
    }

    #[test]
    fn spellings_of_one_uri_are_recognized() {
        let plain = normalised("x://files/secret");
        for other in [
            "X://files/secret",
            "x://files/%73ecret",
            "x://files/%2573ecret",
            "x://files//secret",
            "x:/files/secret/",
            "x://files/./secret",
            "x://files/a/../secret",
            "x://files/a%2f..%2Fsecret",
            "x://files\\secret",
            "x://files/secret#part",
            "x://files/secret?",
        ] {
            assert_eq!(normalised(other), plain, "{other}");
        }
        for other in [
            "x://files/secret?a=1",
            "x://files/secret;v=1",
            "x://files;a/secret;v=1?b#c",
            "x://files/secret%00.txt",
            "x://files/secret%20",
            "x://files/%252573ecret",
            "x://files/secret%3Fa",
        ] {
            assert!(may_mean(other, "x://files/secret"), "{other}");
        }
        assert!(!may_mean("x://files/secret", "x://files/secret?a=1"));
        assert!(UriSpellings::of("FILE:/A%2Fb?c").written().contains(&"file:///a/b".to_owned()));
        for other in ["x://files/secrets", "y://files/secret", "x://secret", "x://files/secret?a=1"]
        {
            assert_ne!(normalised(other), plain, "{other}");
        }
        assert_eq!(normalised("%zz%f%"), "%zz%f%");
        assert_eq!(normalised("x:/../../a"), "x:/a");
    }

    /// However often an escape is escaped, one pass decodes it.
    #[test]
    fn escapes_of_escapes_are_decoded_in_one_pass() {
        for (text, expected) in [
            ("%41", "A"),
            ("%2541", "A"),
            ("%%34%31", "A"),
            ("%%3431", "C1"),
            ("%+1%4", "%+1%4"),
            ("%25252525252525252525252525252525252525252541", "A"),
        ] {
            assert_eq!(percent_decoded(text), expected, "{text}");
        }
    }
}
