//! The search: scores of all documents for each text, fused, and the best of them.

use std::cmp::Ordering;

use crate::index::{Entry, Index, Slot};
use crate::limits::{MAX_HITS, MAX_QUERY_TEXTS};
use crate::query::{Query, query_terms};
use crate::visible::{Scope, Visible};

/// A document that fits a query.
#[derive(Clone, Copy, Debug)]
pub struct Hit<'a> {
    /// The document.
    pub document: &'a Entry,
    /// Comparable within one search only.
    pub score: f32,
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
        let mut fused: Vec<f32> = Vec::new();
        for text in texts {
            let mut scores = self.score(text, scope);
            self.add_server_affinity(&mut scores);
            fuse(&mut fused, scores);
        }
        self.best(&fused, query)
    }

    /// Scores by slot; 0 for documents without a term of the text and for those out of scope.
    fn score(&self, text: &str, scope: Scope<'_>) -> Vec<f32> {
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

    /// Tools of a server that has a good one are more likely meant than those of other servers.
    fn add_server_affinity(&self, scores: &mut [f32]) {
        let mut best = vec![0.0_f32; self.server_count()];
        for (entry, score) in self.entries.iter().zip(&*scores) {
            if let Some(entry) = entry
                && *score > 0.0
            {
                let best = &mut best[entry.server_id as usize];
                *best = best.max(*score);
            }
        }
        for (entry, score) in self.entries.iter().zip(scores) {
            if let Some(entry) = entry
                && *score > 0.0
            {
                *score += self.options.server_affinity * best[entry.server_id as usize];
            }
        }
    }

    fn best(&self, scores: &[f32], query: &Query<'_>) -> Vec<Hit<'_>> {
        let server = query.server.map(|name| self.server_id(name));
        let is_wanted = |entry: &Entry| server.is_none_or(|id| id == Some(entry.server_id));
        let limit = query.limit.min(MAX_HITS);
        let mut best: Vec<Hit<'_>> = Vec::with_capacity(limit + 1);
        let scored = scores.iter().enumerate().filter(|(_, score)| **score > 0.0);
        for (slot, score) in scored {
            if best.len() == limit && best.last().is_none_or(|worst| *score < worst.score) {
                continue;
            }
            let Some(document) = self.entry(slot as Slot).filter(|it| is_wanted(it)) else {
                continue;
            };
            let hit = Hit { document, score: *score };
            let place = best.partition_point(|other| other.compare(&hit) == Ordering::Less);
            best.insert(place, hit);
            best.truncate(limit);
        }
        best
    }

    fn entry(&self, slot: Slot) -> Option<&Entry> {
        self.entries.get(slot as usize)?.as_deref()
    }
}

impl Hit<'_> {
    /// Order of hits: by score, then by name, so that equal searches give equal results.
    fn compare(&self, other: &Self) -> Ordering {
        let names = |hit: &Self| (hit.document.name().to_owned(), hit.document.key().to_owned());
        other.score.total_cmp(&self.score).then_with(|| names(self).cmp(&names(other)))
    }
}

/// Adds the scores of one text to those of others, relative to the best of each.
fn fuse(fused: &mut Vec<f32>, scores: Vec<f32>) {
    let best = scores.iter().copied().fold(0.0, f32::max);
    if best <= 0.0 {
        return;
    }
    if fused.is_empty() {
        *fused = scores.into_iter().map(|score| score / best).collect();
        return;
    }
    for (sum, score) in fused.iter_mut().zip(scores) {
        *sum += score / best;
    }
}
