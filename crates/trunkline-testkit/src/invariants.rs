//! What must hold for any text that is given as a configuration, however broken.

use trunkline::config::{self, Loaded, Resolver, Secret, Style, resolve};

/// What every reference resolves to here. No rendering of anything may hold it.
pub const RESOLVED: &str = "resolved-secret-value-7f3a";

/// A resolver that has an answer to everything, and always the same.
pub struct Omniscient;

impl Resolver for Omniscient {
    fn variable(&self, _: &str) -> Option<Secret> {
        Some(Secret::new(RESOLVED))
    }

    fn file(&self, _: &std::path::Path) -> std::io::Result<Secret> {
        Ok(Secret::new(format!("NAME={RESOLVED}\n")))
    }

    fn input(&self, _: &str) -> Option<Secret> {
        Some(Secret::new(RESOLVED))
    }
}

/// Reads any bytes as a configuration and does everything with them that a program does.
///
/// # Panics
///
/// When something is wrong with the reader: a problem without a message, a place outside of the
/// text, a server both usable and broken, or a resolved secret in something shown.
pub fn check(bytes: &[u8]) -> Loaded {
    let loaded = config::parse("fuzz.json", bytes);
    let shown = everything_shown(&loaded);
    assert!(!shown.contains(RESOLVED), "a resolved secret is shown");
    for found in &loaded.diagnostics {
        assert!(!found.message.is_empty());
        if let Some(location) = &found.location {
            let text = location.source().text();
            let span = location.span();
            assert!(span.start() <= span.end() && span.end() <= text.len(), "{span:?}");
            assert!(text.is_char_boundary(span.start()) && text.is_char_boundary(span.end()));
            assert!(location.start() <= location.end());
        }
    }
    for broken in &loaded.broken {
        assert!(loaded.config.server(broken.as_str()).is_none(), "{broken} is broken and used");
        assert!(loaded.fails(false), "{broken} is broken without an error");
    }
    loaded
}

/// Everything a program could print about a configuration: reports, the effective configuration,
/// debug output, and what comes of filling in its secrets.
pub fn everything_shown(loaded: &Loaded) -> String {
    let mut shown = String::new();
    for found in &loaded.diagnostics {
        shown += &found.render(Style::Plain);
        shown += &found.render(Style::Colored);
        shown += &format!("{found:?}");
    }
    shown += &format!("{loaded:?}");
    shown += &loaded.config.to_json().to_string();
    for server in loaded.config.servers() {
        shown += &server.endpoint();
        match resolve(server, &Omniscient) {
            Ok(transport) => shown += &format!("{transport:?}"),
            Err(errors) => {
                for error in errors {
                    shown += &format!("{error} {error:?} {:?}", error.hint());
                }
            }
        }
    }
    shown
}
