//! Work that takes long, on the threads for blocking work.

use std::panic::resume_unwind;

use tokio::task::{JoinError, spawn_blocking};

/// Runs a function on the blocking pool. A panic continues here: an empty answer would look as if
/// there were no tools.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await.map_err(JoinError::try_into_panic) {
        Ok(result) => result,
        Err(Ok(panic)) => resume_unwind(panic),
        // The runtime is shutting down, and drops this task.
        Err(Err(_)) => std::future::pending().await,
    }
}
