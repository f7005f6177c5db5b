//! The reasons of a score: terms with their fields, and the similarity of meaning.

use crate::document::{Document, Field};
use crate::index::Index;
use crate::scores::Piece;
use crate::vectors::document_vector;
use crate::visible::{Scope, Visible};

/// The parts of the score of a document for one text, before clauses and servers are considered.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Terms of the text that the document has, the most effective first.
    pub terms: Vec<TermContribution>,
    /// Similarity of meaning, from 0 to 1; 0 without the feature `word-vectors`.
    pub similarity: f32,
}

/// The effect of a term.
#[derive(Clone, Debug, PartialEq)]
pub struct TermContribution {
    /// The stem of the word, or its correction.
    pub term: String,
    /// Effect of the term in this document.
    pub score: f32,
    /// Share of each field in the effect, without fields that do not have the term.
    pub fields: Vec<(Field, f32)>,
}

impl Index {
    /// Explains the score of a document for a text.
    ///
    /// ```
    /// use trunkline_search::{Document, Field, Index};
    ///
    /// let document = Document {
    ///     key: "get_forecast".to_owned(),
    ///     name: "get_forecast".to_owned(),
    ///     description: "Weather forecast for a city.".to_owned(),
    ///     ..Document::default()
    /// };
    /// let index = Index::build([document.clone()]);
    /// let explanation = index.explain("forecasts for Paris", &document, None);
    /// assert_eq!(explanation.terms[0].term, "forecast");
    /// assert_eq!(explanation.terms[0].fields[0].0, Field::Name);
    /// ```
    pub fn explain(
        &self,
        text: &str,
        document: &Document,
        visible: Option<&Visible>,
    ) -> Explanation {
        let piece = Piece::new(Scope::new(self, visible), text);
        let terms = piece.terms.into_iter();
        let mut terms: Vec<TermContribution> = terms
            .filter_map(|term| {
                self.contribution(self.vocabulary.text(term.term), term.weight, document)
            })
            .collect();
        terms.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.term.cmp(&b.term)));
        let similarity =
            piece.vector.map_or(0.0, |vector| vector.cosine(&document_vector(document)));
        Explanation { terms, similarity }
    }

    fn contribution(
        &self,
        term: &str,
        weight: f32,
        document: &Document,
    ) -> Option<TermContribution> {
        let mut counts = [0; Field::COUNT];
        let mut lengths = [0; Field::COUNT];
        document.for_each_term(|field, other| {
            counts[field as usize] += u32::from(other == term);
            lengths[field as usize] += 1;
        });
        let weights = self.options.field_weights(&lengths);
        let effects: Vec<(Field, f32)> = Field::ALL
            .into_iter()
            .map(|field| (field, counts[field as usize] as f32 * weights[field as usize]))
            .filter(|(_, effect)| *effect > 0.0)
            .collect();
        let sum: f32 = effects.iter().map(|(_, effect)| effect).sum();
        (sum > 0.0).then(|| TermContribution {
            term: term.to_owned(),
            score: weight * self.options.saturate(&counts, &weights),
            fields: effects.into_iter().map(|(field, effect)| (field, effect / sum)).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_fields_add_up_and_hidden_terms_do_not_count() {
        let document = Document {
            key: "k".to_owned(),
            name: "read_file".to_owned(),
            description: "Reads a file.".to_owned(),
            ..Document::default()
        };
        let index = Index::build([document.clone()]);
        let explanation = index.explain("read the file, xyzzy", &document, None);
        assert_eq!(explanation.terms.len(), 2);
        for term in &explanation.terms {
            let sum: f32 = term.fields.iter().map(|(_, share)| share).sum();
            assert!((sum - 1.0).abs() < 1e-5 && term.score > 0.0, "{term:?}");
        }
        let none = Visible::new(&index, |_| false);
        assert!(index.explain("read", &document, Some(&none)).terms.is_empty());
    }
}
