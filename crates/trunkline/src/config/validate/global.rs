//! Settings for all servers that cannot be decoded, and unknown limits at the top of a file: the
//! servers they were written for are disabled (BUN-2).

use super::settings::SETTINGS;
use super::{LayerReader, members};
use crate::config::decode::{AnyValue, RawObject as _};
use crate::config::diagnostic::Code;
use crate::config::jsonc::{Node, ObjectMember, Value};
use crate::config::limits::LimitKeyword;
use crate::config::raw::{FileEntry, ShareEntry};
use crate::config::source::{Location, Span};

/// A setting at the top of a file that cannot be decoded.
pub(crate) struct UnreadableSetting {
    /// The key as written.
    pub(crate) key: Box<str>,
    /// The setting; `None` for a limit that is not a setting, which disables every server.
    pub(crate) setting: Option<&'static str>,
    pub(crate) location: Location,
}

impl LayerReader<'_, '_> {
    /// The settings at the top that exist and cannot be decoded.
    pub(super) fn unreadable_settings(
        &mut self,
        root: Option<&Node>,
        file: &FileEntry,
    ) -> Vec<UnreadableSetting> {
        self.host_rules(file);
        let errors = self.decoder.error_places();
        let mut found = Vec::new();
        let mut add = |key: &str, setting, span| {
            let location = self.decoder.location(span);
            found.push(UnreadableSetting { key: key.into(), setting, location });
        };
        for setting in SETTINGS {
            let again = members(root, setting).skip(1);
            let wrong = members(root, setting).filter(|member| errors.any_within(member));
            if let Some(member) = wrong.chain(again).next() {
                add(setting, Some(*setting), member.key.span);
            }
        }
        for key in ["tools", "permission", "mode"] {
            if let Some(member) = members(root, key).find(|member| errors.any_within(member)) {
                add(key, None, member.key.span);
            }
        }
        // Unknown limits in `naming`, which has none.
        let limits = self.decoder.error_places_of(Code::UnknownKey);
        if let Some(member) = members(root, "naming").find(|member| limits.any_within(member)) {
            add("naming", None, member.key.span);
        }
        for member in &file.unknown {
            let key = &*member.key.text;
            match FileEntry::near_rule(key) {
                Some("access") => {}
                Some(rule) => add(key, Some(rule), member.key.span),
                None if is_limit(file, member) => {
                    add(key, None, member.key.span);
                }
                None => {}
            }
        }
        found
    }

    /// Checks opencode's rules at the top: values that opencode cannot have written are misplaced
    /// limits.
    fn host_rules(&mut self, file: &FileEntry) {
        let rules = [("tools", &file.tools), ("permission", &file.permission)];
        for (key, written) in rules {
            let Some(written) = written.as_ref().filter(|it| it.value.is_misplaced_limit()) else {
                continue;
            };
            if is_amazon_q_agent(file) {
                let message = format!("the tools that `{key}` leaves out are not hidden here");
                let found = self.decoder.warning(Code::NotApplied, written.key, message);
                self.decoder.push(found.help("use `allowTools` of a server, or `agents`"));
                continue;
            }
            let message = format!("`{key}` is no rule for all servers");
            let found = self.decoder.error(Code::NotApplied, written.key, message);
            let help = LimitKeyword::Allow.advice(|_| false);
            self.decoder.push(found.label("a rule that is not applied").help(help));
        }
        let share = file.share.as_ref().filter(|it| it.value == ShareEntry::Conversations);
        if let Some(written) = share {
            self.shared_conversations(file.mcp.is_some(), written.span);
        }
    }

    /// Reports opencode's `share`, which concerns conversations.
    fn shared_conversations(&mut self, is_of_opencode: bool, span: Span) {
        let found = if is_of_opencode {
            let message = "`share` is opencode's rule for conversations and has no effect here";
            self.decoder.note(Code::ForeignKey, span, message)
        } else {
            let message = "`share` has to be `all` or `per-client`";
            self.decoder.error(Code::UnknownValue, span, message)
        };
        self.decoder.push(found);
    }
}

/// Keys at the top of a file that identify an agent of Amazon Q. Its `allowedTools` are tools that
/// run without confirmation, which concerns only that host.
const AMAZON_Q_MARKERS: &[&str] =
    &["includeMcpJson", "toolAliases", "toolsSettings", "useLegacyMcpJson"];

/// Whether a file is an agent of Amazon Q.
fn is_amazon_q_agent(file: &FileEntry) -> bool {
    file.unknown.iter().any(|member| AMAZON_Q_MARKERS.contains(&&*member.key.text))
}

/// Whether an unknown member at the top is a limit.
pub(super) fn is_limit(file: &FileEntry, member: &ObjectMember) -> bool {
    let is_approval = &*member.key.text == "allowedTools" && is_amazon_q_agent(file);
    let word = LimitKeyword::written(&member.key.text, &member.value);
    !is_approval && word.is_some_and(|word| word.is_possible_among(FileEntry::KEYS))
}

impl AnyValue {
    /// Whether opencode cannot have written this rule: it writes a map, or `allow` or `ask` for all
    /// tools.
    fn is_misplaced_limit(&self) -> bool {
        match &self.0.value {
            Value::Object(_) => false,
            Value::String(rule) => !matches!(&**rule, "allow" | "ask"),
            _ => true,
        }
    }

    /// Whether any value is `false` or `deny`.
    pub(super) fn denies_something(&self) -> bool {
        fn denies(node: &Node) -> bool {
            match &node.value {
                Value::Object(members) => members.iter().any(|member| denies(&member.value)),
                Value::Bool(allowed) => !allowed,
                Value::String(rule) => &**rule == "deny",
                _ => false,
            }
        }
        denies(&self.0)
    }
}
