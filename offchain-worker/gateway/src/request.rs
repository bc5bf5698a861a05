//! What is asked, from OpenAI's fields: those that change nothing are ignored, others are taken or refused by
//! name.

use std::collections::BTreeMap;

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Number, Value};
use surety_models::chat::Message;
use surety_types::input::{NEW_TOKENS_MAX, Settings, TEMPERATURE_MILLI_MAX, TOP_P_MILLI_MAX};
use utoipa::{PartialSchema, ToSchema};

use crate::error::ApiError;

/// Fields that change no answer.
const IGNORED: &[&str] = &[
    "user",
    "metadata",
    "store",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "parallel_tool_calls",
    "prompt_cache_retention",
];
/// Fields of what is not offered.
const REFUSED: &[&str] = &[
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "response_format",
    "logprobs",
    "top_logprobs",
    "logit_bias",
    "frequency_penalty",
    "presence_penalty",
    "modalities",
    "audio",
    "prediction",
    "reasoning_effort",
    "verbosity",
    "web_search_options",
    "best_of",
    "echo",
    "suffix",
    "dimensions",
    "moderation",
];
const STOPS_MAX: usize = 4;
const STOP_BYTES_MAX: usize = 256;
const ITEMS_MAX: usize = 2048;

// Bounds in schemas are literals: the macro takes nothing else.
const _: () = assert!(NEW_TOKENS_MAX == 4096 && TEMPERATURE_MILLI_MAX == 10_000 && TOP_P_MILLI_MAX == 1000);

/// Reads a body that is a JSON object, and names the field that is wrong.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    // Not in one step: of what serde has to buffer, numbers that keep their digits could not be read.
    let body = match serde_json::from_slice(body) {
        Ok(body @ Value::Object(_)) => body,
        _ => return Err(ApiError::invalid("body", "the body is no JSON object")),
    };
    serde_path_to_error::deserialize(body).map_err(|error| match error.path().to_string().as_str() {
        // Of the object itself.
        "." => ApiError::invalid("body", error.into_inner().to_string()),
        path => {
            let path = path.to_owned();
            let told = format!("{path}: {}", error.into_inner());
            ApiError::invalid(path, told)
        }
    })
}

/// What is to be continued.
#[derive(Debug)]
pub(crate) enum Prompt {
    Chat(Vec<Message>),
    Text(String),
    Ids(Vec<u32>),
}

/// A generation that is asked for.
#[derive(Debug)]
pub(crate) struct Generate {
    pub model: String,
    pub prompt: Prompt,
    /// Of these, `max_tokens` is 0 where none is asked for.
    pub settings: Settings,
    pub stops: Vec<String>,
    pub stream: bool,
    pub include_usage: bool,
}

/// Embeddings that are asked for.
#[derive(Debug)]
pub(crate) struct Embed {
    pub model: String,
    pub items: Vec<Item>,
    pub base64: bool,
}

#[derive(Debug)]
pub(crate) enum Item {
    Text(String),
    Ids(Vec<u32>),
}

/// The fields that all requests for an answer have.
macro_rules! generation {
    ($(#[$($meta:tt)*])* $name:ident { $(#[$($field:tt)*])* $prompt:ident: $($kind:tt)+ }, $tokens:literal) => {
        $(#[$($meta)*])*
        #[derive(Debug, Deserialize, ToSchema)]
        pub(crate) struct $name {
            $(#[$($field)*])*
            $prompt: $($kind)+,
            /// The model's name: `/v1/models` lists them.
            model: String,
            /// As `max_completion_tokens`, which counts where both are given.
            #[schema(minimum = 1, maximum = 4096)]
            max_tokens: Option<u32>,
            /// Most tokens of the answer; each is reserved for.
            #[schema(minimum = 1, maximum = 4096)]
            max_completion_tokens: Option<u32>,
            /// 0 always takes the likeliest token; 1 where it is left out.
            #[schema(minimum = 0, maximum = 10)]
            temperature: Option<f64>,
            /// Of the likeliest tokens, those that together are as likely; 1 where it is left out.
            #[schema(minimum = 0.001, maximum = 1)]
            top_p: Option<f64>,
            /// So many of the likeliest tokens; 0 are all.
            top_k: Option<u32>,
            /// By what tokens are drawn. Where it is left out, one is drawn, and told with the answer.
            #[schema(value_type = Option<i64>)]
            seed: Option<Seed>,
            /// Up to 4 texts, of up to 256 bytes, that end the answer where they would come.
            stop: Option<Stop>,
            /// Answers while it is made, as server-sent events.
            stream: Option<bool>,
            stream_options: Option<StreamOptions>,
            /// One answer is made.
            #[schema(minimum = 1, maximum = 1)]
            n: Option<u64>,
            #[serde(flatten)]
            others: Others,
        }

        impl $name {
            fn asked(self, prompt: Prompt) -> Result<Generate, ApiError> {
                self.others.check()?;
                if self.n.is_some_and(|n| n != 1) {
                    return Err(ApiError::unsupported("n"));
                }
                tokens("max_tokens", self.max_tokens)?;
                tokens("max_completion_tokens", self.max_completion_tokens)?;
                Ok(Generate {
                    model: self.model,
                    prompt,
                    settings: Settings {
                        max_tokens: self.max_completion_tokens.or(self.max_tokens).unwrap_or($tokens),
                        temperature_milli: milli("temperature", self.temperature, (0, TEMPERATURE_MILLI_MAX))?,
                        top_k: self.top_k.unwrap_or(0),
                        top_p_milli: milli("top_p", self.top_p, (1, TOP_P_MILLI_MAX))?,
                        seed: match self.seed {
                            Some(Seed(seed)) => seed,
                            None => random_seed()?,
                        },
                    },
                    stops: stops(self.stop)?,
                    stream: self.stream.unwrap_or(false),
                    include_usage: self.stream_options.and_then(|options| options.include_usage).unwrap_or(false),
                })
            }
        }
    };
}

generation!(
    /// A conversation that is to be continued.
    ChatRequest {
        /// Oldest first.
        messages: Vec<ChatMessage>
    },
    0
);

generation!(
    /// A text that is to be continued.
    TextRequest {
        /// One text, or its ids.
        prompt: Items
    },
    // OpenAI's default.
    16
);

/// A message of a conversation.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ChatMessage {
    /// Whose it is: `system` (`developer` is the same), `user`, `assistant`, or what else the model's
    /// template knows.
    role: String,
    content: Option<Content>,
    /// Not offered.
    tool_calls: Option<Value>,
    /// Not offered.
    tool_call_id: Option<Value>,
    /// Not offered.
    function_call: Option<Value>,
    /// Not offered.
    audio: Option<Value>,
}

/// A text, or parts of one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "it has to be a text, or a list of parts that are text")]
pub(crate) enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct Part {
    /// `text`: no other kind is offered.
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
}

/// Up to 2048 texts, or lists of ids.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "it has to be a text, texts, a list of ids, or lists of ids"
)]
pub(crate) enum Items {
    Text(String),
    Texts(Vec<String>),
    Ids(Vec<u32>),
    Lists(Vec<Vec<u32>>),
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "it has to be a text, or up to 4 texts")]
pub(crate) enum Stop {
    One(String),
    Several(Vec<String>),
}

/// A whole number; negative ones stand for large ones.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "Number")]
pub(crate) struct Seed(u64);

impl TryFrom<Number> for Seed {
    type Error = &'static str;

    fn try_from(number: Number) -> Result<Self, Self::Error> {
        let negative = || number.as_i64().map(i64::cast_unsigned);
        let seed = number.as_u64().or_else(negative);
        seed.map(Self).ok_or("it has to be a whole number of 64 bits")
    }
}

#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct StreamOptions {
    /// A last part tells how many tokens it were.
    include_usage: Option<bool>,
}

/// Texts whose vectors are asked for.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct EmbeddingRequest {
    input: Items,
    /// The model's name: `/v1/models` lists them.
    model: String,
    /// How vectors are written; `float` where it is left out.
    encoding_format: Option<EncodingFormat>,
    #[serde(flatten)]
    others: Others,
}

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EncodingFormat {
    Float,
    Base64,
}

/// Fields of OpenAI's that are not taken here.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Others(BTreeMap<String, Value>);

impl PartialSchema for Others {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        let told = [
            (IGNORED, "Changes no answer, and is ignored."),
            (REFUSED, "Not offered: refused, unless it says what is so anyway."),
        ];
        let fields = told
            .iter()
            .flat_map(|(names, told)| names.iter().map(move |name| (name, told)));
        let all = utoipa::openapi::ObjectBuilder::new();
        let all = fields.fold(all, |all, (name, told)| {
            let any = utoipa::openapi::schema::SchemaType::AnyValue;
            let field = utoipa::openapi::ObjectBuilder::new().schema_type(any);
            all.property(*name, field.description(Some(*told)))
        });
        all.into()
    }
}

impl ToSchema for Others {}

impl Others {
    /// Nothing may be among them that would change an answer.
    fn check(self) -> Result<(), ApiError> {
        for (name, value) in self.0 {
            match name.as_str() {
                known if IGNORED.contains(&known) => {}
                known if REFUSED.contains(&known) => {
                    if !is_neutral(known, &value) {
                        return Err(ApiError::unsupported(name));
                    }
                }
                _ if value.is_null() => {}
                _ => {
                    let told = format!("Unrecognized request argument supplied: {name}");
                    return Err(ApiError::invalid(name, told));
                }
            }
        }
        Ok(())
    }
}

/// Whether a field says what is so anyway.
fn is_neutral(name: &str, value: &Value) -> bool {
    match value {
        Value::Bool(set) => !set,
        Value::Array(list) if name == "modalities" => list.iter().all(|kind| kind == "text"),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) if name == "response_format" => map.get("type").is_some_and(|kind| kind == "text"),
        Value::Object(map) => map.is_empty(),
        Value::Number(number) if name == "best_of" => number.as_u64() == Some(1),
        Value::Number(number) => name != "dimensions" && number.as_f64() == Some(0.0),
        Value::String(text) => name == "tool_choice" && text == "none",
        Value::Null => true,
    }
}

impl Generate {
    pub fn chat(body: &[u8]) -> Result<Self, ApiError> {
        let mut asked: ChatRequest = read(body)?;
        let messages = std::mem::take(&mut asked.messages);
        let messages: Result<Vec<Message>, ApiError> =
            messages.into_iter().enumerate().map(message).collect();
        asked.asked(Prompt::Chat(messages?))
    }

    pub fn completion(body: &[u8]) -> Result<Self, ApiError> {
        let mut asked: TextRequest = read(body)?;
        let prompt = std::mem::replace(&mut asked.prompt, Items::Texts(Vec::new()));
        let mut items = prompt.list().into_iter();
        let prompt = match (items.next(), items.next()) {
            (Some(Item::Text(text)), None) => Prompt::Text(text),
            (Some(Item::Ids(ids)), None) => Prompt::Ids(ids),
            _ => return Err(ApiError::invalid("prompt", "one prompt is taken in a request")),
        };
        asked.asked(prompt)
    }
}

impl Embed {
    pub fn read(body: &[u8]) -> Result<Self, ApiError> {
        let asked: EmbeddingRequest = read(body)?;
        asked.others.check()?;
        let items = asked.input.list();
        if !(1..=ITEMS_MAX).contains(&items.len()) {
            let told = format!("input has to be between 1 and {ITEMS_MAX} texts, or lists of ids");
            return Err(ApiError::invalid("input", told));
        }
        Ok(Self {
            model: asked.model,
            items,
            base64: matches!(asked.encoding_format, Some(EncodingFormat::Base64)),
        })
    }
}

impl Items {
    fn list(self) -> Vec<Item> {
        match self {
            Self::Text(text) => vec![Item::Text(text)],
            Self::Texts(texts) => texts.into_iter().map(Item::Text).collect(),
            Self::Ids(ids) => vec![Item::Ids(ids)],
            Self::Lists(lists) => lists.into_iter().map(Item::Ids).collect(),
        }
    }
}

fn tokens(name: &str, asked: Option<u32>) -> Result<(), ApiError> {
    match asked {
        Some(asked) if !(1..=NEW_TOKENS_MAX).contains(&asked) => Err(ApiError::invalid(
            name,
            format!("{name} has to be between 1 and {NEW_TOKENS_MAX}"),
        )),
        _ => Ok(()),
    }
}

/// Thousandths; 1,000 where nothing is asked for.
fn milli(name: &str, asked: Option<f64>, (least, most): (u32, u32)) -> Result<u32, ApiError> {
    let milli = asked.map_or(1000.0, |asked| (asked * 1000.0).round());
    if !(f64::from(least)..=f64::from(most)).contains(&milli) {
        let [least, most] = [least, most].map(|bound| f64::from(bound) / 1000.0);
        let told = format!("{name} has to be between {least} and {most}");
        return Err(ApiError::invalid(name, told));
    }
    // It is a whole number within these bounds.
    Ok(milli as u32)
}

fn stops(asked: Option<Stop>) -> Result<Vec<String>, ApiError> {
    let list = match asked {
        None => Vec::new(),
        Some(Stop::One(one)) => vec![one],
        Some(Stop::Several(several)) => several,
    };
    let is_good = |stop: &String| (1..=STOP_BYTES_MAX).contains(&stop.len());
    if list.len() > STOPS_MAX || !list.iter().all(is_good) {
        let told = format!("stop has to be up to {STOPS_MAX} texts of 1 to {STOP_BYTES_MAX} bytes");
        return Err(ApiError::invalid("stop", told));
    }
    Ok(list)
}

fn message((at, message): (usize, ChatMessage)) -> Result<Message, ApiError> {
    let param = format!("messages[{at}]");
    let ChatMessage {
        role,
        content,
        tool_calls,
        tool_call_id,
        function_call,
        audio,
    } = message;
    for (name, value) in [
        ("tool_calls", tool_calls),
        ("function_call", function_call),
        ("audio", audio),
        ("tool_call_id", tool_call_id),
    ] {
        if value.is_some_and(|value| !is_neutral(name, &value)) {
            return Err(ApiError::unsupported(format!("{param}.{name}")));
        }
    }
    let role = match role.as_str() {
        // What newer clients call it.
        "developer" => "system",
        "tool" | "function" => return Err(ApiError::unsupported(format!("{param}.role"))),
        role => role,
    };
    let content = match content {
        Some(Content::Text(text)) => text,
        Some(Content::Parts(parts)) => {
            let text = |part: Part| part.text.filter(|_| part.kind == "text");
            let parts: Option<Vec<String>> = parts.into_iter().map(text).collect();
            parts
                .ok_or_else(|| ApiError::unsupported(format!("{param}.content")))?
                .concat()
        }
        None => {
            return Err(ApiError::invalid(
                format!("{param}.content"),
                format!("{param} has no content"),
            ));
        }
    };
    Ok(Message::new(role, content))
}

fn random_seed() -> Result<u64, ApiError> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).map_err(|e| {
        let told = format!("the system gives no random numbers: {e}");
        ApiError::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, "random", told)
    })?;
    // Of 32 bits, which every JSON reader gives back as it is.
    Ok(u64::from(u32::from_le_bytes(bytes)))
}
