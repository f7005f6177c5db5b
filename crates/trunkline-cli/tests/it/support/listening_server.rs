//! Server processes that listen on a port and end with the test.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;

use trunkline_testkit::peers;

use super::program::Folder;
use super::wait::{LONGEST_START, wait_until};

/// A process that listens, and ends with the test.
pub(crate) struct Listening {
    process: Child,
    pub(crate) url: String,
}

impl Listening {
    /// Its process ID.
    #[cfg(target_os = "linux")]
    pub(crate) fn process_id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A demo server of the program.
pub(crate) fn demo(folder: &Folder, server: &str) -> Listening {
    let mut command = folder.command(&["demo-server", server, "--listen", "127.0.0.1:0"]);
    let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix(&format!("{server} at ")).unwrap().to_owned();
    Listening { process, url }
}

/// The reference server `everything` in one of its modes, with the path that the mode serves.
pub(crate) fn everything(mode: &str, path: &str) -> Listening {
    let script =
        peers::node_modules().join("@modelcontextprotocol/server-everything/dist/index.js");
    let port = free_port();
    let mut command = Command::new("node");
    command.arg(script).arg(mode).env("PORT", port.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let process = command.spawn().unwrap();
    let listening = Listening { process, url: format!("http://127.0.0.1:{port}{path}") };
    wait_for(port);
    listening
}

/// A server written with FastMCP.
pub(crate) fn fastmcp() -> Listening {
    let port = free_port();
    let mut command = Command::new(peers::python());
    command.arg("-I").arg(peers::fastmcp_server()).arg(port.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let process = command.spawn().unwrap();
    let listening = Listening { process, url: format!("http://127.0.0.1:{port}/mcp") };
    wait_for(port);
    listening
}

/// A server that misbehaves in requests of a method, or `always`.
pub(crate) fn scripted(when: &str, mode: &str) -> Listening {
    start_scripted("http", &mut scripted_command(when, mode))
}

/// A server that behaves well, with a self-signed certificate in the file `certificate.pem` of the
/// directory.
pub(crate) fn scripted_with_tls(folder: &Folder) -> Listening {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let [certificate_file, key_file] =
        ["certificate.pem", "key.pem"].map(|name| folder.project().join(name));
    fs::write(&certificate_file, certificate.pem()).unwrap();
    fs::write(&key_file, key.serialize_pem()).unwrap();
    let mut command = scripted_command("never", "well");
    start_scripted("https", command.arg(certificate_file).arg(key_file))
}

fn scripted_command(when: &str, mode: &str) -> Command {
    let mut command = Command::new(peers::python());
    command.arg("-I").arg(peers::scripted_http_server()).args([when, mode]);
    command
}

fn start_scripted(scheme: &str, command: &mut Command) -> Listening {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = command.spawn().unwrap();
    let mut port = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
    Listening { process, url: format!("{scheme}://127.0.0.1:{}/mcp", port.trim()) }
}

/// A URL with the same response to every request, until the test ends.
pub(crate) fn always(response: impl Into<String>) -> String {
    let response = response.into();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let response = response.clone();
            thread::spawn(move || respond(stream?, &response));
        }
    });
    url
}

fn respond(mut stream: TcpStream, response: &str) -> io::Result<()> {
    let _ = stream.read(&mut [0; 64 * 1024])?;
    stream.write_all(response.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    // Closing before everything is read would reset the connection and lose the response.
    io::copy(&mut stream, &mut io::sink())?;
    Ok(())
}

/// A free port.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn wait_for(port: u16) {
    let condition = format!("port {port} has a listener");
    wait_until(&condition, LONGEST_START, || TcpStream::connect(("127.0.0.1", port)).is_ok());
}
