//! File access with a timeout, on threads of its own: a file system that does not respond blocks a
//! thread forever, and must block nothing else.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use std::{io, thread};

use tokio::sync::oneshot;
use tokio::time::timeout;
use trunkline::config::FileRefusal;

/// Timeout of all file accesses in one step. Slow disks and networks respond within a second or
/// two; after more, the user should see an error.
const FILE_TIMEOUT: Duration = Duration::from_secs(10);

/// Threads that may be blocked in a file system that does not respond. A gateway checks its files
/// every second, and must not add a thread each time.
const MAX_WAITING_THREADS: usize = 16;

static WAITING_THREADS: AtomicUsize = AtomicUsize::new(0);

/// Runs blocking file access with a timeout, outside of a runtime.
pub(crate) fn wait<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let (done, answer) = mpsc::sync_channel(1);
    start(move || drop(done.send(work())))?;
    answer.recv_timeout(FILE_TIMEOUT).map_err(|_| FileRefusal::NoAnswer.into())
}

/// Runs blocking file access with a timeout, inside a runtime.
pub(crate) async fn answered<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (done, answer) = oneshot::channel();
    start(move || drop(done.send(work())))?;
    match timeout(FILE_TIMEOUT, answer).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) | Err(_) => Err(FileRefusal::NoAnswer.into()),
    }
}

/// Counts a thread while it runs, also if it panics.
struct WaitingThread;

impl Drop for WaitingThread {
    fn drop(&mut self) {
        WAITING_THREADS.fetch_sub(1, Ordering::Relaxed);
    }
}

fn start(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let running = WAITING_THREADS.fetch_add(1, Ordering::Relaxed);
    let counted = WaitingThread;
    if running >= MAX_WAITING_THREADS {
        return Err(FileRefusal::NoAnswer.into());
    }
    let work = move || {
        let _counted = counted;
        work();
    };
    thread::Builder::new().name("trunkline-files".to_owned()).spawn(work).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn hanging_reads_block_only_their_threads_up_to_a_limit() {
        for _ in 0..MAX_WAITING_THREADS + 4 {
            let stuck = answered(thread::park).await;
            assert_eq!(stuck.unwrap_err().to_string(), "the file system does not answer");
        }
        assert_eq!(WAITING_THREADS.load(Ordering::Relaxed), MAX_WAITING_THREADS);
    }
}
