//! Windows: a process and its descendants in a job object that ends with its handle.

use tokio::process::Child;
use win32job::{ExtendedLimitInfo, Job};

/// A job object. Dropping it ends every process in it; so does the end of this process, for any
/// reason.
pub(in crate::transport) struct ServerJob {
    _job: Job,
}

impl ServerJob {
    /// Puts a process that was just started into a job. Its future descendants belong to it as
    /// well.
    pub(in crate::transport) fn around(child: &Child) -> Option<Self> {
        let mut limits = ExtendedLimitInfo::new();
        limits.limit_kill_on_job_close();
        let job = Job::create_with_limit_info(&limits).ok()?;
        job.assign_process(child.raw_handle()? as isize).ok()?;
        Some(Self { _job: job })
    }
}
