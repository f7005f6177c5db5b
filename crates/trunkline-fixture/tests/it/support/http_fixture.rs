//! The fixture server over HTTP, for the duration of a test.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// The path of the program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_trunkline-fixture");

/// A server that listens, and ends with the test.
pub(crate) struct Listening {
    pub(crate) process: Child,
    pub(crate) url: String,
}

impl Listening {
    /// Starts a server of these eras.
    pub(crate) fn new(generation: &str) -> Self {
        Self::with(&["--generation", generation])
    }

    /// Starts a server with these options.
    pub(crate) fn with(options: &[&str]) -> Self {
        let mut command = Command::new(PROGRAM);
        command.arg("http").args(options);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().replace("127.0.0.1", "localhost");
        Self { process, url }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
