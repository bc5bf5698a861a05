//! What is asked, from OpenAI's fields: those that change nothing are ignored, others are taken or refused by
//! name.

use serde_json::{Map, Value};
use surety_models::chat::Message;
use surety_types::input::{NEW_TOKENS_MAX, Settings, TEMPERATURE_MILLI_MAX, TOP_P_MILLI_MAX};

use crate::error::ApiError;

/// Fields that change no answer.
const IGNORED: [&str; 8] = [
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
const REFUSED: [&str; 21] = [
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

/// The fields that have not been looked at.
struct Fields(Map<String, Value>);

impl Fields {
    fn read(body: &[u8]) -> Result<Self, ApiError> {
        match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => Ok(Self(
                fields.into_iter().filter(|(_, value)| !value.is_null()).collect(),
            )),
            _ => Err(ApiError::invalid("body", "the body is no JSON object")),
        }
    }

    fn take<T>(
        &mut self,
        name: &str,
        what: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let Some(value) = self.0.remove(name) else {
            return Ok(None);
        };
        let read = read(&value);
        read.map(Some)
            .ok_or_else(|| ApiError::invalid(name, format!("{name} has to be {what}")))
    }

    fn text(&mut self, name: &str) -> Result<String, ApiError> {
        let text = self.take(name, "a text", |value| value.as_str().map(String::from))?;
        text.ok_or_else(|| ApiError::invalid(name, format!("{name} is missing")))
    }

    fn flag(&mut self, name: &str) -> Result<bool, ApiError> {
        Ok(self.take(name, "true or false", Value::as_bool)?.unwrap_or(false))
    }

    fn milli(&mut self, name: &str, least: u32, most: u32) -> Result<Option<u32>, ApiError> {
        let what = format!(
            "between {} and {}",
            f64::from(least) / 1000.0,
            f64::from(most) / 1000.0
        );
        self.take(name, &what, |value| {
            let milli = (value.as_f64()? * 1000.0).round();
            let is_in = milli >= f64::from(least) && milli <= f64::from(most);
            // It is a whole number within these bounds.
            is_in.then_some(milli as u32)
        })
    }

    /// Nothing may be left.
    fn end(self) -> Result<(), ApiError> {
        for (name, value) in self.0 {
            match name.as_str() {
                known if IGNORED.contains(&known) => {}
                known if REFUSED.contains(&known) => {
                    if !is_neutral(known, &value) {
                        return Err(ApiError::unsupported(name));
                    }
                }
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
        let mut fields = Fields::read(body)?;
        let messages = fields.take("messages", "a list of messages", |value| {
            value.as_array().cloned()
        })?;
        let messages = messages.ok_or_else(|| ApiError::invalid("messages", "messages is missing"))?;
        let messages: Result<Vec<Message>, ApiError> = (0..).zip(&messages).map(message).collect();
        Self::rest(fields, Prompt::Chat(messages?), 0)
    }

    pub fn completion(body: &[u8]) -> Result<Self, ApiError> {
        let mut fields = Fields::read(body)?;
        let items = items(&mut fields, "prompt")?;
        let mut items = items.into_iter();
        let prompt = match (items.next(), items.next()) {
            (Some(Item::Text(text)), None) => Prompt::Text(text),
            (Some(Item::Ids(ids)), None) => Prompt::Ids(ids),
            _ => return Err(ApiError::invalid("prompt", "one prompt is taken in a request")),
        };
        // OpenAI's default.
        Self::rest(fields, prompt, 16)
    }

    fn rest(mut fields: Fields, prompt: Prompt, tokens: u32) -> Result<Self, ApiError> {
        let what = format!("between 1 and {NEW_TOKENS_MAX}");
        let count = |value: &Value| {
            let count = u32::try_from(value.as_u64()?).ok()?;
            (1..=NEW_TOKENS_MAX).contains(&count).then_some(count)
        };
        let old = fields.take("max_tokens", &what, count)?;
        let new = fields.take("max_completion_tokens", &what, count)?;
        let top_k = fields.take("top_k", "a count", |value| u32::try_from(value.as_u64()?).ok())?;
        let seed = fields.take("seed", "a whole number", |value| {
            value.as_u64().or_else(|| value.as_i64().map(i64::cast_unsigned))
        })?;
        let n = fields.take("n", "a count", Value::as_u64)?;
        if n.is_some_and(|n| n != 1) {
            return Err(ApiError::unsupported("n"));
        }
        let temperature = fields.milli("temperature", 0, TEMPERATURE_MILLI_MAX)?;
        let top_p = fields.milli("top_p", 1, TOP_P_MILLI_MAX)?;
        let options = fields.take("stream_options", "an object", |value| value.as_object().cloned())?;
        let include_usage = options.and_then(|options| options.get("include_usage")?.as_bool());
        let stops = fields.take(
            "stop",
            "up to 4 texts of up to 256 bytes that are not empty",
            stops,
        )?;
        let asked = Self {
            model: fields.text("model")?,
            prompt,
            settings: Settings {
                max_tokens: new.or(old).unwrap_or(tokens),
                temperature_milli: temperature.unwrap_or(1000),
                top_k: top_k.unwrap_or(0),
                top_p_milli: top_p.unwrap_or(TOP_P_MILLI_MAX),
                seed: match seed {
                    Some(seed) => seed,
                    None => random_seed()?,
                },
            },
            stops: stops.unwrap_or_default(),
            stream: fields.flag("stream")?,
            include_usage: include_usage.unwrap_or(false),
        };
        fields.end()?;
        Ok(asked)
    }
}

impl Embed {
    pub fn read(body: &[u8]) -> Result<Self, ApiError> {
        let mut fields = Fields::read(body)?;
        let items = items(&mut fields, "input")?;
        let format = fields.take("encoding_format", "float or base64", |value| {
            match value.as_str()? {
                "float" => Some(false),
                "base64" => Some(true),
                _ => None,
            }
        })?;
        let asked = Self {
            model: fields.text("model")?,
            items,
            base64: format.unwrap_or(false),
        };
        fields.end()?;
        Ok(asked)
    }
}

/// A text, texts, ids, or lists of ids.
fn items(fields: &mut Fields, name: &str) -> Result<Vec<Item>, ApiError> {
    let what = format!("a text, up to {ITEMS_MAX} texts, a list of ids, or up to {ITEMS_MAX} of these");
    let read = |value: &Value| match value {
        Value::String(text) => Some(vec![Item::Text(text.clone())]),
        Value::Array(list) if list.first().is_some_and(Value::is_number) => Some(vec![Item::Ids(ids(list)?)]),
        Value::Array(list) if !list.is_empty() && list.len() <= ITEMS_MAX => {
            let item = |value: &Value| match value {
                Value::String(text) => Some(Item::Text(text.clone())),
                Value::Array(list) => Some(Item::Ids(ids(list)?)),
                _ => None,
            };
            list.iter().map(item).collect()
        }
        _ => None,
    };
    let items = fields.take(name, &what, read)?;
    items.ok_or_else(|| ApiError::invalid(name, format!("{name} is missing")))
}

fn ids(list: &[Value]) -> Option<Vec<u32>> {
    list.iter().map(|id| u32::try_from(id.as_u64()?).ok()).collect()
}

fn stops(value: &Value) -> Option<Vec<String>> {
    let list = match value {
        Value::String(one) => vec![one.clone()],
        Value::Array(list) => list
            .iter()
            .map(|stop| stop.as_str().map(String::from))
            .collect::<Option<_>>()?,
        _ => return None,
    };
    let is_good = |stop: &String| !stop.is_empty() && stop.len() <= STOP_BYTES_MAX;
    (list.len() <= STOPS_MAX && list.iter().all(is_good)).then_some(list)
}

fn message((at, value): (usize, &Value)) -> Result<Message, ApiError> {
    let param = format!("messages[{at}]");
    let fault = |why: &str| ApiError::invalid(param.clone(), format!("{param} {why}"));
    let fields = value.as_object().ok_or_else(|| fault("is no object"))?;
    let role = fields
        .get("role")
        .and_then(Value::as_str)
        .ok_or_else(|| fault("has no role"))?;
    for name in ["tool_calls", "function_call", "audio", "tool_call_id"] {
        if fields.get(name).is_some_and(|value| !value.is_null()) {
            return Err(ApiError::unsupported(format!("{param}.{name}")));
        }
    }
    let role = match role {
        // What newer clients call it.
        "developer" => "system",
        "tool" | "function" => return Err(ApiError::unsupported(format!("{param}.role"))),
        role => role,
    };
    let content = match fields.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let part = |part: &Value| match part.get("type").and_then(Value::as_str) {
                Some("text") => part
                    .get("text")
                    .and_then(Value::as_str)
                    .map(String::from)
                    .ok_or_else(|| fault("has a part without text")),
                _ => Err(ApiError::unsupported(format!("{param}.content"))),
            };
            parts.iter().map(part).collect::<Result<Vec<_>, _>>()?.concat()
        }
        _ => return Err(fault("has no content")),
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
