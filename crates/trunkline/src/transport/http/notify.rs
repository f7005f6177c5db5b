//! Posts notifications and responses, which have no response of their own.

use std::time::Duration;

use futures_util::{Stream, stream};
use tokio::time::timeout;

use super::client::HttpClient;
use super::in_flight::ExchangeEvent;
use super::request::{HttpRequest, collect};

/// Timeout for a server to accept such a message. Only messages that must not overtake it wait for
/// it.
const ACCEPTANCE: Duration = Duration::from_secs(10);

/// Delivers a notification or a response. Failures are ignored: the next request meets the same
/// problem and reports it.
pub(in crate::transport) fn deliver(
    client: HttpClient,
    request: HttpRequest,
) -> impl Stream<Item = ExchangeEvent> + Send + 'static {
    stream::once(async move {
        let _ = timeout(ACCEPTANCE, post(client, request)).await;
        ExchangeEvent::Delivered
    })
}

/// Reads the body too, so that the connection can be reused.
async fn post(client: HttpClient, request: HttpRequest) {
    if let Ok(mut response) = client.send(&request).await {
        let _ = collect(&mut response).await;
    }
}
