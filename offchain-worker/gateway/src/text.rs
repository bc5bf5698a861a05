//! Text to ids and back, for each model.

use std::sync::Arc;

use surety_models::{
    chat::{Message, Renderer},
    tokens::TextCodec,
};
use surety_types::input::IdBounds;

use crate::api::now;

/// A model's tokenizer and chat template. Errors are sentences for whoever asked.
pub trait ModelText: Send + Sync {
    /// The ids of a plain text.
    ///
    /// # Errors
    /// Why it has none.
    fn encode(&self, text: &str) -> Result<Vec<u32>, String>;

    /// The ids of a conversation. Blocks, for seconds where a template is hostile.
    ///
    /// # Errors
    /// Why it has none.
    fn chat(&self, messages: &[Message]) -> Result<Vec<u32>, String>;

    /// The text of ids, without special ones.
    ///
    /// # Errors
    /// Why it has none.
    fn decode(&self, ids: &[u32]) -> Result<String, String>;

    /// What ids are checked against.
    fn bounds(&self) -> IdBounds;
}

/// By a model's own files.
pub struct Tokenized {
    /// Its tokenizer and template.
    pub codec: TextCodec,
    /// Renders the template; a process of its own, unless it is trusted.
    pub renderer: Arc<dyn Renderer>,
}

impl ModelText for Tokenized {
    fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        self.codec.encode(text).map_err(|e| e.to_string())
    }

    fn chat(&self, messages: &[Message]) -> Result<Vec<u32>, String> {
        let chat = self.codec.encode_chat(messages, now(), self.renderer.as_ref());
        chat.map(|chat| chat.ids).map_err(|e| e.to_string())
    }

    fn decode(&self, ids: &[u32]) -> Result<String, String> {
        self.codec.decode(ids).map_err(|e| e.to_string())
    }

    fn bounds(&self) -> IdBounds {
        self.codec.bounds()
    }
}
