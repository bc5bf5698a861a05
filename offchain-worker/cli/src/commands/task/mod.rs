//! `surety task`: posting tasks, following them, and getting their results.

pub(super) mod batch;
mod least;
mod own;
pub(super) mod quote;
mod result;
mod submit;
mod work;

use std::sync::Arc;

use serde::Serialize;
use surety_chain_client::{AccountId, Call, Chain, TaskInfo, TaskRecord, When, address, short};
use surety_client::{
    demands::Demander,
    follow::{Follow, Told, story},
    inputs::Supplier,
    record::ClientRecord,
    serve::welcome,
    text::ToText,
    words,
};
use surety_models::tokens::TextCodec;
use surety_network::{DataPlane, Node, Ticket};
use surety_types::{
    TaskId,
    model::Operation,
    speed::{Requirements, Tier},
};

use super::Context;
use crate::{
    amount::{Amount, Plancks},
    args::{ExplainArgs, ListArgs, TaskCommand, WatchArgs},
    error::{CliError, Result},
    models,
    output::{Output, table},
};

/// Tasks of others that are looked at, at least, for one's own among them.
const LIST_LOOK_MIN: u32 = 64;

pub(super) async fn run(context: &Context, command: TaskCommand) -> Result<()> {
    match command {
        TaskCommand::Submit(args) => submit::run(context, &args).await,
        TaskCommand::Watch(args) => watch(context, &args).await,
        TaskCommand::Explain(args) => explain(context, &args).await,
        TaskCommand::Result(args) => result::run(context, &args).await,
        TaskCommand::List(args) => list(context, &args).await,
        TaskCommand::Cancel(args) => {
            super::account::submit(context, Call::CancelTask { task: args.task }).await
        }
        TaskCommand::Nearest(args) => result::nearest_lines(context, &args),
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
    let mut signing = (None, None);
    if own.is_some() {
        welcome(&chain, &node, Arc::new(info.task.client.clone())).await?;
        serve_input(context, &node, &info).await;
        signing = signing_of(context);
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
        told.iter().map(line).collect()
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
    requirements: Required,
}

/// What its providers have to be.
#[derive(Serialize)]
struct Required {
    min_tier: Option<&'static str>,
    min_memory_mib: u32,
    region: Option<String>,
}

impl Required {
    fn new(asked: &Requirements) -> Self {
        Self {
            min_tier: asked.tier.map(Tier::letter),
            min_memory_mib: asked.memory_mib,
            region: asked.region.map(|region| region.to_string()),
        }
    }

    fn text(&self) -> String {
        let tier = self.min_tier.map(|tier| format!("tier {tier}"));
        let memory = (self.min_memory_mib > 0).then(|| format!("{} MiB", self.min_memory_mib));
        let all = tier.into_iter().chain(memory).chain(self.region.clone());
        all.collect::<Vec<_>>().join(", ")
    }
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
            requirements: Required::new(&record.spec.requirements),
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
        let mut table = table([
            "task",
            "state",
            "client",
            "k",
            "units",
            "cap",
            "posted in",
            "asks for",
        ]);
        for (row, (_, task)) in listed.iter().zip(&tasks) {
            table.add_row([
                row.task.to_string(),
                row.state.clone(),
                short(&task.client),
                row.redundancy.to_string(),
                row.units_max.to_string(),
                Amount(row.cap.0).to_string(),
                row.posted_at.to_string(),
                row.requirements.text(),
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

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
