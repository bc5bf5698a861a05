//! `surety task submit`.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use serde::Serialize;
use surety_chain_client::{
    AccountId, BlockNumber, BlockRef, Call, Chain, ChainError, ErrorClass, RegisteredModel, TaskRecord,
    Until, When,
};
use surety_network::{DataPlane, Node};
use surety_types::{
    limits,
    model::Operation,
    multiaddr::{Endpoint, Endpoints},
    task::TaskSpec,
    ContentHash, TaskId,
};

use super::{
    follow::Follow, grants::Grants, inputs::Supplier, record::ClientRecord, steps::posted_text, work, Context,
};
use crate::{
    args::SubmitArgs,
    error::{CliError, Result},
    keys::Key,
    models,
};

/// What a detached submission prints.
#[derive(Serialize)]
struct Posted {
    task: TaskId,
    block: u32,
    input_hash: String,
    sources: Vec<String>,
}

pub(super) async fn run(context: &Context, args: &SubmitArgs) -> Result<()> {
    let work = work::read(args, &context.models())?;
    check_redundancy(args.redundancy)?;
    let key = context.key()?;
    let chain = context.chain().await?;
    let (model, registered) = models::registered(&*chain, &context.models(), &args.model).await?;
    check_offer(&*chain, args, work.operation, &registered).await?;
    let node = context.node(&*chain, &context.config.task).await?;
    let (operation, units_max) = (work.operation, work.units_max);
    let input_bytes = u32::try_from(work.input.len())
        .map_err(|_| CliError::Usage("the input is too large for one task".into()))?;
    super::welcome(&chain, &node).await?;
    let input = node.publish(work.input).await?;
    let sources = sources(&node)?;
    let spec = TaskSpec {
        model,
        operation,
        input,
        input_bytes,
        units_max,
        redundancy: args.redundancy,
        sources: sources.clone(),
        security: args.security.security(),
    };
    let started = Instant::now();
    let posted = post(context, &*chain, &key, spec, args).await?;
    let task = posted.task;
    context.out.step(&posted_text(
        task,
        args.cap.0,
        args.redundancy,
        units_max,
        posted.block,
    ));
    remember(context, &*chain, task, started)?;
    if args.detach {
        node.stop().await;
        return context.out.result(&posted, || {
            format!(
                "providers can fetch the input while this runs, and what they demand of it on the chain is answered; your \
                 lock is lost when it does not run then: surety task watch {task} --out FILE"
            )
        });
    }
    let ticket = super::ticket(context, &*chain, &node, task);
    let follow = Follow {
        chain,
        plane: Arc::new(node),
        out: context.out,
        home: context.config.home.clone(),
        task,
        operation,
        age: Some(started.elapsed()),
        output_path: args.out.clone(),
        show_tokens: args.follow,
        supplier: Some(Supplier::new(key.signer)),
        grants: Some(Grants::default()),
        ticket,
    };
    follow.until_settled().await
}

fn check_redundancy(redundancy: u32) -> Result<()> {
    let max = limits::REDUNDANCY_MAX;
    if (1..=max).contains(&redundancy) {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "--redundancy must be between 1 and {max}, not {redundancy}"
    )))
}

/// The chain would say the same, and take a fee for it.
async fn check_offer(
    chain: &dyn Chain,
    args: &SubmitArgs,
    operation: Operation,
    model: &RegisteredModel,
) -> Result<()> {
    if !model.manifest.operations.contains(&operation) {
        let name = models::name(&model.manifest);
        let what = match operation {
            Operation::Embed => "embed text",
            Operation::Generate => "generate text",
        };
        return Err(CliError::Usage(format!("{name} does not offer to {what}")));
    }
    let limit = chain
        .price_limit(When::Finalised, args.cap.0, args.redundancy)
        .await?;
    match limit {
        Some(_) => Ok(()),
        None => Err(CliError::CapBelowFee {
            cap: args.cap,
            redundancy: args.redundancy,
        }),
    }
}

fn sources(node: &Node) -> Result<Endpoints> {
    let endpoints: Vec<Endpoint> = node.endpoints();
    if endpoints.is_empty() {
        return Err(CliError::Usage(
            "the input is not reachable for providers: name an address with --listen or --external".into(),
        ));
    }
    Endpoints::try_from(endpoints).map_err(|_| CliError::Internal("too many endpoints".into()))
}

async fn post(
    context: &Context,
    chain: &dyn Chain,
    key: &Key,
    spec: TaskSpec,
    args: &SubmitArgs,
) -> Result<Posted> {
    let input = spec.input;
    let sources = spec.sources.iter();
    let sources = sources.map(|s| String::from_utf8_lossy(s).into_owned()).collect();
    let waiting = context.out.spinner();
    waiting.set_message("posting the task");
    let call = Call::PostTask {
        spec,
        cap: args.cap.0,
    };
    let included = chain.submit(&key.signer, call, Until::Included.into()).await?;
    let task = included
        .event("TaskAuction", "TaskPosted")
        .and_then(|event| event.task())
        .ok_or_else(|| CliError::Internal("the task was posted, but the block does not say so".into()))?;
    waiting.set_message("the task is posted, waiting until that is final");
    let posted = (task, included.block);
    let (task, block) = until_final(chain, posted, key.signer.account(), input).await?;
    waiting.finish_and_clear();
    Ok(Posted {
        task,
        block,
        input_hash: format!("{input:?}"),
        sources,
    })
}

/// Between two looks at what is final.
const POLL: Duration = Duration::from_secs(1);

/// The number of a task that is in a best block, once it is final: it could change with the block that it is in. However
/// long that takes: the money is on its way already, and the chain's clock waits, too.
async fn until_final(
    chain: &dyn Chain,
    (task, block): (TaskId, BlockRef),
    client: &AccountId,
    input: ContentHash,
) -> Result<(TaskId, BlockNumber)> {
    loop {
        match look(chain, (task, block), client, input).await {
            Ok((_, Some(found))) => return Ok(found),
            Ok((last, None)) if last > block.number.saturating_add(REPLACED_MAX) => {
                let reason = "the block that it was in was replaced, and no other has it; look with: surety task list --mine";
                return Err(ChainError::Unknown {
                    reason: reason.into(),
                }
                .into());
            }
            Ok((_, None)) => {}
            Err(e) if e.class() == ErrorClass::Refused => {
                tracing::warn!(error = %e, "cannot see what is final")
            }
            Err(e) => return Err(e.into()),
        }
        tokio::time::sleep(POLL).await;
    }
}

/// The last finalised block, and a task in its state: under its number, or, where its block was replaced, under another.
async fn look(
    chain: &dyn Chain,
    (task, block): (TaskId, BlockRef),
    client: &AccountId,
    input: ContentHash,
) -> std::result::Result<(BlockNumber, Option<(TaskId, BlockNumber)>), ChainError> {
    let last = chain.block(When::Finalised).await?.number;
    if last < block.number {
        return Ok((last, None));
    }
    let earliest = block.number.saturating_sub(REPLACED_MAX);
    let is_it = |found: &TaskRecord| {
        found.client == *client && found.spec.input == input && found.posted_at >= earliest
    };
    if let Some(info) = chain.task(When::Finalised, task).await? {
        if is_it(&info.task) {
            return Ok((last, Some((task, info.task.posted_at))));
        }
    }
    let recent = chain.recent_tasks(When::Finalised, RECENT).await?;
    let found = recent.into_iter().find(|(_, found)| is_it(found));
    Ok((last, found.map(|(task, found)| (task, found.posted_at))))
}

/// Blocks that a call may be good for, and so find itself earlier on another fork.
const REPLACED_MAX: BlockNumber = 64;

/// Tasks among which one is looked for whose block was replaced.
const RECENT: u32 = 200;

fn remember(context: &Context, chain: &dyn Chain, task: TaskId, started: Instant) -> Result<()> {
    let posted = SystemTime::now()
        .checked_sub(started.elapsed())
        .and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok())
        .unwrap_or_default();
    let record = ClientRecord {
        posted_unix_ms: u64::try_from(posted.as_millis()).unwrap_or(u64::MAX),
        listen: context.config.task.listen.clone(),
    };
    record.save(&context.config.home, &chain.info().genesis, task)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::Parser;
    use surety_chain_client::FakeChain;
    use surety_types::{
        model::{ModelFamily, ModelManifest, Tier},
        ModelId,
    };

    use super::*;
    use crate::args::{Cli, Command, TaskCommand};

    const EMBED: Operation = Operation::Embed;

    fn args(flags: &str) -> SubmitArgs {
        let line = format!("surety task submit --file text --model m --out o {flags}");
        match Cli::try_parse_from(line.split(' ')).unwrap().command {
            Command::Task(TaskCommand::Submit(args)) => *args,
            other => panic!("{other:?}"),
        }
    }

    fn model(operations: Vec<Operation>) -> RegisteredModel {
        RegisteredModel {
            owner: AccountId::new([0; 32]),
            manifest: ModelManifest {
                name: b"m".to_vec().try_into().unwrap(),
                family: ModelFamily::Bert,
                tier: Tier::HardwareClass,
                operations: operations.try_into().unwrap(),
                weights: ModelId::zero(),
                weights_bytes: 0,
                tokenizer: ModelId::zero(),
                config: ModelId::zero(),
                exact: None,
            },
            deposit: 0,
        }
    }

    #[tokio::test]
    async fn a_cap_below_the_fee_is_refused_before_anything_is_posted() {
        let chain = FakeChain::new();
        let model = model(vec![Operation::Embed]);
        let low = args("--cap 2planck --redundancy 3");
        let error = check_offer(&chain, &low, EMBED, &model).await.unwrap_err();
        assert!(matches!(error, CliError::CapBelowFee { redundancy: 3, .. }));
        assert_eq!(error.exit_code(), 4);
        let enough = args("--cap 3planck --redundancy 3");
        check_offer(&chain, &enough, EMBED, &model).await.unwrap();
        assert!(chain.calls().is_empty());
    }

    #[tokio::test]
    async fn a_posted_task_is_waited_for_until_it_is_final_and_found_under_whatever_number() {
        let chain = FakeChain::new();
        let client = surety_chain_client::Signer::from_uri("//Client").unwrap();
        let input = ContentHash::repeat_byte(7);
        let spec = TaskSpec {
            model: ModelId::zero(),
            operation: EMBED,
            input,
            input_bytes: 1,
            units_max: 1,
            redundancy: 1,
            sources: Default::default(),
            security: Default::default(),
        };
        let call = Call::PostTask { spec, cap: 9 };
        let included = chain.submit(&client, call, Until::Included.into()).await.unwrap();
        let task = included
            .event("TaskAuction", "TaskPosted")
            .unwrap()
            .task()
            .unwrap();
        let posted = (task, included.block);
        chain.extend();
        let seen = look(&chain, posted, client.account(), input).await.unwrap();
        assert_eq!(seen.1, None, "in a best block, and no finality");
        // Its block is replaced by one in which others came first.
        chain.change(|state| {
            let ours = state.tasks.remove(&task).unwrap();
            state.tasks.insert(task + 5, ours);
        });
        chain.finalise();
        let found = until_final(&chain, posted, client.account(), input)
            .await
            .unwrap();
        assert_eq!(found.0, task + 5);
        let other = surety_chain_client::Signer::from_uri("//Other").unwrap();
        for _ in 0..=REPLACED_MAX + 2 {
            chain.finalise();
        }
        let lost = until_final(&chain, posted, other.account(), input).await;
        assert!(matches!(lost, Err(CliError::Chain(ChainError::Unknown { .. }))));
    }

    #[test]
    fn security_is_standard_with_nothing_at_risk_unless_told() {
        use surety_types::task::{Security, SecurityLevel};

        assert_eq!(args("--cap 1").security.security(), Security::default());
        let told = args("--cap 1 --security high --value-at-risk 7planck");
        let expected = Security {
            level: SecurityLevel::High,
            value_at_risk: 7,
        };
        assert_eq!(told.security.security(), expected);
    }

    #[tokio::test]
    async fn a_model_without_the_operation_is_refused() {
        let chain = FakeChain::new();
        for (offered, asked) in [(EMBED, Operation::Generate), (Operation::Generate, EMBED)] {
            let error = check_offer(&chain, &args("--cap 1"), asked, &model(vec![offered])).await;
            let text = error.unwrap_err().to_string();
            assert!(text.starts_with("m does not offer to"), "{text}");
        }
    }
}
