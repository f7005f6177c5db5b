//! State of Trunkline that survives restarts and power cuts: the toggles of conversations (TOOL-9).
//!
//! [`StateFile`] is one file for all projects of a user, in the format of redb. Why redb and not SQLite: it is
//! Rust alone, so the program builds for each system without a C compiler; a commit is checksummed and atomic;
//! and a few kilobytes need no queries. Its limit, one process at a time, does not hurt here: the file is open
//! only for the milliseconds of one transaction, and each process keeps the toggles in memory.
//!
//! ```
//! use std::sync::Arc;
//! use trunkline::Host;
//! use trunkline::host::ToggleSubject;
//! use trunkline::name::ServerName;
//! use trunkline::policy::Toggle;
//! use trunkline_state::StateFile;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! # let folder = std::env::temp_dir().join(format!("trunkline-state-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! let file = StateFile::at(folder.join("state.redb"));
//! let start = || Host::builder().toggle_store(Arc::new(file.project("my project"))).start();
//! let host = start().await?;
//! let docs = ServerName::new("docs")?;
//! host.conversations().set(None, &[ToggleSubject::Server(docs.clone())], Some(Toggle::Off)).await?;
//! host.shutdown().await;
//!
//! let host = start().await?;
//! assert_eq!(host.conversations().toggles().merged(None).get(&docs), Toggle::Off);
//! # host.shutdown().await;
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```

mod open;
#[cfg(test)]
mod power_cut;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use redb::{ReadableDatabase, TableDefinition, TableError};
use trunkline::config::{ContentDigest, parse_toggles};
use trunkline::host::{ToggleStore, ToggleStoreError};
use trunkline::name::ConversationName;
use trunkline::policy::{ProjectToggles, Toggles};

use open::{OpenState, damaged, open_to_read, open_to_write};

/// The toggles of a conversation as JSON, by project and conversation. The conversation without a name is the
/// whole project.
const TOGGLES: TableDefinition<'_, (&str, &str), &str> = TableDefinition::new("toggles");

/// Characters of the digest of a row.
const DIGEST_CHARS: usize = 16;

/// A file with the state of all projects.
#[derive(Clone, Debug)]
pub struct StateFile {
    path: PathBuf,
}

/// The state of one project in a [`StateFile`].
#[derive(Clone, Debug)]
pub struct ProjectState {
    file: StateFile,
    project: Box<str>,
}

/// When and how a file was changed last. Another value means that another process may have changed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileVersion {
    modified: Option<SystemTime>,
    length: Option<u64>,
}

impl StateFile {
    /// The state in a file. It and its directory are created with the first change.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The state of one project, by any name that identifies it, such as its directory.
    pub fn project(&self, project: impl Into<Box<str>>) -> ProjectState {
        ProjectState { file: self.clone(), project: project.into() }
    }

    /// The version of the file, to find changes of other processes.
    pub fn version(&self) -> FileVersion {
        let metadata = std::fs::metadata(&self.path).ok();
        FileVersion {
            modified: metadata.as_ref().and_then(|it| it.modified().ok()),
            length: metadata.map(|it| it.len()),
        }
    }

    fn error(&self, what: &str, error: &redb::Error) -> ToggleStoreError {
        let path = self.path.display();
        let hint = match error {
            redb::Error::Corrupted(_) | redb::Error::UpgradeRequired(_) => MOVE_AWAY,
            redb::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => MOVE_AWAY,
            _ => "",
        };
        ToggleStoreError::new(format!("the toggles in {path} cannot be {what}: {error}{hint}"))
    }

    /// Runs a transaction. redb verifies its pages only where it has to, and panics on one that is damaged.
    fn run<T>(
        &self,
        what: &str,
        transaction: impl FnOnce() -> Result<T, redb::Error>,
    ) -> Result<T, ToggleStoreError> {
        let result = catch_unwind(AssertUnwindSafe(transaction));
        let result = result.unwrap_or_else(|_| Err(damaged("a page of it is damaged")));
        result.map_err(|error| self.error(what, &error))
    }
}

/// Advice for a file that cannot be used.
const MOVE_AWAY: &str = "; move the file away to begin with no toggles";

impl ToggleStore for ProjectState {
    fn load(&self) -> Result<ProjectToggles, ToggleStoreError> {
        self.file.run("read", || match open_to_read(&self.file.path)? {
            None => Ok(ProjectToggles::default()),
            Some(OpenState::ReadOnly(database)) => self.read(&database),
            Some(OpenState::Repaired(database)) => self.read(&database),
        })
    }

    fn update(
        &self,
        change: &dyn Fn(&mut ProjectToggles),
    ) -> Result<ProjectToggles, ToggleStoreError> {
        self.file.run("stored", || self.write(&open_to_write(&self.file.path)?, change))
    }
}

impl ProjectState {
    fn read(&self, database: &impl ReadableDatabase) -> Result<ProjectToggles, redb::Error> {
        let transaction = database.begin_read()?;
        match transaction.open_table(TOGGLES) {
            Ok(table) => self.rows(&table),
            Err(TableError::TableDoesNotExist(_)) => Ok(ProjectToggles::default()),
            Err(error) => Err(error.into()),
        }
    }

    fn write(
        &self,
        database: &redb::Database,
        change: &dyn Fn(&mut ProjectToggles),
    ) -> Result<ProjectToggles, redb::Error> {
        let transaction = database.begin_write()?;
        let toggles = {
            let mut table = transaction.open_table(TOGGLES)?;
            let before = self.rows(&table)?;
            let mut toggles = before.clone();
            change(&mut toggles);
            for (name, _) in before.conversations() {
                if toggles.get(Some(name.as_str())).is_none() {
                    table.remove((&*self.project, name.as_str()))?;
                }
            }
            let project = toggles.get(None).map(|own| ("", own));
            let conversations = toggles.conversations().map(|(name, own)| (name.as_str(), own));
            for (name, own) in project.into_iter().chain(conversations) {
                let value = self.sealed(name, &own.to_json().to_string());
                table.insert((&*self.project, name), &*value)?;
            }
            toggles
        };
        transaction.commit()?;
        Ok(toggles)
    }

    /// The value of a row: a digest, and the toggles.
    fn sealed(&self, name: &str, toggles: &str) -> String {
        format!("{} {toggles}", self.digest(name, toggles))
    }

    /// A digest of a row, to find a damaged one.
    fn digest(&self, name: &str, toggles: &str) -> String {
        let (project, length) = (&self.project, name.len());
        let text = format!("{project}\n{length} {name}\n{toggles}");
        ContentDigest::of(text.as_bytes()).to_string().chars().take(DIGEST_CHARS).collect()
    }

    /// The rows of this project. One that cannot be read is an error for all: it may have switched anything off.
    fn rows(
        &self,
        table: &impl redb::ReadableTable<(&'static str, &'static str), &'static str>,
    ) -> Result<ProjectToggles, redb::Error> {
        let mut toggles = ProjectToggles::default();
        for row in table.range((&*self.project, "")..)? {
            let (key, value) = row?;
            let (project, name) = key.value();
            if project != &*self.project {
                break;
            }
            let own = self.parse_row(name, value.value())?;
            match name {
                "" => *toggles.entry(None) = own,
                name => {
                    let name = ConversationName::new(name);
                    let name = name.map_err(|error| damaged(&error.to_string()))?;
                    *toggles.entry(Some(&name)) = own;
                }
            }
        }
        Ok(toggles)
    }

    fn parse_row(&self, name: &str, value: &str) -> Result<Toggles, redb::Error> {
        let sealed = value.split_once(' ');
        let sealed = sealed.filter(|(digest, text)| *digest == self.digest(name, text));
        let (_, text) = sealed.ok_or_else(|| damaged("a row of it is damaged"))?;
        let parsed = parse_toggles("the stored toggles", text);
        match parsed.diagnostics.first() {
            Some(problem) => Err(damaged(&problem.message)),
            None => Ok(Toggles::from(&parsed).without_locations()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread;

    use trunkline::name::ServerName;
    use trunkline::policy::Toggle;

    use super::*;

    /// A directory that is removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("trunkline-state-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn file(&self) -> StateFile {
            StateFile::at(self.0.join("deep/state.redb"))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn server(name: &str) -> ServerName {
        ServerName::new(name).unwrap()
    }

    fn switch_off(state: &ProjectState, conversation: Option<&str>, name: &str) {
        let conversation = conversation.map(|it| ConversationName::new(it).unwrap());
        let off = |toggles: &mut ProjectToggles| {
            toggles.entry(conversation.as_ref()).set(&server(name), Toggle::Off);
        };
        state.update(&off).unwrap();
    }

    #[test]
    fn toggles_of_projects_and_conversations_are_separate() {
        let folder = Folder::new("separate");
        let (one, two) = (folder.file().project("/one"), folder.file().project("/one/two"));
        assert!(one.load().unwrap().is_empty());
        assert!(!folder.file().path().exists(), "reading creates nothing");
        switch_off(&one, None, "a");
        switch_off(&one, Some("chat"), "b");
        switch_off(&two, None, "c");
        let read = one.load().unwrap();
        assert_eq!(read.merged(None).get(&server("a")), Toggle::Off);
        assert_eq!(read.merged(None).get(&server("b")), Toggle::On);
        assert_eq!(read.merged(Some("chat")).get(&server("b")), Toggle::Off);
        assert_eq!(read.merged(Some("chat")).get(&server("c")), Toggle::On);
        one.update(&|toggles| assert!(toggles.remove("chat"))).unwrap();
        assert_eq!(one.load().unwrap().conversations().count(), 0);
        assert_eq!(two.load().unwrap().merged(None).get(&server("c")), Toggle::Off);
    }

    #[test]
    fn concurrent_changes_are_all_kept() {
        let folder = Folder::new("concurrent");
        thread::scope(|scope| {
            for writer in 0..8 {
                let state = folder.file().project("/p");
                scope.spawn(move || {
                    for number in 0..5 {
                        switch_off(&state, Some(&format!("chat-{writer}")), &format!("s{number}"));
                    }
                });
            }
        });
        let read = folder.file().project("/p").load().unwrap();
        let counts: Vec<_> = read.conversations().map(|(_, own)| own.iter().count()).collect();
        assert_eq!(counts, [5; 8]);
    }

    #[test]
    fn a_damaged_file_is_an_error_and_stays_as_it_is() {
        let folder = Folder::new("damaged");
        let state = folder.file().project("/p");
        switch_off(&state, None, "a");
        let path = folder.file().path().to_owned();
        fs::write(&path, b"this is not a database").unwrap();
        let error = state.load().unwrap_err().to_string();
        assert!(error.contains("state.redb") && error.contains("cannot be read"), "{error}");
        assert!(state.update(&|_| ()).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"this is not a database");
    }

    /// redb panics on some of these, and does not notice others.
    #[test]
    fn damage_anywhere_is_an_error_or_harmless() {
        let folder = Folder::new("anywhere");
        let state = folder.file().project("/p");
        switch_off(&state, None, "a");
        switch_off(&state, Some("chat"), "b");
        let (path, expected) = (folder.file().path().to_owned(), state.load().unwrap());
        let whole = fs::read(&path).unwrap();
        let mut errors = 0;
        for start in (0..whole.len()).step_by(509).take(400) {
            let mut damaged = whole.clone();
            let end = (start + 64).min(damaged.len());
            damaged[start..end].iter_mut().for_each(|byte| *byte ^= 0xff);
            fs::write(&path, &damaged).unwrap();
            match state.load() {
                Ok(read) => assert_eq!(read, expected, "at {start}"),
                Err(_) => errors += 1,
            }
        }
        assert!(errors > 0);
        fs::write(&path, "").unwrap();
        assert!(state.load().unwrap_err().to_string().contains("it is empty"));
        assert!(state.update(&|_| ()).is_err());
    }

    #[test]
    fn reading_changes_nothing() {
        let folder = Folder::new("reading");
        let state = folder.file().project("/p");
        switch_off(&state, None, "a");
        let before = folder.file().version();
        thread::sleep(std::time::Duration::from_millis(20));
        state.load().unwrap();
        assert_eq!(folder.file().version(), before);
    }

    #[test]
    #[cfg(unix)]
    fn the_file_is_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = Folder::new("mode");
        switch_off(&folder.file().project("/p"), None, "a");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(folder.file().path()), 0o600);
        assert_eq!(mode(folder.file().path().parent().unwrap()), 0o700);
    }
}
