//! Keys by which people and other hosts write limits: where such a key is not known, it is a limit that
//! would not be applied (BUN-2).

use super::jsonc::{Node, Value};

/// The meaning of a key that is a limit somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitKeyword {
    /// The only things that may be used.
    Allow,
    /// Things that may not be used.
    Deny,
    /// How much may be done.
    Access,
    /// Whether something is taken at its word.
    Trust,
    /// Whether something is used at all; `true` where the key says that it is.
    Switch(bool),
}

/// Words for what may be used, alone or before `tool`, `tools` or `list`.
const ALLOWING: &[&str] = &[
    "allow",
    "allowed",
    "include",
    "included",
    "includes",
    "whitelist",
    "whitelisted",
    "available",
];

/// Words for what may not be used, alone or before `tool`, `tools` or `list`.
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
    "hide",
];

/// What may follow those words.
const FOLLOWING: &[&str] = &["", "tool", "tools", "toolnames", "list"];

impl LimitKeyword {
    /// The limit that a key means, whatever its capitals and separators; `None` if it means none.
    pub(crate) fn of(key: &str) -> Option<Self> {
        // A way to write a comment.
        if key.starts_with(['_', '/', '#', '$']) {
            return None;
        }
        let folded: String =
            key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        let is_one_of = |words: &[&str]| {
            let rests = words.iter().filter_map(|word| folded.strip_prefix(word));
            rests.into_iter().any(|rest| FOLLOWING.contains(&rest))
        };
        Some(match &*folded {
            "tool" | "tools" | "enabledtools" | "onlytools" => Self::Allow,
            "permission" | "permissions" => Self::Deny,
            "disabledtools" | "hiddentools" => Self::Deny,
            "access" | "accesslevel" | "accessmode" | "maxaccess" | "readonly" => Self::Access,
            "trust" | "trusted" | "untrusted" | "trustlevel" => Self::Trust,
            "enable" | "enabled" | "isenabled" | "active" | "isactive" => Self::Switch(true),
            "disable" | "disabled" | "isdisabled" | "inactive" => Self::Switch(false),
            // `available` and `hide` alone say nothing of tools.
            "available" | "hide" => return None,
            _ if is_one_of(ALLOWING) => Self::Allow,
            _ if is_one_of(DENYING) => Self::Deny,
            _ => return None,
        })
    }

    /// The limit that a key means with a value. A switch that is on takes nothing away.
    pub(crate) fn written(key: &str, value: &Node) -> Option<Self> {
        match (Self::of(key)?, &value.value) {
            (Self::Switch(is_used), Value::Bool(value)) if *value == is_used => None,
            (word, _) => Some(word),
        }
    }

    /// The key to write instead, of those that are rules of an object, or where the limit belongs.
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_limits_are_told_in_any_spelling() {
        for (key, word) in [
            ("allowed-tools", LimitKeyword::Allow),
            ("AllowList", LimitKeyword::Allow),
            ("include", LimitKeyword::Allow),
            ("deny_tools", LimitKeyword::Deny),
            ("permissions", LimitKeyword::Deny),
            ("read-only", LimitKeyword::Access),
            ("disabled", LimitKeyword::Switch(false)),
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
        ] {
            assert_eq!(LimitKeyword::of(key), None, "{key}");
        }
    }
}
