//! Reads documents into terms and vectors. Each text is split once, and each word is stemmed and
//! looked up once for all documents that are read together.

use std::collections::HashMap;
use std::sync::Arc;

use crate::document::{Document, Field};
use crate::stem::stem;
use crate::stop_words::is_stop_word;
use crate::vectors::{DocumentVector, VectorBuilder, WordRows};
use crate::vocabulary::{TermId, Vocabulary};
use crate::words::for_each_word;

/// Number of occurrences of a term in each field.
pub(crate) type FieldCounts = [u32; Field::COUNT];

/// Reads documents, and adds their terms to a vocabulary.
pub(crate) struct DocumentReader<'v> {
    vocabulary: &'v mut Arc<Vocabulary>,
    words: HashMap<Box<str>, Option<KnownWord>>,
    occurrences: Vec<(TermId, Field)>,
    vector: VectorBuilder,
}

/// A word that is no stop word.
struct KnownWord {
    term: TermId,
    rows: WordRows,
}

/// The parts of a document that are scored.
pub(crate) struct ReadDocument {
    /// Sorted by term.
    pub(crate) terms: Vec<(TermId, FieldCounts)>,
    /// Number of terms of each field.
    pub(crate) lengths: FieldCounts,
    pub(crate) vector: DocumentVector,
}

impl<'v> DocumentReader<'v> {
    pub(crate) fn new(vocabulary: &'v mut Arc<Vocabulary>) -> Self {
        Self {
            vocabulary,
            words: HashMap::new(),
            occurrences: Vec::new(),
            vector: VectorBuilder::new(),
        }
    }

    pub(crate) fn read(&mut self, document: &Document) -> ReadDocument {
        self.occurrences.clear();
        document.for_each_text(|field, text| {
            for_each_word(text, |word| self.add_word(field, word));
        });
        document.for_each_stop_word_of_name(|word| {
            self.occurrences.push((term_id(self.vocabulary, &stem(word)), Field::Name));
        });
        self.occurrences.sort_unstable();
        let mut lengths = FieldCounts::default();
        let mut terms = Vec::new();
        for same in self.occurrences.chunk_by(|one, other| one.0 == other.0) {
            let mut counts = FieldCounts::default();
            for (_, field) in same {
                counts[*field as usize] += 1;
                lengths[*field as usize] += 1;
            }
            terms.extend(same.first().map(|(term, _)| (*term, counts)));
        }
        ReadDocument { terms, lengths, vector: self.vector.finish() }
    }

    fn add_word(&mut self, field: Field, word: &str) {
        if !self.words.contains_key(word) {
            let known = (!is_stop_word(word)).then(|| KnownWord {
                term: term_id(self.vocabulary, &stem(word)),
                rows: self.vector.rows(word),
            });
            self.words.insert(word.into(), known);
        }
        if let Some(Some(known)) = self.words.get(word) {
            self.occurrences.push((known.term, field));
            self.vector.add(field, &known.rows);
        }
    }
}

/// The number of a term. A vocabulary that is shared is copied only for a new one.
fn term_id(vocabulary: &mut Arc<Vocabulary>, term: &str) -> TermId {
    match vocabulary.get(term) {
        Some(id) => id,
        None => Arc::make_mut(vocabulary).insert(term),
    }
}
