//! The GET stream for messages that a legacy server initiates.

use std::mem;
use std::sync::Arc;

use futures_util::{Stream, stream};

use super::client::HttpClient;
use super::in_flight::ExchangeEvent;
use super::reconnect::{Reconnect, ReopenedStream, is_passing};
use super::request::{HttpRequest, HttpResponse};
use crate::transport::InboundEvent;

/// The stream, reopened whenever it ends.
pub(super) struct GetStream {
    stream: Reconnect,
    stage: GetStreamStage,
}

enum GetStreamStage {
    Open,
    Events(Box<HttpResponse>),
    Wait,
    Over,
}

impl GetStream {
    /// A stream that has not been opened.
    pub(super) fn new(client: HttpClient, request: HttpRequest) -> Self {
        Self { stream: Reconnect::new(client, Arc::new(request)), stage: GetStreamStage::Open }
    }

    /// All messages of the stream. It ends silently if the server does not offer such a stream.
    pub(super) fn run(self) -> impl Stream<Item = ExchangeEvent> + Send + 'static {
        stream::unfold(self, Self::step)
    }

    async fn step(mut self) -> Option<(ExchangeEvent, Self)> {
        loop {
            match mem::replace(&mut self.stage, GetStreamStage::Over) {
                GetStreamStage::Open => self.open().await,
                GetStreamStage::Events(stream) => {
                    if let Some(message) = self.message(stream).await {
                        return Some((ExchangeEvent::Came(message), self));
                    }
                }
                GetStreamStage::Wait => {
                    self.stream.wait().await;
                    self.stage = GetStreamStage::Open;
                }
                GetStreamStage::Over => return None,
            }
        }
    }

    async fn open(&mut self) {
        self.stage = match self.stream.open().await {
            ReopenedStream::Stream(stream) => GetStreamStage::Events(Box::new(stream)),
            ReopenedStream::Refused(response) if is_passing(response.status()) => {
                GetStreamStage::Wait
            }
            ReopenedStream::NotNow(_) => GetStreamStage::Wait,
            ReopenedStream::Refused(_) | ReopenedStream::Never(_) => GetStreamStage::Over,
        };
    }

    async fn message(&mut self, mut stream: Box<HttpResponse>) -> Option<InboundEvent> {
        let Ok(Some(event)) = self.stream.event(&mut stream).await else {
            self.stage = GetStreamStage::Wait;
            return None;
        };
        self.stream.record_progress();
        self.stage = GetStreamStage::Events(stream);
        match event.missing {
            0 => event.is_message().then_some(InboundEvent::Message(event.data)),
            _ => event.short_answer().map(InboundEvent::Response),
        }
    }
}
