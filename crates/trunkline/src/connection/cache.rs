//! Cache of discovered servers, by the fingerprint of their transport: the era they support, so
//! that they are probed once, and their tools, so that those are known before they start.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use serde_json::json;
use tokio::task::spawn_blocking;

use super::pagination::PageReader;
use super::state::status::RejectedItem;
use crate::config::{Fingerprint, RemoteTransport};
use crate::item::{Item, ItemKind};
use crate::message::Raw;
use crate::transport::SecretMask;

/// The version of the file format. Other versions are ignored.
const VERSION: u64 = 1;

/// Limit on the bytes of a file, which is read while a connection is created.
const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;

/// Lifetime of a file. After that, a server that may have been upgraded to the modern era is probed
/// again.
const LONGEST_BELIEF: Duration = Duration::from_secs(7 * 24 * 3600);

/// The protocol that was negotiated with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NegotiatedProtocol {
    pub(super) is_modern: bool,
    /// The transport, for remote servers.
    pub(super) transport: RemoteTransport,
}

/// The cache, in memory and optionally on disk.
#[derive(Debug, Default)]
pub(super) struct ServerCache {
    spoken: Mutex<HashMap<Fingerprint, NegotiatedProtocol>>,
    folder: Option<PathBuf>,
    /// Held to write a file: when many servers start, each write at the same time would need a thread of its own.
    writer: Arc<tokio::sync::Mutex<()>>,
}

/// The content of a cache file.
#[derive(Debug)]
pub(super) struct CachedServer {
    pub(super) spoken: NegotiatedProtocol,
    pub(super) tools: CachedTools,
}

/// The tools of a cache file. The default is no file.
#[derive(Debug, Default)]
pub(super) struct CachedTools {
    pub(super) items: Vec<Arc<Item>>,
    /// Tools that the server sent and that cannot be used.
    pub(super) set_aside: Vec<RejectedItem>,
    /// When the server sent them. It is part of the file, because copies of a file have another modification time.
    pub(super) saved_at: Option<SystemTime>,
}

impl ServerCache {
    /// A cache that is also stored in a directory.
    pub(super) fn in_dir(folder: PathBuf) -> Self {
        Self { folder: Some(folder), ..Self::default() }
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
        self.remove_file(server);
    }

    /// Loads the entry of a server from an earlier run.
    pub(super) fn load(&self, server: &Fingerprint) -> Option<CachedServer> {
        let path = file_of(self.folder.as_ref()?, server);
        // On any problem with the file, the server is queried again.
        let remembered = read(&path).ok()??;
        self.lock().entry(*server).or_insert(remembered.spoken);
        Some(remembered)
    }

    /// Removes the cached tools of a server from disk.
    pub(super) fn remove_file(&self, server: &Fingerprint) {
        if let Some(folder) = &self.folder {
            let _ = fs::remove_file(file_of(folder, server));
        }
    }

    /// Writes a file when no other one is written. Returns the kind of error, for a message.
    pub(super) fn write(
        &self,
        record: CacheRecord,
    ) -> impl Future<Output = Option<Box<str>>> + use<> {
        let writer = Arc::clone(&self.writer);
        async move {
            let _turn = writer.lock().await;
            let written = spawn_blocking(move || record.write()).await;
            let written = written.unwrap_or_else(|error| Err(error.into()));
            written.err().map(|error| error.kind().to_string().into())
        }
    }

    /// The file to write for the tools of a server; `None` without a cache directory.
    pub(super) fn store(
        &self,
        server: &Fingerprint,
        spoken: NegotiatedProtocol,
        tools: (&[Arc<Item>], &[RejectedItem]),
    ) -> Option<CacheRecord> {
        let path = file_of(self.folder.as_ref()?, server);
        Some(CacheRecord { path, text: text_of(spoken, tools) })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Fingerprint, NegotiatedProtocol>> {
        self.spoken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file to be written.
pub(super) struct CacheRecord {
    path: PathBuf,
    text: String,
}

impl CacheRecord {
    /// Whether a secret would be written.
    pub(super) fn holds_secret(&self, mask: &SecretMask) -> bool {
        mask.masked_json(&self.text, false).is_some()
    }

    /// Writes the file atomically, also with concurrent readers and writers.
    fn write(self) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let beside = self.path.with_extension(format!("{}-{number}.new", std::process::id()));
        let written =
            write_private(&beside, &self.text).and_then(|()| fs::rename(&beside, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written
    }
}

/// Writes a file that only its owner can read: the tools of a server may reveal something about its
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

fn text_of(
    spoken: NegotiatedProtocol,
    (tools, set_aside): (&[Arc<Item>], &[RejectedItem]),
) -> String {
    let set_aside = set_aside.iter().map(|it| json!({ "name": it.name, "reason": it.reason }));
    let definitions: Vec<_> = tools.iter().map(|tool| tool.definition().text()).collect();
    let saved = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let head = json!({
        "version": VERSION,
        "savedAt": saved.as_secs(),
        "modern": spoken.is_modern,
        "sse": spoken.transport == RemoteTransport::Sse,
        "setAside": set_aside.collect::<Vec<_>>(),
    });
    let tools = Raw::from_text(&format!("[{}]", definitions.join(",")));
    let tools = tools.expect("invariant: definitions are JSON, so a list of them is");
    Raw::from_value(&head).with("tools", &tools).text().to_owned()
}

fn read(path: &Path) -> io::Result<Option<CachedServer>> {
    let kind = fs::metadata(path)?;
    // A pipe, for example, would block.
    if !kind.is_file() || kind.len() > MAX_FILE_BYTES {
        return Ok(None);
    }
    let mut text = String::new();
    io::Read::read_to_string(
        &mut io::Read::take(fs::File::open(path)?, MAX_FILE_BYTES),
        &mut text,
    )?;
    Ok(remembered(&text))
}

fn remembered(text: &str) -> Option<CachedServer> {
    let file = Raw::from_text(text).ok()?;
    let [version, saved, modern, sse, aside] =
        file.get_all(["version", "savedAt", "modern", "sse", "setAside"]);
    if version?.as_u64()? != VERSION {
        return None;
    }
    let saved = UNIX_EPOCH.checked_add(Duration::from_secs(saved?.as_u64()?))?;
    // A file from the future is as doubtful as an old one.
    let age = SystemTime::now().duration_since(saved).ok()?;
    let transport =
        if sse?.as_bool()? { RemoteTransport::Sse } else { RemoteTransport::Streamable };
    let mut pages = PageReader::new(ItemKind::Tool, false);
    pages.add(&file).ok()?;
    let spoken = NegotiatedProtocol { is_modern: modern?.as_bool()?, transport };
    let set_aside = aside.iter().flat_map(Raw::items).filter_map(|it| rejected(&it)).collect();
    (age < LONGEST_BELIEF).then(|| CachedServer {
        spoken,
        tools: CachedTools { items: pages.finish().items, set_aside, saved_at: Some(saved) },
    })
}

fn rejected(item: &Raw) -> Option<RejectedItem> {
    let [name, reason] = item.get_all(["name", "reason"]);
    let text = |raw: Raw| raw.as_str().map(Into::into);
    Some(RejectedItem {
        kind: ItemKind::Tool,
        name: name.and_then(text),
        reason: reason.and_then(text)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn server() -> Fingerprint {
        let text = r#"{ "mcpServers": { "s": { "command": "a" } } }"#;
        config::parse("mcp.json", text).config.server("s").unwrap().fingerprint()
    }

    fn tools() -> Vec<Arc<Item>> {
        let definition = Raw::from_text(r#"{"name":"t","inputSchema":{},"x":1.50}"#).unwrap();
        vec![Arc::new(Item::new(ItemKind::Tool, "t", definition))]
    }

    #[test]
    fn cache_is_read_in_the_next_run() {
        let folder = std::env::temp_dir().join(format!("trunkline-memory-{}", std::process::id()));
        let cache = ServerCache::in_dir(folder.join("deep"));
        assert!(cache.load(&server()).is_none());
        let spoken = NegotiatedProtocol { is_modern: false, transport: RemoteTransport::Sse };
        let reason = "it has no input schema".into();
        let aside = [RejectedItem { kind: ItemKind::Tool, name: Some("u".into()), reason }];
        cache.store(&server(), spoken, (&tools(), &aside)).unwrap().write().unwrap();
        let next = ServerCache::in_dir(folder.join("deep"));
        let remembered = next.load(&server()).unwrap();
        assert_eq!(remembered.spoken, spoken);
        assert_eq!(next.negotiated(&server()), Some(spoken));
        let CachedTools { items, set_aside, saved_at } = remembered.tools;
        assert_eq!(items[0].definition(), tools()[0].definition());
        assert_eq!(set_aside[0].name.as_deref(), Some("u"));
        assert_eq!(&*set_aside[0].reason, "it has no input schema");
        assert!(saved_at.unwrap().elapsed().unwrap() < Duration::from_secs(60));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn files_that_are_damaged_old_or_of_another_version_are_not_believed() {
        let spoken = NegotiatedProtocol { is_modern: true, transport: RemoteTransport::Streamable };
        let good = text_of(spoken, (&tools(), &[]));
        assert!(remembered(&good).is_some());
        // Files of earlier versions have no such list.
        assert!(remembered(&good.replace("\"setAside\"", "\"other\"")).is_some());
        for bad in [
            good.replace("\"version\":1", "\"version\":2"),
            good.replace("\"savedAt\":", "\"savedAt\":1,\"was\":"),
            good.replace("\"savedAt\":", "\"savedAt\":9"),
            good.replace("\"tools\"", "\"things\""),
            good.get(..good.len() / 2).unwrap().to_owned(),
            String::new(),
        ] {
            assert!(remembered(&bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error_and_nothing_else() {
        let cache = ServerCache::in_dir("/dev/null/nowhere".into());
        let spoken = NegotiatedProtocol { is_modern: true, transport: RemoteTransport::Streamable };
        assert!(cache.store(&server(), spoken, (&[], &[])).unwrap().write().is_err());
        assert!(cache.load(&server()).is_none());
        assert!(ServerCache::default().store(&server(), spoken, (&[], &[])).is_none());
    }
}
