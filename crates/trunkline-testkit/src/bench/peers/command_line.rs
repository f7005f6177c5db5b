//! Commands as a user runs them, beside those of mcporter and FastMCP: lists and a call, with five servers.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};
use trunkline_testkit::peers;

use super::client::{ClientEra, PeerClient, StdioClient};
use super::instance::START_TIMEOUT;
use super::report::{Comparison, PeerRow, Section, Spread, Unit};
use crate::cli::User;
use crate::host::runtime;
use crate::measure::Effort;
use crate::own_program::program_path;

/// Processor time is counted in ticks, 100 per second on Linux.
const TICK: Duration = Duration::from_millis(10);

/// Tools of the five servers that every program lists: some leave out those that need a capability of the client.
const TOOLS: usize = 35;

/// A command of one program.
type CommandRow<'a> = (&'static str, Box<dyn Fn() -> Command + 'a>);

pub(crate) fn sections(effort: Effort, report: &mut Comparison) {
    let program = program_path().filter(|path| path.is_file());
    let (Some(program), true) = (program, peers::directory().join("npm.stamp").exists()) else {
        report
            .note("Not measured: the command line, which needs the program and the npm packages.");
        return;
    };
    if effort == Effort::Quick {
        report.note("Not measured with --quick: the command line.");
        return;
    }
    let user = User::new(&program, &peers::node_modules());
    let message = "message=hello";
    let call = ["call", "everything", "echo", message];
    let lists: Vec<CommandRow<'_>> = vec![
        ("trunkline tools --refresh", Box::new(|| user.our_command(&["tools", "-q", "--refresh"]))),
        ("trunkline tools", Box::new(|| user.our_command(&["tools", "-q"]))),
        ("mcporter list (npm)", Box::new(|| user.mcporter_command(&["list"]))),
        ("fastmcp list (PyPI)", Box::new(|| user.fastmcp_command("list", &[]))),
    ];
    report.push(section("Command line: the tools of five servers", &lists));
    let calls: Vec<CommandRow<'_>> = vec![
        ("trunkline call", Box::new(|| user.our_command(&call))),
        (
            "trunkline call, the service runs",
            Box::new(|| user.with_service(user.our_command(&call))),
        ),
        (
            "mcporter call (npm)",
            Box::new(|| user.mcporter_command(&["call", "everything.echo", message])),
        ),
        (
            "fastmcp call (PyPI)",
            Box::new(|| user.fastmcp_command("call", &["everything_echo", message])),
        ),
    ];
    let service = ServiceOfUser::start(&user);
    report.push(section("Command line: a call of one tool, of five servers", &calls));
    report.push(sessions(&user));
    drop(service);
}

/// A service that ends with this.
struct ServiceOfUser<'a>(&'a User);

impl<'a> ServiceOfUser<'a> {
    fn start(user: &'a User) -> Self {
        let _ = user.with_service(user.our_command(&["up"])).status();
        Self(user)
    }
}

impl Drop for ServiceOfUser<'_> {
    fn drop(&mut self) {
        let _ = self.0.with_service(self.0.our_command(&["down"])).status();
    }
}

/// Sessions of a host over stdio: the start of the program, the list of all tools, and its end.
fn sessions(user: &User) -> Section {
    let rows: Vec<CommandRow<'_>> = vec![
        (
            "trunkline connect, the service runs",
            Box::new(|| user.with_service(user.our_command(&["connect"]))),
        ),
        ("trunkline serve --stdio", Box::new(|| user.our_command(&["serve", "--stdio"]))),
        (
            "mcporter serve --stdio (npm)",
            Box::new(|| user.mcporter_with_daemon(&["serve", "--stdio"])),
        ),
        (
            "fastmcp run (PyPI)",
            Box::new(|| user.fastmcp_command("run", &["--no-banner", "--transport", "stdio"])),
        ),
    ];
    let runtime = runtime();
    let title = "Command line: a session of a host, until it has the tools of five servers";
    let section = measured(title, &rows, |command| runtime.block_on(session(command)));
    let _ = user.mcporter_with_daemon(&["daemon", "stop"]).status();
    section
}

/// Time until a session has the tools of all servers, and processor time of the program and its servers.
async fn session(command: Command) -> Result<[f64; 2], String> {
    let (start, busy) = (Instant::now(), children_time());
    let mut command = tokio::process::Command::from(command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let (input, output) = child.stdin.take().zip(child.stdout.take()).ok_or("no streams")?;
    let opened = StdioClient::open(ClientEra::Legacy("2025-06-18"), input, output);
    let opened = timeout(START_TIMEOUT, opened).await.map_err(|_| "no answer to `initialize`")?;
    let mut client = PeerClient::Stdio(opened?);
    loop {
        let listed = timeout(START_TIMEOUT, client.tools("echo")).await;
        let (count, _) = listed.map_err(|_| "no answer to `tools/list`")??;
        if count >= TOOLS {
            break;
        }
        if start.elapsed() > START_TIMEOUT {
            return Err(format!("{count} tools of {TOOLS} after {START_TIMEOUT:?}"));
        }
        sleep(Duration::from_millis(2)).await;
    }
    let elapsed = start.elapsed();
    drop(client);
    let ended = timeout(START_TIMEOUT, child.wait()).await;
    ended.map_err(|_| "it does not end with its input")?.map_err(|error| error.to_string())?;
    let busy = children_time().saturating_sub(busy);
    Ok([elapsed.as_secs_f64(), busy.as_secs_f64()])
}

fn section(title: &str, rows: &[CommandRow<'_>]) -> Section {
    measured(title, rows, run)
}

/// Rounds of all commands in turn.
fn measured(
    title: &str,
    rows: &[CommandRow<'_>],
    measure: impl Fn(Command) -> Result<[f64; 2], String>,
) -> Section {
    const ROUNDS: usize = 5;
    let mut observed: Vec<Result<Vec<[f64; 2]>, String>> =
        rows.iter().map(|_| Ok(Vec::new())).collect();
    // The first round fills caches, and starts what goes on running.
    for round in 0..=ROUNDS {
        for ((_, command), observed) in rows.iter().zip(&mut observed) {
            let Ok(values) = observed else { continue };
            match measure(command()) {
                Ok(value) => values.extend((round > 0).then_some(value)),
                Err(reason) => *observed = Err(reason),
            }
        }
    }
    let cells = |values: Vec<[f64; 2]>| {
        let column = |at: usize| Spread::of(values.iter().map(|value| value[at]).collect());
        vec![column(0), column(1)]
    };
    let rows = rows.iter().zip(observed).map(|((name, _), observed)| PeerRow {
        peer: (*name).to_owned(),
        cells: observed.map(cells),
    });
    let columns = vec![("time", Unit::Seconds), ("processor time with its servers", Unit::Seconds)];
    Section { title: title.to_owned(), columns, rows: rows.collect() }
}

/// Elapsed time of a command, and processor time of it and the processes it has waited for.
fn run(mut command: Command) -> Result<[f64; 2], String> {
    let (start, busy) = (Instant::now(), children_time());
    let status = command.status().map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("it ended with {status}"));
    }
    let busy = children_time().saturating_sub(busy);
    Ok([start.elapsed().as_secs_f64(), busy.as_secs_f64()])
}

/// Processor time of all children that have ended.
fn children_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    // The fields after the name begin with the third.
    let ticks = fields.split_whitespace().skip(13).take(2).filter_map(|it| it.parse::<u32>().ok());
    TICK * ticks.sum::<u32>()
}
