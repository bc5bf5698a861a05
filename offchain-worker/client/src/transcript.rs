//! What was shown of a generation while it was made, and how it compares with what was settled.
//!
//! Text goes to standard output as it comes. What providers say is not to be trusted before the verdict: when
//! it turns out to be another text, that is said, and the text starts over.

use std::collections::BTreeMap;

use serde::Serialize;
use surety_engine::generation::Generation;
use surety_network::StreamToken;

/// One line of `--follow --json`.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Line<'a> {
    /// A token, as one provider streams it.
    Token {
        /// Its place in the continuation, from 0.
        index: usize,
        /// Its number in the vocabulary.
        id: u32,
        /// Its text.
        text: &'a str,
    },
    /// What was streamed does not hold: tokens start again at index 0.
    Restart {
        /// Why.
        reason: &'a str,
    },
}

/// What came of streaming.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Streamed {
    /// Tokens that were here before the settled output was.
    pub tokens: usize,
    /// From posting to the first of them. Unknown when the task was posted from another home.
    pub seconds_post_to_first_token: Option<f64>,
    /// How often the text started over, because two providers streamed different ones.
    pub restarts: u32,
    /// Whether they are the tokens that were settled, or the first of them.
    pub as_settled: bool,
}

/// Where a transcript is shown.
pub trait Screen: Send {
    /// A part of the text.
    fn piece(&self, text: &str);
    /// An event, instead, for programs.
    fn line(&self, line: &Line<'_>);
    /// Something beside it.
    fn step(&self, text: &str);
    /// Whether programs read it.
    fn is_json(&self) -> bool;
}

/// Shows a generation.
pub struct Transcript {
    out: Box<dyn Screen>,
    show: bool,
    tokens: Vec<StreamToken>,
    first_seconds: Option<f64>,
    restarts: u32,
    /// Why providers cannot compute the task, in their words.
    reasons: BTreeMap<String, String>,
    /// Nothing more is shown: a reader that is being stopped may have one more page.
    settled: bool,
}

impl Transcript {
    /// With `show`, tokens are printed as they come.
    pub fn new(out: impl Screen + 'static, show: bool) -> Self {
        Self {
            out: Box::new(out),
            show,
            tokens: Vec::new(),
            first_seconds: None,
            restarts: 0,
            reasons: BTreeMap::new(),
            settled: false,
        }
    }

    /// What was streamed so far.
    pub fn tokens(&self) -> &[StreamToken] {
        &self.tokens
    }

    /// The next token, `seconds` after the task was posted.
    pub fn push(&mut self, token: StreamToken, seconds: Option<f64>) {
        if self.settled {
            return;
        }
        self.first_seconds = self.first_seconds.or(seconds);
        self.show_token(self.tokens.len(), &token);
        self.tokens.push(token);
    }

    /// Keeps only the first `keep` tokens, which the next provider streams as well, and shows them again.
    pub fn restart(&mut self, keep: usize, reason: &str) {
        if self.settled {
            return;
        }
        self.restarts = self.restarts.saturating_add(1);
        self.tokens.truncate(keep);
        self.start_over(reason);
        for (index, token) in self.tokens.iter().enumerate() {
            self.show_token(index, token);
        }
    }

    /// Says something about streaming, where tokens are shown.
    pub fn notice(&self, text: &str) {
        if self.show {
            self.out.step(text);
        }
    }

    /// A provider cannot compute the task.
    pub fn cannot(&mut self, provider: &str, reason: &str) {
        let reason = printable(reason);
        if self.reasons.insert(provider.into(), reason.clone()).is_none() {
            self.out.step(&format!("{provider} cannot compute it: {reason}"));
        }
    }

    /// What providers have said about why they cannot; nothing when none did.
    pub fn reasons(&self) -> Option<String> {
        let texts = self
            .reasons
            .iter()
            .map(|(provider, reason)| format!("{provider}: {reason}"));
        let texts: Vec<String> = texts.collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    /// The settled output is here: shows what is missing of it, or all of it when it is another one.
    pub fn settle(&mut self, generation: &Generation) -> Streamed {
        self.settled = true;
        let settled = generation.tokens.get(..self.tokens.len()).unwrap_or_default();
        let same_tokens = self.tokens.iter().map(|token| &token.id).eq(settled);
        let text: String = self.tokens.iter().map(|token| token.text.as_str()).collect();
        // A provider may stream the right tokens with a wrong text.
        let rest = generation
            .text
            .strip_prefix(text.as_str())
            .filter(|_| same_tokens);
        if rest.is_none() {
            self.start_over("what was streamed is not what was settled");
        }
        let missing = rest.filter(|_| self.show).unwrap_or(&generation.text);
        if !self.out.is_json() {
            self.out.piece(missing);
            self.out.piece("\n");
        }
        Streamed {
            tokens: self.tokens.len(),
            seconds_post_to_first_token: self.first_seconds,
            restarts: self.restarts,
            as_settled: rest.is_some(),
        }
    }

    fn start_over(&self, reason: &str) {
        if !self.show {
            return;
        }
        if self.out.is_json() {
            self.out.line(&Line::Restart { reason });
        } else {
            self.out.piece("\n");
        }
        self.out.step(&format!("{reason}: the text starts over"));
    }

    fn show_token(&self, index: usize, token: &StreamToken) {
        if !self.show {
            return;
        }
        if self.out.is_json() {
            self.out.line(&Line::Token {
                index,
                id: token.id,
                text: &token.text,
            });
        } else {
            self.out.piece(&token.text);
        }
    }
}

/// Another's words, without what could steer a terminal.
fn printable(text: &str) -> String {
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(printable).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use surety_engine::generation::FinishReason;

    use super::*;
    use crate::testsuite::Paper;

    fn token(id: u32, text: &str) -> StreamToken {
        StreamToken {
            id,
            text: text.into(),
        }
    }

    fn generation() -> Generation {
        Generation {
            text: "one two".into(),
            tokens: vec![1, 2],
            prompt_tokens: 3,
            finish_reason: FinishReason::Length,
        }
    }

    fn shown(show: bool, tokens: &[StreamToken]) -> (String, Streamed) {
        let paper = Paper::default();
        let mut transcript = Transcript::new(paper.clone(), show);
        for token in tokens {
            transcript.push(token.clone(), Some(0.5));
        }
        let streamed = transcript.settle(&generation());
        (paper.text(), streamed)
    }

    #[test]
    fn the_settled_text_is_shown_whatever_was_streamed() {
        let (one, two) = (token(1, "one"), token(2, " two"));
        for (show, tokens) in [
            (true, vec![one.clone(), two.clone()]),
            (true, vec![one.clone()]),
            (true, vec![]),
            (false, vec![one.clone(), two.clone()]),
        ] {
            let (text, streamed) = shown(show, &tokens);
            assert_eq!(text, "one two\n", "{show} {tokens:?}");
            assert!(streamed.as_settled);
            assert_eq!(streamed.tokens, tokens.len());
            assert_eq!(streamed.seconds_post_to_first_token.is_some(), !tokens.is_empty());
        }
    }

    #[test]
    fn another_text_is_said_to_be_another_and_starts_over() {
        let wrong = [
            vec![token(1, "one"), token(9, " nine")],
            vec![token(1, "lies")],
            vec![token(1, "one"), token(2, " two"), token(3, " three")],
        ];
        for tokens in wrong {
            let (text, streamed) = shown(true, &tokens);
            assert!(
                text.contains("[what was streamed is not what was settled"),
                "{text}"
            );
            assert!(text.ends_with("]\none two\n"), "{text}");
            assert!(!streamed.as_settled);
        }
    }

    #[test]
    fn programs_get_one_event_a_line() {
        let paper = Paper::of_json();
        let mut transcript = Transcript::new(paper.clone(), true);
        transcript.push(token(1, "\"a\n"), None);
        transcript.push(token(5, "b"), None);
        transcript.restart(1, "another text");
        transcript.settle(&generation());
        let text = paper.text();
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with('{')).collect();
        assert_eq!(
            lines,
            [
                r#"{"event":"token","index":0,"id":1,"text":"\"a\n"}"#,
                r#"{"event":"token","index":1,"id":5,"text":"b"}"#,
                r#"{"event":"restart","reason":"another text"}"#,
                r#"{"event":"token","index":0,"id":1,"text":"\"a\n"}"#,
                r#"{"event":"restart","reason":"what was streamed is not what was settled"}"#,
            ]
        );
    }

    #[test]
    fn a_reason_is_said_once_and_cannot_steer_a_terminal() {
        let paper = Paper::default();
        let mut transcript = Transcript::new(paper.clone(), false);
        for _ in 0..2 {
            transcript.cannot("5Abc", "too\x1b[2J long");
        }
        assert_eq!(paper.text(), "[5Abc cannot compute it: too [2J long]\n");
        assert_eq!(transcript.reasons().unwrap(), "5Abc: too [2J long");
    }
}
