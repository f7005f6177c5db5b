//! A query and the terms it is made of.

use crate::limits::{MAX_QUERY_BYTES, MAX_QUERY_TERMS, beginning};
use crate::stem::stem;
use crate::stop_words::is_stop_word;
use crate::vectors::is_known_word;
use crate::visible::Scope;
use crate::vocabulary::TermId;
use crate::words::for_each_word;

/// Number of hits unless a query says otherwise.
pub const DEFAULT_HITS: usize = 5;

/// Effect of a term that stands for a misspelt word.
const CORRECTION_WEIGHT: f32 = 0.7;

/// Largest number of corrections of one word.
const MAX_CORRECTIONS: usize = 4;

/// One or several texts that describe the tools that are needed.
///
/// Several short texts find more than one long one: on tasks with 527 real tools, three short
/// texts had 60 % of the needed tools among their first five hits, the task itself 39 %.
#[derive(Clone, Debug)]
pub struct Query<'a> {
    /// Texts in the words of the caller. A tool that fits one of them well comes first.
    pub texts: Vec<&'a str>,
    /// Only tools of this server.
    pub server: Option<&'a str>,
    /// Number of hits, at most [`MAX_HITS`](crate::limits::MAX_HITS).
    pub limit: usize,
    /// Whether tools with nearly the same words count as one hit.
    pub collapse: bool,
}

impl<'a> Query<'a> {
    /// A query with one text.
    pub fn new(text: &'a str) -> Self {
        Self::of([text])
    }

    /// A query with several texts.
    pub fn of(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            texts: texts.into_iter().collect(),
            server: None,
            limit: DEFAULT_HITS,
            collapse: false,
        }
    }

    /// The same query for other numbers of hits.
    #[must_use]
    pub fn with_limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// The same query, with near-duplicates as one hit: [`Hit::similar`](crate::Hit::similar).
    ///
    /// Several servers may have the same tool, and the same tool five times is no help.
    #[must_use]
    pub fn with_collapse(self) -> Self {
        Self { collapse: true, ..self }
    }

    /// The same query for the tools of one server.
    #[must_use]
    pub fn with_server(self, server: &'a str) -> Self {
        Self { server: Some(server), ..self }
    }
}

/// A term of a text with its effect: rare terms have more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct QueryTerm {
    pub(crate) term: TermId,
    pub(crate) weight: f32,
}

/// The terms of a text that occur in visible documents.
///
/// A term counts once, however often it is repeated. Counted repetitions lowered the recall at 5 of
/// one labelled set by 2.9 points, raised that of another by 0.7, and hardly changed the others.
pub(crate) fn query_terms(scope: Scope<'_>, text: &str) -> Vec<QueryTerm> {
    let mut words: Vec<String> = Vec::new();
    let text = beginning(text, MAX_QUERY_BYTES);
    for_each_word(text, |word| {
        if words.len() < MAX_QUERY_TERMS
            && !is_stop_word(word)
            && !words.iter().any(|it| it == word)
        {
            words.push(word.to_owned());
        }
    });
    if words.is_empty() {
        return stop_word_terms(scope, text);
    }
    let mut terms: Vec<QueryTerm> = Vec::with_capacity(words.len());
    for word in words {
        for (term, frequency, effect) in resolve(scope, &word) {
            let weight = rarity(scope.len(), frequency) * effect;
            match terms.iter_mut().find(|it| it.term == term) {
                Some(known) => known.weight = known.weight.max(weight),
                None => terms.push(QueryTerm { term, weight }),
            }
        }
    }
    terms
}

/// The terms of a text that has only stop words: a tool may be named by them.
fn stop_word_terms(scope: Scope<'_>, text: &str) -> Vec<QueryTerm> {
    let mut terms: Vec<QueryTerm> = Vec::new();
    for_each_word(text, |word| {
        let known = scope.index.vocabulary.get(&stem(word));
        let is_new = |term: &TermId| !terms.iter().any(|it| it.term == *term);
        if let Some(term) = known.filter(|_| terms.len() < MAX_QUERY_TERMS).filter(is_new)
            && scope.frequency(term) > 0
        {
            terms.push(QueryTerm { term, weight: rarity(scope.len(), scope.frequency(term)) });
        }
    });
    terms
}

/// The term of a word, or the terms that it may be a misspelling of, with their frequency.
fn resolve(scope: Scope<'_>, word: &str) -> Vec<(TermId, usize, f32)> {
    let frequency = |term: TermId| scope.frequency(term);
    let vocabulary = &scope.index.vocabulary;
    let stemmed = stem(word);
    let known = vocabulary.get(&stemmed).map(|term| (term, frequency(term), 1.0));
    if let Some(known) = known.filter(|(_, frequency, _)| *frequency > 0) {
        return vec![known];
    }
    // A word that no tool has is not misspelt if the language has it.
    if is_known_word(word) {
        return Vec::new();
    }
    let similar = vocabulary.similar(&stemmed);
    let mut found: Vec<_> = similar
        .into_iter()
        .map(|term| (term, frequency(term), CORRECTION_WEIGHT))
        .filter(|(_, frequency, _)| *frequency > 0)
        .collect();
    // Frequent words are more likely meant. The text decides ties: numbers depend on the order in
    // which documents were added.
    let text = |term: TermId| vocabulary.text(term);
    found.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| text(a.0).cmp(text(b.0))));
    found.truncate(MAX_CORRECTIONS);
    found
}

/// The inverse document frequency of BM25.
pub(crate) fn rarity(documents: usize, frequency: usize) -> f32 {
    let (documents, frequency) = (documents as f32, frequency as f32);
    (1.0 + (documents - frequency + 0.5) / (frequency + 0.5)).ln()
}
