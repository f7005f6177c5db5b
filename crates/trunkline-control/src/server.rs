//! The router of everything that is served.

use axum::Router;

use crate::control::Control;
use crate::{api, pages};

/// Creates a router with the API, the page and the metrics. It can be merged with that of a gateway.
pub fn router(control: &Control) -> Router {
    api::router(control).merge(pages::router(control))
}
