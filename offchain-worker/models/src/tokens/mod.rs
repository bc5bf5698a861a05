//! Text to ids of tokens and back, by a model's own `tokenizer.json`: what a client does, and no engine.

mod chat;
mod codec;
mod decoder;
mod encoder;
mod files;
mod lines;
mod special;
mod stream;

pub use chat::EncodedChat;
pub use codec::{TextCodec, TextFault};
pub use files::{TextError, TextFiles};
pub use lines::{ITEM_BYTES_MAX, ITEMS_MAX, LinesFault, TEXT_BYTES_MAX, lines};
pub use special::text_form;
pub use stream::TextStream;
