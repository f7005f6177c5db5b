//! Arguments of `enable` and `disable`.

use clap::Args;
use trunkline::name::ConversationName;

use super::call::conversation;

/// Arguments of `enable` and `disable`.
#[derive(Debug, Args)]
pub(crate) struct ToggleArguments {
    /// Servers, tools or prompts; without any, prints what is switched off
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// Only in this conversation, not in the whole project
    #[arg(long, value_name = "NAME", value_parser = conversation)]
    pub(crate) conversation: Option<ConversationName>,
}
