//! An HTTP proxy that keeps a copy of all bytes, to find the secrets of a conversation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use trunkline::config::Secret;
use trunkline::connection::{HttpOptions, Proxies};
use url::Url;

/// Members of forms and of JSON that are secret.
const SECRET_MEMBERS: [&str; 8] = [
    "code",
    "code_verifier",
    "access_token",
    "refresh_token",
    "device_code",
    "client_secret",
    "client_assertion",
    "token",
];

/// Headers that are secret.
const SECRET_HEADERS: [&str; 2] = ["authorization", "dpop"];

/// The bytes of each direction of each connection.
type Recordings = Arc<Mutex<Vec<Vec<u8>>>>;

/// A proxy to one server, stopped on drop.
pub(crate) struct RecordingProxy {
    address: String,
    recordings: Recordings,
    task: AbortHandle,
}

impl RecordingProxy {
    /// A proxy to the server of a URL. The server has to accept absolute request targets.
    pub(crate) async fn start(url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let recordings = Recordings::default();
        let port = Url::parse(url).unwrap().port().unwrap();
        let accept = accept(listener, port, Arc::clone(&recordings));
        Self { address, recordings, task: tokio::spawn(accept).abort_handle() }
    }

    /// Options of a host that uses it.
    pub(crate) fn http_options(&self) -> HttpOptions {
        let http = Some(Secret::new(self.address.as_str()));
        let proxies = Proxies { http, for_loopback: true, ..Proxies::default() };
        HttpOptions { proxies, ..HttpOptions::default() }
    }

    /// The secrets that were sent in either direction, by the name of the member or header.
    pub(crate) fn secrets(&self) -> BTreeMap<&'static str, BTreeSet<String>> {
        let mut found = BTreeMap::new();
        for recording in self.recordings.lock().unwrap().iter() {
            collect(&String::from_utf8_lossy(recording), &mut found);
        }
        found
    }
}

impl Drop for RecordingProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, port: u16, recordings: Recordings) {
    while let Ok((client, _)) = listener.accept().await {
        let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let (client_reader, client_writer) = client.into_split();
        let (server_reader, server_writer) = server.into_split();
        tokio::spawn(copy(client_reader, server_writer, Arc::clone(&recordings)));
        tokio::spawn(copy(server_reader, client_writer, Arc::clone(&recordings)));
    }
}

async fn copy(
    mut reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    recordings: Recordings,
) {
    let index = {
        let mut all = recordings.lock().unwrap();
        all.push(Vec::new());
        all.len() - 1
    };
    let mut chunk = [0; 16 * 1024];
    while let Ok(count @ 1..) = reader.read(&mut chunk).await {
        recordings.lock().unwrap()[index].extend_from_slice(&chunk[..count]);
        if writer.write_all(&chunk[..count]).await.is_err() {
            break;
        }
    }
    let _ = writer.shutdown().await;
}

/// Finds the secrets in the text of a conversation.
fn collect(text: &str, found: &mut BTreeMap<&'static str, BTreeSet<String>>) {
    let mut add = |name, value: &str| {
        found.entry(name).or_default().insert(value.to_owned());
    };
    for name in SECRET_MEMBERS {
        for before in ["&", "\n"] {
            let ends = |letter: char| letter == '&' || !letter.is_ascii_graphic();
            values(text, &format!("{before}{name}="), ends).for_each(|value| add(name, value));
        }
        let ends = |letter: char| letter == '"';
        values(text, &format!("\"{name}\":\""), ends).for_each(|value| add(name, value));
    }
    for name in SECRET_HEADERS {
        let ends = |letter: char| letter == '\r';
        for value in values(text, &format!("\n{name}: "), ends) {
            add(name, value.split(' ').next_back().unwrap());
        }
    }
}

/// The texts after each occurrence of `start`.
fn values<'t>(
    text: &'t str,
    start: &str,
    ends: impl Fn(char) -> bool + Copy,
) -> impl Iterator<Item = &'t str> {
    let parts: Vec<_> = text.split(start).skip(1).collect();
    parts.into_iter().filter_map(move |part| part.split(ends).next()).filter(|it| !it.is_empty())
}
