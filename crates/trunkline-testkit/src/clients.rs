//! Runs third-party clients against any server with the fixture's items, and reports their results.
//!
//! Three are libraries, each with a script in `clients` that exercises everything; three are
//! command line programs with fewer abilities. Each runs in the eras it supports.

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

/// Time limit for a whole run: below the limit of the test runner, so that child processes are
/// killed here.
const LONGEST_RUN: Duration = Duration::from_secs(150);

/// A server to connect to.
#[derive(Debug, Clone, Copy)]
pub enum Endpoint<'a> {
    /// A Streamable HTTP server, by URL.
    Url(&'a str),
    /// A stdio server, by command line.
    Command(&'a [&'a str]),
}

impl Endpoint<'_> {
    /// The endpoint as argument of the scripts: the URL, or the command line as a JSON array.
    fn argument(&self) -> String {
        match self {
            Self::Url(url) => (*url).to_owned(),
            Self::Command(words) => json!(words).to_string(),
        }
    }
}

/// The protocol era that a client uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// Only legacy: `initialize`.
    Legacy,
    /// Modern, with fallback to legacy.
    Auto,
    /// Only modern.
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

/// A third-party client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RealClient {
    /// The TypeScript SDK that most clients still use; legacy only.
    TypeScriptSdk,
    /// The TypeScript client that replaces it.
    TypeScriptClient(Era),
    /// The Python SDK.
    PythonSdk(Era),
    /// The command line of the inspector.
    Inspector(Era),
    /// The command line of mcporter, based on the TypeScript SDK.
    Mcporter,
    /// The command line of FastMCP, based on the Python SDK.
    FastMcp,
}

/// A feature that not all clients and servers support.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    /// Reports the negotiated protocol version.
    Protocol,
    /// Reports the name of the server.
    Name,
    /// Lists and reads resources.
    Resources,
    /// Lists resource templates.
    Templates,
    /// Lists and gets prompts.
    Prompts,
    /// Returns structured content.
    Structure,
    /// Completes arguments.
    Completion,
    /// Receives progress notifications.
    Progress,
    /// Handles elicitation.
    Elicitation,
    /// Cancels calls.
    Cancellation,
    /// Returns the result of a failed tool.
    Failure,
}

impl RealClient {
    /// Every client, in every era it can be set to.
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

    /// The era that it uses.
    #[must_use]
    pub fn era(self) -> Era {
        match self {
            Self::TypeScriptSdk | Self::Mcporter => Era::Legacy,
            Self::TypeScriptClient(era) | Self::PythonSdk(era) | Self::Inspector(era) => era,
            Self::FastMcp => Era::Auto,
        }
    }

    /// Whether it supports this; all of them list and call tools.
    #[must_use]
    pub fn can(self, ability: Ability) -> bool {
        match self {
            Self::TypeScriptSdk | Self::TypeScriptClient(_) => true,
            // With a fixed version, it does not request the server's name.
            Self::PythonSdk(Era::Modern) => ability != Ability::Name,
            Self::PythonSdk(_) => true,
            Self::Inspector(_) => inspector::ABILITIES.contains(&ability),
            Self::Mcporter => mcporter::ABILITIES.contains(&ability),
            Self::FastMcp => fastmcp::ABILITIES.contains(&ability),
        }
    }

    /// Whether it loses progress notifications that arrive together with the result: both
    /// TypeScript libraries remove the handler before they dispatch notifications that preceded the
    /// result.
    fn forgets_progress(self) -> bool {
        matches!(self, Self::TypeScriptSdk | Self::TypeScriptClient(_))
    }
}

/// Runs a client against a server through everything it supports, and returns its report. Its child
/// processes end with it, also when the returned future is dropped.
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

/// Runs one of the scripts, which prints its report as one line.
async fn script(mut command: Command, client: RealClient, endpoint: &Endpoint<'_>) -> Report {
    command.arg(endpoint.argument()).arg(client.era().name());
    let finished = finish(command, "").await;
    let report = serde_json::from_str(finished.printed.trim());
    report.unwrap_or_else(|error| panic!("{client:?} has not reported: {error}\n{finished}"))
}
