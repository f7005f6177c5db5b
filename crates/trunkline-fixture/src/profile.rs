//! The profile of a run: deviations from the recommendations of the specification.

use clap::ValueEnum;

/// Behaviour where servers differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// Lists everything, and uses only input requests with modern clients.
    Strict,
    /// Behaves like the example server of the official Rust SDK: some tools send server requests in
    /// either era, and the resource for subscriptions is not listed.
    SdkExample,
}
