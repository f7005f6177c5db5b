//! The store for secrets that a layer chooses. A file that was merely found may not choose one.

use std::path::{Path, PathBuf};

use super::{LayerReader, members};
use crate::config::diagnostic::Code;
use crate::config::jsonc::Node;
use crate::config::keywords::SecretStoreChoice;
use crate::config::model::{FileOrigin, FoundBy, Origin};
use crate::config::raw::FileEntry;
use crate::config::secret_settings::SecretSettings;

/// The settings for secrets that a layer changes.
#[derive(Default)]
pub(crate) struct SecretsLayer {
    store: Option<SecretStoreChoice>,
    key_file: Option<PathBuf>,
    is_unreadable: bool,
}

impl SecretsLayer {
    /// The settings of a layer that cannot be parsed.
    pub(super) fn unreadable(origin: &Origin) -> Self {
        Self { is_unreadable: may_choose(origin), ..Self::default() }
    }

    pub(crate) fn apply(self, settings: &mut SecretSettings) {
        settings.store = self.store.or(settings.store);
        settings.key_file = self.key_file.or(settings.key_file.take());
        settings.is_unreadable |= self.is_unreadable;
    }
}

impl LayerReader<'_, '_> {
    /// The settings under `secrets`.
    pub(super) fn secrets(&mut self, root: Option<&Node>, file: &FileEntry) -> SecretsLayer {
        if !may_choose(&self.origin) {
            if let Some(member) = members(root, "secrets").next() {
                let message = "`secrets` has no effect in a file that was found, not named";
                let found = self.decoder.warning(Code::NotApplied, member.key.span, message);
                let help =
                    "write it into your own configuration, or name this file with `--config`";
                self.decoder.push(found.help(help));
            }
            return SecretsLayer::default();
        }
        let errors = self.decoder.error_places();
        let is_wrong = members(root, "secrets").any(|member| errors.any_within(member));
        let is_double = members(root, "secrets").count() > 1;
        let secrets = file.secrets.as_ref().map(|written| &written.value);
        let key_file = secrets.and_then(|secrets| secrets.key_file.as_ref());
        SecretsLayer {
            store: secrets.and_then(|secrets| secrets.store.as_ref()).map(|it| it.value),
            key_file: key_file.map(|it| self.key_file(&it.value)),
            is_unreadable: is_wrong || is_double || !self.is_whole,
        }
    }

    /// The path of a key file, relative to the directory of the configuration file.
    fn key_file(&self, path: &str) -> PathBuf {
        let path = Path::new(path);
        if path.starts_with("~") { path.to_owned() } else { self.origin.folder().join(path) }
    }
}

/// Whether a layer may choose the store. A found file must not redirect credentials.
fn may_choose(origin: &Origin) -> bool {
    !matches!(origin, Origin::File(FileOrigin { found: FoundBy::Discovered, .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{LoadedConfig, parse};

    fn secrets(text: &str) -> (SecretSettings, LoadedConfig) {
        let loaded = parse("mcp.json", text);
        (loaded.config.secrets().clone(), loaded)
    }

    #[test]
    fn a_store_is_chosen_with_its_key_file() {
        let (settings, _) =
            secrets(r#"{ "secrets": { "store": "file", "keyFile": "~/key.txt" } }"#);
        assert_eq!(settings.store, Some(SecretStoreChoice::File));
        assert_eq!(settings.key_file.as_deref(), Some(Path::new("~/key.txt")));
        assert!(!settings.is_unreadable);
        assert_eq!(secrets("{}").0, SecretSettings::default());
    }

    #[test]
    fn a_choice_that_cannot_be_read_is_not_replaced_by_the_default() {
        for text in [
            r#"{ "secrets": { "store": "keychian" } }"#,
            r#"{ "secrets": { "keyFile": 1 } }"#,
            r#"{ "secrets": "file" }"#,
            r#"{ "secrets": { "store": "file" }, "secrets": { "store": "keychain" } }"#,
            r#"{ "secrets": { "store": "file""#,
            "[]",
            "",
        ] {
            let (settings, loaded) = secrets(text);
            assert!(settings.is_unreadable, "{text}");
            assert!(loaded.has_errors(false), "{text}");
        }
    }
}
