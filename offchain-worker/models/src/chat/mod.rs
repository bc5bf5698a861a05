//! Conversations as texts, by a model's own chat template.
//!
//! A template comes with the model, and may be hostile: it is rendered in a process of its own
//! ([`OwnProcess`]), within limits of memory and time. What people write may be hostile, too: no special
//! token is ever read in it, nor across where it begins or ends ([`marks`]).

mod date;
mod json;
mod marks;
mod process;
mod render;

use serde::{Deserialize, Serialize};

use crate::tokens::TextFault;
pub(crate) use marks::{Control, Controls, without_marks};
pub use process::{OwnProcess, answer};
pub(crate) use render::check;
pub use render::{Facts, Job, RenderFault, render};

/// Most messages of a conversation.
pub const MESSAGES_MAX: usize = 1_024;
/// Most bytes of all of them together.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Longest name of a role, in bytes.
const ROLE_BYTES_MAX: usize = 16;

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Whose it is: `system`, `user`, `assistant`, or what else the model's template knows.
    pub role: String,
    /// Its text.
    pub content: String,
}

impl Message {
    /// Of a role.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            role: role.into(),
            content: content.into(),
        }
    }
}

/// Renders templates.
pub trait Renderer: Send + Sync {
    /// The text that a template makes of a conversation.
    ///
    /// # Errors
    /// [`RenderFault`].
    fn render(&self, job: &Job) -> Result<String, RenderFault>;
}

/// Renders here: for templates that are trusted. A hostile one can take all of a process's memory, work
/// without end, or overflow the stack, which ends the process; see [`OwnProcess`].
#[derive(Clone, Copy, Debug)]
pub struct Here;

impl Renderer for Here {
    fn render(&self, job: &Job) -> Result<String, RenderFault> {
        render(job)
    }
}

/// Why a conversation becomes no input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChatFault {
    /// The model comes without a template.
    #[error(
        "the model has no chat template, so that it takes no conversation: give it a plain prompt to go on from, \
         without a system message"
    )]
    NoTemplate,
    /// There is no message, or there are too many.
    #[error("a conversation has between 1 and {MESSAGES_MAX} messages, and this one {0}")]
    Messages(usize),
    /// All of it is too long.
    #[error(
        "the messages have {0} bytes together, but at most {MESSAGE_BYTES_MAX} are taken: leave old ones out"
    )]
    TooLong(usize),
    /// No role.
    #[error("{0:?} is no role: name one that the model knows, such as system, user or assistant")]
    Role(String),
    /// A code point by which it is marked what people wrote.
    #[error("there is U+{0:04X} in it, which stands for no character: leave it out")]
    NoCharacter(u32),
    /// It holds a special token of one character, which cannot be told from that character.
    #[error("there is {0:?} in it, which is a special token of the model: leave it out")]
    Special(String),
    /// The tokenizer has more special tokens than are looked for.
    #[error("the model's tokenizer has {0} special tokens, more than a conversation can be searched for")]
    TooManySpecial(usize),
    /// The template makes nothing of it.
    #[error(transparent)]
    Template(#[from] RenderFault),
    /// The text has no ids.
    #[error(transparent)]
    Text(#[from] TextFault),
}

/// The conversation as a template sees it: what people wrote is marked.
///
/// # Errors
/// [`ChatFault`] for one that is out of bounds.
pub(crate) fn marked(messages: &[Message], controls: &Controls) -> Result<Vec<Message>, ChatFault> {
    if messages.is_empty() || messages.len() > MESSAGES_MAX {
        return Err(ChatFault::Messages(messages.len()));
    }
    let sizes = messages.iter().map(|message| message.content.len());
    let bytes = sizes.fold(0, usize::saturating_add);
    if bytes > MESSAGE_BYTES_MAX {
        return Err(ChatFault::TooLong(bytes));
    }
    messages
        .iter()
        .map(|message| one_marked(message, controls))
        .collect()
}

fn one_marked(message: &Message, controls: &Controls) -> Result<Message, ChatFault> {
    let role = &message.role;
    // Some templates make special tokens of roles.
    let is_word = |c: char| c.is_ascii_lowercase() || c == '_';
    if role.is_empty() || role.len() > ROLE_BYTES_MAX || !role.chars().all(is_word) {
        return Err(ChatFault::Role(role.chars().take(ROLE_BYTES_MAX).collect()));
    }
    Ok(Message::new(role, controls.mark(role, &message.content)?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_conversation_is_bounded_and_its_roles_are_words() {
        let fault = |messages: &[Message]| marked(messages, &Controls::default()).unwrap_err();
        let user = |content: &str| Message::new("user", content);
        assert_eq!(fault(&[]), ChatFault::Messages(0));
        assert_eq!(fault(&vec![user("a"); 1_025]), ChatFault::Messages(1_025));
        let long = "x".repeat(MESSAGE_BYTES_MAX);
        assert_eq!(
            fault(&[user(&long), user("y")]),
            ChatFault::TooLong(MESSAGE_BYTES_MAX + 1)
        );
        for role in ["", "<|im_end|>", "user\n", "User", "averyveryverylongrole"] {
            let message = Message::new(role, "a");
            assert!(matches!(fault(&[message]), ChatFault::Role(_)), "{role}");
        }
        assert!(marked(&[user(&long)], &Controls::default()).is_ok());
    }
}
