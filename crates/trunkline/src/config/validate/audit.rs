//! The settings under `audit`. A file that was merely found may not change them.

use super::{LayerReader, members};
use crate::config::audit_settings::AuditSettings;
use crate::config::diagnostic::Code;
use crate::config::jsonc::Node;
use crate::config::model::{FileOrigin, FoundBy, Origin};
use crate::config::raw::FileEntry;

/// The settings under `audit` that a layer changes.
#[derive(Default)]
pub(crate) struct AuditLayer {
    log: Option<bool>,
    payloads: Option<bool>,
}

impl AuditLayer {
    /// The settings of a layer that cannot be parsed: it may have wanted a log.
    pub(super) fn unreadable(origin: &Origin) -> Self {
        let (log, payloads) = (Some(true), Some(false));
        if may_choose(origin) { Self { log, payloads } } else { Self::default() }
    }

    pub(crate) fn apply(self, settings: &mut AuditSettings) {
        settings.log = self.log.unwrap_or(settings.log);
        settings.payloads = self.payloads.unwrap_or(settings.payloads);
    }
}

impl LayerReader<'_, '_> {
    /// The settings under `audit`. A mistake in them never hides calls, and never keeps more of them.
    pub(super) fn audit(&mut self, root: Option<&Node>, file: &FileEntry) -> AuditLayer {
        if !may_choose(&self.origin) {
            if let Some(member) = members(root, "audit").next() {
                let message = "`audit` has no effect in a file that was found, not named";
                let found = self.decoder.warning(Code::NotApplied, member.key.span, message);
                let help =
                    "write it into your own configuration, or name this file with `--config`";
                self.decoder.push(found.help(help));
            }
            return AuditLayer::default();
        }
        let errors = self.decoder.error_places();
        let is_wrong = members(root, "audit").any(|member| errors.any_within(member));
        let is_double = members(root, "audit").count() > 1;
        if is_wrong || is_double || !self.is_whole {
            return AuditLayer { log: Some(true), payloads: Some(false) };
        }
        let audit = file.audit.as_ref().map(|written| &written.value);
        AuditLayer {
            log: audit.and_then(|audit| audit.log.as_ref()).map(|it| it.value),
            payloads: audit.and_then(|audit| audit.payloads.as_ref()).map(|it| it.value),
        }
    }
}

/// Whether a layer may decide what is recorded.
fn may_choose(origin: &Origin) -> bool {
    !matches!(origin, Origin::File(FileOrigin { found: FoundBy::Discovered, .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn audit(text: &str) -> (bool, bool) {
        let AuditSettings { log, payloads } = *parse("mcp.json", text).config.audit();
        (log, payloads)
    }

    #[test]
    fn audit_is_off_unless_it_is_configured() {
        assert_eq!(audit("{}"), (false, false));
        assert_eq!(audit(r#"{ "audit": { "log": true } }"#), (true, false));
        assert_eq!(audit(r#"{ "audit": { "log": true, "payloads": true } }"#), (true, true));
    }

    #[test]
    fn a_mistake_hides_no_calls_and_keeps_no_payloads() {
        for text in [
            r#"{ "audit": { "log": "yes", "payloads": true } }"#,
            r#"{ "audit": { "log": false }, "audit": { "payloads": true } }"#,
            r#"{ "audit": 1 }"#,
            r#"{ "audit": { "payloads": true"#,
        ] {
            assert_eq!(audit(text), (true, false), "{text}");
        }
    }
}
