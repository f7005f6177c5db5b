//! Hearing of changes in the modern generation: a request that stays open (`subscriptions/listen`).

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::connection::backoff::jittered;
use crate::connection::generation::Generation;
use crate::connection::session::{Answer, Asked, Session, at, gone};
use crate::connection::status::Described;
use crate::message::{Raw, code};

/// The pause before a subscription that broke is made again; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause. Changes that are missed in it are found when the list is stale.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How long a subscription has to last to count as one that works.
const WORKING: Duration = Duration::from_secs(10);

/// How long it may last: longer than any server.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// A wish to hear of changes, and what has come of it.
pub(super) struct Subscription {
    /// What to hear of.
    wishes: Raw,
    stage: Stage,
    pause: Duration,
}

enum Stage {
    /// The server has nothing to say, or does not know how.
    Unwanted,
    /// It is made then.
    Due(Instant),
    /// It was made then, and is over when this is answered.
    On(Instant, oneshot::Receiver<Answer>),
}

/// What has to be done about a subscription.
pub(super) enum Step {
    Make,
    /// It is over, with this answer.
    Over(Answer),
}

impl Subscription {
    /// A subscription to every kind of change the server says it announces.
    pub(super) fn wanted_of(session: &Session, described: &Described) -> Self {
        let wishes = wishes(described);
        let is_wanted = session.generation == Generation::Modern && !wishes.is_empty();
        let stage = if is_wanted { Stage::Due(Instant::now()) } else { Stage::Unwanted };
        let wishes = Raw::from_value(&json!({ "notifications": Value::Object(wishes) }));
        Self { wishes, stage, pause: FIRST_PAUSE }
    }

    /// What has to be done next; waits for ever if nothing has.
    pub(super) async fn next(&mut self) -> Step {
        match &mut self.stage {
            Stage::Unwanted => std::future::pending().await,
            Stage::Due(time) => {
                at(Some(*time)).await;
                Step::Make
            }
            Stage::On(_, answer) => Step::Over(answer.await.unwrap_or_else(|_| Err(gone()))),
        }
    }

    /// Makes the subscription, with a request of this id.
    pub(super) fn make(&mut self, session: &mut Session, id: u64) {
        let (reply, answer) = oneshot::channel();
        session.ask(Asked {
            id,
            method: "subscriptions/listen".into(),
            params: Some(self.wishes.clone()),
            deadline: Instant::now() + FOR_EVER,
            patience: FOR_EVER,
            reply,
            updates: None,
            is_standing: true,
        });
        self.stage = Stage::On(Instant::now(), answer);
    }

    /// It is over: made again after a pause, unless the server does not know how.
    pub(super) fn over(&mut self, answer: &Answer) {
        let Stage::On(since, _) = &self.stage else { return };
        if since.elapsed() >= WORKING {
            self.pause = FIRST_PAUSE;
        }
        self.stage = match answer {
            Ok(Err(error))
                if matches!(error.code(), code::METHOD_NOT_FOUND | code::INVALID_PARAMS) =>
            {
                Stage::Unwanted
            }
            Ok(_) | Err(_) => Stage::Due(Instant::now() + jittered(self.pause)),
        };
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

/// The kinds of change that a server says it announces, as the protocol asks for them.
fn wishes(described: &Described) -> Map<String, Value> {
    let capabilities = described.capabilities.as_ref();
    let announces = |what: &str| {
        let capability = capabilities.and_then(|capabilities| capabilities.get(what));
        let flag = capability.and_then(|capability| capability.get("listChanged"));
        flag.and_then(|flag| flag.as_bool()) == Some(true)
    };
    ["tools", "prompts", "resources"]
        .into_iter()
        .filter(|what| announces(what))
        .map(|what| (format!("{what}ListChanged"), Value::Bool(true)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_server_announces_is_asked_for() {
        let text = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":false},"x":1}"#;
        let capabilities = Raw::from_text(text).ok();
        let described = Described { capabilities, ..Described::default() };
        let wishes = Value::Object(wishes(&described));
        assert_eq!(wishes, json!({ "toolsListChanged": true }));
    }
}
