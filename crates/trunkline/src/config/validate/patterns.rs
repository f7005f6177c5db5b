//! Decodes the patterns of an agent, and checks them together (TOOL-6).

use crate::config::decode::{Decoder, WithSpan};
use crate::config::diagnostic::Code;
use crate::config::model::AgentPattern;
use crate::config::raw::PatternsEntry;
use crate::name::{AgentName, NamePattern};

/// A pattern cannot be used, which was reported.
pub(crate) struct UnusablePattern;

/// The patterns of an agent. An agent with a pattern that cannot be decoded is not used at all:
/// without that pattern it might see more than it should.
pub(crate) fn patterns(
    agent: &AgentName,
    written: Option<&WithSpan<PatternsEntry>>,
    decoder: &mut Decoder<'_>,
) -> Result<Option<Vec<AgentPattern>>, UnusablePattern> {
    let Some(WithSpan { value: PatternsEntry(texts), key, .. }) = written else { return Ok(None) };
    let mut patterns = Vec::with_capacity(texts.len());
    for WithSpan { value: text, span, .. } in texts {
        match NamePattern::new(text) {
            Ok(pattern) => {
                patterns.push(AgentPattern { pattern, location: decoder.location(*span) });
            }
            Err(reason) => {
                let found = decoder.error(Code::BadPattern, *span, "this is not a pattern");
                decoder.push(found.help(reason.to_string()));
            }
        }
    }
    if patterns.len() < texts.len() {
        return Err(UnusablePattern);
    }
    if patterns.iter().all(|it| it.pattern.excludes()) {
        let message = format!("agent `{agent}` may see nothing");
        let found = decoder.warning(Code::AllowsNothing, *key, message);
        let (label, help) = if patterns.is_empty() {
            ("nothing is included", "remove `tools` to include all tools, or name some")
        } else {
            ("nothing is included to exclude from", "begin with `*` to include all other tools")
        };
        decoder.push(found.label(label).help(help));
    }
    Ok(Some(patterns))
}
