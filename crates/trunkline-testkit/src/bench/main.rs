//! The benchmark: every row is a ratio against something measured in the same run, because
//! machines are noisy and seconds mean nothing on another one.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints a table")]

mod measure;
mod table;
mod configuration;
mod round_trip;

use std::process::ExitCode;

use measure::Effort;
use table::Table;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    let effort = match words.as_slice() {
        [] => Effort::Thorough,
        ["--quick"] => Effort::Quick,
        [round_trip::SERVE] => return round_trip::serve(),
        _ => {
            eprintln!("usage: cargo xtask bench [--quick]");
            return ExitCode::from(2);
        }
    };
    let mut table = Table::default();
    configuration::rows(effort, &mut table);
    round_trip::rows(effort, &mut table);
    println!("{table}");
    ExitCode::SUCCESS
}
