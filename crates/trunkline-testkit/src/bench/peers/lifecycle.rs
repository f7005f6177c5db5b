//! Start of each peer until its list is complete, with its memory, and a server that hangs among others.

use std::thread;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::calls::ECHO;
use super::instance::{Instance, ReadyList};
use super::process::memory_of;
use super::program::{CONTENDERS, Contender, Front, Program, Upstream, VARIANTS};
use super::report::{Comparison, PeerRow, Section, Spread, Unit};
use crate::host::runtime;
use crate::measure::Effort;
use crate::server::BOTH_ERAS;

/// Numbers of servers.
const SERVERS: [usize; 3] = [1, 10, 30];

/// Idle time before memory is measured.
const IDLE: Duration = Duration::from_millis(500);

/// Time for the list of the two servers that do not hang. A peer that waits longer is no use with one
/// broken server.
const HANG_TIMEOUT: Duration = Duration::from_secs(20);

/// Rounds, each with a new process of every peer.
fn rounds(effort: Effort) -> usize {
    match effort {
        Effort::Quick => 1,
        Effort::Thorough => 3,
    }
}

pub(crate) fn sections(effort: Effort, report: &mut Comparison) {
    let runtime = runtime();
    let sizes: &[usize] = if effort == Effort::Quick { &SERVERS[..2] } else { &SERVERS };
    for &count in sizes {
        report.push(start(&runtime, effort, count));
    }
    report.push(hang(&runtime, effort));
}

/// Starts of ours, which are not measured: work for a profile of the program.
pub(crate) fn train() -> Result<(), String> {
    let runtime = runtime();
    for count in SERVERS {
        let servers = vec![Upstream::echo(BOTH_ERAS); count];
        for contender in contenders(Effort::Quick, &servers) {
            let ready = ReadyList { count, ..ECHO };
            let mut instance =
                runtime.block_on(Instance::start(&contender, Front::Http, &servers, ready))?;
            runtime.block_on(instance.list())?;
        }
    }
    Ok(())
}

/// Peers that take several servers, over HTTP.
fn contenders(effort: Effort, servers: &[Upstream]) -> Vec<Contender> {
    let is_chosen = |it: &&Contender| {
        let is_peer = !matches!(it.program, Program::Forwarder | Program::Direct);
        let is_quick = effort == Effort::Thorough || it.program == Program::Trunkline;
        is_peer && is_quick && it.can_join(Front::Http, servers)
    };
    let builds = VARIANTS.iter().filter(|it| it.program == Program::ReleaseBuild);
    CONTENDERS.iter().chain(builds).filter(is_chosen).copied().collect()
}

fn start(runtime: &Runtime, effort: Effort, count: usize) -> Section {
    let servers = vec![Upstream::echo(BOTH_ERAS); count];
    let contenders = contenders(effort, &servers);
    let ready = ReadyList { count, ..ECHO };
    let observe = |contender: &Contender| {
        let started = Instance::start(contender, Front::Http, &servers, ready);
        let instance = runtime.block_on(started)?;
        thread::sleep(IDLE);
        let processes = instance.process.processes();
        let main = processes.first().map_or(0.0, |id| memory_of(*id, "Rss:"));
        let all = |key| processes.iter().map(|id| memory_of(*id, key)).sum();
        let private = all("Private_Dirty:");
        let start = instance.start.as_secs_f64();
        Ok(vec![start, main, all("Pss:"), private, processes.len() as f64])
    };
    Section {
        title: format!("Cold start and idle memory, {count} stdio servers"),
        columns: vec![
            ("start to full list", Unit::Seconds),
            ("resident, main process", Unit::Bytes),
            ("proportional, all processes", Unit::Bytes),
            ("private, all processes", Unit::Bytes),
            ("processes", Unit::Count),
        ],
        rows: in_turn(rounds(effort), &contenders, observe),
    }
}

fn hang(runtime: &Runtime, effort: Effort) -> Section {
    let servers = [BOTH_ERAS, "hang", BOTH_ERAS].map(Upstream::echo);
    let contenders = contenders(effort, &servers);
    let ready = ReadyList { count: 2, timeout: HANG_TIMEOUT, ..ECHO };
    let observe = |contender: &Contender| {
        let started = Instance::start(contender, Front::Http, &servers, ready);
        Ok(vec![runtime.block_on(started)?.start.as_secs_f64()])
    };
    Section {
        title: "A server that hangs, among three".to_owned(),
        columns: vec![("start to the tools of the other two", Unit::Seconds)],
        rows: in_turn(1, &contenders, observe),
    }
}

/// Rounds of all peers in turn. A peer that fails is not started again.
pub(crate) fn in_turn(
    rounds: usize,
    contenders: &[Contender],
    observe: impl Fn(&Contender) -> Result<Vec<f64>, String>,
) -> Vec<PeerRow> {
    let contenders: Vec<_> = contenders.iter().filter(|it| it.is_chosen()).collect();
    let mut observed: Vec<Result<Vec<Vec<f64>>, String>> =
        contenders.iter().map(|_| Ok(Vec::new())).collect();
    for _ in 0..rounds {
        for (contender, observed) in contenders.iter().zip(&mut observed) {
            let Ok(values) = observed else { continue };
            match observe(contender) {
                Ok(value) => values.push(value),
                Err(reason) => *observed = Err(reason),
            }
        }
    }
    let cells = |values: Vec<Vec<f64>>| {
        let columns = values.first().map_or(0, Vec::len);
        let column = |at: usize| Spread::of(values.iter().map(|value| value[at]).collect());
        (0..columns).map(column).collect()
    };
    let rows = contenders.iter().zip(observed).map(|(contender, observed)| PeerRow {
        peer: contender.name.to_owned(),
        cells: observed.map(cells),
    });
    rows.collect()
}
