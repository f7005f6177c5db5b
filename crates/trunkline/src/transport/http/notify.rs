//! Messages that get no answer: posted, and that is all.

use std::time::Duration;

use futures_util::{Stream, stream};
use tokio::time::timeout;

use super::client::HttpClient;
use super::in_flight::ExchangeEvent;
use super::request::{HttpRequest, collect};

/// How long a server may take to accept a message that is not answered. Nobody waits for it but
/// messages that must not overtake it.
const ACCEPTANCE: Duration = Duration::from_secs(10);

/// Delivers a notification or a response. If that fails nobody is told: whatever is wrong, the next
/// request meets it too, and can say so.
pub(in crate::transport) fn deliver(
    client: HttpClient,
    request: HttpRequest,
) -> impl Stream<Item = ExchangeEvent> + Send + 'static {
    stream::once(async move {
        let _ = timeout(ACCEPTANCE, post(client, request)).await;
        ExchangeEvent::Delivered
    })
}

/// Reads the body too, so that the connection can be used again.
async fn post(client: HttpClient, request: HttpRequest) {
    if let Ok(mut response) = client.send(&request).await {
        let _ = collect(&mut response).await;
    }
}
