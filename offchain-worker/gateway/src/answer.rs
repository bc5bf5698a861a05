//! Answers in OpenAI's shapes.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Serialize;
use utoipa::ToSchema;

use crate::upstream::Finish;

/// What the receipt of a call, or of a batch's task, is asked for by.
pub(crate) fn receipt_id(number: u64) -> String {
    format!("{number:016x}")
}

/// Types of one word each, by which answers say what they are.
macro_rules! words {
    ($($name:ident = $word:tt),+ $(,)?) => {$(
        #[derive(Clone, Copy, Debug, Serialize, ToSchema)]
        pub(crate) enum $name {
            #[serde(rename = $word)]
            Word,
        }
    )+};
}
pub(crate) use words;

words!(
    ChatWord = "chat.completion",
    ChatChunkWord = "chat.completion.chunk",
    TextWord = "text_completion",
    AssistantWord = "assistant",
    EmbeddingWord = "embedding",
    ListWord = "list",
);

/// An answer to a conversation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChatCompletion {
    id: String,
    object: ChatWord,
    /// Seconds since 1970.
    created: u64,
    model: String,
    /// One.
    choices: Vec<ChatChoice>,
    usage: Usage,
    surety: Extension,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChatChoice {
    index: u32,
    message: Answered,
    finish_reason: FinishReason,
    /// Not offered.
    #[schema(value_type = Option<Object>)]
    logprobs: (),
}

/// What the model says.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Answered {
    role: AssistantWord,
    content: String,
    /// Models refuse in their content.
    #[schema(value_type = Option<String>)]
    refusal: (),
}

/// A part of an answer to a conversation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChatChunk {
    id: String,
    object: ChatChunkWord,
    /// Seconds since 1970.
    created: u64,
    model: String,
    /// One; none in the part with the usage.
    choices: Vec<ChatChunkChoice>,
    /// Where it is asked for, in the last part; null in those before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Usage>)]
    usage: Option<Option<Usage>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    surety: Option<Extension>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChatChunkChoice {
    index: u32,
    delta: Delta,
    finish_reason: Option<FinishReason>,
}

/// More of what the model says; nothing at its end.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Delta {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<AssistantWord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

/// A continuation of a text, or a part of one.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TextCompletion {
    id: String,
    object: TextWord,
    /// Seconds since 1970.
    created: u64,
    model: String,
    /// One; none in the part with the usage.
    choices: Vec<TextChoice>,
    /// In a stream where it is asked for, in its last part; null in those before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Usage>)]
    usage: Option<Option<Usage>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    surety: Option<Extension>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TextChoice {
    index: u32,
    text: String,
    /// Why it ended, at its end.
    finish_reason: Option<FinishReason>,
    /// Not offered.
    #[schema(value_type = Option<Object>)]
    logprobs: (),
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FinishReason {
    /// By a stop string, or by itself.
    Stop,
    /// It has as many tokens as were asked for.
    Length,
}

impl From<Finish> for FinishReason {
    fn from(finish: Finish) -> Self {
        match finish {
            Finish::Length => Self::Length,
            Finish::Stop | Finish::Cancelled | Finish::Cut => Self::Stop,
        }
    }
}

/// Tokens.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub(crate) struct Usage {
    prompt_tokens: u32,
    completion_tokens: u32,
    total_tokens: u32,
}

/// By what an answer can be checked.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Extension {
    /// The ids of what is said here.
    token_ids: Vec<u32>,
    /// By what they were drawn: the same request with this seed is answered with the same ids.
    seed: u64,
    /// The id of its receipt: `/v1/receipts/{id}`.
    receipt: String,
}

/// An answer, or a part of one, in the shape of its route.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Shaped {
    Chat(ChatCompletion),
    ChatChunk(ChatChunk),
    Text(TextCompletion),
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

    fn extension(&self, ids: &[u32]) -> Extension {
        Extension {
            token_ids: ids.to_vec(),
            seed: self.seed,
            receipt: self.receipt.clone(),
        }
    }

    fn usage(&self, tokens: u32) -> Usage {
        Usage {
            prompt_tokens: self.prompt_tokens,
            completion_tokens: tokens,
            total_tokens: self.prompt_tokens.saturating_add(tokens),
        }
    }

    /// All of it.
    pub fn answer(&self, text: &str, ids: &[u32], finish: Finish, tokens: u32) -> Shaped {
        if !self.is_chat {
            let choice = text_choice(Some(text), Some(finish));
            return self.text(vec![choice], Some(Some(self.usage(tokens))), Some(ids));
        }
        Shaped::Chat(ChatCompletion {
            id: self.id(),
            object: ChatWord::Word,
            created: self.created,
            model: self.model.clone(),
            choices: vec![ChatChoice {
                index: 0,
                message: Answered {
                    role: AssistantWord::Word,
                    content: text.to_owned(),
                    refusal: (),
                },
                finish_reason: finish.into(),
                logprobs: (),
            }],
            usage: self.usage(tokens),
            surety: self.extension(ids),
        })
    }

    /// A part of a stream, which names the role.
    pub fn chunk(
        &self,
        text: Option<&str>,
        finish: Option<Finish>,
        ids: &[u32],
        include_usage: bool,
    ) -> Shaped {
        let usage = include_usage.then_some(None);
        if !self.is_chat {
            return self.text(vec![text_choice(text, finish)], usage, Some(ids));
        }
        let choice = ChatChunkChoice {
            index: 0,
            delta: Delta {
                role: text.map(|_| AssistantWord::Word),
                content: text.map(String::from),
            },
            finish_reason: finish.map(FinishReason::from),
        };
        self.chat_chunk(vec![choice], usage, Some(ids))
    }

    /// The part with the usage.
    pub fn usage_chunk(&self, tokens: u32) -> Shaped {
        let usage = Some(Some(self.usage(tokens)));
        match self.is_chat {
            true => self.chat_chunk(Vec::new(), usage, None),
            false => self.text(Vec::new(), usage, None),
        }
    }

    fn chat_chunk(
        &self,
        choices: Vec<ChatChunkChoice>,
        usage: Option<Option<Usage>>,
        ids: Option<&[u32]>,
    ) -> Shaped {
        Shaped::ChatChunk(ChatChunk {
            id: self.id(),
            object: ChatChunkWord::Word,
            created: self.created,
            model: self.model.clone(),
            choices,
            usage,
            surety: ids.map(|ids| self.extension(ids)),
        })
    }

    fn text(&self, choices: Vec<TextChoice>, usage: Option<Option<Usage>>, ids: Option<&[u32]>) -> Shaped {
        Shaped::Text(TextCompletion {
            id: self.id(),
            object: TextWord::Word,
            created: self.created,
            model: self.model.clone(),
            choices,
            usage,
            surety: ids.map(|ids| self.extension(ids)),
        })
    }
}

fn text_choice(text: Option<&str>, finish: Option<Finish>) -> TextChoice {
    TextChoice {
        index: 0,
        text: text.unwrap_or_default().to_owned(),
        finish_reason: finish.map(FinishReason::from),
        logprobs: (),
    }
}

/// Vectors, in the order of what was asked for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EmbeddingList {
    object: ListWord,
    data: Vec<Embedding>,
    model: String,
    usage: EmbeddingUsage,
    surety: EmbeddingExtension,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Embedding {
    object: EmbeddingWord,
    index: usize,
    embedding: Vector,
}

/// Numbers, or their little-endian bytes as base64.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Vector {
    Numbers(Vec<f32>),
    Base64(String),
}

/// Tokens.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EmbeddingUsage {
    prompt_tokens: u32,
    total_tokens: u32,
}

/// By what vectors can be checked.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EmbeddingExtension {
    /// The ids of each text.
    token_ids: Vec<Vec<u32>>,
    /// The id of their receipt: `/v1/receipts/{id}`.
    receipt: String,
}

/// A list of embeddings.
pub(crate) fn embeddings(
    model: &str,
    receipt: &str,
    vectors: &[Vec<f32>],
    ids: Vec<Vec<u32>>,
    tokens: u32,
    base64: bool,
) -> EmbeddingList {
    let one = |(index, vector): (usize, &Vec<f32>)| Embedding {
        object: EmbeddingWord::Word,
        index,
        embedding: match base64 {
            true => {
                let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
                Vector::Base64(BASE64_STANDARD.encode(bytes))
            }
            false => Vector::Numbers(vector.clone()),
        },
    };
    EmbeddingList {
        object: ListWord::Word,
        data: vectors.iter().enumerate().map(one).collect(),
        model: model.to_owned(),
        usage: EmbeddingUsage {
            prompt_tokens: tokens,
            total_tokens: tokens,
        },
        surety: EmbeddingExtension {
            token_ids: ids,
            receipt: receipt.to_owned(),
        },
    }
}
