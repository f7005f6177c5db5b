//! The search: candidates by words, their scores for each text, fused, and the best of them.

use std::cmp::Ordering;

use crate::index::{Entry, Index, Slot};
use crate::limits::{MAX_HITS, MAX_QUERY_TEXTS};
use crate::query::Query;
use crate::scores::{Candidates, Piece, QueryText, Scores, fuse_texts};
use crate::visible::{Scope, Visible};

/// Number of documents up to which all are scored. Among more, only the best
/// [`CANDIDATES_BY_WORDS`] of each text are, to keep the time of a query short. This made no
/// difference on the three sets with more than 2,000 tools; small ones need all (a set with 45 tools
/// loses 5 points).
const MAX_SCORED_DOCUMENTS: usize = 4_096;

/// Number of documents with the best words that are scored in large catalogs, for each piece of a
/// query.
const CANDIDATES_BY_WORDS: usize = 256;

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

impl Index {
    /// The documents that fit a query best, best first; equal scores are ordered by name.
    ///
    /// Any text is a valid query. One without a word of a tool or of the language has no hits, and
    /// few of one whose words have nothing to do with the tools.
    pub fn search(&self, query: &Query<'_>) -> Vec<Hit<'_>> {
        self.search_scope(query, Scope::new(self, None))
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
        self.search_scope(query, Scope::new(self, Some(visible)))
    }

    fn search_scope(&self, query: &Query<'_>, scope: Scope<'_>) -> Vec<Hit<'_>> {
        let texts = query.texts.iter().take(MAX_QUERY_TEXTS);
        let texts: Vec<QueryText> = texts.map(|text| QueryText::new(scope, text)).collect();
        let candidates = self.candidates(&texts, scope, query.server);
        let scored = texts.iter().map(|text| self.score_text(text, &candidates));
        let scored: Vec<Scores> = scored.filter(|it| it.best > 0.0).collect();
        let fused = fuse_texts(scored);
        let limit = query.limit.min(MAX_HITS);
        if query.collapse {
            collapse(self.best(&candidates.slots, &fused, MAX_HITS), limit)
        } else {
            self.best(&candidates.slots, &fused, limit)
        }
    }

    /// The documents to score: all that the query may show, or the best ones by words.
    fn candidates(
        &self,
        texts: &[QueryText],
        scope: Scope<'_>,
        server: Option<&str>,
    ) -> Candidates {
        let mut pool: Option<Vec<Slot>> = match server {
            Some(name) => Some(self.slots_of(name).to_vec()),
            None => (scope.len() <= MAX_SCORED_DOCUMENTS).then(|| self.slots().collect()),
        };
        if let Some(slots) = &mut pool {
            slots.retain(|slot| scope.contains(*slot));
            slots.sort_unstable();
        }
        match pool {
            Some(slots) if slots.len() <= MAX_SCORED_DOCUMENTS => Candidates { slots, sums: None },
            Some(slots) => self.best_candidates(texts, |slot| slots.binary_search(&slot).is_ok()),
            None => self.best_candidates(texts, |slot| scope.contains(slot)),
        }
    }

    fn best_candidates(&self, texts: &[QueryText], is_wanted: impl Fn(Slot) -> bool) -> Candidates {
        let best = |piece: &Piece| self.best_sums(&piece.terms, CANDIDATES_BY_WORDS, &is_wanted);
        let pieces: Vec<&Piece> = texts.iter().flat_map(QueryText::pieces).collect();
        if let [piece] = pieces[..] {
            let sums = best(piece).into_iter().map(|sum| (sum.slot, sum.score));
            let (slots, sums) = sums.unzip();
            return Candidates { slots, sums: Some(sums) };
        }
        let mut slots: Vec<Slot> = pieces.into_iter().flat_map(best).map(|sum| sum.slot).collect();
        slots.sort_unstable();
        slots.dedup();
        Candidates { slots, sums: None }
    }

    fn best(&self, slots: &[Slot], scores: &[f32], limit: usize) -> Vec<Hit<'_>> {
        let mut best: Vec<Hit<'_>> = Vec::with_capacity(limit + 1);
        for (slot, score) in slots.iter().zip(scores).filter(|(_, score)| **score > 0.0) {
            if best.len() == limit && best.last().is_none_or(|it| *score < it.score) {
                continue;
            }
            let Some(document) = self.entry(*slot) else { continue };
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
