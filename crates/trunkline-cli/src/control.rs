//! The control API and page of a gateway or of the service: its token, and what it shows of this program.

pub(crate) mod audit;
#[cfg(feature = "otel")]
pub(crate) mod export;
pub(crate) mod gateway_lock;
pub(crate) mod token;
pub(crate) mod trust_requests;
pub(crate) mod served_host;

use std::sync::{Arc, OnceLock};

use trunkline_control::{Activity, Control, ControlOptions, ControlSource};

use crate::environment::ProcessEnv;
use crate::host::tokenizer::Tokenizer;
use crate::output::terminal::Terminal;

/// The control of a source, with the token of the user.
pub(crate) fn control_of(
    source: Arc<dyn ControlSource>,
    activity: Activity,
    hosts: Vec<String>,
    environment: &ProcessEnv,
    terminal: &Terminal,
) -> Control {
    #[cfg(feature = "otel")]
    export::start(&activity, environment, terminal);
    let token = token::of_user(environment);
    // Without the file there is a token for this process alone, and links still work.
    let token = token.map_err(|error| terminal.warn(&format!("{error:#}"))).ok();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Control::new(source, activity, ControlOptions { token, hosts, version })
}

/// Tokens of a definition. The vocabulary is loaded with the first one.
pub(crate) fn count_tokens(definition: &str) -> Option<usize> {
    static TOKENIZER: OnceLock<Option<Tokenizer>> = OnceLock::new();
    let tokenizer = TOKENIZER.get_or_init(|| Tokenizer::new().ok()).as_ref()?;
    Some(tokenizer.count(definition))
}
