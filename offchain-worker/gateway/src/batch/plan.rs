//! From the requests of a batch to tasks. Embeddings of one model are computed together, as many as one task
//! takes; an answer is a task of its own.

use std::{collections::BTreeMap, sync::Arc};

use surety_types::{
    input::{ITEM_WORDS, WORD_BYTES, Work, encode_items},
    limits::INPUT_BYTES_MAX,
    model::Operation,
};

use super::{
    read::{Asked, fault},
    record::{Ask, Endpoint, Fault, Line},
};
use crate::{
    error::ApiError,
    prompt::{encoded, encoded_items},
    request::{Embed, Generate},
    text::ModelText,
};

/// Most tasks of a batch: each is posted, paid and audited by itself.
const TASKS_MAX: usize = 1_000;
/// Most items of a task. Of vectors of 4,096 numbers these are 32 MiB.
const ITEMS_MAX: usize = 2_048;

/// The texts of the models that are offered, by name and whether they make text.
pub(crate) type Texts = BTreeMap<(String, bool), Arc<dyn ModelText>>;

/// A task, before its price is known.
#[derive(Debug)]
pub(crate) struct Planned {
    pub model: String,
    pub work: Work,
    pub input: Vec<u8>,
    pub lines: Vec<Line>,
}

/// What is to be done.
#[derive(Default)]
pub(crate) struct Plan {
    pub tasks: Vec<Planned>,
    /// Requests that are no such, by their names.
    pub refused: Vec<(Asked, ApiError)>,
}

/// Items that become one task.
#[derive(Default)]
struct Group {
    items: Vec<Vec<u32>>,
    lines: Vec<Line>,
    words: u32,
}

/// Makes tasks of requests. Blocks.
///
/// # Errors
/// Why the whole batch is refused.
pub(crate) fn plan(asked: Vec<Asked>, endpoint: Endpoint, texts: &Texts) -> Result<Plan, Vec<Fault>> {
    let (mut plan, mut groups) = (Plan::default(), BTreeMap::<String, Group>::new());
    for asked in asked {
        let done = match endpoint {
            Endpoint::Embeddings => embed(&asked, texts, &mut plan, &mut groups),
            Endpoint::Chat | Endpoint::Completions => generate(&asked, endpoint, texts, &mut plan),
        };
        match done {
            Ok(()) => {}
            Err(error) if error.code == "model_not_found" => {
                let line = Some(asked.line);
                return Err(vec![fault(line, error.code, Some("body.model"), error.message)]);
            }
            Err(error) => plan.refused.push((asked, error)),
        }
        if plan.tasks.len().saturating_add(groups.len()) > TASKS_MAX {
            let told = format!("this batch is more than {TASKS_MAX} tasks: cut the file into several");
            return Err(vec![fault(None, "too_many_tasks", None, told)]);
        }
    }
    for (model, group) in groups {
        let text = texts.get(&(model.clone(), false));
        plan.tasks
            .extend(text.and_then(|text| group.task(&model, &**text)));
    }
    Ok(plan)
}

fn text<'a>(texts: &'a Texts, model: &str, generates: bool) -> Result<&'a dyn ModelText, ApiError> {
    let found = texts.get(&(model.to_owned(), generates));
    found.map(|text| &**text).ok_or_else(|| ApiError::no_model(model))
}

fn embed(
    asked: &Asked,
    texts: &Texts,
    plan: &mut Plan,
    groups: &mut BTreeMap<String, Group>,
) -> Result<(), ApiError> {
    let wanted = Embed::read(&asked.body)?;
    let text = text(texts, &wanted.model, false)?;
    let (items, alone) = encoded_items(wanted.items, text)?;
    let words = u32::try_from(alone.len()).unwrap_or(u32::MAX) / WORD_BYTES;
    let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
    let line = Line {
        custom_id: asked.custom_id.clone(),
        ask: Ask::Embed {
            items: count,
            tokens: words.saturating_sub(count.saturating_mul(ITEM_WORDS)),
            base64: wanted.base64,
        },
    };
    let group = groups.entry(wanted.model.clone()).or_default();
    let is_full = group.items.len().saturating_add(items.len()) > ITEMS_MAX
        || group.words.saturating_add(words) > INPUT_BYTES_MAX / WORD_BYTES;
    if is_full && !group.items.is_empty() {
        let full = std::mem::take(group);
        plan.tasks.extend(full.task(&wanted.model, text));
    }
    group.words = group.words.saturating_add(words);
    group.items.extend(items);
    group.lines.push(line);
    Ok(())
}

impl Group {
    /// Of items each of which was encoded before.
    fn task(self, model: &str, text: &dyn ModelText) -> Option<Planned> {
        let input = encode_items(&self.items, &text.bounds()).ok()?;
        Some(Planned {
            model: model.to_owned(),
            work: Work {
                operation: Operation::Embed,
                input_bytes: u32::try_from(input.len()).ok()?,
                units_max: u32::try_from(self.items.len()).ok()?,
            },
            input,
            lines: self.lines,
        })
    }
}

fn generate(asked: &Asked, endpoint: Endpoint, texts: &Texts, plan: &mut Plan) -> Result<(), ApiError> {
    let is_chat = endpoint == Endpoint::Chat;
    let wanted = match is_chat {
        true => Generate::chat(&asked.body)?,
        false => Generate::completion(&asked.body)?,
    };
    let text = text(texts, &wanted.model, true)?;
    if wanted.stream {
        return Err(ApiError::unsupported("stream"));
    }
    let encoded = encoded(wanted.prompt, wanted.settings, text)?;
    let units_max = encoded.units_max();
    let input_bytes = u32::try_from(encoded.input.len()).unwrap_or(u32::MAX);
    if input_bytes > INPUT_BYTES_MAX {
        let told = format!("the prompt takes more than the {INPUT_BYTES_MAX} bytes that a task may have");
        return Err(ApiError::invalid("body", told));
    }
    plan.tasks.push(Planned {
        model: wanted.model,
        work: Work {
            operation: Operation::Generate,
            input_bytes,
            units_max,
        },
        input: encoded.input,
        lines: vec![Line {
            custom_id: asked.custom_id.clone(),
            ask: Ask::Generate {
                is_chat,
                stops: wanted.stops,
                seed: encoded.settings.seed,
            },
        }],
    });
    Ok(())
}
