//! A scripted server over HTTP, with a process of its own.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use trunkline_testkit::peers;

/// An HTTP server that does one thing of its own during a call.
pub(crate) struct Frank {
    pub(crate) process: Child,
    pub(crate) url: String,
}

impl Frank {
    pub(crate) fn new(mode: &str) -> Self {
        let mut command = Command::new(peers::python());
        command.arg("-I").arg(peers::scripted_http_server()).args(["tools/call", mode]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { process, url: format!("http://127.0.0.1:{}/mcp", port.trim()) }
    }
}

impl Drop for Frank {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
