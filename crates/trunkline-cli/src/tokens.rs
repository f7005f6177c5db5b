//! The file of tokens: digests of them, and what their bearers may see.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;
use trunkline_gateway::{Scope, Token, Tokens};

use crate::environment::Environment;

/// The tokens of a file.
pub(crate) fn read(file: &Path) -> Result<Tokens> {
    let shown = file.display();
    let text = Environment::read_text(file).with_context(|| format!("cannot read {shown}"))?;
    let value: Value = serde_json::from_str(&text).with_context(|| format!("{shown}: not JSON"))?;
    let listed = value["tokens"].as_object();
    let listed = listed.with_context(|| format!("{shown}: there is no object `tokens` in it"))?;
    let mut tokens = Tokens::default();
    for (name, entry) in listed {
        let digest = entry["digest"].as_str();
        let digest = digest.with_context(|| format!("{shown}: `{name}` has no `digest`"))?;
        tokens.insert(digest, Token { name: name.clone(), scope: Scope::default() });
    }
    Ok(tokens)
}
