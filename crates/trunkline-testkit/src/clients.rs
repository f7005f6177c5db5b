//! Clients that others wrote, pointed at any server that has what the fixture has, and what they saw.
//!
//! Three are libraries, each with a script in the folder `clients` that does everything; three are
//! programs for the command line, which do what they can. Each runs in the generations it speaks.

mod report;
mod bounded;
mod program;
mod inspector;
mod mcporter;
mod fastmcp;

use std::time::Duration;

use serde_json::json;
use tokio::process::Command;
use tokio::time::timeout;

use crate::peers;
use bounded::finish;
pub use report::{Expectations, Report, assert_report};

/// How long a client may take for everything together: less than what the test runner allows, so
/// that whatever it started is ended by us.
const LONGEST_RUN: Duration = Duration::from_secs(150);

/// Where a server is.
#[derive(Debug, Clone, Copy)]
pub enum Endpoint<'a> {
    /// A server over Streamable HTTP, by its address.
    Url(&'a str),
    /// A server over stdio, by its command line.
    Command(&'a [&'a str]),
}

impl Endpoint<'_> {
    /// The endpoint as our scripts take it: the address, or the command line as a JSON array.
    fn argument(&self) -> String {
        match self {
            Self::Url(url) => (*url).to_owned(),
            Self::Command(words) => json!(words).to_string(),
        }
    }
}

/// Which generation of the protocol a client tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// Only `initialize`.
    Legacy,
    /// The newer one, and the older one with servers that do not know it.
    Auto,
    /// Only the newer one.
    Modern,
}

impl Era {
    fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Auto => "auto",
            Self::Modern => "modern",
        }
    }
}

/// A client that somebody else wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RealClient {
    /// The TypeScript SDK that most clients are still made with; it knows no newer generation.
    TypeScriptSdk,
    /// The TypeScript client that came after it.
    TypeScriptClient(Era),
    /// The Python SDK.
    PythonSdk(Era),
    /// The command line of the inspector.
    Inspector(Era),
    /// The command line of mcporter, on the TypeScript SDK.
    Mcporter,
    /// The command line of FastMCP, on the Python SDK.
    FastMcp,
}

/// Something that not every client can do, and not every server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    /// Says which version was agreed on.
    Protocol,
    /// Says what the server calls itself.
    Name,
    /// Lists and reads resources.
    Resources,
    /// Lists templates of resources.
    Templates,
    /// Lists and gets prompts.
    Prompts,
    /// Passes on structured content.
    Structure,
    /// Completes arguments.
    Completion,
    /// Hears about progress.
    Progress,
    /// Answers questions to the user.
    Elicitation,
    /// Cancels calls.
    Cancellation,
    /// Shows the result of a tool that failed.
    Failure,
}

impl RealClient {
    /// Every client, in every generation it can be told to speak.
    pub const ALL: &'static [Self] = &[
        Self::TypeScriptSdk,
        Self::TypeScriptClient(Era::Legacy),
        Self::TypeScriptClient(Era::Auto),
        Self::TypeScriptClient(Era::Modern),
        Self::PythonSdk(Era::Legacy),
        Self::PythonSdk(Era::Auto),
        Self::PythonSdk(Era::Modern),
        Self::Inspector(Era::Legacy),
        Self::Inspector(Era::Modern),
        Self::Mcporter,
        Self::FastMcp,
    ];

    /// Which generation it tries.
    #[must_use]
    pub fn era(self) -> Era {
        match self {
            Self::TypeScriptSdk | Self::Mcporter => Era::Legacy,
            Self::TypeScriptClient(era) | Self::PythonSdk(era) | Self::Inspector(era) => era,
            Self::FastMcp => Era::Auto,
        }
    }

    /// Whether it can do this; all of them can list and call tools.
    #[must_use]
    pub fn can(self, ability: Ability) -> bool {
        match self {
            Self::TypeScriptSdk | Self::TypeScriptClient(_) => true,
            // Told which version to speak, it does not ask the server who it is.
            Self::PythonSdk(Era::Modern) => ability != Ability::Name,
            Self::PythonSdk(_) => true,
            Self::Inspector(_) => inspector::ABILITIES.contains(&ability),
            Self::Mcporter => mcporter::ABILITIES.contains(&ability),
            Self::FastMcp => fastmcp::ABILITIES.contains(&ability),
        }
    }

    /// Whether it loses reports of progress that arrive together with the result: both libraries in
    /// TypeScript let go of whoever listens before they hand over what came before the result.
    fn forgets_progress(self) -> bool {
        matches!(self, Self::TypeScriptSdk | Self::TypeScriptClient(_))
    }
}

/// Points a client at a server, has it do everything that it can, and says what it saw. Whatever it
/// starts is ended with it, also when the returned future is dropped.
///
/// # Panics
///
/// When the client is not installed, cannot be run or takes too long.
pub async fn run(client: RealClient, endpoint: &Endpoint<'_>) -> Report {
    let running = async {
        match client {
            RealClient::TypeScriptSdk => {
                script(peers::node_client("exercise_sdk1.mjs"), client, endpoint).await
            }
            RealClient::TypeScriptClient(_) => {
                script(peers::node_client("exercise_sdk2.mjs"), client, endpoint).await
            }
            RealClient::PythonSdk(_) => {
                script(peers::python_client("exercise.py"), client, endpoint).await
            }
            RealClient::Inspector(era) => inspector::run(era, endpoint).await,
            RealClient::Mcporter => mcporter::run(endpoint).await,
            RealClient::FastMcp => fastmcp::run(endpoint).await,
        }
    };
    let Ok(report) = timeout(LONGEST_RUN, running).await else {
        panic!("{client:?} was killed after {LONGEST_RUN:?}");
    };
    report
}

/// Runs one of our scripts, which prints its report as one line.
async fn script(mut command: Command, client: RealClient, endpoint: &Endpoint<'_>) -> Report {
    command.arg(endpoint.argument()).arg(client.era().name());
    let finished = finish(command, "").await;
    let report = serde_json::from_str(finished.printed.trim());
    report.unwrap_or_else(|error| panic!("{client:?} has not reported: {error}\n{finished}"))
}
