//! What was shown of a generation while it was made, and how it compares with what was settled.
//!
//! Text goes to standard output as it comes. What providers say is not to be trusted before the verdict: when
//! it turns out to be another text, that is said, and the text starts over.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;
use surety_models::tokens::TextStream;

use crate::text::{Generated, ToText};

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
        /// What it adds to the text; empty while a character is not complete, and where there is no
        /// tokenizer.
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
    /// What ids become text by, where the model's tokenizer is at hand.
    text: Option<Arc<dyn ToText>>,
    tokens: Vec<u32>,
    /// What of them became text.
    stream: TextStream,
    /// All that was shown since the text last started over.
    shown: String,
    first_seconds: Option<f64>,
    restarts: u32,
    /// Why providers cannot compute the task, in their words.
    reasons: BTreeMap<String, String>,
    /// Nothing more is shown: a reader that is being stopped may have one more page.
    settled: bool,
}

impl Transcript {
    /// With `show`, tokens are printed as they come.
    pub fn new(out: impl Screen + 'static, show: bool, text: Option<Arc<dyn ToText>>) -> Self {
        Self {
            out: Box::new(out),
            show,
            text,
            tokens: Vec::new(),
            stream: TextStream::default(),
            shown: String::new(),
            first_seconds: None,
            restarts: 0,
            reasons: BTreeMap::new(),
            settled: false,
        }
    }

    /// What was streamed so far.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The next token, `seconds` after the task was posted.
    pub fn push(&mut self, token: u32, seconds: Option<f64>) {
        if self.settled {
            return;
        }
        self.first_seconds = self.first_seconds.or(seconds);
        self.show_token(self.tokens.len(), token);
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
        for (index, token) in self.tokens.clone().into_iter().enumerate() {
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
    pub fn settle(&mut self, generated: &Generated) -> Streamed {
        self.settled = true;
        let settled = generated.tokens.get(..self.tokens.len());
        let as_settled = settled == Some(&self.tokens[..]);
        if !as_settled {
            self.start_over("what was streamed is not what was settled");
        }
        let whole = generated.shown();
        let missing = whole.strip_prefix(&self.shown).unwrap_or(&whole);
        if !self.out.is_json() {
            self.out.piece(missing);
            self.out.piece("\n");
        }
        Streamed {
            tokens: self.tokens.len(),
            seconds_post_to_first_token: self.first_seconds,
            restarts: self.restarts,
            as_settled,
        }
    }

    fn start_over(&mut self, reason: &str) {
        (self.stream, self.shown) = (TextStream::default(), String::new());
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

    fn show_token(&mut self, index: usize, token: u32) {
        if !self.show {
            return;
        }
        let text = match &self.text {
            Some(text) => self.stream.push(token, |ids| text.text(ids)).unwrap_or_default(),
            None if index == 0 => token.to_string(),
            None => format!(" {token}"),
        };
        if self.out.is_json() {
            let text = if self.text.is_some() { &text } else { "" };
            self.out.line(&Line::Token {
                index,
                id: token,
                text,
            });
        } else {
            self.out.piece(&text);
        }
        self.shown.push_str(&text);
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
    use surety_models::tokens::TextFault;

    use super::*;
    use crate::testsuite::Paper;

    /// Token 1 is "one", all others a word of their own after a space.
    struct Words;

    impl ToText for Words {
        fn text(&self, ids: &[u32]) -> Result<String, TextFault> {
            let word = |id: &u32| match id {
                1 => "one".into(),
                2 => " two".into(),
                id => format!(" {id}"),
            };
            Ok(ids.iter().map(word).collect())
        }
    }

    fn generated(text: bool) -> Generated {
        Generated {
            text: text.then(|| "one two".into()),
            tokens: vec![1, 2],
            prompt_tokens: 3,
            finish_reason: FinishReason::Length,
        }
    }

    fn shown(show: bool, tokens: &[u32]) -> (String, Streamed) {
        let paper = Paper::default();
        let mut transcript = Transcript::new(paper.clone(), show, Some(Arc::new(Words)));
        for token in tokens {
            transcript.push(*token, Some(0.5));
        }
        let streamed = transcript.settle(&generated(true));
        (paper.text(), streamed)
    }

    #[test]
    fn the_settled_text_is_shown_whatever_was_streamed() {
        for (show, tokens) in [
            (true, vec![1, 2]),
            (true, vec![1]),
            (true, vec![]),
            (false, vec![1, 2]),
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
        let wrong = [vec![1, 9], vec![4], vec![1, 2, 3]];
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
        let mut transcript = Transcript::new(paper.clone(), true, Some(Arc::new(Words)));
        transcript.push(1, None);
        transcript.push(5, None);
        transcript.restart(1, "another text");
        transcript.settle(&generated(true));
        let text = paper.text();
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with('{')).collect();
        assert_eq!(
            lines,
            [
                r#"{"event":"token","index":0,"id":1,"text":"one"}"#,
                r#"{"event":"token","index":1,"id":5,"text":" 5"}"#,
                r#"{"event":"restart","reason":"another text"}"#,
                r#"{"event":"token","index":0,"id":1,"text":"one"}"#,
            ]
        );
    }

    #[test]
    fn without_a_tokenizer_ids_are_shown() {
        let paper = Paper::default();
        let mut transcript = Transcript::new(paper.clone(), true, None);
        transcript.push(1, None);
        let streamed = transcript.settle(&generated(false));
        assert_eq!((paper.text().as_str(), streamed.as_settled), ("1 2\n", true));
    }

    #[test]
    fn a_reason_is_said_once_and_cannot_steer_a_terminal() {
        let paper = Paper::default();
        let mut transcript = Transcript::new(paper.clone(), false, None);
        for _ in 0..2 {
            transcript.cannot("5Abc", "too\x1b[2J long");
        }
        assert_eq!(paper.text(), "[5Abc cannot compute it: too [2J long]\n");
        assert_eq!(transcript.reasons().unwrap(), "5Abc: too [2J long");
    }
}
