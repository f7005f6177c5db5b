//! URIs of resources: the upstream URI, or a qualified one that contains the name of the server.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::ServerName;

/// The prefix of qualified URIs.
const SCHEME: &str = "trunkline://";

/// The scheme of MCP Apps views. Hosts accept no other, so the qualified form keeps it:
/// `ui://trunkline/SERVER/ui://…`.
const APP_SCHEME: &str = "ui://";

/// The prefix of qualified URIs of MCP Apps views.
const APP_PREFIX: &str = "ui://trunkline/";

/// Longest URI of a resource, in bytes: the longest that common HTTP servers accept. Lists omit
/// longer ones; requests with them are rejected before any work is done on them.
pub const MAX_URI_BYTES: usize = 8 * 1024;

/// When URIs are qualified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QualifyUris {
    /// Where two servers have the same URI.
    #[default]
    WhereNeeded,
    /// Always.
    Always,
}

/// A resource or template that needs an exposed URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UriRequest<'n> {
    /// The server.
    pub server: &'n ServerName,
    /// The upstream URI or URI template.
    pub uri: &'n str,
    /// Whether the user configured this server's names without a prefix.
    pub is_bare: bool,
}

/// The exposed URIs, in the order of the claims.
///
/// With [`QualifyUris::WhereNeeded`], a URI is qualified only if several servers have it; one of
/// them keeps the upstream URI, if it is the only one whose names have no prefix.
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
        // A URI that looks like a qualified one must not be parsed as such.
        let is_plain = without_prefix(claim.uri).is_none() && !may_be_misread(claim.uri);
        if (is_alone || is_only_bare) && is_plain {
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

/// The qualified form of a URI. It ends with the unchanged upstream URI, so that it can be parsed
/// and a template stays a template.
pub fn qualified_uri(server: &ServerName, uri: &str) -> String {
    let prefix = if uri.starts_with(APP_SCHEME) { APP_PREFIX } else { SCHEME };
    let mut address = String::with_capacity(prefix.len() + server.as_str().len() + uri.len() + 1);
    address.push_str(prefix);
    for byte in server.as_str().bytes() {
        // Capitals are escaped too: some programs lowercase this part of a URI.
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

/// The part after the prefix of a qualified URI.
fn without_prefix(address: &str) -> Option<&str> {
    address.strip_prefix(SCHEME).or_else(|| address.strip_prefix(APP_PREFIX))
}

/// Whether clients may read a URI as another one. URL parsers ignore white space around it, control
/// characters in it and the case of its scheme; the result may be the qualified form of another
/// server, or another resource.
pub(crate) fn may_be_misread(uri: &str) -> bool {
    let is_ignored = |it: char| it.is_whitespace() || it.is_control();
    if uri.trim_matches(is_ignored) != uri || uri.contains(char::is_control) {
        return true;
    }
    let start: String = uri.chars().take(APP_PREFIX.len() + 2).collect();
    let start = start.to_lowercase().replace('\\', "/");
    let without = |scheme: &str| Some(start.strip_prefix(scheme)?.trim_start_matches('/'));
    let is_qualified = start.starts_with("trunkline:")
        || without("ui:").is_some_and(|rest| rest.starts_with("trunkline/"));
    is_qualified && without_prefix(uri).is_none()
}

/// The server and the upstream URI of a qualified URI.
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

/// A URI for a log: without query, fragment and anything before an `@`, which may be credentials,
/// also in a URI inside of it.
pub fn uri_without_credentials(uri: &str) -> String {
    let uri = uri.split(['?', '#']).next().unwrap_or_default();
    let shown = |part: &str| match part.rsplit_once('@') {
        Some((before, rest)) if !before.is_empty() => format!("***@{rest}"),
        _ => part.to_owned(),
    };
    uri.split('/').map(shown).collect::<Vec<_>>().join("/")
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
    fn uri_changes_only_on_collision_or_request() {
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
    fn upstream_uri_in_the_qualified_form_is_qualified_again() {
        let claims = [("a", "trunkline://b/x", true)];
        assert_eq!(exposed(&claims, QualifyUris::WhereNeeded), ["trunkline://a/trunkline://b/x"]);
    }

    /// MCP Apps hosts accept views only from URIs that begin with `ui://`.
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
    fn uris_that_clients_may_read_as_others_are_found() {
        for uri in [
            " y://r",
            "y://r\n",
            "y:\t//r",
            "\u{1}y://r",
            "y://\u{7f}r",
            "TRUNKLINE://o/y://r",
            "Trunkline:/o/y://r",
            "trunkline:\\\\o/y://r",
            "UI://trunkline/o/ui://x",
            "ui:///Trunkline/o/x",
        ] {
            assert!(may_be_misread(uri), "{uri:?}");
        }
        for uri in
            ["y://r", "Y://r", "y://a b", "ui://chart", "ui://trunk/x", "trunkline://o/y://r", "é"]
        {
            assert!(!may_be_misread(uri), "{uri:?}");
        }
        let (a, wild) = (ServerName::new("a").unwrap(), "TRUNKLINE://o/y://r");
        let claim = UriRequest { server: &a, uri: wild, is_bare: false };
        assert_eq!(expose_uris(&[claim], QualifyUris::WhereNeeded), [qualified_uri(&a, wild)]);
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
