//! The stream on which a server of the older generation speaks of its own accord.

use std::mem;
use std::sync::Arc;

use futures_util::{Stream, stream};

use super::client::HttpClient;
use super::in_flight::Step;
use super::reconnect::{Opened, Reopening, is_passing};
use super::request::{HttpRequest, HttpResponse};
use crate::transport::Incoming;

/// The stream, kept open for as long as it lives.
pub(super) struct Listening {
    stream: Reopening,
    stage: Stage,
}

enum Stage {
    Open,
    Events(HttpResponse),
    Wait,
    Over,
}

impl Listening {
    /// A stream that has not been opened.
    pub(super) fn new(client: HttpClient, request: HttpRequest) -> Self {
        Self { stream: Reopening::new(client, Arc::new(request)), stage: Stage::Open }
    }

    /// All messages on it. It ends, without a word, when the server has no such stream.
    pub(super) fn run(self) -> impl Stream<Item = Step> + Send + 'static {
        stream::unfold(self, Self::step)
    }

    async fn step(mut self) -> Option<(Step, Self)> {
        loop {
            match mem::replace(&mut self.stage, Stage::Over) {
                Stage::Open => self.open().await,
                Stage::Events(stream) => {
                    if let Some(message) = self.message(stream).await {
                        return Some((Step::Came(message), self));
                    }
                }
                Stage::Wait => {
                    self.stream.wait().await;
                    self.stage = Stage::Open;
                }
                Stage::Over => return None,
            }
        }
    }

    async fn open(&mut self) {
        self.stage = match self.stream.open().await {
            Opened::Stream(stream) => Stage::Events(stream),
            Opened::Refused(response) if is_passing(response.status()) => Stage::Wait,
            Opened::NotNow(_) => Stage::Wait,
            Opened::Refused(_) | Opened::Never(_) => Stage::Over,
        };
    }

    async fn message(&mut self, mut stream: HttpResponse) -> Option<Incoming> {
        let Ok(Some(event)) = self.stream.event(&mut stream).await else {
            self.stage = Stage::Wait;
            return None;
        };
        self.stream.got_further();
        self.stage = Stage::Events(stream);
        match event.missing {
            0 => event.is_message().then_some(Incoming::Message(event.data)),
            _ => event.short_answer().map(Incoming::Answer),
        }
    }
}
