//! Detects loops of gateways over HTTP: a request carries the processes that forwarded it, a
//! response the gateways behind it.

use std::fmt;

use super::{CHAIN_HEADER, Chain, ChainLink, ID_LETTERS, MAX_IDS, PROCESS, ProcessMark, is_id};
use crate::name::digest;
use crate::principal::RequestPath;

/// Maximum number of processes that forward one request. Far above the [`MAX_NESTED_PROCESSES`] of
/// nested gateways; ends a loop in which an ID was lost.
///
/// [`MAX_NESTED_PROCESSES`]: super::MAX_NESTED_PROCESSES
pub const MAX_REQUEST_HOPS: usize = 16;

/// The first character of IDs in requests. They are digests, so a server that reads one cannot
/// claim in a response to be that process.
const PASSED: char = 'r';

/// The reason why a request or a response is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopError {
    /// It loops back to this process.
    Itself,
    /// More than [`MAX_REQUEST_HOPS`] processes forwarded the request.
    TooLong,
}

impl fmt::Display for LoopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Itself => f.write_str(
                "this address leads back to the gateway that sent the request; \
                 it would call itself without end",
            ),
            Self::TooLong => write!(
                f,
                "the request has come through more than {MAX_REQUEST_HOPS} gateways, \
                 the most that may use one another"
            ),
        }
    }
}

impl std::error::Error for LoopError {}

impl Chain {
    /// The value of [`CHAIN_HEADER`] in a request that this process sends, or forwards on this
    /// path. Without configurations and process IDs of the system, which have no meaning on another
    /// machine.
    pub(crate) fn request_header(&self, path: &RequestPath) -> String {
        let own = &self.0.in_requests;
        match path.as_str() {
            "" => own.to_string(),
            path => format!("{path},{own}"),
        }
    }

    /// The path of a request with this [`CHAIN_HEADER`].
    ///
    /// # Errors
    ///
    /// When this process has forwarded the request before, or too many have.
    pub fn admit(&self, header: &str) -> Result<RequestPath, LoopError> {
        let own = passed(&self.0.own.id);
        let mut ids = Vec::new();
        for id in header.split(',').map(str::trim).filter(|id| is_id(id, PASSED)) {
            if id == own {
                return Err(LoopError::Itself);
            }
            if ids.len() == MAX_REQUEST_HOPS {
                return Err(LoopError::TooLong);
            }
            ids.push(id);
        }
        Ok(RequestPath::from_ids(&ids.join(",")))
    }

    /// The value of [`CHAIN_HEADER`] in a response to another Trunkline: this process, and the
    /// gateways behind its servers.
    pub(crate) fn response_header(&self, below: &[Box<str>]) -> String {
        let mut ids = vec![&*self.0.own.id];
        for id in below.iter().take(MAX_IDS - 1) {
            if !ids.contains(&&**id) {
                ids.push(id);
            }
        }
        ids.join(",")
    }

    /// The gateways behind a response with this [`CHAIN_HEADER`].
    ///
    /// # Errors
    ///
    /// When this process is one of them, or one that started it.
    pub(crate) fn gateways_in(&self, header: &str) -> Result<Vec<Box<str>>, LoopError> {
        let ids = header.split(',').map(str::trim).filter(|id| is_id(id, PROCESS)).take(MAX_IDS);
        let is_here = |id: &str| {
            *id == *self.0.own.id || self.0.above.iter().any(|link| *id == *link.process.id)
        };
        let ids: Vec<Box<str>> = ids.map(Into::into).collect();
        match ids.iter().any(|id| is_here(id)) {
            true => Err(LoopError::Itself),
            false => Ok(ids),
        }
    }
}

/// The IDs in requests of the processes above this one, and its own.
pub(super) fn in_requests(above: &[ChainLink], own: &ProcessMark) -> Box<str> {
    let above = above.iter().map(|link| &link.process);
    let ids: Vec<_> = above.chain([own]).map(|process| passed(&process.id)).collect();
    ids.join(",").into()
}

/// The ID of a process in requests.
fn passed(id: &str) -> String {
    format!("{PASSED}{}", digest(&[CHAIN_HEADER.as_bytes(), id.as_bytes()], ID_LETTERS))
}

#[cfg(test)]
mod tests {
    use super::super::links;
    use super::*;
    use crate::config::parse;

    fn admitted(at: &Chain, from: &Chain, path: &RequestPath) -> RequestPath {
        at.admit(&from.request_header(path)).unwrap()
    }

    #[test]
    fn a_request_that_comes_back_is_found_by_each_process_it_came_through() {
        let [first, second, third] = [(); 3].map(|()| Chain::default());
        let start = RequestPath::default();
        assert_eq!(first.admit(&first.request_header(&start)), Err(LoopError::Itself));
        let path = admitted(&third, &second, &admitted(&second, &first, &start));
        let header = third.request_header(&path);
        for chain in [&first, &second, &third] {
            assert_eq!(chain.admit(&header), Err(LoopError::Itself));
        }
        assert!(Chain::default().admit(&header).is_ok());
    }

    #[test]
    fn a_request_of_a_child_names_the_process_that_started_it() {
        let parent = Chain::default();
        let variable = parent.variable(&parse("x", "{}").config.identity);
        let child = Chain::new(links(&variable), None);
        let header = child.request_header(&RequestPath::default());
        assert_eq!(parent.admit(&header), Err(LoopError::Itself));
        let below = std::slice::from_ref(&parent.0.own.id);
        let answer = Chain::default().response_header(below);
        assert_eq!(child.gateways_in(&answer), Err(LoopError::Itself));
    }

    #[test]
    fn servers_of_another_host_in_a_process_may_use_its_gateway() {
        let own = Chain::default();
        let other = own.with_another_id();
        assert!(own.admit(&other.request_header(&RequestPath::default())).is_ok());
    }

    #[test]
    fn a_response_names_the_gateways_behind_it() {
        let [first, second, third] = [(); 3].map(|()| Chain::default());
        let below = second.gateways_in(&third.response_header(&[])).unwrap();
        let answer = second.response_header(&below);
        assert_eq!(first.gateways_in(&answer).unwrap().len(), 2);
        assert_eq!(third.gateways_in(&answer), Err(LoopError::Itself));
        assert_eq!(second.gateways_in(&answer), Err(LoopError::Itself));
    }

    /// A server knows the IDs in the requests it receives. With them it could make a gateway above
    /// reject another one.
    #[test]
    fn ids_of_requests_are_no_ids_of_responses() {
        let chain = Chain::default();
        let header = chain.request_header(&RequestPath::default());
        assert_eq!(chain.gateways_in(&header), Ok(Vec::new()));
        let forged = header.replacen(PASSED, &PROCESS.to_string(), 1);
        assert!(chain.gateways_in(&forged).is_ok());
    }

    #[test]
    fn the_number_of_hops_has_a_bound() {
        let mut path = RequestPath::default();
        for _ in 0..MAX_REQUEST_HOPS {
            path = admitted(&Chain::default(), &Chain::default(), &path);
        }
        let header = Chain::default().request_header(&path);
        assert_eq!(Chain::default().admit(&header), Err(LoopError::TooLong));
    }

    #[test]
    fn other_texts_are_ignored_and_bounded() {
        let chain = Chain::default();
        for text in ["", ",,", "x", "p", "pé", "r", &"p".repeat(100_000), &"é,".repeat(100_000)] {
            assert_eq!(chain.admit(text), Ok(RequestPath::default()), "{}", text.len());
            assert_eq!(chain.gateways_in(text), Ok(Vec::new()), "{}", text.len());
        }
        let many = format!("p{},", "a".repeat(ID_LETTERS)).repeat(100_000);
        let below = chain.gateways_in(&many).unwrap();
        assert_eq!(below.len(), MAX_IDS);
        let distinct =
            (0..1000).map(|it| format!("p{it:0>ID_LETTERS$}").into()).collect::<Vec<_>>();
        assert!(chain.response_header(&distinct).len() < 2048);
    }
}
