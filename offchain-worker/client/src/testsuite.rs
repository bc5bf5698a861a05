//! Fakes for tests.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use surety_models::{
    ModelError,
    tokens::{TextCodec, TextFiles, text_form},
};
use surety_types::model::{ModelFamily, TextForm};

use crate::transcript::{Line, Screen};

/// A tokenizer and chat template of the kind that a published model has; `has_template`: whether it has the
/// second.
///
/// # Errors
/// When the files of that name are not in this repository.
pub fn chat_codec(name: &str, has_template: bool) -> Result<TextCodec, ModelError> {
    let models = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../models/tests/golden/chat"
    ));
    let read = |file: &str| {
        fs::read(models.join(name).join(file)).map_err(|error| ModelError::Unreadable(error.to_string()))
    };
    let mut files = TextFiles {
        family: ModelFamily::Llama,
        form: TextForm::default(),
        tokenizer: read("tokenizer.json")?,
        config: read("config.json")?,
        template: has_template.then(|| read("chat_template.jinja")).transpose()?,
    };
    files.form = text_form(&files)?;
    TextCodec::new(&files)
}

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
