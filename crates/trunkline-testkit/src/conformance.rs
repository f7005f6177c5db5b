//! Runs the official MCP conformance suite against a server or a client, and parses its results.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{env, fs, process};

use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use crate::peers;

/// Time limit for the suite; it waits for ten seconds itself.
const LONGEST_RUN: Duration = Duration::from_secs(150);

/// The length of the timestamp in a directory name, as in `-2026-07-28T12-00-00-000Z`.
const TIME: usize = 25;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Result of one scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// At least one check ran, and none failed.
    Passed,
    /// No check ran.
    Skipped,
    /// A check failed or warned. The suite itself accepts warnings.
    Failed,
}

/// Results of one run of the suite.
pub struct ConformanceReport {
    /// Whether the suite exited successfully.
    pub is_content: bool,
    required: Vec<String>,
    scenarios: BTreeMap<String, ScenarioResult>,
    output: String,
}

/// Results of one scenario.
struct ScenarioResult {
    checks: Vec<Value>,
    /// Standard output of the client under test.
    printed: String,
}

/// Runs the scenarios that a protocol revision requires of servers. The host in `url` should be
/// `localhost`, because the suite also checks the validation of `Host` headers.
///
/// # Panics
///
/// When the suite is not installed, cannot be run or takes too long.
pub async fn check_server(url: &str, revision: &str) -> ConformanceReport {
    check_required("server", ["--url", url], revision).await
}

/// Runs the scenarios that a protocol revision requires of clients. The program is started once per
/// scenario, with the URL of a server as its last argument.
///
/// # Panics
///
/// When the suite is not installed, cannot be run or takes too long.
pub async fn check_client(program: &str, revision: &str) -> ConformanceReport {
    check_required("client", ["--command", program], revision).await
}

/// Runs one scenario for clients, which no revision has to require. Unlike [`check_client`], the
/// suite also expects the program to succeed.
///
/// # Panics
///
/// When the suite is not installed, cannot be run or takes too long.
pub async fn check_client_scenario(
    program: &str,
    scenario: &str,
    revision: &str,
) -> ConformanceReport {
    let selection = ["--scenario", scenario, "--spec-version", revision, "--force"];
    let required = vec![scenario.to_owned()];
    check("client", &["--command", program], &selection, required).await
}

async fn check_required(role: &str, subject: [&str; 2], revision: &str) -> ConformanceReport {
    let required = required_of(role, revision);
    check(role, &subject, &["--requirements", revision], required).await
}

async fn check(
    role: &str,
    subject: &[&str],
    selection: &[&str],
    required: Vec<String>,
) -> ConformanceReport {
    let folder = Folder::new();
    let mut command = Command::new(peers::conformance_node());
    command.arg(peers::conformance_suite()).arg(role).args(subject).args(selection);
    command.arg("--output-dir").arg(&folder.0);
    // Bypasses proxies of the machine between a test and its server.
    command.env("NO_PROXY", "*").stdin(Stdio::null()).kill_on_drop(true);
    let Ok(finished) = timeout(LONGEST_RUN, command.output()).await else {
        panic!("the conformance suite was killed after {LONGEST_RUN:?}");
    };
    let output = finished.expect("the conformance suite can be run");
    let printed = [output.stdout, output.stderr].concat();
    ConformanceReport {
        is_content: output.status.success(),
        required,
        scenarios: scenarios(&folder.0, role),
        output: String::from_utf8_lossy(&printed).into_owned(),
    }
}

impl ConformanceReport {
    /// The number of required scenarios that passed.
    #[must_use]
    pub fn required_passed(&self) -> usize {
        let has_passed = |name: &&String| self.verdict(name) == Verdict::Passed;
        self.required.iter().filter(has_passed).count()
    }

    /// The scenarios that the revision requires.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        self.required.iter().map(String::as_str)
    }

    /// The number of other scenarios that passed, such as protocol extensions.
    #[must_use]
    pub fn others_passed(&self) -> usize {
        let names = self.scenarios.keys();
        names.filter(|name| self.verdict(name) == Verdict::Passed).count() - self.required_passed()
    }

    /// The scenarios with results, and their verdicts.
    pub fn verdicts(&self) -> impl Iterator<Item = (&str, Verdict)> {
        self.scenarios.keys().map(|name| (name.as_str(), self.verdict(name)))
    }

    /// The verdict of a scenario; one that did not run is skipped.
    #[must_use]
    pub fn verdict(&self, scenario: &str) -> Verdict {
        let result = self.scenarios.get(scenario);
        let checks = result.map_or(&[][..], |result| &result.checks);
        if checks.iter().any(is_wrong) {
            Verdict::Failed
        } else if checks.iter().any(|check| check["status"] == "SUCCESS") {
            Verdict::Passed
        } else {
            Verdict::Skipped
        }
    }

    /// The standard output of the client under test in a scenario. The suite does not look at the
    /// exit status of a client when it runs all scenarios.
    #[must_use]
    pub fn printed(&self, scenario: &str) -> &str {
        self.scenarios.get(scenario).map_or("", |result| &result.printed)
    }
}

fn is_wrong(check: &Value) -> bool {
    check["status"] == "FAILURE" || check["status"] == "WARNING"
}

impl Display for ConformanceReport {
    /// Prints every failed check, or the output of the suite if no scenario ran.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.scenarios.is_empty() {
            return write!(f, "the suite ran no scenario:\n{}", self.output);
        }
        writeln!(
            f,
            "{} required and {} others passed",
            self.required_passed(),
            self.others_passed()
        )?;
        for (scenario, ScenarioResult { checks, .. }) in &self.scenarios {
            for check in checks.iter().filter(|check| is_wrong(check)) {
                let [status, id, message] = ["status", "id", "errorMessage"].map(|key| &check[key]);
                writeln!(f, "{scenario}: {status} {id} {message}")?;
            }
        }
        Ok(())
    }
}

/// The names under `server:` or `client:` in the suite's list for a revision.
fn required_of(role: &str, revision: &str) -> Vec<String> {
    let path =
        peers::conformance_suite().with_file_name(format!("../requirements/{revision}.yaml"));
    let text = fs::read_to_string(path).expect("the suite knows the revision");
    let is_other = |line: &&str| line.strip_suffix(':') != Some(role);
    let lines = text.lines().skip_while(is_other).skip(1);
    lines.map_while(|line| line.strip_prefix("  - ")).map(str::to_owned).collect()
}

/// The results of every scenario. Names with a slash are nested directories, and only the outermost
/// one may begin with the role.
fn scenarios(folder: &Path, role: &str) -> BTreeMap<String, ScenarioResult> {
    let mut scenarios = BTreeMap::new();
    for path in entries(folder) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let cut = name.len().checked_sub(TIME).and_then(|end| name.split_at_checked(end));
        match cut.filter(|(_, time)| time.starts_with("-20")) {
            Some((name, _)) => {
                let name =
                    name.strip_prefix(role).and_then(|rest| rest.strip_prefix('-')).unwrap_or(name);
                scenarios.insert(name.to_owned(), ScenarioResult::read(&path));
            }
            None => {
                let inner = self::scenarios(&path, "").into_iter();
                scenarios.extend(inner.map(|(inner, found)| (format!("{name}/{inner}"), found)));
            }
        }
    }
    scenarios
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the suite has left results");
    entries.map(|entry| entry.expect("the results can be listed").path()).collect()
}

impl ScenarioResult {
    fn read(folder: &Path) -> Self {
        // A scenario that crashed leaves a directory without checks.
        let text = fs::read_to_string(folder.join("checks.json")).unwrap_or_default();
        let broken = serde_json::json!([{ "status": "FAILURE", "id": "no checks" }]);
        let checks: Value = serde_json::from_str(&text).unwrap_or(broken);
        // Only scenarios for clients have this file.
        let printed = fs::read_to_string(folder.join("stdout.txt")).unwrap_or_default();
        Self { checks: checks.as_array().cloned().unwrap_or_default(), printed }
    }
}

/// A directory for results, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            env::temp_dir().join(format!("trunkline-conformance-{}-{number}", process::id()));
        fs::create_dir_all(&path).expect("a folder can be made");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
