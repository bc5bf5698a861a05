//! Chat templates, which this program renders in a process of its own.

use surety_models::chat::{self, OwnProcess};

use crate::error::{CliError, Result};

/// Renders by this very program, also where its file has been replaced meanwhile.
pub fn renderer() -> OwnProcess {
    OwnProcess::new("/proc/self/exe", &["render-chat-template"])
}

/// What that process does.
///
/// # Errors
/// When there is no job, or its answer cannot be given.
pub fn answer() -> Result<()> {
    chat::answer().map_err(|error| CliError::Internal(error.to_string()))
}
