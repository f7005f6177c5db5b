//! Cache of discovered servers, by the fingerprint of their transport: the era they support, so
//! that they are probed once, and their lists, so that those are known before they start.

mod file_format;
mod writes;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use std::{fs, io};

use tokio::task::spawn_blocking;

use super::pagination::ItemList;
use super::state::status::RejectedItem;
use crate::config::{Fingerprint, RemoteTransport};
use crate::item::{Item, ItemKind};
use crate::message::Raw;
use crate::transport::SecretMask;

pub(super) use writes::CacheWrites;

/// Limit on the bytes of a file, which is read while a connection is created.
const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;

/// Why a list is not written, after the kind of its items.
const HOLDS_SECRET: &str = "repeats a secret of the configuration";

/// The protocol that was negotiated with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NegotiatedProtocol {
    pub(super) is_modern: bool,
    /// The transport, for remote servers.
    pub(super) transport: RemoteTransport,
}

/// The cache, in memory and optionally on disk.
#[derive(Debug)]
pub(super) struct ServerCache {
    spoken: Mutex<HashMap<Fingerprint, NegotiatedProtocol>>,
    folder: Option<PathBuf>,
    /// The lists that are read and written. Those of other kinds stay in the files.
    kinds: &'static [ItemKind],
    /// Held to write a file: when many servers start, each write at the same time would need a thread of its own.
    writer: Arc<tokio::sync::Mutex<()>>,
}

/// The content of a cache file.
#[derive(Debug)]
pub(super) struct CachedServer {
    pub(super) spoken: NegotiatedProtocol,
    pub(super) lists: CachedLists,
}

/// The lists of a cache file, by kind. The default is no file.
#[derive(Debug, Default)]
pub(super) struct CachedLists([Option<CachedList>; ItemKind::ALL.len()]);

impl CachedLists {
    fn insert(&mut self, kind: ItemKind, list: CachedList) {
        self.0[kind as usize] = Some(list);
    }

    /// Removes and returns the list of a kind.
    pub(super) fn take(&mut self, kind: ItemKind) -> Option<CachedList> {
        self.0[kind as usize].take()
    }
}

/// A list of a cache file.
#[derive(Debug)]
pub(super) struct CachedList {
    pub(super) items: Vec<Arc<Item>>,
    /// Items that the server sent and that cannot be used.
    pub(super) set_aside: Vec<RejectedItem>,
    /// When the server sent it. It is part of the file, because copies of a file have another modification time.
    pub(super) saved_at: SystemTime,
}

impl Default for ServerCache {
    fn default() -> Self {
        Self {
            spoken: Mutex::default(),
            folder: None,
            kinds: &[ItemKind::Tool],
            writer: Arc::default(),
        }
    }
}

impl ServerCache {
    /// A cache that is also stored in a directory.
    pub(super) fn in_dir(folder: PathBuf) -> Self {
        Self { folder: Some(folder), ..Self::default() }
    }

    /// The same for the lists of all kinds.
    pub(super) fn with_all_kinds(&self) -> Self {
        Self { folder: self.folder.clone(), kinds: &ItemKind::ALL, ..Self::default() }
    }

    /// The protocol that was last negotiated with a server.
    pub(super) fn negotiated(&self, server: &Fingerprint) -> Option<NegotiatedProtocol> {
        self.lock().get(server).copied()
    }

    /// Records the negotiated protocol of a server.
    pub(super) fn insert(&self, server: Fingerprint, spoken: NegotiatedProtocol) {
        self.lock().insert(server, spoken);
    }

    /// Removes an entry that turned out to be wrong.
    pub(super) fn remove(&self, server: &Fingerprint) {
        self.lock().remove(server);
        if let Some(folder) = &self.folder {
            let _ = fs::remove_file(file_of(folder, server));
        }
    }

    /// Loads the entry of a server from an earlier run.
    pub(super) fn load(&self, server: &Fingerprint) -> Option<CachedServer> {
        let path = file_of(self.folder.as_ref()?, server);
        // On any problem with the file, the server is queried again.
        let remembered = file_format::server_of(&read(&path)?, self.kinds)?;
        self.lock().entry(*server).or_insert(remembered.spoken);
        Some(remembered)
    }

    /// Writes a record when no other one is written, without secrets that are known now or will be then. Returns the
    /// reason if the list is not in the file after that.
    pub(super) fn write<M: Fn() -> Arc<SecretMask>>(
        &self,
        record: CacheRecord,
        mask: M,
    ) -> impl Future<Output = Option<Box<str>>> + use<M> {
        let known = mask();
        let writer = Arc::clone(&self.writer);
        async move {
            let _turn = writer.lock().await;
            let mut masks = vec![known, mask()];
            masks.dedup_by(|one, other| Arc::ptr_eq(one, other));
            let (record, secret) = match masks.iter().any(|mask| record.holds_secret(mask)) {
                true => (record.without_list(), Some(record.secret_reason())),
                false => (record, None),
            };
            let written = spawn_blocking(move || record.write(&masks)).await;
            let written = written.unwrap_or_else(|error| Err(error.into()));
            written.err().map(|error| error.kind().to_string().into()).or(secret)
        }
    }

    /// The record of a list of a server; `None` without a cache directory, or if lists of this kind are not cached.
    pub(super) fn store(
        &self,
        server: &Fingerprint,
        spoken: NegotiatedProtocol,
        list: &ItemList,
    ) -> Option<CacheRecord> {
        let folder = self.folder.as_ref().filter(|_| self.kinds.contains(&list.kind))?;
        let object = file_format::list_object(list);
        let content = match list.kind {
            ItemKind::Tool => RecordContent::Tools(file_format::file_object(spoken, &object)),
            kind => RecordContent::List(kind, Some(object)),
        };
        Some(CacheRecord { path: file_of(folder, server), content })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Fingerprint, NegotiatedProtocol>> {
        self.spoken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A list to be written to the file of its server. The other lists of the file stay.
pub(super) struct CacheRecord {
    path: PathBuf,
    content: RecordContent,
}

enum RecordContent {
    /// No file: it cannot be without tools.
    Nothing,
    /// The file without other lists.
    Tools(Raw),
    /// A list of another kind; `None` to remove it.
    List(ItemKind, Option<Raw>),
}

impl CacheRecord {
    /// The kind of the list.
    pub(super) fn kind(&self) -> ItemKind {
        match &self.content {
            RecordContent::Tools(_) | RecordContent::Nothing => ItemKind::Tool,
            RecordContent::List(kind, _) => *kind,
        }
    }

    /// Whether a secret would be written.
    fn holds_secret(&self, mask: &SecretMask) -> bool {
        let (RecordContent::Tools(object) | RecordContent::List(_, Some(object))) = &self.content
        else {
            return false;
        };
        mask.masked_json(object.text(), false).is_some()
    }

    /// The reason why a list that repeats a secret is not in the file.
    fn secret_reason(&self) -> Box<str> {
        format!("a {} {HOLDS_SECRET}", self.kind().as_str()).into()
    }

    /// The record that removes the list instead.
    fn without_list(&self) -> Self {
        let content = match &self.content {
            RecordContent::Tools(_) | RecordContent::Nothing => RecordContent::Nothing,
            RecordContent::List(kind, _) => RecordContent::List(*kind, None),
        };
        Self { path: self.path.clone(), content }
    }

    /// The new text of the file, with the lists that another record wrote; `None` if it stays as it is.
    fn text(&self, masks: &[Arc<SecretMask>]) -> Option<String> {
        let before = read(&self.path);
        let can_be_written = |file: &Raw| {
            // A list that was written before may repeat a secret that is new.
            file.bytes().len() as u64 <= MAX_FILE_BYTES
                && masks.iter().all(|mask| mask.masked_json(file.text(), false).is_none())
        };
        let file = match &self.content {
            RecordContent::Nothing => None,
            RecordContent::Tools(file) => {
                let lists = before.as_ref().map(file_format::other_lists);
                let merged = lists.map(|lists| file_format::with_lists(file, &lists));
                Some(merged.filter(can_be_written).unwrap_or_else(|| file.clone()))
            }
            RecordContent::List(kind, list) => {
                let (before, key) = (before?, kind.list_key());
                let lists = file_format::other_lists(&before);
                let lists = match list {
                    Some(list) => lists.with(key, list),
                    None => lists.without(key),
                };
                Some(file_format::with_lists(&before, &lists)).filter(can_be_written)
            }
        };
        file.map(|file| file.text().to_owned())
    }

    /// Writes the file atomically, also with concurrent readers and writers. Of two processes that write at the same
    /// time, the file may lose the list of one: its server is asked again.
    fn write(self, masks: &[Arc<SecretMask>]) -> io::Result<()> {
        if matches!(self.content, RecordContent::Nothing) {
            let removed = fs::remove_file(&self.path);
            return removed.or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            });
        }
        let Some(text) = self.text(masks) else { return Ok(()) };
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let beside = self.path.with_extension(format!("{}-{number}.new", std::process::id()));
        let written = write_private(&beside, &text).and_then(|()| fs::rename(&beside, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written
    }
}

/// Writes a file that only its owner can read: the lists of a server may reveal something about its
/// user.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    io::Write::write_all(&mut options.open(path)?, text.as_bytes())
}

fn file_of(folder: &Path, server: &Fingerprint) -> PathBuf {
    folder.join(format!("{server}.json"))
}

/// Reads a file of the current version.
fn read(path: &Path) -> Option<Raw> {
    let kind = fs::metadata(path).ok()?;
    // A pipe, for example, would block.
    if !kind.is_file() || kind.len() > MAX_FILE_BYTES {
        return None;
    }
    let mut text = String::new();
    let file = fs::File::open(path).ok()?;
    io::Read::read_to_string(&mut io::Read::take(file, MAX_FILE_BYTES), &mut text).ok()?;
    file_format::file_of_text(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, Secret};
    use crate::connection::pagination::PageReader;

    const SPOKEN: NegotiatedProtocol =
        NegotiatedProtocol { is_modern: false, transport: RemoteTransport::Sse };

    fn server() -> Fingerprint {
        let text = r#"{ "mcpServers": { "s": { "command": "a" } } }"#;
        config::parse("mcp.json", text).config.server("s").unwrap().fingerprint()
    }

    fn list(kind: ItemKind, page: &str) -> ItemList {
        let mut pages = PageReader::new(kind, false);
        assert!(pages.add(&Raw::from_text(page).unwrap()).is_ok());
        pages.finish()
    }

    fn tools() -> ItemList {
        list(ItemKind::Tool, r#"{"tools":[{"name":"t","inputSchema":{},"x":1.50},{"name":"u"}]}"#)
    }

    fn prompts(name: &str) -> ItemList {
        list(ItemKind::Prompt, &format!(r#"{{"prompts":[{{"name":"{name}"}},{{"name":""}}]}}"#))
    }

    fn write(cache: &ServerCache, list: &ItemList) {
        let record = cache.store(&server(), SPOKEN, list).unwrap();
        record.write(&[Arc::default()]).unwrap();
    }

    fn names(list: Option<&CachedList>) -> Option<Vec<&str>> {
        Some(list?.items.iter().map(|item| item.name()).collect())
    }

    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("trunkline-{name}-{}", std::process::id())))
        }

        fn cache(&self) -> ServerCache {
            ServerCache::in_dir(self.0.join("deep")).with_all_kinds()
        }

        fn names(&self, kind: ItemKind) -> Option<Vec<String>> {
            let loaded = self.cache().load(&server())?;
            let names = names(loaded.lists.0[kind as usize].as_ref())?;
            Some(names.into_iter().map(str::to_owned).collect())
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn cache_is_read_in_the_next_run() {
        let directory = Directory::new("memory");
        let cache = directory.cache();
        assert!(cache.load(&server()).is_none());
        write(&cache, &tools());
        let next = directory.cache();
        let mut remembered = next.load(&server()).unwrap();
        assert_eq!(remembered.spoken, SPOKEN);
        assert_eq!(next.negotiated(&server()), Some(SPOKEN));
        let CachedList { items, set_aside, saved_at } =
            remembered.lists.take(ItemKind::Tool).unwrap();
        assert_eq!(items[0].definition(), tools().items[0].definition());
        assert_eq!(set_aside[0].name.as_deref(), Some("u"));
        assert_eq!(&*set_aside[0].reason, "it has no input schema");
        assert!(saved_at.elapsed().unwrap().as_secs() < 60);
        // It was never listed, which is not the same as an empty list.
        assert!(remembered.lists.take(ItemKind::Prompt).is_none());
    }

    /// CON-9: a list of one kind does not remove those of the others, in any order.
    #[test]
    fn lists_of_all_kinds_are_kept_together() {
        let directory = Directory::new("kinds");
        let cache = directory.cache();
        write(&cache, &prompts("lost"));
        assert_eq!(directory.names(ItemKind::Prompt), None, "without tools there is no file");
        write(&cache, &tools());
        write(&cache, &prompts("p"));
        write(&cache, &list(ItemKind::Resource, r#"{"resources":[]}"#));
        write(&cache, &tools());
        assert_eq!(directory.names(ItemKind::Tool).unwrap(), ["t"]);
        assert_eq!(directory.names(ItemKind::Prompt).unwrap(), ["p"]);
        assert_eq!(directory.names(ItemKind::Resource).unwrap(), [""; 0]);
        assert_eq!(directory.names(ItemKind::ResourceTemplate), None);
        let set_aside = cache.load(&server()).unwrap().lists.take(ItemKind::Prompt).unwrap();
        assert_eq!(set_aside.set_aside[0].kind, ItemKind::Prompt);
        write(&cache, &prompts("q"));
        assert_eq!(directory.names(ItemKind::Prompt).unwrap(), ["q"]);
    }

    /// A gateway uses only the tools, and keeps the other lists for the commands.
    #[test]
    fn a_cache_of_tools_keeps_the_other_lists() {
        let directory = Directory::new("tools-only");
        write(&directory.cache(), &tools());
        write(&directory.cache(), &prompts("p"));
        let gateway = ServerCache::in_dir(directory.0.join("deep"));
        assert!(gateway.load(&server()).unwrap().lists.take(ItemKind::Prompt).is_none());
        assert!(gateway.store(&server(), SPOKEN, &prompts("other")).is_none());
        write(&gateway, &tools());
        assert_eq!(directory.names(ItemKind::Prompt).unwrap(), ["p"]);
    }

    /// SEC-2: also a list that was written before the secret was known.
    #[test]
    fn a_list_that_repeats_a_secret_is_removed() {
        let directory = Directory::new("secret-list");
        let cache = directory.cache();
        write(&cache, &tools());
        write(&cache, &prompts("hunter22-prompt"));
        let mask = SecretMask::with_parts([Secret::new("hunter22-prompt".to_owned())]);
        let masks = [Arc::default(), Arc::new(mask)];
        let mask = &masks[1];
        let again = cache.store(&server(), SPOKEN, &tools()).unwrap();
        assert!(!again.holds_secret(mask));
        again.write(&masks).unwrap();
        assert_eq!(directory.names(ItemKind::Prompt), None);
        let record = cache.store(&server(), SPOKEN, &prompts("hunter22-prompt")).unwrap();
        assert!(record.holds_secret(mask));
        let removal = record.without_list();
        assert!(!removal.holds_secret(mask));
        removal.write(&masks).unwrap();
        assert_eq!(directory.names(ItemKind::Tool).unwrap(), ["t"]);
    }

    /// SEC-2: a list that waits is written neither with a secret of its own start nor with one of the next.
    #[tokio::test]
    async fn a_list_is_checked_for_the_secrets_of_two_starts() {
        let directory = Directory::new("secrets-of-starts");
        let cache = directory.cache();
        let mask =
            |secret: &str| Arc::new(SecretMask::with_parts([Secret::new(secret.to_owned())]));
        for secrets in [["hunter22-tool", "other"], ["other", "hunter22-tool"]] {
            write(&cache, &tools());
            let page = r#"{"tools":[{"name":"hunter22-tool","inputSchema":{}}]}"#;
            let record = cache.store(&server(), SPOKEN, &list(ItemKind::Tool, page)).unwrap();
            let starts = std::cell::RefCell::new(secrets.map(mask).into_iter());
            let written = cache.write(record, || starts.borrow_mut().next().unwrap());
            assert_eq!(
                written.await.as_deref(),
                Some("a tool repeats a secret of the configuration")
            );
            assert_eq!(directory.names(ItemKind::Tool), None);
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error_and_nothing_else() {
        let cache = ServerCache::in_dir("/dev/null/nowhere".into());
        let record = cache.store(&server(), SPOKEN, &tools()).unwrap();
        assert!(record.write(&[Arc::default()]).is_err());
        assert!(cache.load(&server()).is_none());
        assert!(ServerCache::default().store(&server(), SPOKEN, &tools()).is_none());
    }
}
