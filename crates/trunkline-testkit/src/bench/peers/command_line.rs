//! Commands as a user runs them, beside those of mcporter and FastMCP: lists and a call, with five servers.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use trunkline_testkit::peers;

use super::report::{Comparison, PeerRow, Section, Spread, Unit};
use crate::cli::User;
use crate::measure::Effort;
use crate::program_size::program_path;

/// Processor time is counted in ticks, 100 per second on Linux.
const TICK: Duration = Duration::from_millis(10);

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
    let lists: Vec<CommandRow<'_>> = vec![
        ("trunkline tools --refresh", Box::new(|| user.our_command(&["tools", "-q", "--refresh"]))),
        ("trunkline tools", Box::new(|| user.our_command(&["tools", "-q"]))),
        ("mcporter list (npm)", Box::new(|| user.mcporter_command(&["list"]))),
        ("fastmcp list (PyPI)", Box::new(|| user.fastmcp_command("list", &[]))),
    ];
    report.push(section("Command line: the tools of five servers", &lists));
    let calls: Vec<CommandRow<'_>> = vec![
        ("trunkline call", Box::new(|| user.our_command(&["call", "everything", "echo", message]))),
        (
            "mcporter call (npm)",
            Box::new(|| user.mcporter_command(&["call", "everything.echo", message])),
        ),
        (
            "fastmcp call (PyPI)",
            Box::new(|| user.fastmcp_command("call", &["everything_echo", message])),
        ),
    ];
    report.push(section("Command line: a call of one tool, of five servers", &calls));
}

fn section(title: &str, rows: &[CommandRow<'_>]) -> Section {
    const ROUNDS: usize = 5;
    let mut measured: Vec<Result<Vec<[f64; 2]>, String>> =
        rows.iter().map(|_| Ok(Vec::new())).collect();
    for _ in 0..ROUNDS {
        for ((_, command), measured) in rows.iter().zip(&mut measured) {
            let Ok(values) = measured else { continue };
            match run(command()) {
                Ok(value) => values.push(value),
                Err(reason) => *measured = Err(reason),
            }
        }
    }
    let cells = |values: Vec<[f64; 2]>| {
        let column = |at: usize| Spread::of(values.iter().map(|value| value[at]).collect());
        vec![column(0), column(1)]
    };
    let rows = rows.iter().zip(measured).map(|((name, _), measured)| PeerRow {
        peer: (*name).to_owned(),
        cells: measured.map(cells),
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
