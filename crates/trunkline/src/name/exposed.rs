//! Assigns exposed names: valid, unique, and independent of the order of servers (TOOL-1, TOOL-2).

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::ServerName;
use super::digest::{MAX_DIGEST, digest};
use super::namespace::{DIGEST, Fidelity, Namespaces, head, sanitised};

/// A name as clients see it: letters, digits, `_` and `-`, no longer than models accept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExposedName(Arc<str>);

impl ExposedName {
    /// The name as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_text(self) -> Arc<str> {
        self.0
    }
}

impl Borrow<str> for ExposedName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ExposedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An item that needs an exposed name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NameRequest<'n> {
    /// The server.
    pub server: &'n ServerName,
    /// The upstream name.
    pub own: &'n str,
}

/// The name assigned to an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedName {
    /// The exposed name.
    pub name: ExposedName,
    /// The reason why it is not prefix, separator and upstream name.
    pub adjusted: Option<NameAdjustment>,
}

/// The plain name, and the reason why it is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameAdjustment {
    /// The plain name: prefix, separator and upstream name, of any length.
    pub plain: Box<str>,
    /// The reason why it is not used.
    pub reason: AdjustmentReason,
}

/// The problem with a plain name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdjustmentReason {
    /// It exceeds the length limit.
    TooLong,
    /// Its upstream part has no valid character.
    Unreadable,
    /// It starts with the longer prefix of this other server.
    Foreign(ServerName),
    /// The host has a tool of this name, or the embedding application reserves it (TOOL-13).
    Reserved,
    /// Another item has the same name.
    Clash,
}

impl AdjustmentReason {
    /// Whether the plain name could refer to another item.
    pub fn is_ambiguous(&self) -> bool {
        matches!(self, Self::Foreign(_) | Self::Reserved | Self::Clash)
    }
}

impl fmt::Display for AdjustmentReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str("it is longer than names may be"),
            Self::Unreadable => f.write_str("it has no character that names may have"),
            Self::Foreign(server) => write!(f, "it looks like a name of server `{server}`"),
            Self::Reserved => f.write_str("the host has something of that name itself"),
            Self::Clash => f.write_str("something else has the same name"),
        }
    }
}

impl Namespaces {
    /// Assigns a unique name to every claim, in the order of the claims.
    ///
    /// The names do not depend on that order. They depend on other servers in one case only: if the
    /// user gave two servers the same prefix and both have an item of the same name, neither gets
    /// the plain name.
    pub fn expose(&self, claims: &[NameRequest<'_>]) -> Vec<AssignedName> {
        let mut naming = NameAssignment {
            spaces: self,
            drafts: claims.iter().map(|claim| NameDraft::new(self, *claim)).collect(),
        };
        while naming.settle() {}
        naming.drafts.into_iter().map(NameDraft::finish).collect()
    }
}

/// Names that are being made unique.
struct NameAssignment<'n> {
    spaces: &'n Namespaces,
    drafts: Vec<NameDraft<'n>>,
}

struct NameDraft<'n> {
    claim: NameRequest<'n>,
    start: &'n str,
    own: String,
    fidelity: Fidelity,
    name: String,
    /// The plain name, and the reason why it is not used.
    adjusted: Option<NameAdjustment>,
    /// Number of times that the digest was lengthened.
    attempt: usize,
}

impl NameAssignment<'_> {
    /// Resolves collisions by changing some of the names. Returns whether there were any.
    fn settle(&mut self) -> bool {
        let mut holders: HashMap<&str, Vec<usize>> = HashMap::with_capacity(self.drafts.len());
        for (index, draft) in self.drafts.iter().enumerate() {
            holders.entry(&draft.name).or_default().push(index);
        }
        let mut changes: Vec<(usize, AdjustmentReason)> = Vec::new();
        for (name, holders) in &mut holders {
            if !self.spaces.is_assignable(name) {
                changes.extend(holders.iter().map(|index| (*index, AdjustmentReason::Reserved)));
            } else if holders.len() > 1 {
                holders.sort_by_key(|index| self.drafts[*index].claim);
                let losers = colliding(&self.drafts, holders);
                changes.extend(losers.into_iter().map(|index| (index, AdjustmentReason::Clash)));
            }
        }
        // Equal claims differ only in their order.
        changes.sort_by_key(|(index, _)| self.drafts[*index].claim);
        let changed = !changes.is_empty();
        for (order, (index, reason)) in changes.into_iter().enumerate() {
            self.drafts[index].adjust(reason, self.spaces.options.max_length, order);
        }
        changed
    }
}

/// The drafts with the same name that cannot keep it.
fn colliding(drafts: &[NameDraft<'_>], holders: &[usize]) -> Vec<usize> {
    let with_digest: Vec<_> =
        holders.iter().copied().filter(|index| drafts[*index].adjusted.is_some()).collect();
    let others = holders.iter().copied().filter(|index| drafts[*index].adjusted.is_none());
    match with_digest.len() {
        // A plain name that equals one with a digest is no coincidence, so the plain one changes.
        1 => others.collect(),
        2.. => holders.to_vec(),
        0 => {
            let first = drafts[holders[0]].claim.server;
            let one_server = holders.iter().all(|index| drafts[*index].claim.server == first);
            let verbatim = |index: &usize| drafts[*index].fidelity == Fidelity::Verbatim;
            let one_verbatim = holders.iter().filter(|index| verbatim(index)).count() == 1;
            let kept = |index: &usize| one_server && one_verbatim && verbatim(index);
            others.filter(|index| !kept(index)).collect()
        }
    }
}

impl<'n> NameDraft<'n> {
    fn new(spaces: &'n Namespaces, claim: NameRequest<'n>) -> Self {
        // An unconfigured server has no prefix.
        let start = spaces.space(claim.server).map_or("", |space| &space.start);
        let (own, fidelity) = sanitised(claim.own);
        let name = format!("{start}{own}");
        let mut draft = Self { claim, start, own, fidelity, name, adjusted: None, attempt: 0 };
        let length = spaces.options.max_length;
        if fidelity == Fidelity::Lost {
            draft.adjust(AdjustmentReason::Unreadable, length, 0);
        } else if let Some(owner) = spaces.other_owner(&draft.name, start) {
            draft.adjust(AdjustmentReason::Foreign(owner.clone()), length, 0);
        } else if draft.name.len() > length {
            draft.adjust(AdjustmentReason::TooLong, length, 0);
        }
        draft
    }

    /// Adds a digest to the name, or lengthens an existing one.
    fn adjust(&mut self, reason: AdjustmentReason, max_length: usize, order: usize) {
        match &self.adjusted {
            Some(_) => self.attempt += 1,
            None => {
                let plain = std::mem::take(&mut self.name).into();
                self.adjusted = Some(NameAdjustment { plain, reason });
            }
        }
        let [server, own] = [self.claim.server.as_str().as_bytes(), self.claim.own.as_bytes()];
        let letters = (DIGEST << self.attempt.min(4)).min(max_length).min(MAX_DIGEST);
        let digest = match self.attempt {
            0..=2 => digest(&[server, own], letters),
            attempt => {
                let order = (attempt + order).to_le_bytes();
                digest(&[server, own, &order], letters)
            }
        };
        self.name = self.with_digest(&digest, max_length);
    }

    fn with_digest(&self, digest: &str, max_length: usize) -> String {
        let room = max_length - digest.len();
        let own = if self.fidelity == Fidelity::Lost { "" } else { &self.own };
        let is_foreign = matches!(
            self.adjusted,
            Some(NameAdjustment { reason: AdjustmentReason::Foreign(_), .. })
        );
        if is_foreign || own.is_empty() {
            // The digest follows the prefix, so that no pattern for the other server's names
            // matches this one.
            let start = head(self.start, room);
            let own = head(own, room.saturating_sub(start.len() + 1));
            let joint = if own.is_empty() { "" } else { "_" };
            return format!("{start}{digest}{joint}{own}");
        }
        let plain = format!("{}{own}", self.start);
        match head(&plain, room.saturating_sub(1)) {
            "" => digest.to_owned(),
            head => format!("{head}_{digest}"),
        }
    }

    fn finish(self) -> AssignedName {
        AssignedName { name: ExposedName(self.name.into()), adjusted: self.adjusted }
    }
}

#[cfg(test)]
mod tests;
