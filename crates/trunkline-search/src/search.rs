//! The search: scores of all documents for each text, fused, and the best of them.
//!
//! Three things are added to the words of a text, each measured by `cargo xtask eval-search`
//! (recall at 5, mean of five labelled sets):
//!
//! - Words alone: 74.8. A task has several steps, and each needs its own tool. So a document is
//!   scored for the whole text and for its best clause, half and half: 76.7.
//! - The similarity of meaning counts as much as the words ([`vectors`](crate::vectors)): 79.9.
//! - A share of the best score of a server goes to its other tools: 0.1 more, measured with words
//!   alone.
//!
//! The second and third number were chosen on the same sets. With the choice made on four sets and
//! measured on the fifth, the last number is 0.7 points lower (79.5 against 80.2 with at most 800
//! queries of each set).

use std::cmp::Ordering;

use crate::index::{Entry, Index, Slot};
use crate::limits::{MAX_CLAUSES, MAX_HITS, MAX_QUERY_BYTES, MAX_QUERY_TEXTS, beginning};
use crate::query::{Query, query_terms};
use crate::vectors::QueryVector;
use crate::visible::{Scope, Visible};
use crate::words::clauses;

/// Share of the similarity of meaning in a score; the rest is for the words.
const MEANING_SHARE: f32 = 0.5;

/// Share of the best clause in the score of a text; the rest is for the whole text.
const BEST_CLAUSE_SHARE: f32 = 0.5;

/// Share of the best text in the score of a query; the rest is for the mean of all.
const BEST_TEXT_SHARE: f32 = 0.5;

/// Number of visible documents up to which the meaning of all is compared. In larger catalogs,
/// only the best [`COMPARED_CANDIDATES`] by words are, to keep the time of a query short. This
/// made no difference on the three sets with more than 2,000 tools; small ones need all (a set with
/// 45 tools loses 5 points).
const MAX_COMPARED_DOCUMENTS: usize = 4_096;

/// Number of documents whose meaning is compared in large catalogs.
const COMPARED_CANDIDATES: usize = 256;

/// Number of sizes that scores are counted by.
const SCORE_SIZES: usize = 512;

/// Share of common terms from which two tools are near-duplicates.
const DUPLICATE_SHARE: f32 = 0.9;

/// A document that fits a query.
#[derive(Clone, Debug)]
pub struct Hit<'a> {
    /// The document.
    pub document: &'a Entry,
    /// Comparable within one search only.
    pub score: f32,
    /// Further documents with nearly the same words, if the query collapses them.
    pub similar: Vec<&'a Entry>,
}

/// Scores by slot, and the best of them by words, which says how much the text is worth.
struct TextScores {
    scores: Vec<f32>,
    best: f32,
}

impl Index {
    /// The documents that fit a query best, best first; equal scores are ordered by name.
    ///
    /// Any text is a valid query. One without a known word has no hits.
    pub fn search(&self, query: &Query<'_>) -> Vec<Hit<'_>> {
        self.search_scope(query, Scope::All(self.len()))
    }

    /// The same as [`search`](Self::search) in an index of the visible documents only.
    ///
    /// ```
    /// use trunkline_search::{Document, Index, Query, Visible};
    ///
    /// let tool = |name: &str| Document {
    ///     key: name.to_owned(),
    ///     name: name.to_owned(),
    ///     ..Document::default()
    /// };
    /// let index = Index::build([tool("delete_user"), tool("list_users")]);
    /// let visible = Visible::new(&index, |document| !document.name().starts_with("delete"));
    /// let hits = index.search_visible(&Query::new("delete user"), &visible);
    /// assert_eq!(hits[0].document.name(), "list_users");
    /// ```
    pub fn search_visible(&self, query: &Query<'_>, visible: &Visible) -> Vec<Hit<'_>> {
        self.search_scope(query, Scope::Some(visible))
    }

    fn search_scope(&self, query: &Query<'_>, scope: Scope<'_>) -> Vec<Hit<'_>> {
        let texts = query.texts.iter().take(MAX_QUERY_TEXTS);
        let scored: Vec<TextScores> =
            texts.map(|text| self.score_text(text, scope)).filter(|it| it.best > 0.0).collect();
        let fused = fuse_texts(scored);
        if query.collapse {
            let candidates = self.best(&fused, query, MAX_HITS);
            collapse(candidates, query.limit.min(MAX_HITS))
        } else {
            self.best(&fused, query, query.limit.min(MAX_HITS))
        }
    }

    /// Scores for a text: those of the whole and those of the best clause, at most 1.
    fn score_text(&self, text: &str, scope: Scope<'_>) -> TextScores {
        let text = beginning(text, MAX_QUERY_BYTES);
        let mut whole = self.score(text, scope);
        let parts = clauses(text, MAX_CLAUSES);
        if parts.len() > 1 {
            let parts: Vec<TextScores> =
                parts.into_iter().map(|part| self.score(part, scope)).collect();
            mix_best_clause(&mut whole.scores, &parts);
        }
        self.add_server_affinity(&mut whole.scores);
        whole
    }

    /// Scores for one piece of text: words and meaning, relative to the best document of each.
    fn score(&self, text: &str, scope: Scope<'_>) -> TextScores {
        let mut scores = self.score_words(text, scope);
        let best = maximum(&scores);
        if best > 0.0 {
            scores.iter_mut().for_each(|score| *score /= best);
        }
        let Some(vector) = QueryVector::new(text) else { return TextScores { scores, best } };
        let similarities = self.similarities(&vector, &scores, scope);
        let most = similarities.iter().map(|(_, it)| *it).fold(0.0, f32::max);
        if most <= 0.0 {
            return TextScores { scores, best };
        }
        scores.iter_mut().for_each(|score| *score *= 1.0 - MEANING_SHARE);
        for (slot, similarity) in similarities {
            scores[slot as usize] += MEANING_SHARE * similarity / most;
        }
        // A text without words of the catalog is worth little, but something.
        TextScores { scores, best: best.max(f32::MIN_POSITIVE) }
    }

    /// Scores by slot; 0 for documents without a term of the text and for those out of scope.
    fn score_words(&self, text: &str, scope: Scope<'_>) -> Vec<f32> {
        let mut scores = vec![0.0; self.entries.len()];
        for term in query_terms(self, scope, text) {
            for posting in self.postings[term.term as usize].iter() {
                if scope.contains(posting.slot) {
                    scores[posting.slot as usize] += term.weight * posting.weight;
                }
            }
        }
        scores
    }

    /// Similarities of meaning: of all visible documents, or of the best ones by words.
    fn similarities(
        &self,
        vector: &QueryVector,
        scores: &[f32],
        scope: Scope<'_>,
    ) -> Vec<(Slot, f32)> {
        let least = match scope.len() {
            0..=MAX_COMPARED_DOCUMENTS => 0.0,
            _ => least_of_best(scores, COMPARED_CANDIDATES),
        };
        let compared = scores.iter().zip(&self.entries).enumerate();
        compared
            .filter(|(slot, (score, _))| **score >= least && scope.contains(*slot as Slot))
            .filter_map(|(slot, (_, entry))| {
                Some((slot as Slot, vector.similarity(&entry.as_ref()?.vector)))
            })
            .collect()
    }

    /// Tools of a server that has a good one are more likely meant than those of other servers.
    fn add_server_affinity(&self, scores: &mut [f32]) {
        let mut best = vec![0.0_f32; self.server_count()];
        for (score, server) in scores.iter().zip(&self.server_of) {
            let best = &mut best[*server as usize];
            *best = best.max(*score);
        }
        for (score, server) in scores.iter_mut().zip(&self.server_of) {
            if *score > 0.0 {
                *score += self.options.server_affinity * best[*server as usize];
            }
        }
    }

    fn best(&self, scores: &[f32], query: &Query<'_>, limit: usize) -> Vec<Hit<'_>> {
        let server = query.server.map(|name| self.server_id(name));
        let is_wanted = |of_slot: u32| server.is_none_or(|id| id == Some(of_slot));
        let mut best: Vec<Hit<'_>> = Vec::with_capacity(limit + 1);
        let scored = scores.iter().enumerate().filter(|(_, score)| **score > 0.0);
        for (slot, score) in scored {
            let is_too_low = best.len() == limit && best.last().is_none_or(|it| *score < it.score);
            if is_too_low || !is_wanted(self.server_of[slot]) {
                continue;
            }
            let Some(document) = self.entries[slot].as_deref() else { continue };
            let hit = Hit { document, score: *score, similar: Vec::new() };
            let place = best.partition_point(|other| other.compare(&hit) == Ordering::Less);
            best.insert(place, hit);
            best.truncate(limit);
        }
        best
    }
}

impl Hit<'_> {
    /// Order of hits: by score, then by name, so that equal searches give equal results.
    fn compare(&self, other: &Self) -> Ordering {
        let (one, two) = (self.document, other.document);
        let by_name = || one.name().cmp(two.name()).then_with(|| one.key().cmp(two.key()));
        other.score.total_cmp(&self.score).then_with(by_name)
    }
}

fn maximum(scores: &[f32]) -> f32 {
    scores.iter().copied().fold(0.0, f32::max)
}

/// A score between 0 and 1 that at least so many documents reach, if there are so many, and few
/// more. Counts scores by size, because sorting them would take as long as the rest of the search.
fn least_of_best(scores: &[f32], count: usize) -> f32 {
    let mut sizes = [0_usize; SCORE_SIZES];
    for score in scores {
        sizes[size_of_score(*score)] += 1;
    }
    let mut reached = 0;
    for size in (1..SCORE_SIZES).rev() {
        reached += sizes[size];
        if reached >= count {
            return size as f32 / (SCORE_SIZES - 1) as f32;
        }
    }
    f32::MIN_POSITIVE
}

fn size_of_score(score: f32) -> usize {
    ((score * (SCORE_SIZES - 1) as f32) as usize).min(SCORE_SIZES - 1)
}

/// Adds the best clause of each document to the scores of the whole text.
///
/// Clauses are weighed by the square root of their best score by words. All alike, "I need your
/// help" would count as much as the step of a task; by their scores, a long step would hide a
/// short one.
fn mix_best_clause(whole: &mut [f32], parts: &[TextScores]) {
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
fn fuse_texts(scored: Vec<TextScores>) -> Vec<f32> {
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

/// Moves near-duplicates of a better hit to that hit.
fn collapse(hits: Vec<Hit<'_>>, limit: usize) -> Vec<Hit<'_>> {
    let mut kept: Vec<Hit<'_>> = Vec::with_capacity(limit);
    for hit in hits {
        let is_duplicate = |other: &Hit<'_>| are_duplicates(other.document, hit.document);
        match kept.iter().position(is_duplicate) {
            Some(better) => kept[better].similar.push(hit.document),
            None if kept.len() < limit => kept.push(hit),
            None => {}
        }
    }
    kept
}

/// Whether two documents have nearly the same terms.
fn are_duplicates(one: &Entry, other: &Entry) -> bool {
    let common = one.terms.iter().filter(|term| other.terms.binary_search(term).is_ok()).count();
    let all = one.terms.len() + other.terms.len() - common;
    common as f32 >= DUPLICATE_SHARE * all as f32
}
