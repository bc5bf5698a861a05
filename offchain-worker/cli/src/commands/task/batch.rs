//! Tasks of a gateway's batches, posted from a home and followed to their settlement.
//!
//! A task is known on the chain by its client, its input and its cap, whose last six digits are the posting's
//! number: also two of the same input are told from one another, and a task that was posted right before this
//! program was killed is found again.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use async_trait::async_trait;
use surety_chain_client::{
    BlockRef, Call, Chain, ChainError, RegisteredModel, Signer, TaskInfo, TaskRecord, Until, When, address,
};
use surety_client::{
    ClientError,
    demands::Demander,
    follow::{Follow, Followed},
    inputs::Supplier,
    post,
    transcript::{Line, Screen},
};
use surety_engine::{Embeddings, content_hash, generation::FinishReason};
use surety_gateway::{
    BatchModel, BatchRunner, Computed, Ended, Payment, Posting, Quoted, RunnerError, TaskReceipt,
};
use surety_network::DataPlane;
use surety_types::{
    ContentHash, ModelId, TaskId,
    input::Work,
    model::Operation,
    speed::Requirements,
    task::{Security, TaskSpec, TaskState},
};

use super::{
    least::Wanted,
    quote::Quote,
    submit::{check_funds, sources},
};
use crate::{amount::Amount, error::CliError};

/// So long a node may take to count a call among those that an account has sent.
const COUNTED_SECONDS: u64 = 15;
/// Postings that are told apart, of the same input, by the last digits of their caps: a millionth of a SURE.
const TOLD_APART: u128 = 1_000_000;
/// Tasks among which one is looked for at first.
const RECENT: u32 = 256;
/// No chain forgets a task within so many seconds of its end: 3,600 blocks of two seconds, on a devnet. What
/// was about to be posted longer ago may be forgotten.
const KEPT_SECONDS: u64 = 7_200;

type Answer<T> = Result<T, RunnerError>;

/// How tasks are posted.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct Terms {
    pub(in crate::commands) redundancy: u32,
    pub(in crate::commands) security: Security,
}

/// Posts tasks, serves their inputs, and fetches their outputs.
pub(in crate::commands) struct ChainTasks {
    chain: Arc<dyn Chain>,
    plane: Arc<dyn DataPlane>,
    signer: Signer,
    /// Where providers' statements are kept.
    home: PathBuf,
    /// By name.
    models: BTreeMap<String, (ModelId, RegisteredModel)>,
    terms: Terms,
    /// How many calls had been sent when it was first asked whether a posting is on the chain.
    sent: Mutex<BTreeMap<u64, u32>>,
}

impl ChainTasks {
    pub(in crate::commands) fn new(
        chain: Arc<dyn Chain>,
        plane: Arc<dyn DataPlane>,
        signer: Signer,
        home: PathBuf,
        models: BTreeMap<String, (ModelId, RegisteredModel)>,
        terms: Terms,
    ) -> Self {
        Self {
            chain,
            plane,
            signer,
            home,
            models,
            terms,
            sent: Mutex::default(),
        }
    }

    fn model(&self, name: &str) -> Answer<&(ModelId, RegisteredModel)> {
        let gone = || RunnerError::Refused(format!("the gateway does not offer {name} any more"));
        self.models.get(name).ok_or_else(gone)
    }

    fn is_of(&self, posting: &Posting, input: ContentHash, task: &TaskRecord) -> bool {
        task.client == *self.signer.account() && task.spec.input == input && task.cap == posting.quoted.cap
    }

    /// The task of a posting in the last final block, whatever its number is there.
    async fn look(&self, posting: &Posting) -> Result<Option<TaskId>, ChainError> {
        let when = When::At(self.chain.block(When::Finalized).await?.hash);
        let input = content_hash(&posting.input);
        let mut limit = RECENT;
        loop {
            let tasks = self.chain.recent_tasks(when, limit).await?;
            if let Some((task, _)) = tasks.iter().find(|(_, task)| self.is_of(posting, input, task)) {
                return Ok(Some(*task));
            }
            let is_all = u32::try_from(tasks.len()).is_ok_and(|count| count < limit);
            let oldest = tasks.last().map(|(_, task)| u64::from(task.posted_at));
            if is_all || limit == u32::MAX || oldest < Some(posting.quoted.height) {
                return Ok(None);
            }
            limit = limit.saturating_mul(4);
        }
    }

    /// The number of a task that is in a best block, once it is final: it could change with the block.
    async fn until_final(
        &self,
        posting: &Posting,
        input: ContentHash,
        posted: (TaskId, BlockRef),
    ) -> Answer<TaskId> {
        let is_it = |task: &TaskRecord| self.is_of(posting, input, task);
        let found = post::until_final(&*self.chain, posted, is_it).await;
        let (found, _) = found.map_err(|error| RunnerError::Later(error.to_string()))?;
        if found != posted.0 {
            tracing::info!(
                task = posted.0,
                found,
                "a block was replaced: a task has another number"
            );
        }
        Ok(found)
    }

    /// How many of the providers that were heard of lately are what is asked for; no more are counted than
    /// compute a task. Whether they are in jail, suspended, or able to back it comes out with the bids.
    async fn meeting(&self, asked: &Requirements) -> Result<u32, ChainError> {
        let block = self.chain.block(When::Finalized).await?;
        let when = When::At(block.hash);
        let window = self.chain.provider_terms(when).await?.heartbeat_window;
        let elsewhere = |declared| asked.region.is_some() && asked.region != declared;
        let mut count = 0u32;
        for (stash, provider) in self.chain.providers(when).await? {
            let declared = provider.device.region;
            if provider.last_heartbeat.saturating_add(window) < block.number || elsewhere(declared) {
                continue;
            }
            let measured = match asked.ask_for_measured() {
                true => self.chain.benchmarked(when, &stash).await?,
                false => None,
            };
            count = count.saturating_add(asked.are_met_by(declared, measured.as_ref()).into());
            if count >= self.terms.redundancy {
                break;
            }
        }
        Ok(count)
    }

    async fn submit(&self, posting: &Posting, input: ContentHash) -> Answer<(TaskId, BlockRef)> {
        let (model, _) = self.model(&posting.model)?;
        let cap = posting.quoted.cap;
        let spec = TaskSpec {
            model: *model,
            operation: posting.work.operation,
            input,
            input_bytes: posting.work.input_bytes,
            units_max: posting.work.units_max,
            redundancy: self.terms.redundancy,
            sources: sources(&*self.plane).map_err(of_cli)?,
            security: self.terms.security,
            requirements: posting.requirements,
        };
        let account = self.signer.account();
        // The chain would say the same, and take a fee for it. Its operator can send it some.
        let funds = check_funds(&*self.chain, account, Amount(cap)).await;
        funds.map_err(|error| RunnerError::Later(error.to_string()))?;
        let posted = post::submit(&*self.chain, &self.signer, spec, cap).await;
        let (task, block) = posted.map_err(|error| of_client(&error))?;
        tracing::info!(task, number = posting.number, cap, "a task of a batch is posted");
        Ok((task, block))
    }

    /// Keeps the input where providers fetch it, until it is released as often.
    async fn serve(&self, posting: &Posting) -> Answer<ContentHash> {
        let published = self.plane.publish(posting.input.clone().into()).await;
        published.map_err(|error| RunnerError::Later(format!("the input cannot be served: {error}")))
    }

    async fn follow(&self, posting: &Posting, task: TaskId, output: &Path) -> Answer<Ended> {
        let operation = posting.work.operation;
        let peer = self.plane.peer_id();
        let genesis = self.chain.info().genesis;
        let follow = Follow {
            chain: self.chain.clone(),
            plane: self.plane.clone(),
            screen: Log(task),
            home: self.home.clone(),
            task,
            operation,
            age: None,
            output_path: (operation == Operation::Embed).then(|| output.to_owned()),
            show_tokens: false,
            leave_at_result: false,
            supplier: Some(Supplier::new(self.signer.clone())),
            demander: Some(Demander::new(self.signer.clone())),
            ticket: surety_access::ticket(&self.signer, &genesis, &peer, task, None),
            text: None,
        };
        let output = match follow.until_over().await {
            Ok(Followed {
                failure: Some(why), ..
            }) => Err(why),
            Ok(Followed { report, .. }) => match (operation, report.generation) {
                (Operation::Embed, _) => vectors(output).await,
                (Operation::Generate, Some(generated)) => Ok(Computed::Tokens {
                    stopped: generated.made.finish_reason == FinishReason::Stop,
                    ids: generated.made.tokens,
                }),
                (Operation::Generate, None) => Err("its output could not be fetched".into()),
            },
            // It was paid all the same.
            Err(ClientError::Undelivered { .. }) => {
                Err("the task is settled, but none of its providers serves its output".into())
            }
            Err(ClientError::NotGenerated(error)) => Err(error.to_string()),
            Err(ClientError::UnknownTask(task)) => {
                let told = format!("the chain does not know task {task} any more");
                return Err(RunnerError::Lost(told));
            }
            Err(error) => return Err(RunnerError::Later(error.to_string())),
        };
        let info = self.chain.task(When::Finalized, task).await;
        let info = info.map_err(|error| RunnerError::Later(error.to_string()))?;
        let receipt = info.and_then(|info| receipt(task, &info));
        let unsure = || {
            RunnerError::Lost(format!(
                "the chain does not say any more what task {task} has cost"
            ))
        };
        let receipt = receipt.ok_or_else(unsure)?;
        Ok(Ended { receipt, output })
    }
}

#[async_trait]
impl BatchRunner for ChainTasks {
    fn models(&self) -> Vec<BatchModel> {
        let of = |(name, (_, model)): (&String, &(ModelId, RegisteredModel))| {
            let operations = model.manifest.operations.iter();
            let offered = operations.map(|operation| BatchModel {
                name: name.clone(),
                generates: *operation == Operation::Generate,
            });
            offered.collect::<Vec<_>>()
        };
        self.models.iter().flat_map(of).collect()
    }

    async fn check_providers(&self, asked: &Requirements) -> Answer<()> {
        if *asked == Requirements::default() {
            return Ok(());
        }
        let (met, needed) = (self.meeting(asked).await, self.terms.redundancy);
        match met.map_err(|error| RunnerError::Later(error.to_string()))? {
            enough if enough >= needed => Ok(()),
            few => Err(RunnerError::Refused(format!(
                "each task is computed by {needed} providers, and {few} of those that are there now are what is asked \
                 for: ask for less, or try again later"
            ))),
        }
    }

    async fn quote(&self, number: u64, model: &str, work: &Work) -> Answer<Quoted> {
        let (model, registered) = self.model(model)?;
        let wanted = Wanted {
            model: *model,
            registered,
            work: *work,
            redundancy: self.terms.redundancy,
        };
        let block = self.chain.block(When::Finalized).await;
        let height = block
            .map_err(|error| RunnerError::Later(error.to_string()))?
            .number;
        let quote = Quote::of(&*self.chain, self.terms.security.level, &wanted).await;
        let dear = |_| {
            let told = "providers ask over ten times what they usually ask for this model: try again later";
            RunnerError::Refused(told.into())
        };
        let cap = quote.map_err(of_cli)?.default_cap().map_err(dear)?.0;
        // Two quotes that differ by little would make the same cap of two numbers.
        let round = cap.checked_next_multiple_of(TOLD_APART).unwrap_or(cap);
        Ok(Quoted {
            cap: round.saturating_add(u128::from(number) % TOLD_APART),
            height: height.into(),
        })
    }

    async fn post(&self, posting: &Posting) -> Answer<u64> {
        // They may have gone since it was quoted, and a task that lapses has cost the fee of its posting.
        self.check_providers(&posting.requirements).await?;
        let input = self.serve(posting).await?;
        let posted = match self.submit(posting, input).await {
            Ok(posted) => self.until_final(posting, input, posted).await,
            Err(error) => Err(error),
        };
        // Whoever follows it keeps it again.
        self.plane.release(input).await;
        posted
    }

    async fn find(&self, posting: &Posting) -> Answer<Option<u64>> {
        let later = |error: ChainError| RunnerError::Later(error.to_string());
        let sent = self.chain.sent(self.signer.account()).await.map_err(later)?;
        // A node counts what it was given a moment later: it may have been given it right before a kill.
        let may_be_uncounted = now() < posting.tried_unix.saturating_add(COUNTED_SECONDS);
        let all = {
            let mut known = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
            let all = known.entry(posting.number).or_insert(sent.all);
            if may_be_uncounted {
                *all = sent.all.max(*all);
            }
            *all
        };
        // Each call has a number of its own. Once all that may be the posting's are used up in final blocks,
        // it is in one of these or in none.
        if sent.finalized < all {
            let told = format!(
                "what {} has sent before is not final yet",
                address(self.signer.account())
            );
            return Err(RunnerError::Later(told));
        }
        let found = self.look(posting).await.map_err(later)?;
        if found.is_none() && may_be_uncounted {
            let told = "what was sent a moment ago may not be counted yet";
            return Err(RunnerError::Later(told.into()));
        }
        self.sent
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&posting.number);
        match found {
            Some(task) => Ok(Some(task)),
            None if now() > posting.tried_unix.saturating_add(KEPT_SECONDS) => {
                let told = "the gateway was away for so long that the chain does not say any more whether it was posted";
                Err(RunnerError::Lost(told.into()))
            }
            None => Ok(None),
        }
    }

    async fn ended(&self, posting: &Posting, task: u64) -> Answer<Ended> {
        let folder = tempfile::tempdir();
        let folder = folder.map_err(|error| RunnerError::Later(format!("no room for an output: {error}")))?;
        let input = self.serve(posting).await?;
        let ended = self.follow(posting, task, &folder.path().join("output")).await;
        self.plane.release(input).await;
        ended
    }

    async fn cancel(&self, task: u64) -> Answer<()> {
        let call = Call::CancelTask { task };
        let included = self
            .chain
            .submit(&self.signer, call, Until::Included.into())
            .await;
        included.map(drop).map_err(|error| of_chain(&error))
    }
}

/// What a task that is over has cost.
fn receipt(task: TaskId, info: &TaskInfo) -> Option<TaskReceipt> {
    let (at, claim, payments, fee) = match &info.task.state {
        TaskState::Settled {
            at,
            claim,
            payments,
            fee,
            ..
        } => (at, Some(claim), payments.as_slice(), *fee),
        TaskState::Failed { at, .. } => (at, None, &[][..], 0),
        TaskState::Cancelled { at, fee } => (at, None, &[][..], *fee),
        TaskState::Bidding { .. }
        | TaskState::Revealing { .. }
        | TaskState::Drawing { .. }
        | TaskState::Running { .. } => return None,
    };
    let paid = payments.iter().map(|payment| Payment {
        provider: address(&payment.provider),
        price: payment.price,
    });
    Some(TaskReceipt {
        task,
        output_hash: claim.map(|claim| format!("{:?}", claim.output)),
        block: (*at).into(),
        payments: paid.collect(),
        fee,
    })
}

/// Seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

async fn vectors(path: &Path) -> Result<Computed, String> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
        let embeddings = Embeddings::decode(&bytes).map_err(|error| error.to_string())?;
        Ok(Computed::Vectors(
            embeddings.rows().map(<[f32]>::to_vec).collect(),
        ))
    });
    read.await.map_err(|error| error.to_string())?
}

/// What a call that was not carried out comes to.
fn of_client(error: &ClientError) -> RunnerError {
    let told = error.to_string();
    match error {
        ClientError::Chain(error) => of_chain(error),
        _ => RunnerError::Later(told),
    }
}

fn of_chain(error: &ChainError) -> RunnerError {
    let told = error.to_string();
    match error {
        // Its operator can send it some.
        ChainError::Dispatch(fault) if fault.pallet.is_none() && fault.name == "Token" => {
            RunnerError::Later(told)
        }
        ChainError::Dispatch(_) => RunnerError::Refused(told),
        ChainError::Rejected(refusal) if !refusal.is_retryable() => RunnerError::Refused(told),
        // Its fate may be unknown.
        _ => RunnerError::Later(told),
    }
}

fn of_cli(error: CliError) -> RunnerError {
    match error {
        CliError::Chain(error) => RunnerError::Later(error.to_string()),
        error => RunnerError::Refused(error.to_string()),
    }
}

/// Steps of a task go to the log.
#[derive(Clone, Copy)]
struct Log(TaskId);

impl Screen for Log {
    fn piece(&self, _: &str) {}

    fn line(&self, _: &Line<'_>) {}

    fn step(&self, text: &str) {
        tracing::info!(task = self.0, "{text}");
    }

    fn is_json(&self) -> bool {
        false
    }
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
