//! The `WWW-Authenticate` challenge of a server that refuses a request (RFC 9110, 6750, 9449, 9728).

use hyper::header::{HeaderMap, WWW_AUTHENTICATE};

/// Limit on the bytes of a challenge that are read: they are a few hundred.
const MAX_CHALLENGE_BYTES: usize = 8 * 1024;

/// The scheme by which a token is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TokenScheme {
    /// `Authorization: Bearer`.
    #[default]
    Bearer,
    /// `Authorization: DPoP`, with a proof that the client has a key.
    Dpop,
}

/// What a server asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Challenge {
    pub(crate) scheme: TokenScheme,
    /// The URL of the metadata of the protected resource.
    pub(crate) resource_metadata: Option<Box<str>>,
    /// The scopes that are needed.
    pub(crate) scopes: Option<Vec<Box<str>>>,
    /// The error code.
    pub(crate) error: Option<Box<str>>,
}

impl Challenge {
    /// The first challenge for a token in the headers of a response.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(WWW_AUTHENTICATE).iter();
        let texts = values.filter_map(|value| str::from_utf8(value.as_bytes()).ok());
        texts.filter(|text| text.len() <= MAX_CHALLENGE_BYTES).find_map(Self::parse)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut found: Option<Self> = None;
        let mut is_ours = false;
        for item in split_items(text) {
            let (scheme, parameter) = split_scheme(item);
            if let Some(scheme) = scheme {
                // Further challenges are not read.
                if found.is_some() {
                    break;
                }
                let scheme = token_scheme(scheme);
                is_ours = scheme.is_some();
                found = scheme.map(|scheme| Self { scheme, ..Self::default() });
            }
            if let Some(challenge) = found.as_mut().filter(|_| is_ours)
                && let Some((name, value)) = parameter.split_once('=')
            {
                challenge.set(name.trim(), &unquoted(value.trim()));
            }
        }
        found
    }

    fn set(&mut self, name: &str, value: &str) {
        let scopes = || value.split_whitespace().map(Into::into).collect();
        match name.to_ascii_lowercase().as_str() {
            "resource_metadata" => self.resource_metadata = Some(value.into()),
            "scope" => self.scopes = Some(scopes()),
            "error" => self.error = Some(value.into()),
            _ => {}
        }
    }

    /// Whether more scopes are needed than the token has.
    pub(crate) fn needs_scopes(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }

    /// Whether a proof needs the nonce of this response.
    pub(crate) fn needs_nonce(&self) -> bool {
        self.error.as_deref() == Some("use_dpop_nonce")
    }
}

fn token_scheme(name: &str) -> Option<TokenScheme> {
    if name.eq_ignore_ascii_case("bearer") {
        return Some(TokenScheme::Bearer);
    }
    name.eq_ignore_ascii_case("dpop").then_some(TokenScheme::Dpop)
}

/// The items between commas that are outside of quotes.
fn split_items(text: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |letter| {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => return true,
            _ => {}
        }
        false
    })
    .map(str::trim)
    .filter(|item| !item.is_empty())
}

/// The scheme at the start of an item, if it starts a challenge, and the parameter after it.
fn split_scheme(item: &str) -> (Option<&str>, &str) {
    let is_token = |text: &str| {
        !text.is_empty() && text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-')
    };
    match item.split_once(' ') {
        Some((scheme, rest)) if is_token(scheme) && !rest.trim_start().starts_with('=') => {
            (Some(scheme), rest.trim())
        }
        None if is_token(item) => (Some(item), ""),
        _ => (None, item),
    }
}

fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"').and_then(|it| it.strip_suffix('"')) else {
        return value.to_owned();
    };
    let mut is_escaped = false;
    let keep = |letter: &char| {
        is_escaped = *letter == '\\' && !is_escaped;
        !is_escaped
    };
    inner.chars().filter(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<Challenge> {
        Challenge::parse(text)
    }

    #[test]
    fn parameters_are_read_in_any_form() {
        let text = r#"Bearer error="insufficient_scope", scope="a b", resource_metadata="https://x/y?a=b,c""#;
        let challenge = parse(text).unwrap();
        assert!(challenge.needs_scopes());
        assert_eq!(challenge.scopes.unwrap(), ["a".into(), "b".into()]);
        assert_eq!(challenge.resource_metadata.as_deref(), Some("https://x/y?a=b,c"));
        let token = parse("bearer SCOPE=a,error = x").unwrap();
        assert_eq!((token.scopes.unwrap().len(), token.error.as_deref()), (1, Some("x")));
        assert_eq!(parse(r#"Bearer error="a\"b\\c""#).unwrap().error.as_deref(), Some(r#"a"b\c"#));
        assert_eq!(parse("Bearer").unwrap(), Challenge::default());
    }

    #[test]
    fn the_first_challenge_for_a_token_counts() {
        let several = r#"Basic realm="x, y", DPoP error="use_dpop_nonce", Bearer scope="z""#;
        let challenge = parse(several).unwrap();
        assert_eq!(challenge.scheme, TokenScheme::Dpop);
        assert!(challenge.needs_nonce() && challenge.scopes.is_none());
        for other in ["", "Basic realm=x", "Negotiate", ",,", "=", "\""] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
