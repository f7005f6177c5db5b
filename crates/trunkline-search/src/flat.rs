//! The baseline of the evaluation and the benchmark: BM25 over all words of a tool in one field.
//!
//! This is what most gateways have: no stems, no stop words, no split identifiers, no fields.

use std::collections::HashMap;

use crate::document::Document;

const SATURATION: f32 = 1.2;
const LENGTH_EFFECT: f32 = 0.75;

/// A flat index.
#[derive(Debug, Default)]
pub struct FlatIndex {
    /// Document and number of occurrences, by word.
    postings: HashMap<String, Vec<(u32, u32)>>,
    keys: Vec<String>,
    lengths: Vec<f32>,
}

impl FlatIndex {
    /// Indexes documents.
    pub fn build(documents: impl IntoIterator<Item = Document>) -> Self {
        let mut index = Self::default();
        for document in documents {
            index.insert(&document);
        }
        index
    }

    fn insert(&mut self, document: &Document) {
        let number = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        let mut length = 0.0;
        document.for_each_text(|_, text| {
            for word in words(text) {
                length += 1.0;
                let postings = self.postings.entry(word).or_default();
                match postings.last_mut() {
                    Some((last, count)) if *last == number => *count += 1,
                    _ => postings.push((number, 1)),
                }
            }
        });
        self.keys.push(document.key.clone());
        self.lengths.push(length);
    }

    /// The keys of the best documents, best first.
    pub fn search(&self, text: &str, limit: usize) -> Vec<&str> {
        let documents = self.keys.len() as f32;
        let average = self.lengths.iter().sum::<f32>() / documents.max(1.0);
        let mut scores = vec![0.0_f32; self.keys.len()];
        for word in words(text) {
            let Some(postings) = self.postings.get(&word) else { continue };
            let frequency = postings.len() as f32;
            let rarity = (1.0 + (documents - frequency + 0.5) / (frequency + 0.5)).ln();
            for (document, count) in postings {
                let (at, count) = (*document as usize, *count as f32);
                let length = 1.0 - LENGTH_EFFECT + LENGTH_EFFECT * self.lengths[at] / average;
                scores[at] += rarity * count * (SATURATION + 1.0) / (count + SATURATION * length);
            }
        }
        let mut order: Vec<usize> = (0..scores.len()).filter(|at| scores[*at] > 0.0).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
        order.into_iter().take(limit).map(|at| self.keys[at].as_str()).collect()
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|char: char| !char.is_alphanumeric() && char != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}
