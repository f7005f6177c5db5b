//! Scores of candidates for one text: words, meaning and clauses.
//!
//! Three things are added to the words of a text, each measured by `cargo xtask eval-search`
//! (recall at 5, mean of five labelled sets):
//!
//! - Words alone: 74.3. A task has several steps, and each needs its own tool. So a document is
//!   scored for the whole text and for its best clause, half and half: 76.4.
//! - The similarity of meaning counts as much as the words ([`vectors`](crate::vectors)): 80.1.
//!   With values and nested parameters ([`parameters`](crate::parameters)): 80.5.
//! - A share of the best score of a server goes to its other tools: 0.1 more, measured with words
//!   alone.
//!
//! Meaning alone finds something for any text, so it counts only with some evidence: the text has a
//! word of a tool or of the language, and a document without a word of the text is not too far from
//! it. Of 20 texts of nonsense and unrelated words in five sets, 66 of 100 searches then find
//! nothing instead of 5; the mean recall at 5 stays 80.5.
//!
//! The second and third number were chosen on the same sets. With the choice made on four sets and
//! measured on the fifth, the last number is 0.7 points lower (79.5 against 80.2 with at most 800
//! queries of each set).

use crate::index::{Index, Slot};
use crate::limits::{MAX_CLAUSES, MAX_QUERY_BYTES, beginning};
use crate::query::{QueryTerm, query_terms};
use crate::vectors::{LEAST_SIMILARITY, QueryVector, has_known_word};
use crate::visible::Scope;
use crate::words::clauses;

/// Share of the similarity of meaning in a score; the rest is for the words.
const MEANING_SHARE: f32 = 0.5;

/// Share of the best clause in the score of a text; the rest is for the whole text.
const BEST_CLAUSE_SHARE: f32 = 0.5;

/// Share of the best text in the score of a query; the rest is for the mean of all.
const BEST_TEXT_SHARE: f32 = 0.5;

/// A text of a query, taken apart.
pub(crate) struct QueryText {
    whole: Piece,
    /// Empty, or several.
    clauses: Vec<Piece>,
}

/// A text or a clause that documents are scored for.
pub(crate) struct Piece {
    pub(crate) terms: Vec<QueryTerm>,
    pub(crate) vector: Option<QueryVector>,
}

/// The documents that are scored. Scores are in the same order.
pub(crate) struct Candidates {
    /// Sorted.
    pub(crate) slots: Vec<Slot>,
    /// Sums of the words, if the query is a single piece and they are known.
    pub(crate) sums: Option<Vec<f32>>,
}

/// Scores, and the best of them by words, which says how much the text is worth.
pub(crate) struct Scores {
    scores: Vec<f32>,
    pub(crate) best: f32,
}

impl QueryText {
    pub(crate) fn new(scope: Scope<'_>, text: &str) -> Self {
        let text = beginning(text, MAX_QUERY_BYTES);
        let parts = clauses(text, MAX_CLAUSES);
        let parts = if parts.len() > 1 { parts } else { Vec::new() };
        Self {
            whole: Piece::new(scope, text),
            clauses: parts.into_iter().map(|part| Piece::new(scope, part)).collect(),
        }
    }

    pub(crate) fn pieces(&self) -> impl Iterator<Item = &Piece> {
        std::iter::once(&self.whole).chain(&self.clauses)
    }
}

impl Piece {
    pub(crate) fn new(scope: Scope<'_>, text: &str) -> Self {
        let terms = query_terms(scope, text);
        let has_meaning = !terms.is_empty() || has_known_word(text);
        let vector = has_meaning.then(|| QueryVector::new(text)).flatten();
        Self { terms, vector }
    }
}

impl Index {
    /// Scores for a text: those of the whole and those of the best clause, at most 1.
    pub(crate) fn score_text(&self, text: &QueryText, candidates: &Candidates) -> Scores {
        let mut whole = self.score(&text.whole, candidates);
        if !text.clauses.is_empty() {
            let score = |clause| self.score(clause, candidates);
            let clauses: Vec<Scores> = text.clauses.iter().map(score).collect();
            mix_best_clause(&mut whole.scores, &clauses);
        }
        self.add_server_affinity(&mut whole.scores, &candidates.slots);
        whole
    }

    /// Scores for one piece of text: words and meaning, relative to the best document of each.
    fn score(&self, piece: &Piece, candidates: &Candidates) -> Scores {
        let sums = || self.sums_of(&candidates.slots, &piece.terms);
        let mut scores = candidates.sums.clone().unwrap_or_else(sums);
        let best = maximum(&scores);
        if best > 0.0 {
            scores.iter_mut().for_each(|score| *score /= best);
        }
        let Some(vector) = &piece.vector else { return Scores { scores, best } };
        let similarities = self.similarities(vector, &candidates.slots);
        let most = maximum(&similarities);
        if most <= 0.0 {
            return Scores { scores, best };
        }
        for (score, similarity) in scores.iter_mut().zip(similarities) {
            if *score > 0.0 || similarity >= LEAST_SIMILARITY {
                *score = (1.0 - MEANING_SHARE) * *score + MEANING_SHARE * similarity / most;
            }
        }
        // A text without words of the catalog is worth little, but something if it has hits.
        let best = best.max(maximum(&scores).min(f32::MIN_POSITIVE));
        Scores { scores, best }
    }

    fn similarities(&self, vector: &QueryVector, slots: &[Slot]) -> Vec<f32> {
        let similarity =
            |slot: &Slot| self.entry(*slot).map_or(0.0, |entry| vector.similarity(&entry.vector));
        slots.iter().map(similarity).collect()
    }

    /// Tools of a server that has a good one are more likely meant than those of other servers.
    fn add_server_affinity(&self, scores: &mut [f32], slots: &[Slot]) {
        let mut best = vec![0.0_f32; self.server_count()];
        let server = |slot: &Slot| self.server_of[*slot as usize] as usize;
        for (score, slot) in scores.iter().zip(slots) {
            let best = &mut best[server(slot)];
            *best = best.max(*score);
        }
        for (score, slot) in scores.iter_mut().zip(slots) {
            if *score > 0.0 {
                *score += self.options.server_affinity * best[server(slot)];
            }
        }
    }
}

fn maximum(scores: &[f32]) -> f32 {
    scores.iter().copied().fold(0.0, f32::max)
}

/// Adds the best clause of each document to the scores of the whole text.
///
/// Clauses are weighed by the square root of their best score by words. All alike, "I need your
/// help" would count as much as the step of a task; by their scores, a long step would hide a
/// short one.
fn mix_best_clause(whole: &mut [f32], parts: &[Scores]) {
    let strongest = parts.iter().map(|part| part.best).fold(0.0, f32::max);
    if strongest <= 0.0 {
        return;
    }
    let mut best = vec![0.0_f32; whole.len()];
    for part in parts {
        let weight = (part.best / strongest).sqrt();
        for (best, score) in best.iter_mut().zip(&part.scores) {
            *best = best.max(weight * score);
        }
    }
    for (score, best) in whole.iter_mut().zip(best) {
        *score = (1.0 - BEST_CLAUSE_SHARE) * *score + BEST_CLAUSE_SHARE * best;
    }
}

/// The scores of a query with several texts: a tool that fits one text well, or several.
pub(crate) fn fuse_texts(scored: Vec<Scores>) -> Vec<f32> {
    let count = scored.len();
    let mut texts = scored.into_iter().map(|it| it.scores);
    let Some(first) = texts.next() else { return Vec::new() };
    if count == 1 {
        return first;
    }
    let (mut best, mut sum) = (first.clone(), first);
    for scores in texts {
        for ((best, sum), score) in best.iter_mut().zip(&mut sum).zip(scores) {
            *best = best.max(score);
            *sum += score;
        }
    }
    let fuse = |(best, sum): (f32, f32)| {
        BEST_TEXT_SHARE * best + (1.0 - BEST_TEXT_SHARE) * sum / count as f32
    };
    best.into_iter().zip(sum).map(fuse).collect()
}
