//! From what is asked to a task's input.

use surety_types::input::{Settings, encode_items, encode_prompt, tokens_shown};

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
    let tokens = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    let (room, shown) = (bounds.positions.saturating_sub(tokens), tokens_shown(tokens));
    if settings.max_tokens == 0 {
        settings.max_tokens = room.min(shown).clamp(1, TOKENS_DEFAULT);
    }
    let input = encode_prompt(&ids, &settings, &bounds);
    let input = input.map_err(|fault| ApiError::invalid(param, fault.to_string()))?;
    if settings.max_tokens.min(room) > shown {
        return Err(too_long(param, tokens, shown));
    }
    Ok(Encoded { ids, settings, input })
}

/// Nobody takes what could not be shown in a dispute.
fn too_long(param: &str, prompt: u32, shown: u32) -> ApiError {
    let less = match shown {
        0 => "shorten the prompt".into(),
        most => format!("ask for at most {most} tokens, or shorten the prompt"),
    };
    let message = format!(
        "a prompt of {prompt} tokens and so long an answer are more than the 32 KiB that can be shown in a \
         dispute: {less}"
    );
    ApiError::invalid(if shown == 0 { param } else { "max_tokens" }, message)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use surety_models::chat::Message;
    use surety_types::input::IdBounds;

    use super::*;

    /// A model of a long context.
    struct Long;

    impl ModelText for Long {
        fn encode(&self, _: &str) -> Result<Vec<u32>, String> {
            Ok(Vec::new())
        }

        fn chat(&self, _: &[Message]) -> Result<Vec<u32>, String> {
            Ok(Vec::new())
        }

        fn decode(&self, _: &[u32]) -> Result<String, String> {
            Ok(String::new())
        }

        fn bounds(&self) -> IdBounds {
            IdBounds {
                vocabulary: 256,
                positions: 32_768,
            }
        }
    }

    #[test]
    fn who_asks_for_more_than_a_dispute_can_show_is_told_what_to_ask_for() {
        let ask = |prompt: usize, max_tokens: u32| {
            let settings = Settings {
                max_tokens,
                temperature_milli: 0,
                top_k: 0,
                top_p_milli: 1_000,
                seed: 0,
            };
            encoded(Prompt::Ids(vec![7; prompt]), settings, &Long)
        };
        assert_eq!(ask(4_000, 4_095).unwrap().settings.max_tokens, 4_095);
        let error = ask(4_000, 4_096).err().unwrap();
        assert_eq!(error.param.as_deref(), Some("max_tokens"));
        assert!(
            error.message.contains("ask for at most 4095 tokens"),
            "{}",
            error.message
        );
        // Of what is not said there is as much as may be.
        assert_eq!(ask(5_900, 0).unwrap().settings.max_tokens, 1_024);
        let error = ask(6_139, 0).err().unwrap();
        assert_eq!(error.param.as_deref(), Some("prompt"));
        assert!(error.message.contains("shorten the prompt"), "{}", error.message);
    }
}
