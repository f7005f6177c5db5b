//! What servers hear when a client does not want something any more.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use trunkline_testkit::peers;

use crate::asker::{Asker, Era, text};
use crate::hosting::{Folder, Hosted};

/// Nothing of what these tests wait for takes nearly as long.
const LONGEST: Duration = Duration::from_secs(10);

/// A server that writes down what it hears.
fn announcing(folder: &Folder) -> Value {
    json!({
        "command": peers::python(),
        "args": ["-I", peers::announcing_server(), folder.path(), "legacy"],
        "prefix": "",
        "access": "read-write",
    })
}

/// The first message of a method that a server hears, or has heard.
async fn heard(folder: &Folder, method: &str) -> Value {
    let deadline = Instant::now() + LONGEST;
    loop {
        let lines = fs::read_to_string(folder.path().join("heard")).unwrap_or_default();
        let whole = lines.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let mut messages = whole.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        if let Some(message) = messages.find(|it| it["method"] == method) {
            return message;
        }
        assert!(Instant::now() < deadline, "no {method} in {lines}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Nobody else need call the server for that.
#[tokio::test]
async fn what_a_session_watches_ends_with_it() {
    let folder = Folder::new();
    folder.write("resources", "here:one\n");
    let hosted = Hosted::to(&json!({ "announcing": announcing(&folder) })).await;
    let mut asker = Asker::new(Era::Legacy, hosted.address).await.unwrap();
    let subscribed = asker.ask("resources/subscribe", json!({ "uri": "here:one" })).await;
    assert!(subscribed["result"].is_object(), "{subscribed}");
    assert_eq!(text(&asker.call("watched", json!({})).await), "here:one");
    assert_eq!(asker.request("DELETE", &[]).await.0.status, 204);
    assert_eq!(heard(&folder, "resources/unsubscribe").await["params"]["uri"], "here:one");
    hosted.end().await;
}
