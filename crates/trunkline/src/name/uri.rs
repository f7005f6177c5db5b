//! Addresses of resources: as the server gave them, or in a form that says whose they are.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::ServerName;
use super::pattern::PatternPieces;

/// What an address in the form that says whose it is starts with.
const SCHEME: &str = "trunkline://";

/// The scheme of views of MCP Apps. Hosts take no other, so that URIs of it keep it in the form that says
/// whose they are: `ui://trunkline/SERVER/ui://…`.
const APP_SCHEME: &str = "ui://";

/// The prefix of such a URI in the form that says whose it is.
const APP_PREFIX: &str = "ui://trunkline/";

/// Longest address of a resource, in bytes: as long as the longest that common HTTP servers take.
/// Longer ones are set aside in lists, and refused in requests before any work is done on them.
pub const MAX_URI_BYTES: usize = 8 * 1024;

/// When an address is put into the form that says whose it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QualifyUris {
    /// Where two servers have the same.
    #[default]
    WhereNeeded,
    /// Always.
    Always,
}

/// An address that a server claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UriRequest<'n> {
    /// The server.
    pub server: &'n ServerName,
    /// The address, or the template of addresses, in the server's own words.
    pub uri: &'n str,
    /// Whether the user wants this server's names without anything before them.
    pub is_bare: bool,
}

/// The addresses that callers see, in the order of the claims.
///
/// An address stays as it is unless several servers have it; one of them keeps it, if it is the
/// only one whose names are bare.
///
/// ```
/// use trunkline::name::{ServerName, UriRequest, QualifyUris, expose_uris, parse_qualified_uri};
///
/// let [a, b] = ["a", "My Server"].map(|name| ServerName::new(name).unwrap());
/// let claim = |server, uri| UriRequest { server, uri, is_bare: false };
/// let claims = [claim(&a, "file:///x"), claim(&b, "file:///x"), claim(&b, "file:///{y}")];
/// let exposed = expose_uris(&claims, QualifyUris::WhereNeeded);
/// assert_eq!(exposed[0], "trunkline://a/file:///x");
/// assert_eq!(exposed[2], "file:///{y}");
/// assert_eq!(parse_qualified_uri(&exposed[1]), Some((b.clone(), "file:///x")));
/// ```
pub fn expose_uris(claims: &[UriRequest<'_>], form: QualifyUris) -> Vec<String> {
    let mut holders: HashMap<&str, UriHolders> = HashMap::with_capacity(claims.len());
    for claim in claims {
        let holders = holders.entry(claim.uri).or_default();
        holders.all += 1;
        holders.bare += usize::from(claim.is_bare);
    }
    let exposed = |claim: &UriRequest<'_>| {
        let UriHolders { all, bare } = holders[claim.uri];
        let is_alone = all == 1 && (claim.is_bare || form == QualifyUris::WhereNeeded);
        let is_only_bare = claim.is_bare && bare == 1;
        // What looks like our own form must not be taken for it.
        if (is_alone || is_only_bare) && without_prefix(claim.uri).is_none() {
            claim.uri.to_owned()
        } else {
            qualified_uri(claim.server, claim.uri)
        }
    };
    claims.iter().map(exposed).collect()
}

#[derive(Clone, Copy, Default)]
struct UriHolders {
    all: usize,
    bare: usize,
}

/// An address in the form that says whose it is. The server's own words stand at its end as they
/// are, so that it can be taken apart again and a template stays one.
pub fn qualified_uri(server: &ServerName, uri: &str) -> String {
    let prefix = if uri.starts_with(APP_SCHEME) { APP_PREFIX } else { SCHEME };
    let mut address = String::with_capacity(prefix.len() + server.as_str().len() + uri.len() + 1);
    address.push_str(prefix);
    for byte in server.as_str().bytes() {
        // Capitals as well: some programs write this part of an address in small letters.
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => address.push(byte.into()),
            _ => {
                let _ = write!(address, "%{byte:02x}");
            }
        }
    }
    address.push('/');
    address.push_str(uri);
    address
}

/// What follows the prefix of the form that says whose an address is.
fn without_prefix(address: &str) -> Option<&str> {
    address.strip_prefix(SCHEME).or_else(|| address.strip_prefix(APP_PREFIX))
}

/// The server and its own words for an address in the form that says whose it is.
pub fn parse_qualified_uri(address: &str) -> Option<(ServerName, &str)> {
    let (server, uri) = without_prefix(address)?.split_once('/')?;
    let mut bytes = Vec::with_capacity(server.len());
    let mut rest = server.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = after.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    let server = ServerName::new(&String::from_utf8(bytes).ok()?).ok()?;
    Some((server, uri))
}

/// An address in the spellings that a server may take for the same: what is hidden under one of them
/// must not be had under another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UriSpellings {
    whole: String,
    /// Without what is asked of it, and without parameters of its parts.
    path: String,
}

impl UriSpellings {
    pub(crate) fn of(uri: &str) -> Self {
        let whole = normalised(uri);
        let path = whole.split_once('?').map_or(&*whole, |(path, _)| path);
        let plain = |part: &str| part.split(';').next().unwrap_or_default().trim().to_owned();
        let path = normalised(&path.split('/').map(plain).collect::<Vec<_>>().join("/"));
        Self { whole, path }
    }

    /// Whether another address may be meant.
    pub(crate) fn are_equivalent(&self, address: &str) -> bool {
        let other = normalised(address);
        other == self.whole || other == self.path
    }

    /// Whether the address may be one that a URI template produces. An expression may stand for anything.
    pub(crate) fn fit(&self, template: &str) -> bool {
        let (marked, without) =
            (expressions_replaced(template, "\u{fffc}"), expressions_replaced(template, ""));
        let marked = normalised(&marked);
        let pieces = PatternPieces::new(marked.split('\u{fffc}'));
        pieces.matches(&self.whole) || pieces.matches(&self.path) || self.are_equivalent(&without)
    }

    /// The spelling that keeps the query, with one to three slashes after the scheme.
    pub(crate) fn written_whole(&self) -> Vec<String> {
        with_slashes(&self.whole)
    }

    /// The spellings as people write addresses, for patterns: with one to three slashes after the
    /// scheme.
    pub(crate) fn written(&self) -> Vec<String> {
        [&self.whole, &self.path].into_iter().flat_map(|text| with_slashes(text)).collect()
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

/// A URI template with something else in place of each expression.
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

/// An address for comparing: spellings that a server may take for the same become the same.
fn normalised(uri: &str) -> String {
    let decoded = percent_decoded(uri);
    let decoded = decoded.to_lowercase().replace('\\', "/");
    // For some a text ends there.
    let decoded = decoded.split('\0').next().unwrap_or_default().trim();
    let path = decoded.split_once('#').map_or(decoded, |(path, _)| path).trim_end_matches('?');
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            // The first is the scheme.
            ".." => segments.truncate(segments.len().saturating_sub(1).max(1)),
            other => segments.push(other),
        }
    }
    segments.join("/")
}

/// A text in which nothing is left to decode, in one pass: some servers decode twice, and so may
/// something before them. A byte that completes an escape takes its place.
fn percent_decoded(text: &str) -> String {
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
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> ServerName {
        ServerName::new(text).unwrap()
    }

    fn server_names() -> impl Strategy<Value = ServerName> {
        "[^\\p{Cc}]{1,20}".prop_filter_map("a valid name", |text| ServerName::new(&text).ok())
    }

    fn exposed(claims: &[(&str, &str, bool)], form: QualifyUris) -> Vec<String> {
        let servers: Vec<_> = claims.iter().map(|(server, ..)| name(server)).collect();
        let mut built = Vec::new();
        for (server, (_, uri, is_bare)) in servers.iter().zip(claims) {
            built.push(UriRequest { server, uri, is_bare: *is_bare });
        }
        expose_uris(&built, form)
    }

    #[test]
    fn an_address_changes_only_where_it_must_or_when_asked() {
        let plain = [("a", "x://1", false), ("b", "x://2", false)];
        assert_eq!(exposed(&plain, QualifyUris::WhereNeeded), ["x://1", "x://2"]);
        assert_eq!(exposed(&plain, QualifyUris::Always)[0], "trunkline://a/x://1");
        let bare = [("a", "x://1", true), ("b", "x://1", false)];
        let expected = ["x://1", "trunkline://b/x://1"];
        assert_eq!(exposed(&bare, QualifyUris::WhereNeeded), expected);
        assert_eq!(exposed(&bare, QualifyUris::Always), expected);
        let both = [("a", "x://1", true), ("b", "x://1", true)];
        let expected = ["trunkline://a/x://1", "trunkline://b/x://1"];
        assert_eq!(exposed(&both, QualifyUris::WhereNeeded), expected);
    }

    #[test]
    fn what_looks_like_our_form_is_put_into_it() {
        let claims = [("a", "trunkline://b/x", true)];
        assert_eq!(exposed(&claims, QualifyUris::WhereNeeded), ["trunkline://a/trunkline://b/x"]);
    }

    /// Hosts of MCP Apps take views only from URIs that begin with `ui://`.
    #[test]
    fn a_view_of_an_app_keeps_its_scheme() {
        let claims = [("a b", "ui://chart/view.html", false), ("c", "ui://chart/view.html", false)];
        let exposed = exposed(&claims, QualifyUris::WhereNeeded);
        assert_eq!(exposed[0], "ui://trunkline/a%20b/ui://chart/view.html");
        assert_eq!(parse_qualified_uri(&exposed[0]), Some((name("a b"), "ui://chart/view.html")));
        let bare = [("a", "ui://chart/view.html", false), ("b", "ui://trunkline/a/x", false)];
        let exposed = self::exposed(&bare, QualifyUris::WhereNeeded);
        assert_eq!(exposed, ["ui://chart/view.html", "ui://trunkline/b/ui://trunkline/a/x"]);
    }

    #[test]
    fn spellings_of_one_address_are_told() {
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
            assert!(UriSpellings::of(other).are_equivalent("x://files/secret"), "{other}");
        }
        assert!(!UriSpellings::of("x://files/secret").are_equivalent("x://files/secret?a=1"));
        assert!(UriSpellings::of("FILE:/A%2Fb?c").written().contains(&"file:///a/b".to_owned()));
        for other in ["x://files/secrets", "y://files/secret", "x://secret", "x://files/secret?a=1"]
        {
            assert_ne!(normalised(other), plain, "{other}");
        }
        assert_eq!(normalised("%zz%f%"), "%zz%f%");
        assert_eq!(normalised("x:/../../a"), "x:/a");
    }

    /// However often an escape is escaped, one pass finds what is meant.
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

    #[test]
    fn other_texts_are_no_addresses_of_ours() {
        for text in [
            "file:///x",
            "trunkline://a",
            "trunkline:///x",
            "trunkline://%zz/x",
            "trunkline://%f/x",
        ] {
            assert_eq!(parse_qualified_uri(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn addresses_can_be_taken_apart_again(server in server_names(), uri in ".{0,40}") {
            let address = qualified_uri(&server, &uri);
            prop_assert_eq!(parse_qualified_uri(&address), Some((server.clone(), &*uri)));
            prop_assert_eq!(parse_qualified_uri(&address.to_lowercase()).map(|it| it.0), Some(server));
        }

        #[test]
        fn exposed_addresses_are_unique(
            claims in proptest::collection::btree_set(("[ab]", "(trunkline://[ab]/)?[xy]", any::<bool>()), 0..8),
        ) {
            let mut claims: Vec<_> = claims.iter().map(|(a, b, c)| (&**a, &**b, *c)).collect();
            claims.dedup_by_key(|claim| (claim.0, claim.1));
            let exposed = exposed(&claims, QualifyUris::WhereNeeded);
            let unique: std::collections::BTreeSet<_> = exposed.iter().collect();
            prop_assert_eq!(unique.len(), exposed.len());
        }
    }
}
