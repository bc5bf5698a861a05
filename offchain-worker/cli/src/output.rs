//! What is printed where.
//!
//! Results go to standard output: tables and text for people, or with `--json` one JSON object. Everything
//! that is said on the way (steps, progress, logs) goes to standard error, in both cases.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use comfy_table::{ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use surety_client::transcript::{Line, Screen};

use crate::error::{CliError, Result};

/// Where results and steps go.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    json: bool,
}

impl Output {
    /// With `json`, results are JSON.
    pub fn new(json: bool) -> Self {
        Self { json }
    }

    /// Prints a result: `value` with `--json`, else what `text` makes.
    ///
    /// # Errors
    /// When standard output cannot be written to; a closed pipe is no error.
    pub fn result<T: Serialize>(&self, value: &T, text: impl FnOnce() -> String) -> Result<()> {
        let text = if self.json {
            serde_json::to_string_pretty(value).map_err(|e| CliError::Internal(e.to_string()))?
        } else {
            // Tables pad their last column.
            text().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
        };
        print_all(format!("{}\n", text.trim_end()).as_bytes())
    }

    /// Whether results are JSON.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Prints a part of a text at once, as it is. What could steer a terminal is left out when there is one:
    /// the text is another's.
    pub fn piece(&self, text: &str) {
        let mut out = io::stdout().lock();
        let done = if io::stdout().is_terminal() {
            out.write_all(harmless(text).as_bytes())
        } else {
            out.write_all(text.as_bytes())
        };
        // Nobody reads any more: the task goes on, and its report says how it ended.
        done.and_then(|()| out.flush()).ok();
    }

    /// Prints one event as a line of JSON.
    pub fn line<T: Serialize>(&self, event: &T) {
        // Values of this program's own types: they serialise.
        let text = serde_json::to_string(event).unwrap_or_default();
        let mut out = io::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush()).ok();
    }

    /// Says what is going on.
    pub fn step(&self, text: &str) {
        eprintln!("{text}");
    }

    /// A bar for bytes, or anything else that is counted. Hidden when nobody watches.
    pub fn bar(&self, total: u64, message: &str, template: &str) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(Some(total), self.target());
        // A template that does not parse is a defect that the default style hides well enough.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(message.to_owned());
        bar
    }

    /// A line that shows that something is waited for. Hidden when nobody watches.
    pub fn spinner(&self) -> ProgressBar {
        let spinner = ProgressBar::with_draw_target(None, self.target());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            spinner.set_style(style);
        }
        spinner.enable_steady_tick(Duration::from_millis(150));
        spinner
    }

    fn target(&self) -> ProgressDrawTarget {
        if io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        }
    }
}

/// Prints all of it. Whoever reads no further has what it wanted.
///
/// # Errors
/// When standard output cannot be written to; a closed pipe is no error.
pub fn print_all(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(CliError::file("standard output")(e)),
        _ => Ok(()),
    }
}

/// Text without control characters, but for those that shape it.
fn harmless(text: &str) -> String {
    let keep = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars().filter(keep).collect()
}

/// Prints an error for people.
pub fn print_error(error: &CliError) {
    eprintln!("error: {error}");
}

/// A table with a header.
pub fn table<'a>(header: impl IntoIterator<Item = &'a str>) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        // Wraps long findings when there is a terminal, and never in a file or pipe.
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header);
    table
}

impl Screen for Output {
    fn piece(&self, text: &str) {
        Self::piece(self, text);
    }

    fn line(&self, line: &Line<'_>) {
        Self::line(self, line);
    }

    fn step(&self, text: &str) {
        Self::step(self, text);
    }

    fn is_json(&self) -> bool {
        Self::is_json(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_steer_a_terminal() {
        assert_eq!(harmless("a\n\tb\x1b[2Jc\u{9b}d\rä"), "a\n\tb[2Jcdä");
    }
}
