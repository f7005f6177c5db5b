//! Moves servers into their cgroups, one after the other on a thread.
//!
//! The kernel waits for all processors before the first move, which takes about ten milliseconds,
//! and creates no other cgroup meanwhile. Neither the server nor others that start at the same time
//! wait for that.

use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::process::setpriority_process;
use tokio::sync::oneshot;

/// The nice value of the thread: while servers start, the processors are theirs.
const NICE: i32 = 10;

/// Stack of the thread, which makes no deep calls.
const STACK_BYTES: usize = 128 * 1024;

static QUEUE: Mutex<MoveQueue> = Mutex::new(MoveQueue { jobs: VecDeque::new(), has_thread: false });

struct MoveQueue {
    jobs: VecDeque<MoveJob>,
    has_thread: bool,
}

struct MoveJob {
    work: Box<dyn FnOnce() + Send>,
    is_cancelled: Arc<Mutex<bool>>,
    /// Dropped when the job is done.
    _finished: oneshot::Sender<()>,
}

/// A process that is being moved. It must not be reaped before that is finished or this is dropped:
/// another process could get its ID.
pub(super) struct CgroupMove {
    finished: oneshot::Receiver<()>,
    is_cancelled: Arc<Mutex<bool>>,
}

impl CgroupMove {
    /// Queues the work that moves a process.
    pub(super) fn begin(work: impl FnOnce() + Send + 'static) -> Self {
        let (sender, finished) = oneshot::channel();
        let is_cancelled = Arc::new(Mutex::new(false));
        let job = MoveJob {
            work: Box::new(work),
            is_cancelled: Arc::clone(&is_cancelled),
            _finished: sender,
        };
        let mut queue = lock(&QUEUE);
        queue.jobs.push_back(job);
        let needs_thread = !queue.has_thread;
        queue.has_thread = true;
        drop(queue);
        if needs_thread {
            let thread = thread::Builder::new().name("trunkline-cgroup".to_owned());
            if thread.stack_size(STACK_BYTES).spawn(move_all_on_thread).is_err() {
                move_all();
            }
        }
        Self { finished, is_cancelled }
    }

    /// Waits until the process is in its cgroup, or cannot be moved. Cancel safe.
    pub(super) async fn finished(&mut self) {
        // The result is an error: the sender is dropped.
        let _ = (&mut self.finished).await;
    }
}

impl Drop for CgroupMove {
    /// Waits for a move that has begun.
    fn drop(&mut self) {
        *lock(&self.is_cancelled) = true;
    }
}

fn move_all_on_thread() {
    // On Linux, that of the calling thread alone. Without it, the moves only take more from others.
    let _ = setpriority_process(None, NICE);
    move_all();
}

fn move_all() {
    loop {
        let mut queue = lock(&QUEUE);
        let Some(job) = queue.jobs.pop_front() else {
            queue.has_thread = false;
            return;
        };
        drop(queue);
        let is_cancelled = lock(&job.is_cancelled);
        if !*is_cancelled {
            // The jobs after one that panics are done as well: the ends of their servers wait for them.
            let _ = panic::catch_unwind(AssertUnwindSafe(job.work));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
