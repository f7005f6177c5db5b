//! Counts the tokens of definitions in the context of a model.

use anyhow::Result;
use tiktoken_rs::CoreBPE;

/// Counts tokens in the vocabulary `o200k_base`. Other models differ by a few percent.
pub(crate) struct Tokenizer(CoreBPE);

impl Tokenizer {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(tiktoken_rs::o200k_base()?))
    }

    pub(crate) fn count(&self, text: &str) -> usize {
        self.0.encode_ordinary(text).len()
    }
}
