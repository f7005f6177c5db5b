//! Threads that create processes: a program on a disk that does not respond holds up no other server, and those of the
//! runtime may be busy.

use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

/// Threads while jobs take as long as they usually do, about a millisecond. More would only take the processors from
/// each other.
const USUAL_THREADS: usize = 4;

/// Threads while some do not come back, because their disks do not respond. They cannot be ended.
const MAX_THREADS: usize = 64;

/// How long a job is queued before another thread is started for it.
pub(super) const QUEUE_PATIENCE: Duration = Duration::from_millis(250);

/// How long a dropped job may go on before the program ends, and the interval of looking.
const LAST_JOB_END: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(2);

/// Runs jobs on threads that end when there are none left.
#[derive(Default)]
pub(super) struct StartThreads(Mutex<StartQueue>);

#[derive(Default)]
struct StartQueue {
    jobs: VecDeque<StartJob>,
    threads: usize,
}

struct StartJob {
    work: Box<dyn FnOnce() + Send>,
    phase: Arc<Mutex<JobPhase>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum JobPhase {
    Queued,
    Running,
    Finished,
    Cancelled,
}

/// A job that was queued. Dropping it cancels the job, or waits a moment for one that runs: its runtime ends, and
/// perhaps the program, and a process that is just being created would outlive it.
#[must_use = "dropping it cancels the job"]
pub(super) struct StartJobGuard(Arc<Mutex<JobPhase>>);

impl StartThreads {
    /// Queues a job, and starts a thread for it if there are few.
    pub(super) fn run(
        self: &Arc<Self>,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<StartJobGuard> {
        let phase = Arc::new(Mutex::new(JobPhase::Queued));
        let guard = StartJobGuard(Arc::clone(&phase));
        let mut queue = lock(&self.0);
        queue.jobs.push_back(StartJob { work: Box::new(work), phase });
        if queue.threads < USUAL_THREADS
            && let Err(error) = self.add_thread(&mut queue)
            && queue.threads == 0
        {
            queue.jobs.pop_back();
            return Err(error);
        }
        Ok(guard)
    }

    /// Starts another thread if jobs are queued: those that run may hang.
    pub(super) fn add_thread_if_queued(self: &Arc<Self>) {
        let mut queue = lock(&self.0);
        if !queue.jobs.is_empty() && queue.threads < MAX_THREADS {
            // If that fails, the job goes on waiting.
            let _ = self.add_thread(&mut queue);
        }
    }

    fn add_thread(self: &Arc<Self>, queue: &mut StartQueue) -> io::Result<()> {
        let threads = Arc::clone(self);
        let thread = thread::Builder::new().name("trunkline-start".to_owned());
        thread.spawn(move || threads.run_jobs())?;
        queue.threads += 1;
        Ok(())
    }

    fn run_jobs(&self) {
        while let Some(job) = self.next_job() {
            if !begin(&job.phase) {
                continue;
            }
            // A job that panics is reported by its caller, and the others go on.
            let _ = panic::catch_unwind(AssertUnwindSafe(job.work));
            *lock(&job.phase) = JobPhase::Finished;
        }
    }

    /// The next job. Without one, the thread that asks ends.
    fn next_job(&self) -> Option<StartJob> {
        let mut queue = lock(&self.0);
        let job = queue.jobs.pop_front();
        if job.is_none() {
            queue.threads -= 1;
        }
        job
    }
}

/// Whether a job may run now.
fn begin(phase: &Mutex<JobPhase>) -> bool {
    let mut phase = lock(phase);
    let is_wanted = *phase == JobPhase::Queued;
    if is_wanted {
        *phase = JobPhase::Running;
    }
    is_wanted
}

impl StartJobGuard {
    /// Forgets a job that has done its work. Its thread may not have noted that yet, and need not be waited for.
    pub(super) fn forget(self) {
        *lock(&self.0) = JobPhase::Finished;
    }
}

impl Drop for StartJobGuard {
    fn drop(&mut self) {
        let mut phase = lock(&self.0);
        if *phase == JobPhase::Queued {
            *phase = JobPhase::Cancelled;
        }
        drop(phase);
        let begun = Instant::now();
        while *lock(&self.0) == JobPhase::Running && begun.elapsed() < LAST_JOB_END {
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

    /// Jobs that run until something is sent to each of them, and what sends it. They have begun.
    fn running_jobs(threads: &Arc<StartThreads>) -> (Vec<StartJobGuard>, Vec<Sender<()>>) {
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
    fn jobs_run_on_few_threads_which_end() {
        let threads = Arc::new(StartThreads::default());
        let (running, ends) = running_jobs(&threads);
        let (sender, done) = mpsc::channel();
        let queued: Vec<_> = (0..20)
            .map(|_| {
                let sender = sender.clone();
                threads.run(move || sender.send(thread::current().id()).unwrap()).unwrap()
            })
            .collect();
        drop((sender, ends));
        let ids: HashSet<_> = done.into_iter().collect();
        assert!(ids.len() <= USUAL_THREADS, "{ids:?}");
        drop((running, queued));
        while threads.0.lock().unwrap().threads > 0 {
            thread::sleep(LOOK);
        }
    }

    /// Jobs that hang or panic hold up no other.
    #[test]
    fn jobs_run_beside_those_that_hang_and_after_one_that_panics() {
        let threads = Arc::new(StartThreads::default());
        let (hanging, ends) = running_jobs(&threads);
        let panicking = threads.run(|| panic!("as a test does")).unwrap();
        let (sender, done) = mpsc::channel();
        let job = threads.run(move || sender.send(()).unwrap()).unwrap();
        threads.add_thread_if_queued();
        done.recv().unwrap();
        drop((job, panicking, ends, hanging));
    }

    #[test]
    fn a_queued_job_is_cancelled_and_a_running_one_is_waited_for() {
        let threads = Arc::new(StartThreads::default());
        let (running, ends) = running_jobs(&threads);
        let (sender, ran) = mpsc::channel();
        drop(threads.run(move || sender.send(()).unwrap()).unwrap());
        let phases: Vec<_> = running.iter().map(|job| Arc::clone(&job.0)).collect();
        let ends = thread::spawn(move || {
            for end in ends {
                thread::sleep(LOOK);
                end.send(()).unwrap();
            }
        });
        drop(running);
        assert!(phases.iter().all(|it| *it.lock().unwrap() == JobPhase::Finished));
        ends.join().unwrap();
        assert!(ran.recv().is_err(), "it was cancelled");
    }
}
