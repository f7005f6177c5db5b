//! Recognizes keys that users and other hosts write for limits: an unknown one would be a limit
//! that is not applied (BUN-2).

use super::jsonc::{Node, ObjectMember, Value};

/// The meaning of a key that some host uses for a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitKeyword {
    /// The only items that may be used.
    Allow,
    /// Items that may not be used.
    Deny,
    /// The access.
    Access,
    /// Whether a server is trusted.
    Trust,
    /// Whether an entry is used at all; `true` for keys such as `enabled`.
    Switch(bool),
    /// The only servers or bundles that may be used.
    Scope,
}

/// Words for allowed items, alone or before `tool`, `tools` or `list`.
const ALLOWING: &[&str] = &[
    "allow",
    "allowed",
    "include",
    "included",
    "includes",
    "only",
    "restrict",
    "restricted",
    "restrictto",
    "whitelist",
    "whitelisted",
    "available",
];

/// Words for denied items, alone or before `tool`, `tools` or `list`.
const DENYING: &[&str] = &[
    "deny",
    "denied",
    "exclude",
    "excluded",
    "excludes",
    "except",
    "block",
    "blocked",
    "disallow",
    "disallowed",
    "forbid",
    "forbidden",
    "blacklist",
    "blacklisted",
    "without",
    "hide",
];

/// Suffixes of those words.
const FOLLOWING: &[&str] = &["", "tool", "tools", "toolnames", "list"];

/// Shortest word in which two misspellings are recognized, in letters.
const LONG_WORD: usize = 10;

/// Words that are recognized as limits even if misspelt. Shorter words are too similar to others.
const MISSPELT: &[(&str, LimitKeyword)] = &[
    ("allowed", LimitKeyword::Allow),
    ("allowlist", LimitKeyword::Allow),
    ("allowtools", LimitKeyword::Allow),
    ("allowedtools", LimitKeyword::Allow),
    ("enabledtools", LimitKeyword::Allow),
    ("include", LimitKeyword::Allow),
    ("included", LimitKeyword::Allow),
    ("includetools", LimitKeyword::Allow),
    ("onlytools", LimitKeyword::Allow),
    ("whitelist", LimitKeyword::Allow),
    ("blacklist", LimitKeyword::Deny),
    ("blocklist", LimitKeyword::Deny),
    ("blockedtools", LimitKeyword::Deny),
    ("denied", LimitKeyword::Deny),
    ("deniedtools", LimitKeyword::Deny),
    ("denylist", LimitKeyword::Deny),
    ("denytools", LimitKeyword::Deny),
    ("disabledtools", LimitKeyword::Deny),
    ("disallow", LimitKeyword::Deny),
    ("disallowed", LimitKeyword::Deny),
    ("disallowedtools", LimitKeyword::Deny),
    ("exclude", LimitKeyword::Deny),
    ("excluded", LimitKeyword::Deny),
    ("excludetools", LimitKeyword::Deny),
    ("permission", LimitKeyword::Deny),
    ("permissions", LimitKeyword::Deny),
    ("readonly", LimitKeyword::Access),
    ("untrusted", LimitKeyword::Trust),
    ("disable", LimitKeyword::Switch(false)),
    ("disabled", LimitKeyword::Switch(false)),
    ("enabled", LimitKeyword::Switch(true)),
];

/// Keys under which users group limits that belong one level up.
const GROUPS: &[&str] = &[
    "default",
    "defaults",
    "global",
    "globals",
    "limits",
    "policies",
    "policy",
    "restrictions",
    "rules",
    "settings",
];

/// Keys of JSON Schema that other documents have as well. Any other key with a `$` is a mistake.
const SCHEMA_KEYS: &[&str] = &["$comment", "$id", "$schema", "$version"];

/// Whether a key is a convention for comments.
pub(crate) fn is_comment(key: &str) -> bool {
    key.starts_with(['_', '/', '#'])
        || key.eq_ignore_ascii_case("comment")
        || SCHEMA_KEYS.contains(&key)
}

impl LimitKeyword {
    /// The limit that a key stands for, ignoring case and separators and with one or two
    /// misspellings; `None` if it is not a limit.
    pub(crate) fn of(key: &str) -> Option<Self> {
        if key.starts_with(['_', '/', '#']) {
            return None; // A comment.
        }
        let folded: String =
            key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        Self::of_folded(&folded).or_else(|| Self::of_misspelt(&folded))
    }

    fn of_folded(folded: &str) -> Option<Self> {
        let is_one_of = |words: &[&str]| {
            // Also matches `tools-deny` and `tool_allowlist`.
            let rests = [folded, folded.strip_prefix("tool").unwrap_or(folded)];
            let rests = rests.into_iter().chain(folded.strip_prefix("tools"));
            rests.into_iter().any(|it| {
                let mut rests = words.iter().filter_map(|word| it.strip_prefix(word));
                rests.any(|rest| FOLLOWING.contains(&rest))
            })
        };
        Some(match folded {
            "tool" | "tools" | "enabledtools" => Self::Allow,
            "permission" | "permissions" => Self::Deny,
            "disabledtools" | "hiddentools" => Self::Deny,
            "access" | "accesslevel" | "accessmode" | "maxaccess" | "readonly" => Self::Access,
            "trust" | "trusted" | "untrusted" | "trustlevel" => Self::Trust,
            "enable" | "enabled" | "isenabled" | "active" | "isactive" => Self::Switch(true),
            "disable" | "disabled" | "isdisabled" | "inactive" => Self::Switch(false),
            "server" | "servers" | "mcpserver" | "mcpservers" | "bundle" | "bundles" => Self::Scope,
            // `available` and `hide` alone do not refer to tools.
            "available" | "hide" => return None,
            _ if is_one_of(ALLOWING) => Self::Allow,
            _ if is_one_of(DENYING) => Self::Deny,
            _ => return None,
        })
    }

    /// Allows one misspelling in a short word and two in a long one: with more it is another word,
    /// such as `permissionMode`, or Zed's `disable_ai`.
    fn of_misspelt(folded: &str) -> Option<Self> {
        let is_slip = |word: &str| {
            let slips_allowed = if word.len() < LONG_WORD { 1 } else { 2 };
            word.len().abs_diff(folded.len()) <= slips_allowed
                && strsim::osa_distance(word, folded) <= slips_allowed
        };
        MISSPELT.iter().find(|(word, _)| is_slip(word)).map(|(_, limit)| *limit)
    }

    /// The limit that a key with a value stands for. A switch that is on limits nothing.
    pub(crate) fn written(key: &str, value: &Node) -> Option<Self> {
        if is_comment(key) {
            return None;
        }
        match (Self::of(key), &value.value) {
            (Some(Self::Switch(is_used)), Value::Bool(value)) if *value == is_used => None,
            // Names select servers; any other value defines them, or is a setting of another host.
            (Some(Self::Scope), Value::String(_) | Value::Array(_)) => Some(Self::Scope),
            (Some(Self::Scope), _) => None,
            (Some(word), _) => Some(word),
            (None, Value::String(word)) => is_access_word(word).then_some(Self::Access),
            (None, Value::Object(members)) => members.iter().find_map(|it| Self::nested(key, it)),
            (None, _) => None,
        }
    }

    /// The limit that a member of an object under an unknown key stands for: any limit in a group
    /// of rules, elsewhere only an access rule.
    fn nested(group: &str, member: &ObjectMember) -> Option<Self> {
        let limit = Self::of(&member.key.text)?;
        let is_group = GROUPS.iter().any(|it| group.eq_ignore_ascii_case(it));
        let is_access = matches!(&member.value.value, Value::String(it) if is_access_word(it));
        let is_on = matches!((limit, &member.value.value),
            (Self::Switch(is_used), Value::Bool(value)) if *value == is_used);
        (is_group && !is_on || limit == Self::Access && is_access).then_some(limit)
    }

    /// Whether the limit can be intended in an object with these keys. An object that defines
    /// servers does not select among them.
    pub(crate) fn is_possible_among(self, keys: &[&str]) -> bool {
        let is_definition = ["command", "servers"].iter().any(|key| keys.contains(key));
        self != Self::Scope || !is_definition
    }

    /// The key to write instead, among the rules of an object, or the place where the limit
    /// belongs.
    pub(crate) fn advice(self, is_rule: impl Fn(&str) -> bool) -> &'static str {
        match self {
            Self::Allow if is_rule("allowTools") => "write `allowTools`",
            Self::Allow if is_rule("tools") => "write `tools`, with patterns of exposed names",
            Self::Deny if is_rule("denyTools") => "write `denyTools`",
            Self::Deny if is_rule("tools") => "write `!` and the name, or a pattern, in `tools`",
            Self::Allow | Self::Deny => {
                "write `allowTools` or `denyTools` in a server or a bundle, or `tools` in an agent"
            }
            Self::Access if is_rule("access") => "write `access`",
            Self::Access => "write `access` in the server, in an agent, or at the top of the file",
            Self::Trust => "write `\"trust\": \"untrusted\"` in the server",
            Self::Switch(_) if is_rule("enabled") => "write `enabled` or `disabled`",
            Self::Switch(_) => "only servers can be switched off: remove the entry instead",
            Self::Scope => {
                "an agent names tools by patterns in `tools`, such as `server_*`; a bundle names its \
                 server in `serverId`"
            }
        }
    }
}

/// Whether a string is a restricting access rule, in any spelling.
fn is_access_word(word: &str) -> bool {
    let folded: String = word.chars().filter(|c| c.is_alphanumeric()).collect();
    ["readonly", "readonlystrict"].iter().any(|it| folded.eq_ignore_ascii_case(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_keys_are_recognized_in_any_spelling() {
        for (key, word) in [
            ("allowed-tools", LimitKeyword::Allow),
            ("AllowList", LimitKeyword::Allow),
            ("include", LimitKeyword::Allow),
            ("deny_tools", LimitKeyword::Deny),
            ("permissions", LimitKeyword::Deny),
            ("read-only", LimitKeyword::Access),
            ("disabled", LimitKeyword::Switch(false)),
            ("disalowedTools", LimitKeyword::Deny),
            ("alowed-tools", LimitKeyword::Allow),
            ("permision", LimitKeyword::Deny),
            ("exlcuded", LimitKeyword::Deny),
            ("only", LimitKeyword::Allow),
            ("tool_allowlist", LimitKeyword::Allow),
            ("tools-deny", LimitKeyword::Deny),
            ("$denyTools", LimitKeyword::Deny),
            ("mcp_servers", LimitKeyword::Scope),
        ] {
            assert_eq!(LimitKeyword::of(key), Some(word), "{key}");
        }
        for key in [
            "_tools",
            "enabled_providers",
            "permissionMode",
            "allowAll",
            "toolsTtl",
            "hidden",
            "name",
            "model",
            "mode",
            "disabled_providers",
            "toolAliases",
            "description",
            "initialPrompt",
        ] {
            assert_eq!(LimitKeyword::of(key), None, "{key}");
        }
    }
}
