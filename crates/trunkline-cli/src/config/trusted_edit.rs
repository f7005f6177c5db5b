//! Keeps the trust in a discovered file through an edit that the user names on the command line.

use std::path::{Path, PathBuf};

use anyhow::Result;
use trunkline::config::ContentDigest;

use super::consent::{Review, file_options};
use crate::environment::{ProcessEnv, TrustedFile};

/// A file that was trusted with its text before an edit.
pub(crate) struct TrustedEdit {
    path: PathBuf,
    before: TrustedFile,
}

impl TrustedEdit {
    /// The edit of a file with this text; `None` unless the text is trusted. A store that cannot be read trusts nothing.
    pub(crate) fn of(path: &Path, text: &str, environment: &ProcessEnv) -> Option<Self> {
        let before = environment.trust_store().ok()?.get(path)?.clone();
        let digest = ContentDigest::of(text.as_bytes()).to_string();
        (before.digest == digest).then(|| Self { path: path.to_owned(), before })
    }

    /// Trusts the text after the edit. Returns `false` if the file has another text by now, cannot be reviewed, or its
    /// trust has been changed meanwhile.
    pub(crate) fn renew(&self, text: &str, environment: &ProcessEnv) -> Result<bool> {
        let Some(options) = file_options(&self.path) else { return Ok(false) };
        let Some(review) = Review::of(&options, environment)? else { return Ok(false) };
        let is_edit = review.file.digest == ContentDigest::of(text.as_bytes());
        if !is_edit || review.require_usable().is_err() {
            return Ok(false);
        }
        review.renew(&self.before, environment)
    }
}
