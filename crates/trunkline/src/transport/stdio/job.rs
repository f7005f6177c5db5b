//! On Windows: a process and everything it started, in a job that ends when we let go of it.

use tokio::process::Child;
use win32job::{ExtendedLimitInfo, Job};

/// A job. Dropping it ends every process in it; so does our own end, however we end.
pub(in crate::transport) struct ServerJob {
    _job: Job,
}

impl ServerJob {
    /// A job around a process that was just started. What it starts from now on is in it too.
    pub(in crate::transport) fn around(child: &Child) -> Option<Self> {
        let mut limits = ExtendedLimitInfo::new();
        limits.limit_kill_on_job_close();
        let job = Job::create_with_limit_info(&limits).ok()?;
        job.assign_process(child.raw_handle()? as isize).ok()?;
        Some(Self { _job: job })
    }
}
