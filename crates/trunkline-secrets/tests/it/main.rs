//! Stores with real processes, a full disk, and a real keychain.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;
mod processes;
mod full_disk;
mod keychain;
