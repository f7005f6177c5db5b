//! Signals that end a command.

use anyhow::Result;

/// Signals that end the program. Once created, they have no other effect.
pub(crate) struct Signals {
    #[cfg(unix)]
    kinds: [tokio::signal::unix::Signal; 3],
}

impl Signals {
    pub(crate) fn listen() -> Result<Self> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let interrupt = signal(SignalKind::interrupt())?;
            let terminate = signal(SignalKind::terminate())?;
            let hang_up = signal(SignalKind::hangup())?;
            Ok(Self { kinds: [interrupt, terminate, hang_up] })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        {
            let [interrupt, terminate, hang_up] = &mut self.kinds;
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hang_up.recv() => {}
            }
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
    }
}
