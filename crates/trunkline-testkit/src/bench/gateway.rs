//! Compares calls through the gateway with a bare forwarder, which is the baseline, and a direct
//! connection.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::bare::{BareConnections, BareProcess};
use crate::host::{HttpServer, program};
use crate::load::{Load, over_http, over_streams};
use crate::measure::{Effort, median, on_processor_of};
use crate::proxy::{FORWARDER, GATEWAY, HTTP, PROXY, STDIO, TOOL};
use crate::table::{Aim, Quantity, Row, Table};

/// Allowed cost of the gateway relative to the forwarder.
const NEAR: Aim = Aim::Ratio(1.5);

const MEGABYTE: usize = 1_000_000;

struct LoadShape {
    name: &'static str,
    load: Load,
}

const fn small(in_flight: usize) -> LoadShape {
    LoadShape { name: "200 B", load: Load { answered: 100, carried: 100, in_flight, count: 2048 } }
}

const fn large(in_flight: usize, count: usize) -> LoadShape {
    LoadShape {
        name: "1 MB results",
        load: Load { answered: MEGABYTE, carried: 0, in_flight, count },
    }
}

const SHAPES: &[LoadShape] = &[small(1), small(64), large(1, 16), large(64, 64)];

/// Transport of the client, and transport of the server.
const WAYS: &[(&str, &str)] = &[(STDIO, STDIO), (HTTP, STDIO), (HTTP, HTTP)];

pub(crate) fn rows(effort: Effort, table: &mut Table) {
    for (front, back) in WAYS {
        for shape in SHAPES {
            let LoadShape { name, load } = shape;
            let name = format!("gateway, {front} → {back}: {name}, {} in flight", load.in_flight);
            let measured = measure(effort, (front, back), load);
            table.extend(rows_of(&name, &measured));
        }
    }
}

/// Cost of a call.
#[derive(Clone, Copy)]
struct Measurement {
    /// Median latency.
    answered: Duration,
    /// Total time divided by the number of calls.
    share: Duration,
    /// Processor time of the called process.
    busy: Duration,
}

/// Measures the gateway and the forwarder, alternating with the server itself, and returns medians.
/// Latencies are relative to the direct ones.
fn measure(effort: Effort, (front, back): (&str, &str), load: &Load) -> [Measurement; 2] {
    let server = (back == HTTP).then(HttpServer::start);
    let port = server.as_ref().map_or_else(|| STDIO.to_owned(), |server| server.port.to_string());
    let mut peers = [
        Peer::proxy(&[PROXY, GATEWAY, front, &port], load),
        Peer::proxy(&[PROXY, FORWARDER, front, &port], load),
        match &server {
            Some(server) => Peer::connected(server.port, None, load),
            None => Peer::Streams(BareProcess::server()),
        },
    ];
    // A warm-up call creates lazily initialized state.
    let _ = peers.each_mut().map(|peer| peer.call(load));
    let rounds: Vec<_> =
        (0..effort.rounds()).map(|_| peers.each_mut().map(|peer| peer.call(load))).collect();
    std::array::from_fn(|peer| {
        let of = |quantity: &dyn Fn(&[Measurement; 3]) -> Duration| {
            median(rounds.iter().map(quantity).collect()).unwrap_or_default()
        };
        Measurement {
            answered: of(&|it| it[peer].answered.saturating_sub(it[2].answered)),
            share: of(&|it| it[peer].share),
            busy: of(&|it| it[peer].busy),
        }
    })
}

/// The process under test.
enum Peer {
    Streams(BareProcess),
    Connections { process: Option<HttpServer>, connections: BareConnections },
}

impl Peer {
    fn proxy(arguments: &[&str], load: &Load) -> Self {
        if arguments.contains(&HTTP) {
            let process = HttpServer::start_as(arguments);
            return Self::connected(process.port, Some(process), load);
        }
        let mut command = Command::new(program());
        command.args(arguments);
        Self::Streams(BareProcess::start(command))
    }

    fn connected(port: u16, process: Option<HttpServer>, load: &Load) -> Self {
        Self::Connections { process, connections: BareConnections::open(port, load.in_flight) }
    }

    fn busy(&self) -> Duration {
        match self {
            Self::Streams(process) => on_processor_of(process.id()),
            Self::Connections { process, .. } => {
                process.as_ref().map(|process| on_processor_of(process.id())).unwrap_or_default()
            }
        }
    }

    fn call(&mut self, load: &Load) -> Measurement {
        let (start, busy) = (Instant::now(), self.busy());
        let times = match self {
            Self::Streams(process) => over_streams(load, TOOL, process),
            Self::Connections { connections, .. } => over_http(load, TOOL, connections),
        };
        let calls = load.count as u32;
        Measurement {
            answered: median(times).unwrap_or_default(),
            share: start.elapsed() / calls,
            busy: (self.busy() - busy) / calls,
        }
    }
}

fn rows_of(name: &str, [gateway, forwarder]: &[Measurement; 2]) -> Vec<Row> {
    let row = |what: &str, measured: Quantity, limit: Quantity, aim: Option<Aim>| Row {
        name: format!("{name}: {what}"),
        measured,
        baseline: Some(("a bare forwarder", limit)),
        aim,
    };
    let rate = |it: &Measurement| Quantity::Count(1.0 / it.share.as_secs_f64());
    vec![
        row("processor time", gateway.busy.into(), forwarder.busy.into(), Some(NEAR)),
        row("longer than direct", gateway.answered.into(), forwarder.answered.into(), None),
        row("calls per second", rate(gateway), rate(forwarder), None),
    ]
}
