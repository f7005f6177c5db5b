//! The trust store: which discovered files the user has consented to, by path and content digest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::{Map, Value, json};
use trunkline::config::{
    Consent, ConsentHoldReason, DiscoveredFile, FileReach, FileRefusal, escape_control,
};

use super::private_file::PrivateFile;

/// The format version of the store.
const VERSION: u64 = 1;

/// The consent to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrustedFile {
    /// The digest of its content, in hexadecimal.
    pub(crate) digest: String,
    /// The files that it may refer to.
    pub(crate) reach: FileReach,
    /// Everything that it would run and use, to report changes.
    pub(crate) uses: Vec<TrustedUse>,
    /// The date of the consent.
    pub(crate) since: String,
}

/// One thing that a file would run or use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrustedUse {
    /// Its description, with secrets redacted.
    pub(crate) text: String,
    /// The digest of the unredacted value, to detect a changed secret or script.
    pub(crate) digest: String,
}

impl TrustedUse {
    fn from_json(written: &Value) -> Option<Self> {
        let text = |key: &str| written.get(key)?.as_str().map(str::to_owned);
        Some(Self { text: text("use")?, digest: text("sha256")? })
    }

    fn to_json(&self) -> Value {
        json!({ "use": self.text, "sha256": self.digest })
    }
}

/// All trusted files, as stored in the state directory.
pub(crate) struct TrustStore {
    file: PrivateFile,
    pub(crate) files: BTreeMap<String, TrustedFile>,
    /// The digests of files that the user does not want to be asked about.
    blocked: BTreeMap<String, String>,
}

impl TrustStore {
    /// Reads the store. A missing file is an empty store; a malformed one, or one that other users
    /// can change, is an error.
    pub(crate) fn read(path: PathBuf) -> io::Result<Self> {
        let file = PrivateFile::at(path);
        let shown = escape_control(&file.path().to_string_lossy());
        let named = |error: io::Error| {
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<FileRefusal>());
            let advice = match inner {
                Some(FileRefusal::Unsafe(_)) => " (`chmod go-w` takes that right away)",
                _ => "",
            };
            io::Error::new(error.kind(), format!("{shown}: {error}{advice}"))
        };
        let Some(bytes) = file.read_safely().map_err(named)? else {
            return Ok(Self { file, files: BTreeMap::new(), blocked: BTreeMap::new() });
        };
        let (files, blocked) = parse(&bytes).ok_or_else(|| {
            let message = format!("{shown} is no trust store; move it away to start anew");
            io::Error::new(io::ErrorKind::InvalidData, message)
        })?;
        Ok(Self { file, files, blocked })
    }

    /// Whether the user does not want to be asked about a file with this content.
    pub(crate) fn blocks(&self, file: &DiscoveredFile) -> bool {
        let digest = key(&file.path).and_then(|key| self.blocked.get(&key));
        digest.is_some_and(|digest| *digest == file.digest.to_string())
    }

    /// Does not ask about a file any more while it has this content. Takes consent back.
    pub(crate) fn block(&mut self, file: &DiscoveredFile) -> io::Result<()> {
        let key = storable_key(&file.path)?;
        self.change(|store| {
            store.files.remove(&key);
            store.blocked.insert(key, file.digest.to_string());
        })
    }

    /// Whether a file may run.
    pub(crate) fn consent(&self, file: &DiscoveredFile) -> Consent {
        match key(&file.path).and_then(|key| self.files.get(&key)) {
            None => Consent::Withheld(ConsentHoldReason::NotTrusted),
            Some(trusted) if trusted.digest == file.digest.to_string() => {
                Consent::Given(trusted.reach.clone())
            }
            Some(_) => Consent::Withheld(ConsentHoldReason::Changed),
        }
    }

    /// The consent to a file, regardless of its current content.
    pub(crate) fn get(&self, path: &Path) -> Option<&TrustedFile> {
        self.files.get(&key(path)?)
    }

    /// Adds a file, or replaces its consent.
    pub(crate) fn insert(&mut self, path: &Path, trusted: TrustedFile) -> io::Result<()> {
        let key = storable_key(path)?;
        self.change(|store| {
            store.blocked.remove(&key);
            store.files.insert(key, trusted);
        })
    }

    /// Replaces the consent to a file, unless it is another than before by now. Returns whether it was replaced.
    pub(crate) fn renew(
        &mut self,
        path: &Path,
        before: &TrustedFile,
        trusted: TrustedFile,
    ) -> io::Result<bool> {
        let Some(key) = key(path) else { return Ok(false) };
        self.change(|store| {
            let is_same = store.files.get(&key) == Some(before);
            if is_same {
                store.files.insert(key, trusted);
            }
            is_same
        })
    }

    /// Removes a file. Returns whether it was in the store.
    pub(crate) fn remove(&mut self, path: &Path) -> io::Result<bool> {
        let Some(key) = key(path) else { return Ok(false) };
        Ok(self.files.contains_key(&key)
            && self.change(|store| store.files.remove(&key))?.is_some())
    }

    /// Reads the current store, changes it and writes it, under a lock.
    fn change<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> io::Result<T> {
        let path = self.file.path().to_owned();
        let unwritable = |error: io::Error| {
            let shown = escape_control(&path.to_string_lossy());
            io::Error::new(error.kind(), format!("{shown} cannot be written: {error}"))
        };
        let hold = self.file.hold().map_err(unwritable)?;
        let mut now = Self::read(path.clone())?;
        let changed = change(&mut now);
        self.file.replace(&hold, &now.as_text()).map_err(unwritable)?;
        // Fails now rather than in the next run if other users can change the directories on its
        // path.
        Self::read(path.clone())?;
        (self.files, self.blocked) = (now.files, now.blocked);
        Ok(changed)
    }

    fn as_text(&self) -> String {
        let files = self.files.iter().map(|(path, trusted)| {
            let written = json!({
                "sha256": trusted.digest,
                "outsideFiles": outside_files(&trusted.reach),
                "uses": trusted.uses.iter().map(TrustedUse::to_json).collect::<Vec<_>>(),
                "since": trusted.since,
            });
            (path.clone(), written)
        });
        format!(
            "{:#}\n",
            json!({ "version": VERSION, "files": Map::from_iter(files), "blocked": self.blocked })
        )
    }
}

/// The key of a file, or why it has none.
fn storable_key(path: &Path) -> io::Result<String> {
    key(path).ok_or_else(|| {
        let message = "its path is not UTF-8, so that it cannot be kept; name it with `--config`";
        io::Error::new(io::ErrorKind::InvalidInput, message)
    })
}

/// The key of a file in the store: its path with links in the directory resolved, so that it does
/// not depend on how the file was found.
fn key(path: &Path) -> Option<String> {
    let (folder, name) = (path.parent()?, path.file_name()?);
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    folder.join(name).to_str().map(str::to_owned)
}

/// Parses a store; `None` unless all of it is valid.
fn parse(bytes: &[u8]) -> Option<(BTreeMap<String, TrustedFile>, BTreeMap<String, String>)> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    if value.get("version")?.as_u64()? != VERSION {
        return None;
    }
    let files = value.get("files")?.as_object()?;
    let files = files.iter().map(|(path, entry)| Some((path.clone(), trusted_file(entry)?)));
    let blocked = match value.get("blocked") {
        Some(blocked) => serde_json::from_value(blocked.clone()).ok()?,
        None => BTreeMap::new(),
    };
    Some((files.collect::<Option<_>>()?, blocked))
}

/// The files outside of its directory that a file may read, as JSON: all, none, or a list.
pub(crate) fn outside_files(reach: &FileReach) -> Value {
    match reach {
        FileReach::Workspace => json!(false),
        FileReach::Anywhere => json!(true),
        FileReach::Listed(files) => files.iter().map(|it| it.to_string_lossy()).collect(),
    }
}

fn reach(written: &Value) -> Option<FileReach> {
    let path = |path: &Value| path.as_str().map(PathBuf::from);
    match written {
        Value::Bool(true) => Some(FileReach::Anywhere),
        Value::Bool(false) => Some(FileReach::Workspace),
        Value::Array(files) => {
            Some(FileReach::Listed(files.iter().map(path).collect::<Option<Vec<_>>>()?.into()))
        }
        _ => None,
    }
}

fn trusted_file(entry: &Value) -> Option<TrustedFile> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Some(TrustedFile {
        digest: text(entry.get("sha256")?)?,
        reach: reach(entry.get("outsideFiles")?)?,
        uses: entry
            .get("uses")?
            .as_array()?
            .iter()
            .map(TrustedUse::from_json)
            .collect::<Option<_>>()?,
        since: text(entry.get("since")?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_understood_whole_or_not_at_all() {
        let good = r#"{ "version": 1, "files": { "/p/.mcp.json": { "sha256": "ab",
            "outsideFiles": true, "uses": [{ "use": "s: runs x", "sha256": "cd" }], "since": "2026-07-28" } } }"#;
        let (files, _) = parse(good.as_bytes()).unwrap();
        assert_eq!(files["/p/.mcp.json"].reach, FileReach::Anywhere);
        for bad in [
            "",
            "{}",
            "[]",
            r#"{ "version": 2, "files": {} }"#,
            r#"{ "version": 1, "files": [] }"#,
            r#"{ "version": 1, "files": { "/p": {} } }"#,
            r#"{ "version": 1, "files": { "/p": { "sha256": 1, "outsideFiles": true, "uses": [], "since": "" } } }"#,
            r#"{ "version": 1, "files": { "/p": { "sha256": "", "outsideFiles": "no", "uses": [], "since": "" } } }"#,
            r#"{ "version": 1, "files": { "/p": { "sha256": "", "outsideFiles": true, "uses": ["s: runs x"], "since": "" } } }"#,
        ] {
            assert!(parse(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
