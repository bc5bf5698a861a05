//! From what is asked to a task's input.

use surety_types::input::{Settings, encode_items, encode_prompt};

use crate::{
    error::ApiError,
    request::{Item, Prompt},
    text::ModelText,
};

/// Tokens of an answer where none are asked for: each is reserved.
const TOKENS_DEFAULT: u32 = 1024;

/// A prompt in ids, and how it is continued.
pub(crate) struct Encoded {
    pub ids: Vec<u32>,
    pub settings: Settings,
    /// The input blob of both.
    pub input: Vec<u8>,
}

impl Encoded {
    pub fn prompt_tokens(&self) -> u32 {
        u32::try_from(self.ids.len()).unwrap_or(u32::MAX)
    }

    /// Tokens at most, those of the prompt included.
    pub fn units_max(&self) -> u32 {
        self.prompt_tokens().saturating_add(self.settings.max_tokens)
    }
}

/// Blocks, for seconds where a template is hostile.
pub(crate) fn encoded(
    prompt: Prompt,
    mut settings: Settings,
    text: &dyn ModelText,
) -> Result<Encoded, ApiError> {
    let (param, ids) = match prompt {
        Prompt::Ids(ids) => ("prompt", Ok(ids)),
        Prompt::Text(plain) => ("prompt", text.encode(&plain)),
        Prompt::Chat(messages) => ("messages", text.chat(&messages)),
    };
    let ids = ids.map_err(|why| ApiError::invalid(param, why))?;
    let bounds = text.bounds();
    if settings.max_tokens == 0 {
        let tokens = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        let room = bounds.positions.saturating_sub(tokens);
        settings.max_tokens = room.clamp(1, TOKENS_DEFAULT);
    }
    let input = encode_prompt(&ids, &settings, &bounds);
    let input = input.map_err(|fault| ApiError::invalid(param, fault.to_string()))?;
    Ok(Encoded { ids, settings, input })
}

/// Items to embed, in ids, and the input blob of all of them. Blocks.
pub(crate) fn encoded_items(
    items: Vec<Item>,
    text: &dyn ModelText,
) -> Result<(Vec<Vec<u32>>, Vec<u8>), ApiError> {
    let ids = |item: Item| match item {
        Item::Text(plain) => text.encode(&plain),
        Item::Ids(ids) => Ok(ids),
    };
    let items: Result<Vec<_>, _> = items.into_iter().map(ids).collect();
    let items = items.map_err(|why| ApiError::invalid("input", why))?;
    let input = encode_items(&items, &text.bounds());
    let input = input.map_err(|fault| ApiError::invalid("input", fault.to_string()))?;
    Ok((items, input))
}
