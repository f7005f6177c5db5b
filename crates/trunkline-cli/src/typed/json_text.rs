//! Checks JSON that a user typed: it is an object, and no key occurs twice.

use std::collections::HashSet;

use anyhow::{Result, bail};
use trunkline::config::escape_control;
use trunkline::message::Raw;

use crate::output::exit::{Failure, FailureKind};

/// Depth to which arguments are searched: people write less, and each level is parsed again.
const MAX_DEPTH: usize = 32;

/// A hint on how arguments are written as JSON.
const OBJECT_EXAMPLE: &str =
    "the arguments are one object, in quotes for the shell: --json '{\"text\": \"hello\"}'";

/// Arguments given as JSON.
pub(crate) fn object(text: &str, whence: &str) -> Result<Raw> {
    let bad = |problem: &str| Failure::new(FailureKind::BadArguments, problem);
    let raw = Raw::from_text(text).map_err(|error| {
        let failure = bad(&format!("{whence} is {error}"));
        match text {
            "-" => failure.with_hint("`-` without `--json` reads it from standard input"),
            _ => failure.with_hint(OBJECT_EXAMPLE),
        }
    })?;
    if !raw.is_object() {
        bail!(bad(&format!("{whence} is JSON, and not an object")).with_hint(OBJECT_EXAMPLE));
    }
    reject_repeated_keys(&raw, whence)?;
    Ok(raw)
}

/// Rejects a value with a duplicate key. Servers disagree on which of the two counts.
pub(crate) fn reject_repeated_keys(raw: &Raw, whence: &str) -> Result<()> {
    let Some(key) = repeated_key(raw) else { return Ok(()) };
    let message = format!("{whence} has the key `{}` twice", escape_control(&key));
    bail!(Failure::new(FailureKind::BadArguments, message));
}

/// A duplicate key in an object, at any level down to [`MAX_DEPTH`].
fn repeated_key(raw: &Raw) -> Option<String> {
    let mut level = vec![raw.clone()];
    for _ in 0..MAX_DEPTH {
        let mut next = Vec::new();
        for value in level {
            let members = value.members();
            let mut seen = HashSet::new();
            let again = members.iter().find(|(key, _)| !seen.insert(key.as_str()));
            if let Some((key, _)) = again {
                return Some(key.clone());
            }
            next.extend(members.into_iter().map(|(_, inner)| inner));
            next.extend(value.items());
        }
        level = next;
    }
    None
}
