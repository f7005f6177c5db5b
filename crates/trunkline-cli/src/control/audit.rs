//! The audit log of this user.

use std::sync::OnceLock;

use trunkline::config::AuditSettings;
use trunkline_control::{Activity, AuditLog, Payloads};

use crate::environment::ProcessEnv;
use crate::output::terminal::Terminal;

/// Records the calls of a project as its configuration says.
pub(crate) fn apply(
    activity: &Activity,
    project: &str,
    settings: AuditSettings,
    (environment, terminal): (&ProcessEnv, &Terminal),
) {
    static LOG: OnceLock<Option<AuditLog>> = OnceLock::new();
    if !settings.log {
        activity.set_audit(project, None);
        return;
    }
    let log = LOG.get_or_init(|| {
        let directory = environment.state_directory()?;
        AuditLog::start(directory.join("audit.jsonl"), Payloads::Digests).ok()
    });
    if log.is_none() {
        terminal.warn(
            "calls are not recorded: there is no folder for the audit log; set XDG_STATE_HOME",
        );
    }
    let payloads = if settings.payloads { Payloads::Full } else { Payloads::Digests };
    activity.set_audit(project, log.as_ref().map(|log| log.with_payloads(payloads)));
}
