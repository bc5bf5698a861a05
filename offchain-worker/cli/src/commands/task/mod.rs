//! `surety task`: posting tasks, following them, and getting their results.

mod own;
mod quote;
mod submit;
mod work;

use std::{fs, path::Path, sync::Arc};

use serde::Serialize;
use surety_chain_client::{AccountId, Call, Chain, TaskInfo, TaskRecord, When, address, short};
use surety_client::{
    deliver::{self, Wanted, wanted_for_good},
    demands::Demander,
    follow::{Follow, Told, story},
    grants::Grants,
    inputs::Supplier,
    nearest::{Neighbor, nearest},
    record::ClientRecord,
    serve::welcome,
    text::{Generated, Input, TextInputError, ToText},
    words, write_atomically,
};
use surety_engine::{Embeddings, content_hash, generation::Generation};
use surety_models::tokens::{TextCodec, lines};
use surety_network::{Bytes, DataPlane, FetchOptions, Node, Ticket};
use surety_types::{TaskId, input::InputReader, model::Operation, task::TaskState};

use super::Context;
use crate::{
    amount::{Amount, Plancks},
    args::{ExplainArgs, ListArgs, NearestArgs, ResultArgs, TaskCommand, WatchArgs},
    error::{CliError, Result},
    models,
    output::{Output, table},
};

/// Tasks of others that are looked at, at least, for one's own among them.
const LIST_LOOK_MIN: u32 = 64;

pub(super) async fn run(context: &Context, command: TaskCommand) -> Result<()> {
    match command {
        TaskCommand::Submit(args) => submit::run(context, &args).await,
        TaskCommand::Quote(args) => quote::run(context, &args).await,
        TaskCommand::Watch(args) => watch(context, &args).await,
        TaskCommand::Explain(args) => explain(context, &args).await,
        TaskCommand::Result(args) => result(context, &args).await,
        TaskCommand::List(args) => list(context, &args).await,
        TaskCommand::Cancel(args) => {
            super::account::submit(context, Call::CancelTask { task: args.task }).await
        }
        TaskCommand::Nearest(args) => nearest_lines(context, &args),
    }
}

async fn watch(context: &Context, args: &WatchArgs) -> Result<()> {
    let chain = context.chain().await?;
    let genesis = chain.info().genesis;
    let task = named_or_newest(context, &*chain, args.task).await?;
    let info = known_task(&*chain, task).await?;
    let operation = info.task.spec.operation;
    if args.follow && operation != Operation::Generate {
        let text = format!("task {task} generates no text: there is nothing for --follow");
        return Err(CliError::Usage(text));
    }
    let own = own::own(context, &genesis, (task, &info.task))?;
    let mut data = context.config.task.clone();
    // The task says where its input is: it has to be served right there.
    data.listen = own.as_ref().map(|own| own.listen.clone()).unwrap_or_default();
    let node = context.node(&*chain, &data).await?;
    let (mut signing, mut grants) = ((None, None), None);
    if own.is_some() {
        welcome(&chain, &node).await?;
        serve_input(context, &node, &info).await;
        (signing, grants) = (signing_of(context), Some(Grants::default()));
    }
    let ticket = ticket(context, &*chain, &node, task);
    let text = match operation {
        Operation::Generate => text_of(context, &*chain, &info).await,
        Operation::Embed => None,
    };
    let follow = Follow {
        chain,
        plane: Arc::new(node),
        screen: context.out,
        home: context.config.home.clone(),
        task,
        operation,
        age: own.and_then(|own| own.age),
        output_path: args.out.clone(),
        show_tokens: args.follow,
        leave_at_result: false,
        supplier: signing.0,
        demander: signing.1,
        grants,
        ticket,
        text,
    };
    to_its_end(follow).await
}

async fn explain(context: &Context, args: &ExplainArgs) -> Result<()> {
    let chain = context.chain().await?;
    let task = named_or_newest(context, &*chain, args.task).await?;
    let told = story(&*chain, task, args.blocks).await?;
    context.out.result(&told, || {
        let line = |told: &Told| {
            format!(
                "block {:>7}  {}\n",
                told.block,
                told.text.replace('\n', "\n               ")
            )
        };
        match told.as_slice() {
            [] => "the node keeps no block of it any more: ask an archive node with --rpc".into(),
            told => told.iter().map(line).collect(),
        }
    })
}

/// Shows each step until the task is over, then prints the report.
async fn to_its_end(follow: Follow<Output>) -> Result<()> {
    let task = follow.task;
    let (out, follows) = (follow.screen, follow.show_tokens);
    let followed = tokio::select! {
        followed = follow.until_over() => followed?,
        _ = tokio::signal::ctrl_c() => {
            let hint = format!("the task goes on; follow it with: surety task watch {task} --out FILE");
            return Err(CliError::Interrupted(hint));
        }
    };
    let report = followed.report;
    match report.generation.is_some() && !out.is_json() {
        // The text is what is on standard output.
        true => out.step(&report.text()),
        false if follows && out.is_json() => out.line(&report.as_event()),
        false => out.result(&report, || report.text())?,
    }
    match followed.failure {
        Some(reason) => Err(CliError::NoResult { task, reason }),
        None => Ok(()),
    }
}

/// What shows that we are the client, where there is a key to sign it with.
fn ticket(context: &Context, chain: &dyn Chain, node: &Node, task: TaskId) -> Option<Ticket> {
    let key = context.key().ok()?;
    surety_access::ticket(
        &key.signer,
        &chain.info().genesis,
        &DataPlane::peer_id(node),
        task,
        None,
    )
}

/// Keeps the input of an own task available to its providers.
async fn serve_input(context: &Context, node: &Node, info: &TaskInfo) {
    let input = info.task.spec.input;
    let served = match node.store().get(&input) {
        Ok(bytes) => node.publish(bytes.into()).await.map(drop).map_err(CliError::from),
        Err(e) => Err(e.into()),
    };
    if let Err(e) = served {
        context
            .out
            .step(&format!("the input cannot be served from here: {e}"));
    }
}

/// Answers demands for the input of an own task, and demands its output, where there is a key to sign with.
fn signing_of(context: &Context) -> (Option<Supplier>, Option<Demander>) {
    match context.key() {
        Ok(key) => (
            Some(Supplier::new(key.signer.clone())),
            Some(Demander::new(key.signer)),
        ),
        Err(e) => {
            let text = format!("nothing is shown or demanded on the chain from here: {e}");
            context.out.step(&text);
            (None, None)
        }
    }
}

/// What a task's ids become text by, where that is to be had.
async fn text_of(context: &Context, chain: &dyn Chain, info: &TaskInfo) -> Option<Arc<dyn ToText>> {
    match codec_of(context, chain, info).await {
        Ok(codec) => Some(Arc::new(codec)),
        Err(e) => {
            context.out.step(&format!("ids are shown, and no text: {e}"));
            None
        }
    }
}

async fn codec_of(context: &Context, chain: &dyn Chain, info: &TaskInfo) -> Result<TextCodec> {
    let model = info.task.spec.model;
    let registered = chain.model(When::Finalized, &model).await?;
    let registered = registered.ok_or_else(|| CliError::UnknownModel(format!("{model:?}")))?;
    models::text(&context.models(), &registered.manifest).await
}

/// The task that was named, or the newest that was submitted from this home.
async fn named_or_newest(context: &Context, chain: &dyn Chain, named: Option<TaskId>) -> Result<TaskId> {
    let home = &context.config.home;
    let key = context.key().ok();
    own::adopt(home, chain, key.as_ref().map(|key| key.signer.account())).await?;
    let task = match named {
        Some(task) => Some(task),
        None => ClientRecord::newest(home, &chain.info().genesis)?,
    };
    task.ok_or_else(|| {
        let home = home.display();
        CliError::Usage(format!(
            "no task of this chain was submitted from {home}: say which by its number (surety task list --mine)"
        ))
    })
}

async fn known_task(chain: &dyn Chain, task: TaskId) -> Result<TaskInfo> {
    let info = chain.task(When::Finalized, task).await?;
    info.ok_or(CliError::UnknownTask(task))
}

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

async fn result(context: &Context, args: &ResultArgs) -> Result<()> {
    let chain = context.chain().await?;
    let task = named_or_newest(context, &*chain, args.task).await?;
    let info = known_task(&*chain, task).await?;
    check_result_flags(args, info.task.spec.operation)?;
    let wanted = wanted_for_good(&info).ok_or_else(|| no_result(task, &info))?;
    let data = crate::config::DataConfig {
        listen: Vec::new(),
        external: Vec::new(),
    };
    let node = context.node(&*chain, &data).await?;
    let ticket = ticket(context, &*chain, &node, task);
    let home = &context.config.home;
    let delivery = deliver::fetch(&*chain, &node, home, task, &wanted, ticket.as_ref())
        .await
        .map_err(|attempts| CliError::Undelivered { task, attempts })?;
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

/// One task in a list. The cap is in plancks, as text.
#[derive(Serialize)]
struct Listed {
    task: TaskId,
    state: String,
    client: String,
    model: String,
    redundancy: u32,
    units_max: u32,
    cap: Plancks,
    posted_at: u32,
}

impl Listed {
    fn new(task: TaskId, record: &TaskRecord) -> Self {
        Self {
            task,
            state: words::state_name(&record.state),
            client: address(&record.client),
            model: format!("{:?}", record.spec.model),
            redundancy: record.spec.redundancy,
            units_max: record.spec.units_max,
            cap: Plancks(record.cap),
            posted_at: record.posted_at,
        }
    }
}

async fn list(context: &Context, args: &ListArgs) -> Result<()> {
    let owner = if args.mine {
        Some(context.key()?.signer.account().clone())
    } else {
        None
    };
    let chain = context.chain().await?;
    let tasks = newest_tasks(&*chain, owner.as_ref(), args.limit).await?;
    let listed: Vec<Listed> = tasks.iter().map(|(id, task)| Listed::new(*id, task)).collect();
    context.out.result(&listed, || {
        let mut table = table(["task", "state", "client", "k", "units", "cap", "posted in"]);
        for (row, (_, task)) in listed.iter().zip(&tasks) {
            table.add_row([
                row.task.to_string(),
                row.state.clone(),
                short(&task.client),
                row.redundancy.to_string(),
                row.units_max.to_string(),
                Amount(row.cap.0).to_string(),
                row.posted_at.to_string(),
            ]);
        }
        table.to_string()
    })
}

/// The newest tasks, of one client or of all.
async fn newest_tasks(
    chain: &dyn Chain,
    owner: Option<&AccountId>,
    limit: u32,
) -> Result<Vec<(TaskId, TaskRecord)>> {
    let when = When::At(chain.block(When::Finalized).await?.hash);
    let mut looked_at = limit;
    loop {
        let mut tasks = chain.recent_tasks(when, looked_at).await?;
        let is_all = u32::try_from(tasks.len()).is_ok_and(|known| known < looked_at);
        tasks.retain(|(_, task)| owner.is_none_or(|owner| task.client == *owner));
        let is_enough = tasks.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
        if is_enough || is_all || looked_at == u32::MAX {
            tasks.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            return Ok(tasks);
        }
        // Each look is at least as long as all before it: together they cost at most twice the last one.
        looked_at = looked_at.max(LIST_LOOK_MIN).saturating_mul(4);
    }
}

fn nearest_lines(context: &Context, args: &NearestArgs) -> Result<()> {
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
