//! Text at the client: what is posted and what comes back are ids, and nobody else looks at text.

use std::time::SystemTime;

use serde::Serialize;
use surety_engine::generation::{FinishReason, Generation};
use surety_models::{
    chat::{ChatFault, Message, Renderer},
    tokens::{ITEMS_MAX, LinesFault, TextCodec, TextFault, lines},
};
use surety_types::{
    input::{IdBounds, InputFault, Settings, Work, encode_items, encode_prompt},
    model::Operation,
};

/// Gives ids their text back.
pub trait ToText: Send + Sync {
    /// The text of some ids, without the special ones and what ends a generation.
    ///
    /// # Errors
    /// What the tokenizer says.
    fn text(&self, ids: &[u32]) -> Result<String, TextFault>;
}

impl ToText for TextCodec {
    fn text(&self, ids: &[u32]) -> Result<String, TextFault> {
        self.decode(ids)
    }
}

/// What is to be computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The input blob.
    pub blob: Vec<u8>,
    /// What of a task it is one for. With `Generate` more units may be paid for.
    pub work: Work,
}

/// Why a text becomes no input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextInputError {
    /// It is no text of items.
    #[error(transparent)]
    Lines(#[from] LinesFault),
    /// It has no ids.
    #[error(transparent)]
    Text(#[from] TextFault),
    /// It is a conversation that the model's chat template makes nothing of.
    #[error(transparent)]
    Chat(#[from] ChatFault),
    /// Its ids are none that a task is posted with.
    #[error(transparent)]
    Input(#[from] InputFault),
}

impl Input {
    /// Of a text with an item a line.
    ///
    /// # Errors
    /// [`TextInputError`].
    pub fn items(codec: &TextCodec, text: &[u8]) -> Result<Self, TextInputError> {
        let items: Result<Vec<_>, _> = lines(text, ITEMS_MAX)?
            .into_iter()
            .map(|line| codec.encode(line))
            .collect();
        Self::item_ids(&items?, &codec.bounds())
    }

    /// Of items that are ids already, for a model of these bounds.
    ///
    /// # Errors
    /// [`TextInputError::Input`].
    pub fn item_ids(items: &[Vec<u32>], bounds: &IdBounds) -> Result<Self, TextInputError> {
        let blob = encode_items(items, bounds)?;
        let units = u32::try_from(items.len()).map_err(|_| InputFault::TooLarge)?;
        Self::of(Operation::Embed, blob, units)
    }

    /// Of a prompt.
    ///
    /// # Errors
    /// [`TextInputError`].
    pub fn prompt(codec: &TextCodec, prompt: &str, settings: &Settings) -> Result<Self, TextInputError> {
        Self::prompt_ids(&codec.encode(prompt)?, settings, &codec.bounds())
    }

    /// Of a conversation, which the model is to answer, by its chat template. Templates that name the day are
    /// told that of now. Blocks, for seconds where a template is hostile.
    ///
    /// # Errors
    /// [`TextInputError`].
    pub fn chat(
        codec: &TextCodec,
        messages: &[Message],
        settings: &Settings,
        renderer: &dyn Renderer,
    ) -> Result<Self, TextInputError> {
        let chat = codec.encode_chat(messages, unix_seconds(), renderer)?;
        Self::prompt_ids(&chat.ids, settings, &codec.bounds())
    }

    /// Of a prompt that is ids already, for a model of these bounds.
    ///
    /// # Errors
    /// [`TextInputError::Input`].
    pub fn prompt_ids(
        prompt: &[u32],
        settings: &Settings,
        bounds: &IdBounds,
    ) -> Result<Self, TextInputError> {
        let blob = encode_prompt(prompt, settings, bounds)?;
        let prompt = u32::try_from(prompt.len()).map_err(|_| InputFault::TooLarge)?;
        Self::of(
            Operation::Generate,
            blob,
            prompt.saturating_add(settings.max_tokens),
        )
    }

    fn of(operation: Operation, blob: Vec<u8>, units_max: u32) -> Result<Self, TextInputError> {
        let input_bytes = u32::try_from(blob.len()).map_err(|_| InputFault::TooLarge)?;
        let work = Work {
            operation,
            input_bytes,
            units_max,
        };
        Ok(Self { blob, work })
    }
}

fn unix_seconds() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// A generation, for people and for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Generated {
    /// The continuation's text; nothing where the model's tokenizer is not at hand.
    pub text: Option<String>,
    /// Its ids, the one that ended it included.
    pub tokens: Vec<u32>,
    /// How many tokens the prompt has.
    pub prompt_tokens: u32,
    /// Whether the model was done, or as many tokens were made as were asked for.
    pub finish_reason: FinishReason,
}

impl Generated {
    /// A generation from a prompt of so many tokens.
    pub fn new(made: Generation, prompt_tokens: u32, text: Option<&dyn ToText>) -> Self {
        Self {
            text: text.and_then(|text| text.text(&made.tokens).ok()),
            tokens: made.tokens,
            prompt_tokens,
            finish_reason: made.finish_reason,
        }
    }

    /// Its text, or its ids.
    pub fn shown(&self) -> String {
        self.text.clone().unwrap_or_else(|| {
            let ids: Vec<String> = self.tokens.iter().map(u32::to_string).collect();
            ids.join(" ")
        })
    }
}
