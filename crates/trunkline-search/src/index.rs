//! The index: postings per term, documents in slots, servers that are replaced as a whole.
//!
//! A posting holds one number, the saturated weight of a term in a document. It depends on that
//! document alone ([`FieldOptions::typical_length`](crate::options::FieldOptions::typical_length)),
//! so that a change of one server touches only the terms of that server, and a query multiplies
//! and adds once per posting.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::document::Document;
use crate::options::Options;
use crate::reader::{DocumentReader, ReadDocument};
use crate::vectors::DocumentVector;
use crate::vocabulary::{TermId, Vocabulary};

/// Place of a document.
pub(crate) type Slot = u32;

/// Searchable documents. A clone is cheap: it shares everything that is not changed later.
///
/// ```
/// use trunkline_search::{Document, Index, Query};
///
/// let tool = |name: &str, description: &str| Document {
///     key: name.to_owned(),
///     server: "files".to_owned(),
///     name: name.to_owned(),
///     description: description.to_owned(),
///     ..Document::default()
/// };
/// let index = Index::build([
///     tool("read_file", "Read the contents of a file."),
///     tool("list_directory", "List the files in a directory."),
/// ]);
/// let hits = index.search(&Query::new("which files does a folder or directory have?"));
/// assert_eq!(hits[0].document.key(), "list_directory");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Index {
    pub(crate) options: Options,
    pub(crate) vocabulary: Arc<Vocabulary>,
    /// By term; those of a term are sorted by slot.
    pub(crate) postings: Vec<Arc<Vec<Occurrence>>>,
    /// By slot; `None` is free.
    pub(crate) entries: Vec<Option<Arc<Entry>>>,
    /// Number of the server by slot.
    pub(crate) server_of: Vec<u32>,
    free: Vec<Slot>,
    /// By number, also of servers that are gone.
    servers: Vec<Arc<Vec<Slot>>>,
    server_ids: Arc<BTreeMap<Arc<str>, u32>>,
}

/// A term in a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occurrence {
    pub(crate) slot: Slot,
    /// Between 0 and 1.
    pub(crate) weight: f32,
}

/// An indexed document.
#[derive(Debug)]
pub struct Entry {
    key: Box<str>,
    server: Arc<str>,
    name: Box<str>,
    /// Sorted.
    pub(crate) terms: Box<[TermId]>,
    pub(crate) vector: DocumentVector,
}

impl Entry {
    /// [`Document::key`].
    pub fn key(&self) -> &str {
        &self.key
    }

    /// [`Document::server`].
    pub fn server(&self) -> &str {
        &self.server
    }

    /// [`Document::name`].
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Index {
    /// Indexes documents.
    pub fn build(documents: impl IntoIterator<Item = Document>) -> Self {
        Self::with_options(Options::default(), documents)
    }

    /// Indexes documents with other parameters.
    pub fn with_options(options: Options, documents: impl IntoIterator<Item = Document>) -> Self {
        let mut index = Self { options, ..Self::default() };
        index.add(documents);
        index
    }

    /// Number of documents.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of different servers, also those whose documents are gone.
    pub(crate) fn server_count(&self) -> usize {
        self.servers.len()
    }

    /// Number of a server.
    pub(crate) fn server_id(&self, name: &str) -> Option<u32> {
        self.server_ids.get(name).copied()
    }

    /// The places of all documents, in ascending order.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        (0..).zip(&self.entries).filter_map(|(slot, entry)| entry.is_some().then_some(slot))
    }

    /// The places of the documents of a server, in no particular order.
    pub(crate) fn slots_of(&self, server: &str) -> &[Slot] {
        self.server_id(server).map_or(&[], |id| &self.servers[id as usize])
    }

    /// The document at a place.
    pub(crate) fn entry(&self, slot: Slot) -> Option<&Entry> {
        self.entries[slot as usize].as_deref()
    }

    /// The documents, in no particular order.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().flatten().map(|entry| &**entry)
    }

    /// Replaces all documents of a server. Documents of other servers among the new ones are added.
    ///
    /// ```
    /// use trunkline_search::{Document, Index, Query};
    ///
    /// let tool = |server: &str, name: &str| Document {
    ///     key: format!("{server}_{name}"),
    ///     server: server.to_owned(),
    ///     name: name.to_owned(),
    ///     ..Document::default()
    /// };
    /// let mut index = Index::build([tool("mail", "send"), tool("chat", "send_message")]);
    /// index.replace_server("mail", [tool("mail", "search")]);
    /// assert_eq!(index.search(&Query::new("send"))[0].document.server(), "chat");
    /// ```
    pub fn replace_server(&mut self, server: &str, documents: impl IntoIterator<Item = Document>) {
        self.remove_server(server);
        self.add(documents);
    }

    /// Removes all documents of a server.
    pub fn remove_server(&mut self, server: &str) {
        let Some(id) = self.server_id(server) else { return };
        let slots = std::mem::take(&mut self.servers[id as usize]);
        let mut terms = Vec::new();
        for slot in slots.iter() {
            if let Some(entry) = self.entries[*slot as usize].take() {
                terms.extend_from_slice(&entry.terms);
            }
        }
        terms.sort_unstable();
        terms.dedup();
        let entries = &self.entries;
        for term in terms {
            let postings = Arc::make_mut(&mut self.postings[term as usize]);
            postings.retain(|posting| entries[posting.slot as usize].is_some());
        }
        self.free.extend(slots.iter());
    }

    fn add(&mut self, documents: impl IntoIterator<Item = Document>) {
        let mut vocabulary = std::mem::take(&mut self.vocabulary);
        let mut reader = DocumentReader::new(&mut vocabulary);
        for document in documents {
            let read = reader.read(&document);
            self.insert(&document, read);
        }
        self.vocabulary = vocabulary;
    }

    fn insert(&mut self, document: &Document, read: ReadDocument) {
        let slot = self.free_slot();
        let (server, server_id) = self.register_server(&document.server, slot);
        self.server_of[slot as usize] = server_id;
        let weights = self.options.field_weights(&read.lengths);
        for (term, counts) in &read.terms {
            let weight = self.options.saturate(counts, &weights);
            self.insert_posting(*term, Occurrence { slot, weight });
        }
        self.entries[slot as usize] = Some(Arc::new(Entry {
            key: document.key.as_str().into(),
            server,
            name: document.name.as_str().into(),
            terms: read.terms.into_iter().map(|(term, _)| term).collect(),
            vector: read.vector,
        }));
    }

    fn free_slot(&mut self) -> Slot {
        self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.server_of.push(0);
            Slot::try_from(self.entries.len() - 1).unwrap_or(Slot::MAX)
        })
    }

    fn insert_posting(&mut self, term: TermId, posting: Occurrence) {
        if self.postings.len() <= term as usize {
            self.postings.resize_with(term as usize + 1, Arc::default);
        }
        let postings = Arc::make_mut(&mut self.postings[term as usize]);
        let place = match postings.last() {
            Some(last) if last.slot > posting.slot => {
                postings.partition_point(|other| other.slot < posting.slot)
            }
            _ => postings.len(),
        };
        postings.insert(place, posting);
    }

    fn register_server(&mut self, name: &str, slot: Slot) -> (Arc<str>, u32) {
        if let Some((name, id)) = self.server_ids.get_key_value(name) {
            Arc::make_mut(&mut self.servers[*id as usize]).push(slot);
            return (Arc::clone(name), *id);
        }
        let id = u32::try_from(self.servers.len()).unwrap_or(u32::MAX);
        let name: Arc<str> = Arc::from(name);
        self.servers.push(Arc::new(vec![slot]));
        Arc::make_mut(&mut self.server_ids).insert(Arc::clone(&name), id);
        (name, id)
    }
}
