//! Threads that create processes: a program on a disk that does not respond holds up no other server, and those of the
//! runtime may be busy.
//!
//! They never end. A process can ask the kernel for a signal when its parent dies (`PR_SET_PDEATHSIG`), as sandboxes do,
//! and the kernel means the thread that created it.

use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

/// Threads while jobs take as long as they usually do, about a millisecond. More would only take the processors from
/// each other.
const USUAL_THREADS: usize = 4;

/// Threads while some do not come back, because their disks do not respond. They cannot be ended.
const MAX_THREADS: usize = 64;

/// How long a job is queued before another thread is started for it.
pub(super) const QUEUE_PATIENCE: Duration = Duration::from_millis(250);

/// How long a job may run before it counts as one that does not come back, and the interval of looking.
const LONGEST_JOB: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(2);

/// The threads of this process.
pub(super) static START_THREADS: StartThreads = StartThreads::new(LONGEST_JOB);

/// Runs jobs on threads that are kept.
pub(super) struct StartThreads {
    queue: Mutex<StartQueue>,
    job_queued: Condvar,
    longest_job: Duration,
}

struct StartQueue {
    jobs: VecDeque<StartJob>,
    threads: usize,
    /// Threads that wait for a job.
    idle: usize,
}

struct StartJob {
    work: Box<dyn FnOnce() + Send>,
    phase: Arc<Mutex<JobPhase>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum JobPhase {
    Queued,
    Running { since: Instant },
    Finished,
    Cancelled,
}

/// A job that was queued. Dropping it cancels the job, or waits a moment for one that runs: its runtime ends, and
/// perhaps the program, and a process that is just being created would outlive it.
#[must_use = "dropping it cancels the job"]
pub(super) struct StartJobGuard {
    phase: Arc<Mutex<JobPhase>>,
    longest_job: Duration,
}

impl StartThreads {
    const fn new(longest_job: Duration) -> Self {
        let queue = StartQueue { jobs: VecDeque::new(), threads: 0, idle: 0 };
        Self { queue: Mutex::new(queue), job_queued: Condvar::new(), longest_job }
    }

    /// Queues a job, and starts a thread for it if there are few.
    pub(super) fn run(
        &'static self,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<StartJobGuard> {
        let phase = Arc::new(Mutex::new(JobPhase::Queued));
        let guard = StartJobGuard { phase: Arc::clone(&phase), longest_job: self.longest_job };
        let mut queue = lock(&self.queue);
        queue.jobs.push_back(StartJob { work: Box::new(work), phase });
        if queue.jobs.len() > queue.idle
            && queue.threads < USUAL_THREADS
            && let Err(error) = self.add_thread(&mut queue)
            && queue.threads == 0
        {
            queue.jobs.pop_back();
            return Err(error);
        }
        drop(queue);
        self.job_queued.notify_one();
        Ok(guard)
    }

    /// Starts another thread if jobs are queued: those that run may hang.
    pub(super) fn add_thread_if_queued(&'static self) {
        let mut queue = lock(&self.queue);
        if queue.jobs.len() > queue.idle && queue.threads < MAX_THREADS {
            // If that fails, the job goes on waiting.
            let _ = self.add_thread(&mut queue);
        }
    }

    fn add_thread(&'static self, queue: &mut StartQueue) -> io::Result<()> {
        let thread = thread::Builder::new().name("trunkline-start".to_owned());
        thread.spawn(|| self.run_jobs())?;
        queue.threads += 1;
        Ok(())
    }

    fn run_jobs(&self) {
        loop {
            let job = self.next_job();
            if !begin(&job.phase) {
                continue;
            }
            // A job that panics is reported by its caller, and the others go on.
            let _ = panic::catch_unwind(AssertUnwindSafe(job.work));
            *lock(&job.phase) = JobPhase::Finished;
        }
    }

    fn next_job(&self) -> StartJob {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return job;
            }
            queue.idle += 1;
            queue = self.job_queued.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }
}

/// Whether a job may run now.
fn begin(phase: &Mutex<JobPhase>) -> bool {
    let mut phase = lock(phase);
    let is_wanted = *phase == JobPhase::Queued;
    if is_wanted {
        *phase = JobPhase::Running { since: Instant::now() };
    }
    is_wanted
}

impl StartJobGuard {
    /// Forgets a job that has done its work. Its thread may not have noted that yet, and need not be waited for.
    pub(super) fn forget(self) {
        *lock(&self.phase) = JobPhase::Finished;
    }
}

impl Drop for StartJobGuard {
    fn drop(&mut self) {
        let mut phase = lock(&self.phase);
        if *phase == JobPhase::Queued {
            *phase = JobPhase::Cancelled;
        }
        drop(phase);
        // Many that hang are not waited for one after the other.
        let is_running = |phase| match phase {
            JobPhase::Running { since } => since.elapsed() < self.longest_job,
            JobPhase::Queued | JobPhase::Finished | JobPhase::Cancelled => false,
        };
        while is_running(*lock(&self.phase)) {
            thread::sleep(LOOK);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::mpsc::{self, Sender};

    use super::*;

    /// Longer than the jobs of a test run.
    const LONGEST_WAIT: Duration = Duration::from_secs(60);

    fn new_threads(longest_job: Duration) -> &'static StartThreads {
        Box::leak(Box::new(StartThreads::new(longest_job)))
    }

    /// Jobs that run until something is sent to each of them, and what sends it. They have begun.
    fn running_jobs(threads: &'static StartThreads) -> (Vec<StartJobGuard>, Vec<Sender<()>>) {
        let start = |_| {
            let ((end, ended), (begin, begun)) = (mpsc::channel(), mpsc::channel());
            let work = move || {
                begin.send(()).unwrap();
                let _ = ended.recv();
            };
            let job = threads.run(work).unwrap();
            begun.recv().unwrap();
            (job, end)
        };
        (0..USUAL_THREADS).map(start).unzip()
    }

    #[test]
    fn jobs_run_on_few_threads_which_are_kept() {
        let threads = new_threads(LONGEST_WAIT);
        let (running, ends) = running_jobs(threads);
        let (sender, done) = mpsc::channel();
        let queue = || {
            let sender = sender.clone();
            threads.run(move || sender.send(thread::current().id()).unwrap()).unwrap()
        };
        let queued: Vec<_> = (0..20).map(|_| queue()).collect();
        drop(ends);
        let ids: HashSet<_> = done.iter().take(queued.len()).collect();
        assert!(ids.len() <= USUAL_THREADS, "{ids:?}");
        drop((running, queued));
        while lock(&threads.queue).idle < USUAL_THREADS {
            thread::sleep(LOOK);
        }
        let later = queue();
        done.recv().unwrap();
        later.forget();
        assert_eq!(lock(&threads.queue).threads, USUAL_THREADS);
    }

    /// Jobs that hang or panic hold up no other.
    #[test]
    fn jobs_run_beside_those_that_hang_and_after_one_that_panics() {
        let threads = new_threads(LONGEST_WAIT);
        let (hanging, ends) = running_jobs(threads);
        let panicking = threads.run(|| panic!("as a test does")).unwrap();
        let (sender, done) = mpsc::channel();
        let job = threads.run(move || sender.send(()).unwrap()).unwrap();
        threads.add_thread_if_queued();
        done.recv().unwrap();
        drop((job, ends, panicking, hanging));
    }

    #[test]
    fn a_queued_job_is_cancelled_and_a_running_one_is_waited_for() {
        let threads = new_threads(LONGEST_WAIT);
        let (running, ends) = running_jobs(threads);
        let (sender, ran) = mpsc::channel();
        drop(threads.run(move || sender.send(()).unwrap()).unwrap());
        let phases: Vec<_> = running.iter().map(|job| Arc::clone(&job.phase)).collect();
        let ends = thread::spawn(move || {
            for end in ends {
                thread::sleep(LOOK);
                end.send(()).unwrap();
            }
        });
        drop(running);
        assert!(phases.iter().all(|it| *lock(it) == JobPhase::Finished));
        ends.join().unwrap();
        assert!(ran.recv().is_err(), "it was cancelled");
    }

    /// One that does not come back is not waited for.
    #[test]
    fn a_job_that_hangs_is_left() {
        let threads = new_threads(LONGEST_JOB);
        let (hanging, ends) = running_jobs(threads);
        drop(hanging);
        drop(ends);
    }
}
