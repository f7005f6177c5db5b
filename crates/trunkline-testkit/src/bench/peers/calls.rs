//! Calls through each peer: small ones with several in flight, and large results.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::runtime::Runtime;
use tokio::time::sleep;
use trunkline_testkit::peers;

use super::client::CallShape;
use super::instance::{Instance, ReadyList, Round, START_TIMEOUT, start_all};
use super::process::{EVERYTHING, PeerHome, PeerProcess};
use super::program::{
    CONTENDERS, Contender, Front, LEGACY_ONLY, Program, Upstream, VARIANTS, free_port, http_echo,
};
use super::report::{Comparison, PeerRow, Section, Spread, Unit};
use crate::host::{HttpServer, runtime};
use crate::measure::Effort;
use crate::server::BOTH_ERAS;

const MEGABYTE: usize = 1_000_000;

/// Numbers of calls in flight.
const IN_FLIGHT: [usize; 3] = [1, 16, 64];

/// Most calls of one round.
const MOST_CALLS: usize = 4096;

const COLUMNS: [(&str, Unit); 4] = [
    ("processor time per call", Unit::Seconds),
    ("p50", Unit::Seconds),
    ("p99", Unit::Seconds),
    ("calls per second", Unit::PerSecond),
];

/// The tool of the benchmark's own server.
pub(crate) const ECHO: ReadyList = ReadyList { tool: "text", count: 1, timeout: START_TIMEOUT };

/// Effort of the comparison.
#[derive(Clone, Copy)]
struct CallEffort {
    rounds: usize,
    /// Time of a round.
    budget: Duration,
}

impl CallEffort {
    fn of(effort: Effort) -> Self {
        match effort {
            Effort::Quick => Self { rounds: 1, budget: Duration::from_millis(20) },
            Effort::Thorough => Self { rounds: 9, budget: Duration::from_millis(250) },
        }
    }
}

/// Transports of client and server.
const WAYS: [(Front, &str); 3] =
    [(Front::Http, "stdio"), (Front::Stdio, "stdio"), (Front::Http, "HTTP")];

pub(crate) fn sections(effort: Effort, report: &mut Comparison) {
    let runtime = runtime();
    for (front, back) in WAYS {
        let name = if front == Front::Http { "HTTP" } else { "stdio" };
        let way = format!("{name} → {back}");
        compare(&runtime, effort, (front, back), &way, report);
    }
    if effort == Effort::Thorough {
        reference(&runtime, effort, report);
        remote_reference(&runtime, effort, report);
    }
}

fn large() -> CallShape {
    CallShape { arguments: json!({ "bytes": MEGABYTE, "carried": "" }), in_flight: 1 }
}

fn small(in_flight: usize) -> CallShape {
    let arguments = json!({ "bytes": 100, "carried": "x".repeat(100) });
    CallShape { arguments, in_flight }
}

/// Calls of the benchmark's own server.
fn compare(
    runtime: &Runtime,
    effort: Effort,
    (front, back): (Front, &str),
    way: &str,
    report: &mut Comparison,
) {
    let echo = EchoServers::start(back);
    let mut instances = echo.start_contenders(runtime, effort, front);
    for in_flight in IN_FLIGHT {
        let title = format!("{way}, 200 B, {in_flight} in flight");
        let effort = CallEffort::of(effort);
        report.push(section(runtime, effort, title, &small(in_flight), &mut instances));
    }
    let title = format!("{way}, results of 1 MB, 1 in flight");
    report.push(section(runtime, CallEffort::of(effort), title, &large(), &mut instances));
}

/// The benchmark's own servers behind all contenders.
struct EchoServers {
    /// Those that listen; none for servers over stdio.
    listening: Option<ListeningServers>,
}

struct ListeningServers {
    both: HttpServer,
    legacy: HttpServer,
}

impl EchoServers {
    fn start(transport: &str) -> Self {
        let start = |options| HttpServer::start_as(&http_echo(options));
        let listening = (transport == "HTTP")
            .then(|| ListeningServers { both: start(BOTH_ERAS), legacy: start(LEGACY_ONLY) });
        Self { listening }
    }

    /// The server behind a contender.
    fn of(&self, contender: &Contender) -> Vec<Upstream> {
        vec![match (&self.listening, contender.server) {
            (Some(servers), None) => Upstream::Port(servers.both.port),
            (Some(servers), Some(_)) => Upstream::Port(servers.legacy.port),
            (None, options) => Upstream::echo(options.unwrap_or(BOTH_ERAS)),
        }]
    }

    fn start_contenders(
        &self,
        runtime: &Runtime,
        effort: Effort,
        front: Front,
    ) -> Vec<(Contender, Result<Instance, String>)> {
        let is_chosen = |it: &&Contender| {
            let is_quick_peer = matches!(it.program, Program::Trunkline | Program::Forwarder);
            (effort == Effort::Thorough || is_quick_peer)
                && (front == Front::Http || !it.has_tokens)
        };
        let all = CONTENDERS.iter().chain(VARIANTS);
        let contenders: Vec<_> = all.filter(is_chosen).copied().collect();
        start_all(runtime, &contenders, front, |it| self.of(it), ECHO)
    }
}

/// Calls through ours alone, which are not measured: work for a profile of the program.
pub(crate) fn train() -> Result<(), String> {
    let runtime = runtime();
    for (front, back) in WAYS {
        let echo = EchoServers::start(back);
        let started = echo.start_contenders(&runtime, Effort::Quick, front);
        for (_, instance) in started.into_iter().filter(|(it, _)| it.program == Program::Trunkline)
        {
            let mut instance = instance?;
            for in_flight in IN_FLIGHT {
                runtime.block_on(instance.round(&small(in_flight), MOST_CALLS))?;
            }
            runtime.block_on(instance.round(&large(), 1))?;
        }
    }
    Ok(())
}

/// Calls of npm's reference server.
fn reference(runtime: &Runtime, effort: Effort, report: &mut Comparison) {
    let script = everything_script();
    let words = ["node".to_owned(), script.to_string_lossy().into_owned(), "stdio".to_owned()];
    let servers = |_: &Contender| vec![Upstream::Command(words.to_vec())];
    let ready = ReadyList { tool: "echo", ..ECHO };
    let mut instances = start_all(runtime, &without_forwarder(), Front::Http, servers, ready);
    let title = "HTTP → server-everything over stdio, 16 in flight".to_owned();
    let shape = echoed_message();
    report.push(section(runtime, CallEffort::of(effort), title, &shape, &mut instances));
}

/// Calls of npm's reference server, which listens itself.
fn remote_reference(runtime: &Runtime, effort: Effort, report: &mut Comparison) {
    let title = "HTTP → server-everything over HTTP, 16 in flight".to_owned();
    let (server, port) = match runtime.block_on(everything_over_http()) {
        Ok(started) => started,
        Err(reason) => return report.note(&format!("Not measured: {title}: {reason}")),
    };
    let servers = |_: &Contender| vec![Upstream::Port(port)];
    let ready = ReadyList { tool: "echo", ..ECHO };
    let mut instances = start_all(runtime, &without_forwarder(), Front::Http, servers, ready);
    let shape = echoed_message();
    report.push(section(runtime, CallEffort::of(effort), title, &shape, &mut instances));
    drop(instances);
    drop(server);
}

/// The bare forwarder knows only the benchmark's own server.
fn without_forwarder() -> Vec<Contender> {
    CONTENDERS.iter().filter(|it| it.program != Program::Forwarder).copied().collect()
}

fn echoed_message() -> CallShape {
    CallShape { arguments: json!({ "message": "x".repeat(100) }), in_flight: 16 }
}

/// Starts npm's reference server, and waits until it listens.
async fn everything_over_http() -> Result<(PeerProcess, u16), String> {
    let port = free_port()?;
    let mut command = Command::new("node");
    command.arg(everything_script()).arg("streamableHttp").env("PORT", port.to_string());
    let (mut process, _) = PeerProcess::start(command, PeerHome::new()?, false)?;
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        if let Some(reason) = process.end_reason() {
            return Err(reason);
        }
        if start.elapsed() > START_TIMEOUT {
            return Err(format!("it does not listen after {START_TIMEOUT:?}"));
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok((process, port))
}

fn everything_script() -> PathBuf {
    peers::directory().join("npm/node_modules/@modelcontextprotocol").join(EVERYTHING)
}

/// Rounds of all peers in turn, so that load on the machine slows all of them down.
fn section(
    runtime: &Runtime,
    effort: CallEffort,
    title: String,
    shape: &CallShape,
    instances: &mut [(Contender, Result<Instance, String>)],
) -> Section {
    let mut rounds: Vec<Result<(usize, Vec<Round>), String>> = Vec::new();
    for (_, instance) in instances.iter_mut() {
        let count = match instance {
            Err(reason) => Err(reason.clone()),
            Ok(instance) => runtime.block_on(instance.calibrate(shape, effort.budget, MOST_CALLS)),
        };
        rounds.push(count.map(|count| (count, Vec::new())));
    }
    for _ in 0..effort.rounds {
        for ((_, instance), rounds) in instances.iter_mut().zip(&mut rounds) {
            let (Ok(instance), Ok((count, measured))) = (instance, &mut *rounds) else { continue };
            match runtime.block_on(instance.round(shape, *count)) {
                Ok(round) => measured.push(round),
                Err(reason) => *rounds = Err(reason),
            }
        }
    }
    let rows = instances.iter().zip(rounds).map(|((contender, _), rounds)| PeerRow {
        peer: contender.name.to_owned(),
        cells: rounds.map(|(_, rounds)| cells(&rounds)),
    });
    Section { title, columns: COLUMNS.to_vec(), rows: rows.collect() }
}

fn cells(rounds: &[Round]) -> Vec<Option<Spread>> {
    let of = |value: &dyn Fn(&Round) -> Option<f64>| {
        Spread::of(rounds.iter().filter_map(value).collect())
    };
    vec![
        of(&|round| Some(round.busy?.as_secs_f64())),
        of(&|round| Some(round.p50.as_secs_f64())),
        of(&|round| Some(round.p99.as_secs_f64())),
        of(&|round| Some(round.rate)),
    ]
}
