//! `surety task result` and `surety task nearest`: a task's output, and what is in it.

use std::{fs, path::Path};

use serde::Serialize;
use surety_chain_client::{Chain, TaskInfo, When};
use surety_client::{
    deliver::{self, Wanted, wanted_for_good},
    nearest::{Neighbor, nearest},
    text::{Generated, Input, TextInputError},
    words, write_atomically,
};
use surety_engine::{Embeddings, content_hash, generation::Generation};
use surety_models::tokens::{TextCodec, lines};
use surety_network::{Bytes, DataPlane, FetchOptions, Node, Ticket};
use surety_types::{TaskId, input::InputReader, model::Operation, task::TaskState};

use super::{Context, codec_of, known_task, named_or_newest, text_of, ticket};
use crate::{
    args::{NearestArgs, ResultArgs},
    config::DataConfig,
    error::{CliError, Result},
};

/// What `surety task result` found.
#[derive(Serialize)]
struct Fetched {
    task: TaskId,
    output_hash: String,
    output_path: Option<String>,
    output_bytes: u64,
    from: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nearest: Vec<Neighbor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<Generated>,
}

/// Flags that the task's operation has no use for, or needs.
fn check_result_flags(args: &ResultArgs, operation: Operation) -> Result<()> {
    let text = match operation {
        Operation::Embed if args.out.is_none() => "--out FILE says where the vectors go",
        Operation::Generate if args.nearest.is_some() => "--nearest is for vectors: this task generated text",
        _ => return Ok(()),
    };
    Err(CliError::Usage(text.into()))
}

pub(super) async fn run(context: &Context, args: &ResultArgs) -> Result<()> {
    let chain = context.chain().await?;
    let task = named_or_newest(context, &*chain, args.task).await?;
    let info = known_task(&*chain, task).await?;
    check_result_flags(args, info.task.spec.operation)?;
    check_out(args.out.as_deref())?;
    let wanted = wanted_for_good(&info).ok_or_else(|| no_result(task, &info))?;
    let data = DataConfig {
        listen: Vec::new(),
        external: Vec::new(),
    };
    let node = context.node(&*chain, &data).await?;
    let ticket = ticket(context, &*chain, &node, task);
    let home = &context.config.home;
    let delivery = deliver::fetch(&*chain, &node, home, task, &wanted, ticket.as_ref())
        .await
        .map_err(|undelivered| CliError::Undelivered {
            task,
            attempts: undelivered.attempts,
        })?;
    let neighbors = match args.nearest {
        Some(count) => {
            let codec = codec_of(context, &*chain, &info).await?;
            let items = match args.input.as_deref() {
                Some(path) => items_from_file(path, &codec, &info)?,
                None => {
                    let input = input_from_peers(&*chain, &node, &info, &wanted, ticket).await?;
                    items_from_ids(&input, &codec, info.task.spec.units_max)?
                }
            };
            let items: Vec<&str> = items.iter().map(String::as_str).collect();
            nearest(&items, &Embeddings::decode(&delivery.bytes)?, count)?
        }
        None => Vec::new(),
    };
    let generation = match wanted.operation {
        Operation::Generate => {
            let text = text_of(context, &*chain, &info).await;
            let made = generation(&delivery.bytes)?;
            Some(Generated::new(made, wanted.prompt_tokens, text.as_deref()))
        }
        Operation::Embed => None,
    };
    if let Some(path) = &args.out {
        write_atomically(path, &delivery.bytes)?;
    }
    node.stop().await;
    show_fetched(
        context,
        &Fetched {
            task,
            output_hash: format!("{:?}", delivery.hash),
            output_path: args.out.as_ref().map(|path| path.display().to_string()),
            output_bytes: delivery.bytes.len() as u64,
            from: delivery.from,
            nearest: neighbors,
            generation,
        },
    )
}

/// Where an output cannot be written is to be known before it is paid for.
pub(super) fn check_out(path: Option<&Path>) -> Result<()> {
    let Some(path) = path else {
        return Ok(());
    };
    if path.is_dir() {
        let text = format!("--out {} is a folder: name a file in it", path.display());
        return Err(CliError::Usage(text));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    tempfile::NamedTempFile::new_in(folder).map_err(CliError::file(path))?;
    Ok(())
}

/// A generated text stands alone on standard output.
fn show_fetched(context: &Context, fetched: &Fetched) -> Result<()> {
    let about = format!(
        "{} ({} bytes, {}), as the chain has accepted it, from {}",
        fetched.output_path.as_deref().unwrap_or("output"),
        fetched.output_bytes,
        fetched.output_hash,
        fetched.from
    );
    match &fetched.generation {
        Some(made) if !context.out.is_json() => {
            context.out.piece(&made.shown());
            context.out.piece("\n");
            context.out.step(&about);
            Ok(())
        }
        _ => context.out.result(fetched, || {
            format!("{about}\n{}", neighbors_text(&fetched.nearest))
        }),
    }
}

/// What a generation's output blob holds.
fn generation(blob: &[u8]) -> Result<Generation> {
    Generation::decode(blob).map_err(|e| CliError::NotGenerated(e.to_string()))
}

/// Why there is nothing to fetch.
fn no_result(task: TaskId, info: &TaskInfo) -> CliError {
    match &info.task.state {
        TaskState::Failed { reason, .. } => CliError::NoResult {
            task,
            reason: words::reason_text(*reason).into(),
        },
        TaskState::Cancelled { .. } => CliError::NoResult {
            task,
            reason: "it was cancelled".into(),
        },
        state => CliError::NotDecided {
            task,
            state: words::state_name(state),
        },
    }
}

/// The lines of a file that is the text of the task's input.
fn items_from_file(path: &Path, codec: &TextCodec, info: &TaskInfo) -> Result<Vec<String>> {
    let text = fs::read(path).map_err(CliError::file(path))?;
    if content_hash(&Input::items(codec, &text)?.blob) != info.task.spec.input {
        let text = format!("{} is not the text that was submitted", path.display());
        return Err(CliError::Usage(text));
    }
    items_of(path, &text)
}

fn items_of(path: &Path, text: &[u8]) -> Result<Vec<String>> {
    let items = lines(text, u32::MAX).map_err(|source| CliError::Lines {
        path: path.to_owned(),
        source,
    })?;
    Ok(items.into_iter().map(String::from).collect())
}

/// What the model sees of each item.
fn items_from_ids(input: &[u8], codec: &TextCodec, items: u32) -> Result<Vec<String>> {
    let reader = InputReader::new(input, codec.bounds());
    let text = |item| codec.decode(&reader.item(item)).map_err(TextInputError::from);
    Ok((0..items).map(text).collect::<std::result::Result<_, _>>()?)
}

/// The task's input from this home, its client, or a provider that has computed on it.
async fn input_from_peers(
    chain: &dyn Chain,
    node: &Node,
    info: &TaskInfo,
    wanted: &Wanted,
    ticket: Option<Ticket>,
) -> Result<Bytes> {
    let spec = &info.task.spec;
    let mut sources = Vec::new();
    for provider in &wanted.providers {
        if let Some(record) = chain.provider(When::Best, provider).await? {
            sources.extend(record.endpoints);
        }
    }
    sources.extend(spec.sources.iter().cloned());
    let options = FetchOptions {
        ticket,
        ..FetchOptions::sized(spec.input_bytes.into())
    };
    Ok(node.fetch(spec.input, &sources, &options).await?)
}

pub(super) fn nearest_lines(context: &Context, args: &NearestArgs) -> Result<()> {
    let text = fs::read(&args.input).map_err(CliError::file(&args.input))?;
    let blob = fs::read(&args.output).map_err(CliError::file(&args.output))?;
    let items = items_of(&args.input, &text)?;
    let items: Vec<&str> = items.iter().map(String::as_str).collect();
    let neighbors = nearest(&items, &Embeddings::decode(&blob)?, args.count)?;
    context.out.result(&neighbors, || neighbors_text(&neighbors))
}

fn neighbors_text(neighbors: &[Neighbor]) -> String {
    let lines = neighbors.iter().map(|neighbor| {
        format!(
            "\n{}\n  {:.3}  {}\n",
            neighbor.line, neighbor.cosine, neighbor.nearest
        )
    });
    lines.collect()
}
