//! Growth with servers, tools, sessions and large results: cost of a call, lists, and memory afterwards.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use super::calls::ECHO;
use super::client::{CallShape, HttpClient};
use super::instance::{Instance, ReadyList};
use super::lifecycle::in_turn;
use super::process::{memory_of, processor_time_of};
use super::program::{CONTENDERS, Contender, Front, Program, Upstream, http_echo};
use super::report::{Comparison, Section, Unit};
use crate::host::{HttpServer, runtime};
use crate::measure::Effort;
use crate::server::BOTH_ERAS;

const MEGABYTE: usize = 1_000_000;

/// Sessions that are opened and left alone.
const SESSIONS: usize = 1_000;

/// Large results of a burst, and how many of them at once.
const BURST: usize = 256;
const BURST_IN_FLIGHT: usize = 64;

/// Time for a peer to return memory.
const SETTLE: Duration = Duration::from_secs(3);

/// How long a peer may take for one observation. Some need minutes for a thousand servers.
const PATIENCE: Duration = Duration::from_secs(40);

/// Most tools of one server. More than 10,000 are refused by ours.
const TOOLS_OF_SERVER: usize = 5_000;

/// Calls of a measurement.
const CALLS: usize = 2_000;

pub(crate) fn sections(effort: Effort, report: &mut Comparison) {
    let runtime = runtime();
    let (servers, tools): (&[usize], &[usize]) = match effort {
        Effort::Quick => (&[1, 100], &[10, 1_000]),
        Effort::Thorough => (&[1, 100, 1_000], &[10, 1_000, 50_000]),
    };
    for count in servers {
        report.push(many_servers(&runtime, effort, *count));
    }
    for count in tools {
        report.push(many_tools(&runtime, effort, *count));
    }
    report.push(sessions(&runtime, effort));
    report.push(burst(&runtime, effort));
}

/// Rounds, each with a new process of every peer.
fn rounds(effort: Effort) -> usize {
    match effort {
        Effort::Quick => 1,
        Effort::Thorough => 3,
    }
}

/// Ours, and peers whose processes do not grow with sessions.
fn contenders(effort: Effort) -> Vec<Contender> {
    let is_chosen = |it: &&Contender| match it.program {
        Program::Trunkline => true,
        Program::Aggregator | Program::RustProxy | Program::FastMcp => effort == Effort::Thorough,
        _ => false,
    };
    CONTENDERS.iter().filter(is_chosen).copied().collect()
}

fn small(in_flight: usize) -> CallShape {
    let arguments = json!({ "bytes": 100, "carried": "x".repeat(100) });
    CallShape { arguments, in_flight }
}

/// An observation of a peer that does not take too long.
fn observed(
    runtime: &Runtime,
    observation: impl Future<Output = Result<Vec<f64>, String>>,
) -> Result<Vec<f64>, String> {
    runtime.block_on(async {
        let late = |_| format!("it took longer than {} s", PATIENCE.as_secs());
        timeout(PATIENCE, observation).await.map_err(late)?
    })
}

/// Processor time of a call with 16 in flight.
async fn cost(instance: &mut Instance) -> Result<f64, String> {
    let count = instance.calibrate(&small(16), Duration::from_millis(500), CALLS).await?;
    let round = instance.round(&small(16), count).await?;
    Ok(round.busy.unwrap_or_default().as_secs_f64())
}

fn many_servers(runtime: &Runtime, effort: Effort, count: usize) -> Section {
    let server = HttpServer::start_as(&http_echo(BOTH_ERAS));
    // One process is all of them: only the gateway is measured.
    let servers: Vec<_> = (0..count).map(|number| Upstream::Page(server.port, number)).collect();
    let observe = |contender: &Contender| {
        observed(runtime, async {
            let ready = ReadyList { count, ..ECHO };
            let mut instance = Instance::start(contender, Front::Http, &servers, ready).await?;
            let cost = cost(&mut instance).await?;
            let main =
                instance.process.processes().first().map_or(0.0, |id| memory_of(*id, "Rss:"));
            Ok(vec![cost, instance.start.as_secs_f64(), main])
        })
    };
    Section {
        title: format!("HTTP → HTTP, {count} servers, 200 B, 16 in flight"),
        columns: vec![
            ("processor time per call", Unit::Seconds),
            ("start to full list", Unit::Seconds),
            ("resident, main process", Unit::Bytes),
        ],
        rows: in_turn(rounds(effort), &contenders(effort), observe),
    }
}

fn many_tools(runtime: &Runtime, effort: Effort, count: usize) -> Section {
    let server_count = count.div_ceil(TOOLS_OF_SERVER);
    let server = Upstream::echo(&format!("{BOTH_ERAS},tools={}", count / server_count));
    let servers = vec![server; server_count];
    let observe = |contender: &Contender| {
        observed(runtime, async {
            let ready = ReadyList { count, ..ECHO };
            let mut instance = Instance::start(contender, Front::Http, &servers, ready).await?;
            let cost = cost(&mut instance).await?;
            let processes = instance.process.processes();
            let (start, busy) = (Instant::now(), processor_time_of(&processes));
            instance.list().await?;
            let elapsed = start.elapsed().as_secs_f64();
            let busy = processor_time_of(&processes).saturating_sub(busy).as_secs_f64();
            let main = processes.first().map_or(0.0, |id| memory_of(*id, "Rss:"));
            Ok(vec![cost, elapsed, busy, main])
        })
    };
    Section {
        title: format!("HTTP → stdio, {count} tools, servers: {server_count}, 200 B, 16 in flight"),
        columns: vec![
            ("processor time per call", Unit::Seconds),
            ("complete list", Unit::Seconds),
            ("processor time of the list", Unit::Seconds),
            ("resident, main process", Unit::Bytes),
        ],
        rows: in_turn(rounds(effort), &contenders(effort), observe),
    }
}

fn sessions(runtime: &Runtime, effort: Effort) -> Section {
    let servers = [Upstream::echo(BOTH_ERAS)];
    let observe = |contender: &Contender| {
        observed(runtime, async {
            let instance = Instance::start(contender, Front::Http, &servers, ECHO).await?;
            let endpoint = instance.endpoint.clone().ok_or("it has no endpoint")?;
            let main = *instance.process.processes().first().ok_or("it has ended")?;
            let before = memory_of(main, "Rss:");
            for _ in 0..SESSIONS {
                HttpClient::open(endpoint.clone()).await?;
            }
            let after = memory_of(main, "Rss:");
            Ok(vec![(after - before) / SESSIONS as f64, before, after])
        })
    };
    Section {
        title: format!("{SESSIONS} idle sessions"),
        columns: vec![
            ("resident per session", Unit::Kilobytes),
            ("resident before", Unit::Bytes),
            ("resident with the sessions", Unit::Bytes),
        ],
        rows: in_turn(rounds(effort), &contenders(effort), observe),
    }
}

fn burst(runtime: &Runtime, effort: Effort) -> Section {
    let servers = [Upstream::echo(BOTH_ERAS)];
    let arguments = json!({ "bytes": MEGABYTE, "carried": "" });
    let large = CallShape { arguments, in_flight: BURST_IN_FLIGHT };
    let observe = |contender: &Contender| {
        observed(runtime, async {
            let mut instance = Instance::start(contender, Front::Http, &servers, ECHO).await?;
            // Idle means after the first calls, which start lazy parts.
            instance.round(&small(BURST_IN_FLIGHT), 1_024).await?;
            let main = *instance.process.processes().first().ok_or("it has ended")?;
            let idle = memory_of(main, "Rss:");
            instance.round(&large, BURST).await?;
            let busy = memory_of(main, "Rss:");
            sleep(SETTLE).await;
            let after = memory_of(main, "Rss:");
            Ok(vec![after / idle, idle, busy, after])
        })
    };
    Section {
        title: format!("Memory after {BURST} results of 1 MB, {BURST_IN_FLIGHT} in flight"),
        columns: vec![
            ("after ÷ idle", Unit::Ratio),
            ("resident, idle", Unit::Bytes),
            ("resident, right after the burst", Unit::Bytes),
            ("resident, 3 s later", Unit::Bytes),
        ],
        rows: in_turn(rounds(effort), &contenders(effort), observe),
    }
}
