//! `surety task submit`.

use std::{sync::Arc, time::Instant};

use serde::Serialize;
use surety_chain_client::{AccountId, Balance, Chain, RegisteredModel, When, address};
use surety_client::{demands::Demander, follow::Follow, inputs::Supplier, serve::welcome};
use surety_models::tokens::TextCodec;
use surety_network::{Bytes, DataPlane};
use surety_types::{
    ModelId, TaskId,
    input::Work as TaskWork,
    model::Operation,
    multiaddr::{Endpoint, Endpoints},
    task::TaskSpec,
};

use super::{
    Context,
    least::Wanted,
    own::Posting,
    quote::Quote,
    result::check_out,
    to_its_end,
    work::{self, Encoded, Work},
};
use crate::{
    amount::Amount,
    args::{SpecArgs, SubmitArgs, UntilArg},
    chat,
    error::{CliError, Result},
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
    let work = work::read(&args.spec)?;
    check_out(args.out.as_deref())?;
    let key = context.key()?;
    let chain = context.chain().await?;
    let prepared = prepare(context, &*chain, &args.spec, &work).await?;
    let wanted = prepared.wanted(args.spec.redundancy);
    let cap = match args.cap {
        Some(cap) => cap,
        None => quoted_cap(context, &*chain, &args.spec, &wanted).await?,
    };
    // The chain would say the same, and take a fee for it.
    wanted.check_cap(&*chain, cap).await?;
    let Prepared {
        model,
        input,
        work,
        codec,
        ..
    } = prepared;
    let operation = work.operation;
    check_funds(&*chain, key.signer.account(), cap).await?;
    let node = context.node(&*chain, &context.config.task).await?;
    welcome(&chain, &node, Arc::new(key.signer.account().clone())).await?;
    let input = node.publish(input).await?;
    let sources = sources(&node)?;
    let spec = TaskSpec {
        model,
        operation,
        input,
        input_bytes: work.input_bytes,
        units_max: work.units_max,
        redundancy: args.spec.redundancy,
        sources: sources.clone(),
        security: args.spec.security.security(),
        requirements: args.spec.requirements.requirements(),
    };
    context.out.step(what_becomes_public(operation));
    let started = Instant::now();
    let input_hash = format!("{input:?}");
    let posting = Posting::new(context, &*chain, context.config.task.listen.clone());
    let (task, block) = posting.post(&key.signer, spec, cap).await?;
    if args.detach {
        node.stop().await;
        return detached(context, (task, block), input_hash, &sources);
    }
    let ticket = super::ticket(context, &*chain, &node, task);
    let follow = Follow {
        chain,
        plane: Arc::new(node),
        screen: context.out,
        home: context.config.home.clone(),
        task,
        operation,
        age: Some(started.elapsed()),
        output_path: args.out.clone(),
        show_tokens: args.follow,
        leave_at_result: args.until == UntilArg::Result,
        supplier: Some(Supplier::new(key.signer.clone())),
        demander: Some(Demander::new(key.signer)),
        ticket,
        text: Some(Arc::new(codec)),
    };
    to_its_end(follow).await
}

/// Tells what was posted, and what is to be done for it.
fn detached(
    context: &Context,
    (task, block): (TaskId, u32),
    input_hash: String,
    sources: &Endpoints,
) -> Result<()> {
    let texts = sources.iter().map(ToString::to_string);
    let posted = Posted {
        task,
        block,
        input_hash,
        sources: texts.collect(),
    };
    context.out.result(&posted, || {
        format!(
            "providers can fetch the input while this runs, and what they demand of it on the chain is answered; your lock \
             is lost when it does not run then: surety task watch {task} --out FILE"
        )
    })
}

/// What the task may cost where nobody has said it, shown before it is posted.
async fn quoted_cap(
    context: &Context,
    chain: &dyn Chain,
    spec: &SpecArgs,
    wanted: &Wanted<'_>,
) -> Result<Amount> {
    let quote = Quote::new(chain, spec, wanted).await?;
    context.out.step(&quote.text());
    quote.default_cap()
}

/// What is to be computed, as the model takes it.
pub(super) struct Prepared {
    model: ModelId,
    registered: RegisteredModel,
    input: Bytes,
    work: TaskWork,
    codec: TextCodec,
}

impl Prepared {
    /// What its price goes by, where so many are to compute it.
    pub(super) const fn wanted(&self, redundancy: u32) -> Wanted<'_> {
        Wanted {
            model: self.model,
            registered: &self.registered,
            work: self.work,
            redundancy,
        }
    }
}

/// Finds the model, and turns text into its ids.
///
/// # Errors
/// When the chain does not know the model, or this is not what it can be asked for.
pub(super) async fn prepare(
    context: &Context,
    chain: &dyn Chain,
    spec: &SpecArgs,
    work: &Work,
) -> Result<Prepared> {
    let (model, registered) = models::registered(chain, &context.models(), &spec.model).await?;
    check_operation(work.operation(), &registered)?;
    let codec = models::text(&context.models(), &registered.manifest).await?;
    let Encoded {
        input,
        units_max,
        asked,
    } = work.encode(&codec, &chat::renderer(), spec.units_max)?;
    if asked {
        context.out.step(
            "the prompt is asked as a user's message, by the model's chat template; with --raw the model goes on from it \
             as it is",
        );
    }
    let input_bytes = u32::try_from(input.len())
        .map_err(|_| CliError::Usage("the input is too large for one task".into()))?;
    Ok(Prepared {
        model,
        registered,
        input,
        work: TaskWork {
            operation: work.operation(),
            input_bytes,
            units_max,
        },
        codec,
    })
}

/// The chain would say the same, and take a fee for it.
fn check_operation(operation: Operation, model: &RegisteredModel) -> Result<()> {
    if !model.manifest.operations.contains(&operation) {
        let name = models::name(&model.manifest);
        let what = match operation {
            Operation::Embed => "embed text",
            Operation::Generate => "generate text",
        };
        return Err(CliError::Usage(format!("{name} does not offer to {what}")));
    }
    Ok(())
}

/// What a client locks beside a cap, as one part of so many, unless governance has set it otherwise.
const LOCK_PART: Balance = 4;

/// The chain would say the same in fewer words, and take a fee for it.
pub(super) async fn check_funds(chain: &dyn Chain, client: &AccountId, cap: Amount) -> Result<()> {
    let parameters = chain.parameters(When::Finalized).await?;
    let is_usual = !parameters.iter().any(|parameter| parameter.name == "ClientLock");
    let lock = if is_usual { cap.0 / LOCK_PART } else { 0 };
    let needed = cap.0.saturating_add(lock);
    // What was sent a moment ago counts.
    match chain.funds(When::Best, client).await?.free {
        free if free < needed => Err(CliError::NotEnough {
            account: address(client),
            free: Amount(free),
            needed: Amount(needed),
        }),
        _ => Ok(()),
    }
}

pub(super) fn sources(plane: &dyn DataPlane) -> Result<Endpoints> {
    let endpoints: Vec<Endpoint> = plane.endpoints();
    if endpoints.is_empty() {
        return Err(CliError::Usage(
            "the input is not reachable for providers: name an address with --listen or --external".into(),
        ));
    }
    Endpoints::try_from(endpoints).map_err(|_| CliError::Internal("too many endpoints".into()))
}

/// What whoever posts such a task has to know before. What can be demanded on chain is public from then on.
const fn what_becomes_public(operation: Operation) -> &'static str {
    match operation {
        Operation::Generate => {
            "the whole answer and the whole prompt can be demanded on the public chain, in a dispute or by an auditor \
             that is served nothing, as token ids that anybody with the model can read: post nothing that must stay \
             private"
        }
        Operation::Embed => {
            "pieces of the input and of the output can be demanded on the public chain, as token ids that anybody \
             with the model can read: post nothing that must stay private"
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::Parser;
    use surety_chain_client::{FakeChain, Funds, Parameter};
    use surety_types::{
        ModelId,
        model::{ModelFamily, ModelManifest, Tier},
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
                text: Default::default(),
                config: ModelId::zero(),
                exact: None,
            },
            deposit: 0,
        }
    }

    #[tokio::test]
    async fn an_account_without_the_money_is_told_how_much_before_anything_is_posted() {
        let (chain, client) = (FakeChain::new(), AccountId::new([7; 32]));
        let give = |free| {
            let funds = Funds { free, held: 0 };
            chain.change(|state| state.funds.insert(client.clone(), funds));
            chain.finalize();
        };
        let cap = Amount(4 * crate::SURE);
        give(cap.0);
        let error = check_funds(&chain, &client, cap).await.unwrap_err();
        assert_eq!(error.exit_code(), 4);
        let text = error.to_string();
        assert_eq!(text.lines().count(), 1);
        assert!(
            text.contains("has 4 SURE free") && text.contains("needs 5 SURE") && text.contains("--cap"),
            "{text}"
        );
        give(5 * crate::SURE);
        check_funds(&chain, &client, cap).await.unwrap();
        // Another lock is the chain's business.
        give(cap.0);
        let set = Parameter {
            group: "Billing".into(),
            name: "ClientLock".into(),
            value: "1%".into(),
        };
        chain.change(|state| state.parameters.push(set));
        chain.finalize();
        check_funds(&chain, &client, cap).await.unwrap();
        assert!(chain.calls().is_empty());
    }

    #[test]
    fn security_is_standard_with_nothing_at_risk_unless_told() {
        use surety_types::task::{Security, SecurityLevel};

        assert_eq!(args("--cap 1").spec.security.security(), Security::default());
        let told = args("--cap 1 --security high --value-at-risk 7planck");
        let expected = Security {
            level: SecurityLevel::High,
            value_at_risk: 7,
        };
        assert_eq!(told.spec.security.security(), expected);
    }

    #[test]
    fn a_model_without_the_operation_is_refused() {
        for (offered, asked) in [(EMBED, Operation::Generate), (Operation::Generate, EMBED)] {
            let error = check_operation(asked, &model(vec![offered]));
            let text = error.unwrap_err().to_string();
            assert!(text.starts_with("m does not offer to"), "{text}");
        }
    }
}
