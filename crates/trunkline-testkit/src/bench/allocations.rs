//! Measures allocations per call in the host. The server runs in another process.

use std::alloc::System;
use std::{io, process, thread};

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use crate::host::{Calls, Host, HttpServer, stdio_server};
use crate::measure::Effort;
use crate::server::params;
use crate::table::{Quantity, Row, Table};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Number of measured calls: enough to see occasional allocations as a fraction.
const CALLS: u32 = 1000;

pub(crate) fn rows(_: Effort, table: &mut Table) {
    let stdio = Host::start([&stdio_server(0)]);
    count("stdio", &stdio, table);
    stdio.end();
    let server = HttpServer::start();
    let http = Host::start([&server.configured()]);
    count("HTTP", &http, table);
    http.end();
}

fn count(wire: &str, host: &Host, table: &mut Table) {
    let calls = Calls { params: params(100, 100), count: CALLS as usize, in_flight: 1 };
    // Allocates long-lived buffers and connections first.
    host.call(&calls);
    let region = Region::new(&INSTRUMENTED_SYSTEM);
    host.call(&calls);
    let change = region.change();
    let per_call = |count: usize| count as f64 / f64::from(CALLS);
    let size = format!("{wire}: 200 B, 1 in flight");
    table.push(Row {
        name: format!("{size}: allocations per call"),
        measured: Quantity::Count(per_call(change.allocations + change.reallocations)),
        baseline: None,
        aim: None,
    });
    table.push(Row {
        name: format!("{size}: bytes allocated per call"),
        measured: Quantity::Bytes(per_call(change.bytes_allocated)),
        baseline: None,
        aim: None,
    });
}

/// Prints the number of allocations of this process for each line of stdin, and exits when stdin closes.
pub(crate) fn count_with_input() {
    thread::spawn(|| {
        for _ in io::stdin().lines() {
            let stats = INSTRUMENTED_SYSTEM.stats();
            println!("{}", stats.allocations + stats.reallocations);
        }
        process::exit(0);
    });
}
