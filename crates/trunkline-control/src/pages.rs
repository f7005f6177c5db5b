//! The page at `/`: renders responses of the API, and nothing else. It is never an MCP client itself.

mod respond;
mod form;
mod servers;
mod tools;
mod calls;
mod conversations;
mod trust;
mod login;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::Redirect;
use axum::routing::{get, post};

use crate::control::Control;

/// The routes of the page.
pub(crate) fn router(control: &Control) -> Router {
    let guarded = Router::new()
        .route("/", get(async || Redirect::to("/servers")))
        .route("/servers", get(servers::page))
        .route("/fragments/servers", get(servers::fragment))
        .route("/servers/{project}/{name}/{action}", post(servers::act))
        .route("/tools", get(tools::page))
        .route("/fragments/tools", get(tools::fragment))
        .route("/tool", get(tools::one))
        .route("/tool/preview", post(tools::preview))
        .route("/call", post(tools::call))
        .route("/calls", get(calls::page))
        .route("/fragments/calls", get(calls::fragment))
        .route("/conversations", get(conversations::page).post(conversations::add))
        .route("/fragments/conversations", get(conversations::fragment))
        .route(
            "/conversations/{project}",
            get(conversations::of_project).post(conversations::switch_in_project),
        )
        .route(
            "/conversations/{project}/{name}",
            get(conversations::one).post(conversations::switch),
        )
        .route("/fragments/conversations/{project}", get(conversations::project_fragment))
        .route("/fragments/conversations/{project}/{name}", get(conversations::one_fragment))
        .route("/trust", get(trust::page))
        .route("/fragments/trust-changes", get(trust::changes))
        .route("/fragments/trust-count", get(trust::count))
        .route("/trust/{id}/{decision}", post(trust::decide))
        .layer(from_fn_with_state(control.clone(), login::require_session));
    let open = Router::new()
        .route("/login", get(login::open))
        .route("/assets/{name}", get(login::asset))
        .layer(from_fn_with_state(control.clone(), login::require_host));
    guarded.merge(open).with_state(control.clone())
}
