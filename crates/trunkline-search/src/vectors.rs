//! Similarity of meaning: a table of word vectors, and the vectors of texts.
//!
//! Words that mean the same are different terms, and the model that writes a query does not know
//! the words of the tool. The table has a vector for 27,440 words and pieces of words; the vector
//! of a text is their sum. `data/README.md` says where the table comes from and under which licence.
//!
//! The vectors come from a table and not from the catalog, so that a search by one caller reveals
//! nothing about tools that are hidden from that caller (see [`visible`](crate::visible)).

use std::cmp::Ordering;

use crate::document::{Document, Field};
use crate::limits::{MAX_QUERY_BYTES, beginning};
use crate::stop_words::is_stop_word;
use crate::words::for_each_word;

/// Number of dimensions of a vector; without a table, vectors take no memory.
const DIMENSIONS: usize = if cfg!(feature = "word-vectors") { 256 } else { 0 };

/// Number of components that are multiplied at once.
const LANES: usize = 16;

/// First bytes of the table.
const MAGIC: &[u8] = b"TLSV";

/// Prefix of pieces that do not begin a word.
const INNER: &[u8] = b"##";

/// Effect of each field on the vector of a document, in the order of [`Field::ALL`]. The name
/// and the description say what a tool is for; descriptions of parameters repeat themselves.
const FIELD_WEIGHTS: [f32; Field::COUNT] = [1.0, 0.5, 0.4, 1.0, 0.3, 0.0, 0.0];

/// Components of a unit vector are small; this factor makes use of the range of a byte.
const DOCUMENT_SCALE: f32 = 4.0 * 127.0;

/// Makes a component of a unit vector an integer.
const QUERY_SCALE: f32 = 4096.0;

/// Least cosine that says something. Unrelated words are often below.
const LEAST_COSINE: f32 = 0.15;

/// Least [`QueryVector::similarity`] of a document that has no word of the query.
///
/// Of the hits without a word of the query among the first five on five labelled sets, 36 are
/// relevant, all with a cosine of 0.20 or more. Without any of those hits, the mean recall at 5 is
/// 1.7 points lower (one set: 7.1), so that they cannot all be left out.
pub(crate) const LEAST_SIMILARITY: f32 = LEAST_COSINE * QUERY_SCALE * DOCUMENT_SCALE;

#[cfg(feature = "word-vectors")]
const TABLE: &[u8] = include_bytes!("../data/words.bin");
#[cfg(not(feature = "word-vectors"))]
const TABLE: &[u8] = &[];

/// The table of word vectors as it is in the program; empty without the feature `word-vectors`.
pub fn word_vector_table() -> &'static [u8] {
    TABLE
}

/// The vector of a document. `None` if there is no table or no known word.
pub(crate) type DocumentVector = Option<[i8; DIMENSIONS]>;

/// The vector of a query.
pub(crate) struct QueryVector(Box<[i16; DIMENSIONS]>);

impl QueryVector {
    /// The vector of a text, unless no word of it has one.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let table = WordTable::load()?;
        let mut sum = [0.0; DIMENSIONS];
        table.add_text(beginning(text, MAX_QUERY_BYTES), &mut sum);
        normalise(&mut sum)
            .then(|| Self(Box::new(sum.map(|component| (component * QUERY_SCALE) as i16))))
    }

    /// The cosine of the angle to a document, from 0 to 1.
    pub(crate) fn cosine(&self, document: &DocumentVector) -> f32 {
        (self.similarity(document) / (QUERY_SCALE * DOCUMENT_SCALE)).min(1.0)
    }

    /// Similarity to a document, from 0 on. Only ratios of similarities have a meaning.
    pub(crate) fn similarity(&self, document: &DocumentVector) -> f32 {
        let Some(document) = document else { return 0.0 };
        dot_product(&self.0, document).max(0) as f32
    }
}

/// Rows of the table for a word: its own, or those of its pieces.
pub(crate) type WordRows = Box<[usize]>;

/// Makes the vectors of documents: the weighted sums of those of their fields.
pub(crate) struct VectorBuilder {
    table: Option<WordTable>,
    fields: Vec<[f32; DIMENSIONS]>,
}

impl VectorBuilder {
    pub(crate) fn new() -> Self {
        Self { table: WordTable::load(), fields: vec![[0.0; DIMENSIONS]; Field::COUNT] }
    }

    /// The rows of a word that is no stop word.
    pub(crate) fn rows(&self, word: &str) -> WordRows {
        let mut rows = Vec::new();
        if let Some(table) = &self.table {
            table.for_each_row(word, |row| rows.push(row));
        }
        rows.into()
    }

    pub(crate) fn add(&mut self, field: Field, rows: &WordRows) {
        let Some(table) = self.table.filter(|_| FIELD_WEIGHTS[field as usize] > 0.0) else {
            return;
        };
        for row in rows {
            table.add_row(*row, &mut self.fields[field as usize]);
        }
    }

    /// The vector of the words that were added, and none of them remains.
    pub(crate) fn finish(&mut self) -> DocumentVector {
        let mut sum = [0.0; DIMENSIONS];
        for (field, weight) in self.fields.iter_mut().zip(FIELD_WEIGHTS) {
            if normalise(field) {
                for (total, component) in sum.iter_mut().zip(&*field) {
                    *total += weight * component;
                }
                field.fill(0.0);
            }
        }
        // The conversion saturates, and a component beyond a quarter is rare.
        let to_byte = |component: f32| (component * DOCUMENT_SCALE).round() as i8;
        normalise(&mut sum).then(|| sum.map(to_byte))
    }
}

/// The vector of a document.
pub(crate) fn document_vector(document: &Document) -> DocumentVector {
    let mut builder = VectorBuilder::new();
    document.for_each_text(|field, text| {
        for_each_word(text, |word| {
            if !is_stop_word(word) {
                let rows = builder.rows(word);
                builder.add(field, &rows);
            }
        });
    });
    builder.finish()
}

/// Written so that the compiler multiplies eight components at once on any x86-64 processor.
fn dot_product(query: &[i16; DIMENSIONS], document: &[i8; DIMENSIONS]) -> i32 {
    let mut sums = [0; LANES];
    for (one, other) in query.as_chunks::<LANES>().0.iter().zip(document.as_chunks().0) {
        let other: [i16; LANES] = other.map(i16::from);
        for (sum, (one, other)) in sums.iter_mut().zip(one.iter().zip(other)) {
            *sum += i32::from(*one) * i32::from(other);
        }
    }
    sums.iter().sum()
}

/// Whether the table has a vector for a whole word of a text, stop words aside.
pub(crate) fn has_known_word(text: &str) -> bool {
    let Some(table) = WordTable::load() else { return false };
    let mut is_known = false;
    for_each_word(beginning(text, MAX_QUERY_BYTES), |word| {
        is_known = is_known || !is_stop_word(word) && table.find(word.as_bytes()).is_some();
    });
    is_known
}

/// Whether the table has a vector for a whole word.
pub(crate) fn is_known_word(word: &str) -> bool {
    WordTable::load().is_some_and(|table| table.find(word.as_bytes()).is_some())
}

/// Gives a vector the length 1; false for a vector without direction.
fn normalise(vector: &mut [f32]) -> bool {
    let length = vector.iter().map(|component| component * component).sum::<f32>().sqrt();
    if length <= f32::EPSILON {
        return false;
    }
    for component in vector {
        *component /= length;
    }
    true
}

/// The table: sorted words with rows of four bits per dimension.
#[derive(Clone, Copy)]
struct WordTable {
    count: usize,
    /// Ends of the words in `words`, with a 0 before the first; four bytes each.
    offsets: &'static [u8],
    /// Factor of each row, four bytes each.
    scales: &'static [u8],
    rows: &'static [u8],
    words: &'static [u8],
}

impl WordTable {
    /// Takes the table apart; `None` without the feature `word-vectors`.
    fn load() -> Option<Self> {
        let rest = TABLE.strip_prefix(MAGIC)?;
        let (count, rest) = rest.split_first_chunk::<4>()?;
        let (dimensions, rest) = rest.split_first_chunk::<4>()?;
        if u32::from_le_bytes(*dimensions) as usize != DIMENSIONS {
            return None;
        }
        let count = u32::from_le_bytes(*count) as usize;
        let (offsets, rest) = rest.split_at_checked(4 * (count + 1))?;
        let (scales, rest) = rest.split_at_checked(4 * count)?;
        let (rows, words) = rest.split_at_checked(count * DIMENSIONS / 2)?;
        Some(Self { count, offsets, scales, rows, words })
    }

    fn number(bytes: &[u8], at: usize) -> [u8; 4] {
        bytes.get(4 * at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default()
    }

    fn word(&self, row: usize) -> &[u8] {
        let end = |at| u32::from_le_bytes(Self::number(self.offsets, at)) as usize;
        self.words.get(end(row)..end(row + 1)).unwrap_or_default()
    }

    fn find(&self, word: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            match self.word(middle).cmp(word) {
                Ordering::Equal => return Some(middle),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        None
    }

    fn add_text(&self, text: &str, sum: &mut [f32]) {
        for_each_word(text, |word| {
            if !is_stop_word(word) {
                self.for_each_row(word, |row| self.add_row(row, sum));
            }
        });
    }

    /// Calls a function with the row of a word, or those of the longest pieces that it is made of.
    fn for_each_row(&self, word: &str, mut visit: impl FnMut(usize)) {
        if let Some(row) = self.find(word.as_bytes()) {
            visit(row);
            return;
        }
        let mut rest = word.as_bytes();
        let mut piece = Vec::with_capacity(INNER.len() + rest.len());
        let mut prefix: &[u8] = &[];
        while !rest.is_empty() {
            let mut find = |length: usize| {
                piece.clear();
                piece.extend_from_slice(prefix);
                piece.extend_from_slice(&rest[..length]);
                self.find(&piece).map(|row| (row, length))
            };
            let Some((row, length)) = (1..=rest.len()).rev().find_map(&mut find) else { return };
            visit(row);
            rest = &rest[length..];
            prefix = INNER;
        }
    }

    fn add_row(&self, row: usize, sum: &mut [f32]) {
        let scale = f32::from_le_bytes(Self::number(self.scales, row));
        let bytes = self.rows.chunks_exact(DIMENSIONS / 2).nth(row).unwrap_or_default();
        for (pair, byte) in sum.chunks_exact_mut(2).zip(bytes) {
            pair[0] += scale * (f32::from(byte & 15) - 8.0);
            pair[1] += scale * (f32::from(byte >> 4) - 8.0);
        }
    }
}

#[cfg(feature = "word-vectors")]
#[cfg(test)]
mod tests {
    use super::*;

    fn similarity(query: &str, description: &str) -> f32 {
        let document = Document { description: description.to_owned(), ..Document::default() };
        QueryVector::new(query).unwrap().similarity(&document_vector(&document))
    }

    #[test]
    fn related_words_are_more_similar_than_others() {
        for (query, near, far) in [
            ("forecast", "weather tomorrow", "delete a file"),
            ("remove a folder", "delete directory", "play a song"),
            ("movie", "film actors", "stock prices"),
        ] {
            assert!(similarity(query, near) > 2.0 * similarity(query, far), "{query}");
        }
    }

    #[test]
    fn texts_without_known_words_have_no_vector() {
        for text in ["", "the of", "\u{0}", "検索", "🙂"] {
            assert!(QueryVector::new(text).is_none(), "{text}");
        }
        assert!(document_vector(&Document::default()).is_none());
        assert!(is_known_word("weather") && !is_known_word("weahter") && !is_known_word(""));
    }

    #[test]
    fn pieces_of_words_are_no_known_words() {
        for text in ["asdfgh qwerty", "the xyzzy", "hjkl", ""] {
            assert!(!has_known_word(text), "{text}");
        }
        assert!(has_known_word("asdfgh weather"));
    }

    #[test]
    fn the_table_is_sorted_and_small() {
        let table = WordTable::load().unwrap();
        assert!((1..table.count).all(|row| table.word(row - 1) < table.word(row)));
        assert!(TABLE.len() < 5_000_000);
    }
}
