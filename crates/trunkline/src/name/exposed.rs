//! Exposed names: valid, unique, and the same whatever order servers come in (TOOL-1, TOOL-2).

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::ServerName;
use super::digest::{MAX_DIGEST, digest};
use super::namespace::{DIGEST, Fidelity, Namespaces, head, sanitised};

/// A name that callers see: letters, digits, `_` and `-`, and no longer than models accept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExposedName(Arc<str>);

impl ExposedName {
    /// The name as text.
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

/// Something of a server that needs a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NameRequest<'n> {
    /// The server.
    pub server: &'n ServerName,
    /// The server's own name for it.
    pub own: &'n str,
}

/// What a claim comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedName {
    /// The name that callers see.
    pub name: ExposedName,
    /// Why it is not simply prefix, separator and own name.
    pub adjusted: Option<NameAdjustment>,
}

/// Why a name is not simply prefix, separator and own name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameAdjustment {
    /// What it would be: prefix, separator and own name, as long as it comes.
    pub plain: Box<str>,
    /// Why it is not that.
    pub reason: AdjustmentReason,
}

/// What is wrong with a plain name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdjustmentReason {
    /// It is longer than names may be.
    TooLong,
    /// Its own part has no character that names may have.
    Unreadable,
    /// It looks like a name of this other server, whose prefix is longer.
    Foreign(ServerName),
    /// The embedding host has something of that name (TOOL-13).
    Reserved,
    /// Something else has the same name.
    Clash,
}

impl AdjustmentReason {
    /// Whether the plain name could mean something else.
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
    /// Gives every claim a name of its own, in the order of the claims.
    ///
    /// The names do not depend on that order. They depend on other servers in one case only: where
    /// the user gave two servers the same prefix and both have something of the same name, neither
    /// gets the plain name.
    pub fn expose(&self, claims: &[NameRequest<'_>]) -> Vec<AssignedName> {
        let mut naming = NameAssignment {
            spaces: self,
            drafts: claims.iter().map(|claim| NameDraft::new(self, *claim)).collect(),
        };
        while naming.settle() {}
        naming.drafts.into_iter().map(NameDraft::finish).collect()
    }
}

/// Names on their way to becoming unique.
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
    /// The plain name and why it cannot be used.
    adjusted: Option<NameAdjustment>,
    /// How often the digest has been lengthened.
    attempt: usize,
}

impl NameAssignment<'_> {
    /// Finds names that several drafts have, and changes some of them; whether there were any.
    fn settle(&mut self) -> bool {
        let mut holders: HashMap<&str, Vec<usize>> = HashMap::with_capacity(self.drafts.len());
        for (index, draft) in self.drafts.iter().enumerate() {
            holders.entry(&draft.name).or_default().push(index);
        }
        let reserved = &self.spaces.options.reserved;
        let mut changes: Vec<(usize, AdjustmentReason)> = Vec::new();
        for (name, holders) in &mut holders {
            if reserved.contains(*name) {
                changes.extend(holders.iter().map(|index| (*index, AdjustmentReason::Reserved)));
            } else if holders.len() > 1 {
                holders.sort_by_key(|index| self.drafts[*index].claim);
                let losers = colliding(&self.drafts, holders);
                changes.extend(losers.into_iter().map(|index| (index, AdjustmentReason::Clash)));
            }
        }
        // The order of equal claims is all that is left to tell them apart.
        changes.sort_by_key(|(index, _)| self.drafts[*index].claim);
        let changed = !changes.is_empty();
        for (order, (index, reason)) in changes.into_iter().enumerate() {
            self.drafts[index].adjust(reason, self.spaces.options.max_length, order);
        }
        changed
    }
}

/// Who of several drafts with one name cannot keep it.
fn colliding(drafts: &[NameDraft<'_>], holders: &[usize]) -> Vec<usize> {
    let with_digest: Vec<_> =
        holders.iter().copied().filter(|index| drafts[*index].adjusted.is_some()).collect();
    let others = holders.iter().copied().filter(|index| drafts[*index].adjusted.is_none());
    match with_digest.len() {
        // Whoever calls something by a name made of a digest does so on purpose.
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
        // A server that the configuration does not have can only be given its own name.
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

    /// Takes a name with a digest; with a longer one, if it has one already.
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
            // The digest stands where the names part, so that no pattern for the other server's
            // names matches this one.
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
