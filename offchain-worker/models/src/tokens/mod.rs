//! Text to tokens and back, by a model's own `tokenizer.json`.

mod decoder;
mod encoder;
mod size;

pub use decoder::Prompts;
pub use encoder::{Tokens, TokensOf};
pub use size::{PromptSize, prompt_size};
