//! Compares a server with the same server behind the gateway: they differ only in the documented
//! ways.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use trunkline::connection::{Connection, RequestError};
use trunkline::message::{Raw, RpcError};

use crate::support::gateway::{TestGateway, configuration, connecting};

/// Timeout of a comparison, on a busy machine.
const LONGEST: Duration = Duration::from_secs(120);

/// How long a server may take to list all its items.
const LONGEST_CHANGE: Duration = Duration::from_secs(15);

/// The name of the server in its host.
const SERVER: &str = "peer";

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The list methods, each with the key of its items and the key of an item's name.
const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("resources/list", "resources", "uri"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate"),
    ("prompts/list", "prompts", "name"),
];

/// How much of a response is the same each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sameness {
    /// Every byte.
    Exact,
    /// Every byte except digits of times and sizes.
    ButDigits,
}

/// A request to a server, with its upstream names.
pub(crate) struct Asked {
    pub(crate) method: &'static str,
    pub(crate) params: Value,
    pub(crate) sameness: Sameness,
}

pub(crate) fn call(tool: &str, arguments: &Value) -> Asked {
    let params = json!({ "name": tool, "arguments": arguments });
    Asked { method: "tools/call", params, sameness: Sameness::Exact }
}

pub(crate) fn prompt(name: &str, arguments: &Value) -> Asked {
    let params = json!({ "name": name, "arguments": arguments });
    Asked { method: "prompts/get", params, sameness: Sameness::Exact }
}

pub(crate) fn read(address: &str) -> Asked {
    Asked { method: "resources/read", params: json!({ "uri": address }), sameness: Sameness::Exact }
}

impl Asked {
    pub(crate) fn but_digits(self) -> Self {
        Self { sameness: Sameness::ButDigits, ..self }
    }

    /// The parameters for the gateway, with exposed names.
    fn through(&self) -> Value {
        let mut params = self.params.clone();
        for name in ["/name", "/ref/name"] {
            if let Some(name) = params.pointer_mut(name) {
                *name = exposed(name.as_str().unwrap()).into();
            }
        }
        params
    }
}

fn exposed(name: &str) -> String {
    format!("{SERVER}_{name}")
}

/// The era in which the gateway is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Era {
    Legacy,
    Modern,
}

/// A server, and a gateway to another instance of it, which get the same requests.
pub(crate) struct Pair {
    direct: Connection,
    gateway: TestGateway,
    through: [(Era, Connection); 2],
}

impl Pair {
    /// Two servers of the same kind, which may have to differ in something.
    pub(crate) async fn of(direct: &Value, behind: &Value) -> Self {
        let mut behind = behind.clone();
        behind["access"] = "read-write".into();
        let gateway = TestGateway::to(&json!({ SERVER: behind })).await;
        let to_gateway =
            |protocol: &str| connection(&json!({ "url": gateway.url(), "protocol": protocol }));
        let through =
            [(Era::Legacy, to_gateway("legacy")), (Era::Modern, to_gateway("2026-07-28"))];
        let direct = connection(direct);
        let starting =
            async { tokio::join!(direct.connect(), gateway.host.servers().connect_all()) };
        let (started, failed) = timeout(LONGEST, starting).await.expect("servers start in time");
        assert!(started.is_ok() && failed.is_empty(), "{started:?} {failed:?}");
        Self { direct, gateway, through }
    }

    /// Compares all lists, and the responses to these requests. Returns the number of listed items.
    pub(crate) async fn compare(self, asked: &[Asked]) -> usize {
        let mut listed = 0;
        for (era, gateway) in &self.through {
            for list in LISTS {
                listed += self.compare_list((*era, gateway), list).await;
            }
            for asked in asked {
                self.compare_answer((*era, gateway), asked).await;
            }
        }
        let [(_, legacy), (_, modern)] = &self.through;
        tokio::join!(self.direct.close(), legacy.close(), modern.close());
        self.gateway.end().await;
        listed
    }

    async fn compare_list(
        &self,
        (era, gateway): (Era, &Connection),
        (method, key, name): (&str, &str, &str),
    ) -> usize {
        // Some servers have more to list once they know their client.
        let deadline = Instant::now() + LONGEST_CHANGE;
        let (sent, seen) = loop {
            let sent = everything(&self.direct, method, key).await;
            let seen = everything(gateway, method, key).await;
            if sent.len() == seen.len() || Instant::now() > deadline {
                break (sent, seen);
            }
            sleep(Duration::from_millis(100)).await;
        };
        let sent_names = names(&sent, name);
        let seen_names = names(&seen, name);
        let is_named = name == "name";
        let expected = sent_names.iter().map(|it| if is_named { exposed(it) } else { it.clone() });
        assert_eq!(BTreeSet::from_iter(expected), BTreeSet::from_iter(seen_names.clone()));
        assert!(seen_names.is_sorted(), "{era:?} {method}: {seen_names:?}");
        for (own, sent) in sent_names.iter().zip(&sent) {
            let place = seen_names.iter().position(|it| *it == exposed(own) || it == own);
            let seen = members(&seen[place.unwrap()]);
            assert_eq!(seen, definition(era, sent, is_named), "{era:?} {method} {own}");
        }
        sent.len()
    }

    async fn compare_answer(&self, (era, gateway): (Era, &Connection), asked: &Asked) {
        let sent = ask(&self.direct, asked.method, &asked.params).await;
        let seen = ask(gateway, asked.method, &asked.through()).await;
        let what = format!("{era:?} {} {}", asked.method, asked.params);
        match (sent, seen) {
            (Ok(sent), Ok(seen)) => {
                assert_is_of(era, asked.method, &seen);
                let [sent, seen] = [sent, seen].map(|it| content(&it, asked.sameness));
                assert_eq!(seen, sent, "{what}");
            }
            (Err(sent), Err(seen)) => {
                assert_eq!(seen.message(), sent.message(), "{what}");
                assert_eq!(seen.code(), code(era, asked.method, sent.code()), "{what}");
            }
            (sent, seen) => panic!("{what}: {seen:?} instead of {sent:?}"),
        }
    }
}

fn connection(entry: &Value) -> Connection {
    let config = configuration(&json!({ SERVER: entry }));
    Connection::new(
        config.server(SERVER).unwrap().clone(),
        connecting().with_capabilities(trunkline_gateway::client_capabilities()),
    )
}

async fn ask(connection: &Connection, method: &str, params: &Value) -> Result<Raw, RpcError> {
    let asked = connection.request(method, Some(Raw::from_value(params)));
    let answer = timeout(LONGEST, asked).await.expect("an answer in time");
    answer.map_err(|error| match error {
        RequestError::Refused(error) => error,
        RequestError::Failed(error) => panic!("{method}: {error}"),
    })
}

/// All pages of a list; empty if the server has no such list.
async fn everything(connection: &Connection, method: &str, key: &str) -> Vec<Raw> {
    let mut all = Vec::new();
    let mut params = json!({});
    loop {
        let page = match ask(connection, method, &params).await {
            Ok(page) => page,
            Err(error) if error.code() == -32_601 => return all,
            Err(error) => panic!("{method}: {error:?}"),
        };
        all.extend(page.get(key).unwrap().items());
        match page.get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor.to_value() }),
            None => return all,
        }
    }
}

fn names(list: &[Raw], key: &str) -> Vec<String> {
    let name = |it: &Raw| it.get(key).unwrap().as_str().unwrap().into_owned();
    list.iter().map(name).collect()
}

/// The members of an object in their order, each value as it was written.
type Members = Vec<(String, String)>;

fn members(object: &Raw) -> Members {
    object.members().into_iter().map(|(key, value)| (key, value.text().to_owned())).collect()
}

/// The expected definition behind the gateway.
fn definition(era: Era, sent: &Raw, is_named: bool) -> Members {
    let mut expected = members(sent);
    if is_named {
        let own = sent.get("name").unwrap();
        replace(&mut expected, "name", &exposed(&own.as_str().unwrap()));
        let description = sent.get("description").map(|it| it.as_str().unwrap().into_owned());
        let description = description.filter(|it| !it.is_empty());
        let said = description.map_or(format!("[{SERVER}]"), |it| format!("[{SERVER}] {it}"));
        replace(&mut expected, "description", &said);
    }
    if era == Era::Modern {
        expected.retain(|(key, _)| key != "execution");
    }
    expected
}

/// Replaces a value by a string, or appends it.
fn replace(members: &mut Members, key: &str, text: &str) {
    let text = json!(text).to_string();
    match members.iter_mut().find(|(it, _)| it == key) {
        Some((_, value)) => *value = text,
        None => members.push((key.to_owned(), text)),
    }
}

/// The content of a result, without the members that differ between the eras.
fn content(result: &Raw, sameness: Sameness) -> Members {
    let mut content = members(result);
    let about = ["resultType", "ttlMs", "cacheScope", "_meta"];
    content.retain(|(key, _)| !about.contains(&&**key));
    if let Some(said) = result.get("_meta") {
        let said = members(&said).into_iter().filter(|(key, _)| key != SERVER_INFO);
        content.extend(said.map(|(key, value)| (format!("_meta {key}"), value)));
    }
    if sameness == Sameness::ButDigits {
        for (_, value) in &mut content {
            value.retain(|it| !it.is_ascii_digit());
        }
    }
    content
}

/// Asserts that a result has the members of its era and no others.
fn assert_is_of(era: Era, method: &str, result: &Raw) {
    let has = |key: &str| result.get(key).is_some();
    assert_eq!(has("resultType"), era == Era::Modern, "{result}");
    let is_cached = era == Era::Modern && method == "resources/read";
    assert_eq!((has("ttlMs"), has("cacheScope")), (is_cached, is_cached), "{result}");
    let info = result.get("_meta").and_then(|said| said.get(SERVER_INFO));
    assert!(era == Era::Legacy || info.is_some(), "{result}");
}

/// The expected error code in an era.
fn code(era: Era, method: &str, code: i64) -> i64 {
    match (era, method, code) {
        (Era::Modern, _, -32_002) => -32_602,
        (Era::Legacy, "resources/read", -32_602) => -32_002,
        _ => code,
    }
}
