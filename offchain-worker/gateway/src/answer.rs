//! Answers in OpenAI's shapes.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::upstream::Finish;

/// What the receipt of a call, or of a batch's task, is asked for by.
pub(crate) fn receipt_id(number: u64) -> String {
    format!("{number:016x}")
}

/// What all parts of an answer have in common.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub is_chat: bool,
    pub receipt: String,
    pub model: String,
    pub created: u64,
    pub seed: u64,
    pub prompt_tokens: u32,
}

impl Head {
    fn id(&self) -> String {
        match self.is_chat {
            true => format!("chatcmpl-{}", self.receipt),
            false => format!("cmpl-{}", self.receipt),
        }
    }

    fn whole(&self, object: &str, choices: Value) -> Value {
        json!({
            "id": self.id(), "object": object, "created": self.created, "model": self.model,
            "choices": choices,
        })
    }

    fn extension(&self, ids: &[u32]) -> Value {
        json!({"token_ids": ids, "seed": self.seed, "receipt": self.receipt})
    }

    fn usage(&self, tokens: u32) -> Value {
        usage(self.prompt_tokens, tokens)
    }

    /// All of it.
    pub fn answer(&self, text: &str, ids: &[u32], finish: Finish, tokens: u32) -> Value {
        let (object, choice) = match self.is_chat {
            true => (
                "chat.completion",
                json!({
                    "index": 0, "finish_reason": reason(finish), "logprobs": null,
                    "message": {"role": "assistant", "content": text, "refusal": null},
                }),
            ),
            false => (
                "text_completion",
                json!({"index": 0, "finish_reason": reason(finish), "logprobs": null, "text": text}),
            ),
        };
        let mut all = self.whole(object, json!([choice]));
        set(&mut all, "usage", self.usage(tokens));
        set(&mut all, "surety", self.extension(ids));
        all
    }

    /// A part of a stream; the first names the role.
    pub fn chunk(
        &self,
        text: Option<&str>,
        finish: Option<Finish>,
        ids: &[u32],
        include_usage: bool,
    ) -> Value {
        let finish = finish.map(reason);
        let (object, choice) = match (self.is_chat, text) {
            (true, Some(text)) => (
                "chat.completion.chunk",
                json!({"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": finish}),
            ),
            (true, None) => (
                "chat.completion.chunk",
                json!({"index": 0, "delta": {}, "finish_reason": finish}),
            ),
            (false, text) => (
                "text_completion",
                json!({"index": 0, "text": text.unwrap_or_default(), "finish_reason": finish}),
            ),
        };
        let mut all = self.whole(object, json!([choice]));
        set(&mut all, "surety", self.extension(ids));
        if include_usage {
            set(&mut all, "usage", Value::Null);
        }
        all
    }

    /// The part with the usage.
    pub fn usage_chunk(&self, tokens: u32) -> Value {
        let object = match self.is_chat {
            true => "chat.completion.chunk",
            false => "text_completion",
        };
        let mut all = self.whole(object, json!([]));
        set(&mut all, "usage", self.usage(tokens));
        all
    }
}

/// A list of embeddings.
pub(crate) fn embeddings(
    model: &str,
    receipt: &str,
    vectors: &[Vec<f32>],
    ids: &[Vec<u32>],
    tokens: u32,
    base64: bool,
) -> Value {
    let data: Vec<Value> = (0..)
        .zip(vectors)
        .map(|(index, vector)| one(index, vector, base64))
        .collect();
    json!({
        "object": "list", "data": data, "model": model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        "surety": {"token_ids": ids, "receipt": receipt},
    })
}

fn one(index: usize, vector: &[f32], base64: bool) -> Value {
    let shown = match base64 {
        true => {
            let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
            json!(BASE64_STANDARD.encode(bytes))
        }
        false => json!(vector),
    };
    json!({"object": "embedding", "index": index, "embedding": shown})
}

fn usage(prompt: u32, tokens: u32) -> Value {
    json!({
        "prompt_tokens": prompt, "completion_tokens": tokens,
        "total_tokens": prompt.saturating_add(tokens),
    })
}

fn reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Length => "length",
        Finish::Stop | Finish::Cancelled => "stop",
    }
}

fn set(all: &mut Value, name: &str, value: Value) {
    if let Some(fields) = all.as_object_mut() {
        fields.insert(name.into(), value);
    }
}
