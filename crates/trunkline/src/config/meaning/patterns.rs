//! The patterns of an agent: read one by one, and looked at together (TOOL-6).

use crate::config::decode::{Decoder, Spanned};
use crate::config::diagnostic::Code;
use crate::config::model::AgentPattern;
use crate::config::written::PatternsEntry;
use crate::name::{AgentName, NamePattern};

/// Something cannot be used, which has been reported.
pub(crate) struct Unusable;

/// What an agent may see. An agent with a pattern that cannot be read is not used at all: without
/// that pattern it might see more than it should.
pub(crate) fn patterns(
    agent: &AgentName,
    written: Option<&Spanned<PatternsEntry>>,
    decoder: &mut Decoder<'_>,
) -> Result<Option<Vec<AgentPattern>>, Unusable> {
    let Some(Spanned { value: PatternsEntry(texts), key, .. }) = written else { return Ok(None) };
    let mut patterns = Vec::with_capacity(texts.len());
    for Spanned { value: text, span, .. } in texts {
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
        return Err(Unusable);
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
