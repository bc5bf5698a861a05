//! Fakes for tests.

use std::sync::{Arc, Mutex, PoisonError};

use crate::transcript::{Line, Screen};

/// Keeps what is shown: text as it is, lines and steps each in a line of its own.
#[derive(Clone, Default)]
pub struct Paper {
    shown: Arc<Mutex<String>>,
    json: bool,
}

impl Paper {
    /// One that programs read.
    pub fn of_json() -> Self {
        Self {
            json: true,
            ..Self::default()
        }
    }

    fn write(&self, text: &str) {
        self.shown
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_str(text);
    }

    /// What was shown so far.
    pub fn text(&self) -> String {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Screen for Paper {
    fn piece(&self, text: &str) {
        self.write(text);
    }

    fn line(&self, line: &Line<'_>) {
        self.write(&format!("{}\n", serde_json::to_string(line).unwrap_or_default()));
    }

    fn step(&self, text: &str) {
        self.write(&format!("[{text}]\n"));
    }

    fn is_json(&self) -> bool {
        self.json
    }
}
