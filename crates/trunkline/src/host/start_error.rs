//! Why a host could not be started.

use std::{fmt, io};

use crate::config::{ColorStyle, Diagnostic};

/// A host could not be started, because its configuration cannot be used at all or could not be
/// read.
#[derive(Debug)]
pub struct StartError {
    diagnostics: Vec<Diagnostic>,
    /// The error if no thread could be started to read the configuration.
    thread: Option<io::Error>,
}

impl StartError {
    pub(super) fn of_config(diagnostics: Vec<Diagnostic>) -> Self {
        Self { diagnostics, thread: None }
    }

    pub(super) fn of_thread(error: io::Error) -> Self {
        Self { diagnostics: Vec::new(), thread: Some(error) }
    }

    /// All problems of the configuration.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(error) = &self.thread {
            return write!(
                formatter,
                "the configuration cannot be read: no thread can be started: {error}"
            );
        }
        formatter.write_str("the configuration cannot be used\n")?;
        for diagnostic in &self.diagnostics {
            formatter.write_str(&diagnostic.render(ColorStyle::Plain))?;
        }
        Ok(())
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.thread.as_ref().map(|error| error as _)
    }
}
