//! Control of a running Trunkline: an HTTP API under `/api/v1`, a page at `/`, recent calls, metrics at
//! `/metrics`, and an audit log.
//!
//! A program that runs hosts implements [`ControlSource`], gives the [`Activity`] as observer to its gateways,
//! and serves [`router`] on a listener:
//!
//! ```
//! use std::sync::Arc;
//!
//! use trunkline::Host;
//! use trunkline_control::{Activity, Control, ControlOptions, ControlSource, OpenProject, types};
//!
//! struct OneHost(Host);
//!
//! impl ControlSource for OneHost {
//!     fn projects(&self) -> Vec<OpenProject> {
//!         let info = types::Project {
//!             id: "shop".to_owned(), directory: "/home/ann/shop".to_owned(), clients: None, problem: None,
//!         };
//!         vec![OpenProject { info, host: self.0.clone() }]
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let host = Host::builder().start().await?;
//! let activity = Activity::default();
//! let observer = activity.observer("shop");            // for `GatewayOptions` and `StreamOptions`
//! let control = Control::new(Arc::new(OneHost(host)), activity, ControlOptions::default());
//! let link = control.login_link("http://127.0.0.1:7420");   // opens the page once
//! let router = trunkline_control::router(&control);
//! # drop((observer, link, router));
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! The API and the page are for the owner alone, also on the local machine: they can start programs. See [`Control::token`] and [`Control::login_link`]; tokens of MCP clients do not open them.

mod clock;
pub mod types;
mod source;
mod rotated_file;
mod audit;
mod metrics;
#[cfg(feature = "otel")]
pub mod otlp;
mod activity;
mod access;
mod events;
mod control;
mod api;
mod templates;
mod pages;
mod server;

pub use activity::Activity;
pub use audit::{AuditLog, Payloads};
pub use control::{Control, ControlOptions};
pub use rotated_file::RotatedFile;
pub use server::router;
pub use source::{ControlSource, OpenProject, TrustDecision, UnknownTrustRequest};
