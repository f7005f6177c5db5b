//! Compares calls over stdio and HTTP with a bare loop of the same bytes, which is the baseline.

use std::time::Duration;

use trunkline::message::Raw;

use crate::bare::{BareConnections, BareProcess};
use crate::host::{Calls, Host, HttpServer, stdio_server};
use crate::measure::{Effort, in_turn, processor_time, time};
use crate::server::{LAST_CALL, params};
use crate::table::{Row, Table};

/// The messages of a row. Messages of 200 bytes carry a text of half that size.
struct MessageShape {
    name: &'static str,
    answered: usize,
    carried: usize,
    in_flight: usize,
    /// Calls per round.
    count: usize,
}

const MEGABYTE: usize = 1_000_000;

/// Below this size, copying bytes does not dominate.
const SMALL: usize = 1000;

const MESSAGE_SHAPES: &[MessageShape] = &[
    MessageShape { name: "200 B", answered: 100, carried: 100, in_flight: 1, count: 512 },
    MessageShape { name: "200 B", answered: 100, carried: 100, in_flight: 64, count: 2048 },
    MessageShape { name: "1 MB results", answered: MEGABYTE, carried: 0, in_flight: 1, count: 16 },
    MessageShape { name: "1 MB results", answered: MEGABYTE, carried: 0, in_flight: 64, count: 64 },
    MessageShape {
        name: "1 MB arguments",
        answered: 0,
        carried: MEGABYTE,
        in_flight: 1,
        count: 16,
    },
];

impl MessageShape {
    fn calls(&self) -> Calls {
        let params = params(self.answered, self.carried);
        Calls { params, count: self.count, in_flight: self.in_flight }
    }

    /// Measures calls through a host and through a bare loop: elapsed time and, for small messages,
    /// processor time of the client.
    fn measure(
        &self,
        wire: &str,
        rounds: u32,
        mut ours: impl FnMut(),
        mut bare: impl FnMut(),
    ) -> Vec<Row> {
        let Self { name, in_flight, count, .. } = self;
        let name = format!("{wire}: {count} calls, {name}, {in_flight} in flight");
        let taken = in_turn(rounds, || time(&mut ours), || time(&mut bare));
        let row = |name: String, times: (Duration, Duration)| Row {
            name,
            measured: times.0.into(),
            baseline: Some(("a bare loop with as many in flight", times.1.into())),
            aim: None,
        };
        let mut rows = vec![row(name.clone(), taken)];
        // With many in flight a bare loop is mostly idle, and its processor time is noise.
        if self.answered + self.carried < SMALL && *in_flight == 1 {
            let busy = (processor_time(rounds, ours), processor_time(rounds, bare));
            rows.push(row(format!("{name}: processor time"), busy));
        }
        rows
    }
}

/// The last call as the server received it, to send the same bytes again.
fn last_call(host: &Host) -> Vec<u8> {
    let empty = Raw::from_value(&serde_json::json!({}));
    let sent = host.ask(LAST_CALL, &empty).get("sent").expect("it was asked for");
    sent.as_str().expect("it is a text").into_owned().into_bytes()
}

pub(crate) fn stdio_rows(effort: Effort, table: &mut Table) {
    let host = Host::start([&stdio_server(0)]);
    let mut bare = BareProcess::server();
    for shape in MESSAGE_SHAPES {
        let calls = shape.calls();
        host.call(&Calls { count: 1, ..calls.clone() });
        let line = last_call(&host);
        let bare = || bare.call(&line, shape.count, shape.in_flight);
        table.extend(shape.measure("stdio", effort.many_rounds(), || host.call(&calls), bare));
    }
    host.end();
}

pub(crate) fn http_rows(effort: Effort, table: &mut Table) {
    let server = HttpServer::start();
    let host = Host::start([&server.configured()]);
    for shape in MESSAGE_SHAPES {
        let calls = shape.calls();
        host.call(&Calls { count: 1, ..calls.clone() });
        let request = last_call(&host);
        let mut bare = BareConnections::open(server.port, shape.in_flight);
        let bare = || drop(bare.call(&request, shape.count));
        table.extend(shape.measure("HTTP", effort.many_rounds(), || host.call(&calls), bare));
    }
    host.end();
}
