//! The profile of a run: where the server differs from what the specification recommends.

use clap::ValueEnum;

/// How the server behaves where servers differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// Everything is listed, and a client of the newer era is asked in results only.
    Strict,
    /// As the example server of the official Rust SDK: some tools send requests to the client in either era,
    /// and the resource that clients may subscribe to is not listed.
    SdkExample,
}
