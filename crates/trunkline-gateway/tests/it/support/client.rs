//! A minimal test client of either era.

use std::io;
use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::support::demo_server::MODERN;
use crate::support::http_connection::{Channel, Head, Sent};

pub(crate) const LEGACY: &str = "2025-11-25";

/// A protocol era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

/// A message, ready to be sent.
pub(crate) struct Written {
    pub(crate) id: u64,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// A client that sends one request after another.
pub(crate) struct TestClient {
    pub(crate) era: Era,
    pub(crate) channel: Channel,
    pub(crate) address: SocketAddr,
    /// The path of the endpoint.
    path: String,
    /// The session of a legacy client.
    pub(crate) session: Option<String>,
    /// The capabilities that it declares.
    pub(crate) capabilities: Value,
    /// Headers of every request.
    headers: Vec<(String, String)>,
    next: u64,
}

impl TestClient {
    /// A client that declares elicitation only.
    pub(crate) async fn new(era: Era, address: SocketAddr) -> io::Result<Self> {
        Self::with(era, address, &[]).await
    }

    /// A client that sends these headers with every request.
    pub(crate) async fn with(
        era: Era,
        address: SocketAddr,
        headers: &[(&str, &str)],
    ) -> io::Result<Self> {
        Self::at((address, "/mcp"), era, headers).await
    }

    /// A client of the endpoint at a path.
    pub(crate) async fn at(
        (address, path): (SocketAddr, &str),
        era: Era,
        headers: &[(&str, &str)],
    ) -> io::Result<Self> {
        let channel = Channel::to(address).await?;
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let headers = headers.iter().map(owned).collect();
        let capabilities = json!({ "elicitation": {} });
        let (path, session) = (path.to_owned(), None);
        let mut client =
            Self { era, channel, address, path, session, capabilities, headers, next: 0 };
        if era == Era::Legacy {
            client.open().await?;
        }
        Ok(client)
    }

    /// Uses a new connection: the gateway closes one that was idle for long.
    pub(crate) async fn reconnect(&mut self) {
        self.channel = Channel::to(self.address).await.unwrap();
    }

    /// Opens a session, replacing the previous one.
    pub(crate) async fn open(&mut self) -> io::Result<()> {
        self.initialize().await?;
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.tell(&initialized).await
    }

    /// Sends `initialize`, without the `initialized` notification.
    pub(crate) async fn initialize(&mut self) -> io::Result<()> {
        self.session = None;
        let params = json!({
            "protocolVersion": LEGACY,
            "capabilities": self.capabilities,
            "clientInfo": { "name": "test-client", "version": "1" },
        });
        let written = self.write("initialize", params);
        let (head, messages) = self.exchange(&written).await?;
        assert!(messages[0]["result"].is_object(), "{head:?} {messages:?}");
        self.session = head.get("mcp-session-id").map(str::to_owned);
        Ok(())
    }

    /// A request in the form of the client's era.
    pub(crate) fn write(&mut self, method: &str, mut params: Value) -> Written {
        self.next += 1;
        let id = self.next;
        let mut headers = self.headers();
        if self.era == Era::Modern {
            let said = &mut params["_meta"];
            said["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
            said["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
            headers.push(("Mcp-Method".to_owned(), method.to_owned()));
            let subject = ["name", "uri", "taskId"].iter().find_map(|key| params[*key].as_str());
            headers.extend(subject.map(|it| ("Mcp-Name".to_owned(), it.to_owned())));
        }
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        Written { id, headers, body: message.to_string() }
    }

    /// The ID of the last request.
    pub(crate) fn last_id(&self) -> u64 {
        self.next
    }

    /// The headers of every request in the era, and of the session.
    pub(crate) fn headers(&self) -> Vec<(String, String)> {
        let version = if self.era == Era::Modern { MODERN } else { LEGACY };
        let mut headers = self.headers.clone();
        headers.push(("MCP-Protocol-Version".to_owned(), version.to_owned()));
        headers.extend(self.session.iter().map(|it| ("Mcp-Session-Id".to_owned(), it.clone())));
        headers
    }

    /// Sends a request and reads all messages of the response.
    pub(crate) async fn exchange(&mut self, written: &Written) -> io::Result<(Head, Vec<Value>)> {
        let headers = borrowed(&written.headers);
        let sent = Sent { path: &self.path, ..Sent::post(&headers, &written.body) };
        self.channel.messages(&sent).await
    }

    /// Sends a request and reads only the headers of the response.
    pub(crate) async fn begin(&mut self, written: &Written) -> io::Result<Head> {
        let headers = borrowed(&written.headers);
        let sent = Sent { path: &self.path, ..Sent::post(&headers, &written.body) };
        self.channel.send(&sent).await
    }

    /// Sends a message that has no response.
    pub(crate) async fn tell(&mut self, message: &Value) -> io::Result<()> {
        let headers = self.headers();
        let headers = borrowed(&headers);
        let body = message.to_string();
        let sent = Sent { path: &self.path, ..Sent::post(&headers, &body) };
        let (head, _) = self.channel.messages(&sent).await?;
        assert_eq!(head.status, 202, "{head:?}");
        Ok(())
    }

    /// The response to a request.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let written = self.write(method, params);
        let (head, mut messages) = self.exchange(&written).await.unwrap();
        let answer = messages.pop().unwrap_or_else(|| panic!("an answer: {head:?}"));
        assert_eq!(answer["id"], written.id, "{answer}");
        answer
    }

    /// The response to a tool call.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Sends a request without a body, on a connection of its own.
    pub(crate) async fn request(&self, method: &str, more: &[(&str, &str)]) -> (Head, Channel) {
        let headers = self.headers();
        let headers = [&borrowed(&headers)[..], more].concat();
        let mut channel = Channel::to(self.address).await.unwrap();
        let sent = Sent { method, path: &self.path, headers: &headers, body: "" };
        let head = channel.send(&sent).await.unwrap();
        (head, channel)
    }
}

pub(crate) fn borrowed(headers: &[(String, String)]) -> Vec<(&str, &str)> {
    headers.iter().map(|(name, value)| (&**name, &**value)).collect()
}

/// The text of a result.
pub(crate) fn text(answer: &Value) -> &str {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("a text: {answer}"))
}
