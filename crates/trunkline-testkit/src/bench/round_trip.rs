//! Calls over stdio and HTTP, against a bare loop that writes and reads the same bytes: the limit.

use trunkline::message::Raw;

use crate::bare::{BareConnections, BareProcess};
use crate::host::{Calls, Host, HttpServer, stdio_server};
use crate::measure::{Effort, in_turn, time};
use crate::server::{LAST_CALL, params};
use crate::table::{Row, Table};

/// What goes to and fro in a row. Messages of 200 bytes carry a text of half that.
struct Shape {
    name: &'static str,
    answered: usize,
    carried: usize,
    in_flight: usize,
    /// Calls in one round.
    count: usize,
}

const MEGABYTE: usize = 1_000_000;

const SHAPES: &[Shape] = &[
    Shape { name: "200 B", answered: 100, carried: 100, in_flight: 1, count: 2048 },
    Shape { name: "200 B", answered: 100, carried: 100, in_flight: 64, count: 8192 },
    Shape { name: "1 MB results", answered: MEGABYTE, carried: 0, in_flight: 1, count: 64 },
    Shape { name: "1 MB results", answered: MEGABYTE, carried: 0, in_flight: 64, count: 128 },
    Shape { name: "1 MB arguments", answered: 0, carried: MEGABYTE, in_flight: 1, count: 64 },
];

impl Shape {
    fn calls(&self) -> Calls {
        let params = params(self.answered, self.carried);
        Calls { params, count: self.count, in_flight: self.in_flight }
    }

    fn row(&self, wire: &str, times: (std::time::Duration, std::time::Duration)) -> Row {
        let Self { name, in_flight, count, .. } = self;
        Row {
            name: format!("{wire}: {count} calls, {name}, {in_flight} in flight"),
            measured: times.0.into(),
            baseline: Some(("a bare loop with as many in flight", times.1.into())),
            aim: None,
        }
    }
}

/// The last call as the server got it, to be sent again to the letter.
fn last_call(host: &Host) -> Vec<u8> {
    let empty = Raw::from_value(&serde_json::json!({}));
    let sent = host.ask(LAST_CALL, &empty).get("sent").expect("it was asked for");
    sent.as_str().expect("it is a text").into_owned().into_bytes()
}

pub(crate) fn stdio_rows(effort: Effort, table: &mut Table) {
    let host = Host::start([&stdio_server(0)]);
    let mut bare = BareProcess::server();
    for shape in SHAPES {
        let calls = shape.calls();
        host.call(&Calls { count: 1, ..calls.clone() });
        let line = last_call(&host);
        let times = in_turn(
            effort.rounds(),
            || time(|| host.call(&calls)),
            || time(|| bare.call(&line, shape.count, shape.in_flight)),
        );
        table.push(shape.row("stdio", times));
    }
    host.end();
}

pub(crate) fn http_rows(effort: Effort, table: &mut Table) {
    let server = HttpServer::start();
    let host = Host::start([&server.configured()]);
    for shape in SHAPES {
        let calls = shape.calls();
        host.call(&Calls { count: 1, ..calls.clone() });
        let request = last_call(&host);
        let mut bare = BareConnections::open(server.port, shape.in_flight);
        let times = in_turn(
            effort.rounds(),
            || time(|| host.call(&calls)),
            || time(|| bare.call(&request, shape.count)),
        );
        table.push(shape.row("HTTP", times));
    }
    host.end();
}
