//! The benchmark: every row is a ratio to a baseline from the same run, because absolute times
//! differ between machines and runs.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints a table")]

mod measure;
mod table;
mod own_program;
mod server;
mod host;
mod bare;
mod configuration;
mod round_trip;
mod allocations;
mod start;
mod memory;
mod catalog;
mod program_size;
mod search;
mod service;
mod cli;
mod results;
mod load;
mod forwarder;
mod proxy;
mod gateway;
mod budget;
mod peers;

use std::path::Path;
use std::process::ExitCode;

use measure::Effort;
use peers::ReportFiles;
use server::ServerOptions;
use table::Table;

const USAGE: &str = "usage: cargo xtask bench [--quick] [--data FOLDER] [--peers WORDS] [--json FILE] [--markdown FILE] [GROUP…]\n\n  \
    --quick        a few rounds only: enough to see that everything runs\n  \
    --data FOLDER  search in the tools of FOLDER/mcpzero_tools/tools.jsonl\n  \
    --peers WORDS  compare only with the peers that have one of these words, separated by commas, in their names\n  \
    --json FILE, --markdown FILE  write the comparison with peers to a file\n\n\
    groups: configuration, stdio, http, allocations, start, memory, catalog, results, \
    gateway, service, cli, search, peers; without one, all of them. Parts of peers: peers-calls, \
    peers-start, peers-scale, peers-cli. `budget` alone checks the instructions and allocations of a call";

/// The group that takes a folder.
const SEARCH: &str = "search";

/// A part of the benchmark that can be run alone.
struct Group {
    name: &'static str,
    rows: fn(Effort, &mut Table),
}

const GROUPS: &[Group] = &[
    Group { name: "configuration", rows: configuration::rows },
    Group { name: "stdio", rows: round_trip::stdio_rows },
    Group { name: "http", rows: round_trip::http_rows },
    Group { name: "allocations", rows: allocations::rows },
    Group { name: "start", rows: start::rows },
    Group { name: "memory", rows: memory::rows },
    Group { name: "catalog", rows: catalog::rows },
    Group { name: "results", rows: results::rows },
    Group { name: "gateway", rows: gateway::rows },
    Group { name: "service", rows: service::rows },
    Group { name: "cli", rows: cli::rows },
];

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        // This program is also every other process that it measures.
        [server::SERVE, options] => done(&server::serve(&ServerOptions::parse(options))),
        [server::SERVE_HTTP, options] => done(&server::serve_http(ServerOptions::parse(options))),
        [memory::HOST, servers] => memory::host(servers.parse().unwrap_or(0)),
        [proxy::PROXY, ways @ ..] => done(&proxy::run(ways)),
        [budget::BUDGET] => budget::run(),
        [peers::TRAIN] => peers::train(),
        ["-h" | "--help"] => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        words => match Options::parse(words) {
            Some(options) => bench(&options),
            None => {
                eprintln!("{USAGE}");
                ExitCode::from(2)
            }
        },
    }
}

/// The command line of a run.
struct Options<'a> {
    effort: Effort,
    data: Option<&'a Path>,
    files: ReportFiles<'a>,
    groups: Vec<&'a str>,
}

impl<'a> Options<'a> {
    /// Reads options and groups in any order; `None` if one is unknown.
    fn parse(words: &[&'a str]) -> Option<Self> {
        let mut options = Self {
            effort: Effort::Thorough,
            data: None,
            files: ReportFiles::default(),
            groups: Vec::new(),
        };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            match word {
                "--quick" => options.effort = Effort::Quick,
                "--data" => options.data = Some(Path::new(*words.next()?)),
                "--peers" => peers::choose_peers(words.next()?),
                "--json" => options.files.json = Some(Path::new(*words.next()?)),
                "--markdown" => options.files.markdown = Some(Path::new(*words.next()?)),
                SEARCH => options.groups.push(word),
                _ if peers::is_part(word) => options.groups.push(word),
                _ if GROUPS.iter().any(|group| group.name == word) => options.groups.push(word),
                _ => return None,
            }
        }
        Some(options)
    }

    fn chooses(&self, group: &str) -> bool {
        self.groups.is_empty() || self.groups.contains(&group)
    }
}

fn bench(options: &Options<'_>) -> ExitCode {
    let mut table = Table::default();
    for group in GROUPS.iter().filter(|group| options.chooses(group.name)) {
        (group.rows)(options.effort, &mut table);
    }
    if options.chooses(SEARCH) {
        search::rows(options.effort, options.data, &mut table);
        program_size::rows(&mut table);
    }
    if !table.is_empty() {
        println!("{table}");
    }
    let is_chosen = |part: &str| options.chooses(peers::PEERS) || options.chooses(part);
    if options.groups.is_empty() || options.groups.iter().any(|group| peers::is_part(group)) {
        return peers::run(options.effort, is_chosen, options.files);
    }
    ExitCode::SUCCESS
}

fn done(served: &std::io::Result<()>) -> ExitCode {
    if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
