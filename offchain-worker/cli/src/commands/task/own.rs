//! Which tasks are this home's own: their inputs are served from here, whatever became of the command that
//! posted them.

use std::{
    path::Path,
    time::{Duration, SystemTime},
};

use surety_chain_client::{AccountId, Chain, Hash, Signer, TaskRecord, When};
use surety_client::{follow::posted_text, post, record::ClientRecord};
use surety_network::BlobStore;
use surety_types::{ContentHash, TaskId, task::TaskSpec};

use super::Context;
use crate::{
    amount::Amount,
    error::{CliError, Result},
    output::Output,
};

/// Tasks among which those are looked for that were being posted.
const RECENT: u32 = 256;

/// After so long, what was being posted will never be: its signature has long expired.
const POSTING_KEPT: Duration = Duration::from_secs(24 * 3600);

/// How a task is posted from a home.
pub(super) struct Posting<'a> {
    pub(super) out: Output,
    pub(super) home: &'a Path,
    pub(super) chain: &'a dyn Chain,
    pub(super) record: ClientRecord,
}

impl<'a> Posting<'a> {
    /// Now, with an input that is served here.
    pub(super) fn new(context: &'a Context, chain: &'a dyn Chain, listen: Vec<String>) -> Self {
        let posted_unix_ms = u64::try_from(now().as_millis()).unwrap_or(u64::MAX);
        Self {
            out: context.out,
            home: &context.config.home,
            chain,
            record: ClientRecord {
                posted_unix_ms,
                listen,
            },
        }
    }

    /// Posts a task, and waits until that is final. Whoever is killed on the way finds the task again.
    pub(super) async fn post(&self, signer: &Signer, spec: TaskSpec, cap: Amount) -> Result<(TaskId, u32)> {
        let (input, genesis) = (spec.input, self.chain.info().genesis);
        let (redundancy, units_max) = (spec.redundancy, spec.units_max);
        self.record.save_posting(self.home, &genesis, &input)?;
        let waiting = self.out.spinner();
        waiting.set_message("posting the task");
        let (task, block) = post::submit(self.chain, signer, spec, cap.0).await?;
        let text = posted_text(task, cap.0, redundancy, units_max, block.number);
        self.out.step(&text);
        self.record.save(self.home, &genesis, task)?;
        waiting.set_message("the task is posted, waiting until that is final");
        let is_it = |found: &TaskRecord| found.client == *signer.account() && found.spec.input == input;
        let (last, number) = post::until_final(self.chain, (task, block), is_it).await?;
        waiting.finish_and_clear();
        if last != task {
            self.out.step(&format!(
                "its block was replaced: it is task {last} now, in block {number}"
            ));
            self.record.save(self.home, &genesis, last)?;
            ClientRecord::forget(self.home, &genesis, task)?;
        }
        ClientRecord::forget_posting(self.home, &genesis, &input)?;
        Ok((last, number))
    }
}

/// Takes note of the numbers of tasks that were being posted when a command was killed.
///
/// # Errors
/// When the chain cannot be asked, or records cannot be written.
pub(super) async fn adopt(home: &Path, chain: &dyn Chain, client: Option<&AccountId>) -> Result<()> {
    let genesis = chain.info().genesis;
    let postings = ClientRecord::postings(home, &genesis)?;
    let Some(client) = client.filter(|_| !postings.is_empty()) else {
        return Ok(());
    };
    let recent = chain.recent_tasks(When::Finalized, RECENT).await?;
    for input in postings {
        let Some(record) = ClientRecord::load_posting(home, &genesis, &input)? else {
            continue;
        };
        let is_it = |task: &TaskRecord| task.client == *client && task.spec.input == input;
        let mut posted = recent
            .iter()
            .filter(|(_, task)| is_it(task))
            .map(|(task, _)| *task);
        let mut is_done = age(&record) > POSTING_KEPT;
        // The same input may have been posted before.
        if let Some(task) = posted.next()
            && ClientRecord::load(home, &genesis, task)?.is_none()
        {
            record.save(home, &genesis, task)?;
            is_done = true;
        }
        if is_done {
            ClientRecord::forget_posting(home, &genesis, &input)?;
        }
    }
    Ok(())
}

/// How a task is served from here that is this home's own.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Own {
    pub(super) listen: Vec<String>,
    /// How long ago it was posted, where that is known.
    pub(super) age: Option<Duration>,
}

/// Whether a task is this home's own: it was posted from here, or its client is our key and its input is
/// here.
///
/// # Errors
/// When records cannot be read.
pub(super) fn own(
    context: &Context,
    genesis: &Hash,
    (task, known): (TaskId, &TaskRecord),
) -> Result<Option<Own>> {
    if let Some(record) = ClientRecord::load(&context.config.home, genesis, task)? {
        let age = Some(age(&record));
        let listen = record.listen;
        return Ok(Some(Own { listen, age }));
    }
    let is_client = context
        .key()
        .is_ok_and(|key| *key.signer.account() == known.client);
    let is_own = is_client && has_input(context, &known.spec.input)?;
    Ok(is_own.then(|| Own {
        listen: context.config.task.listen.clone(),
        age: None,
    }))
}

fn has_input(context: &Context, input: &ContentHash) -> Result<bool> {
    let store = BlobStore::open(context.config.home.join("blobs"), context.config.storage);
    Ok(store.map_err(CliError::from)?.get(input).is_ok())
}

fn now() -> Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

fn age(record: &ClientRecord) -> Duration {
    now().saturating_sub(Duration::from_millis(record.posted_unix_ms))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use surety_chain_client::{Call, FakeChain, sample};

    use super::*;

    const ADDRESS: &str = "127.0.0.1:4101";

    fn posting<'a>(home: &'a Path, chain: &'a FakeChain) -> Posting<'a> {
        Posting {
            out: Output::new(true),
            home,
            chain,
            record: ClientRecord {
                posted_unix_ms: u64::try_from(now().as_millis()).unwrap(),
                listen: vec![ADDRESS.into()],
            },
        }
    }

    fn spec() -> TaskSpec {
        let mut calls = sample::calls().into_iter();
        let post = calls.find_map(|call| match call {
            Call::PostTask { spec, .. } => Some(spec),
            _ => None,
        });
        post.unwrap()
    }

    /// What `surety task watch` goes by after whatever happened before.
    async fn remembered(home: &Path, chain: &FakeChain, client: &Signer) -> Option<(TaskId, Vec<String>)> {
        adopt(home, chain, Some(client.account())).await.unwrap();
        let genesis = chain.info().genesis;
        let task = ClientRecord::newest(home, &genesis).unwrap()?;
        let record = ClientRecord::load(home, &genesis, task).unwrap()?;
        Some((task, record.listen))
    }

    #[tokio::test]
    async fn whoever_is_killed_before_its_post_is_final_knows_its_task_and_where_to_serve_it() {
        let (home, chain) = (tempfile::tempdir().unwrap(), FakeChain::new());
        let client = Signer::from_uri("//Client").unwrap();
        let posting = posting(home.path(), &chain);
        // As far as it gets without a block that is final.
        tokio::select! {
            biased;
            posted = posting.post(&client, spec(), Amount(9)) => panic!("{posted:?}"),
            () = std::future::ready(()) => {}
        }
        let known = remembered(home.path(), &chain, &client).await;
        assert_eq!(known, Some((0, vec![ADDRESS.to_owned()])));
    }

    #[tokio::test]
    async fn whoever_is_killed_before_its_post_is_in_a_block_finds_it_once_it_is_final() {
        let (home, chain) = (tempfile::tempdir().unwrap(), FakeChain::new());
        let client = Signer::from_uri("//Client").unwrap();
        let posting = posting(home.path(), &chain);
        chain.lose_answer_of_next();
        posting.post(&client, spec(), Amount(9)).await.unwrap_err();
        assert_eq!(
            remembered(home.path(), &chain, &client).await,
            None,
            "it is not final yet"
        );
        chain.finalize();
        let other = Signer::from_uri("//Other").unwrap();
        assert_eq!(remembered(home.path(), &chain, &other).await, None, "another's");
        let known = remembered(home.path(), &chain, &client).await;
        assert_eq!(known, Some((0, vec![ADDRESS.to_owned()])));
        let postings = ClientRecord::postings(home.path(), &chain.info().genesis);
        assert_eq!(postings.unwrap(), []);
    }

    #[tokio::test]
    async fn an_input_that_was_posted_before_is_not_taken_for_what_was_being_posted() {
        let (home, chain) = (tempfile::tempdir().unwrap(), FakeChain::new());
        let client = Signer::from_uri("//Client").unwrap();
        let posting = posting(home.path(), &chain);
        let genesis = chain.info().genesis;
        let call = Call::PostTask { spec: spec(), cap: 9 };
        chain
            .submit(&client, call, surety_chain_client::Until::Included.into())
            .await
            .unwrap();
        chain.finalize();
        posting.record.save(home.path(), &genesis, 0).unwrap();
        chain.lose_next();
        posting.post(&client, spec(), Amount(9)).await.unwrap_err();
        assert_eq!(remembered(home.path(), &chain, &client).await.unwrap().0, 0);
        assert_eq!(ClientRecord::postings(home.path(), &genesis).unwrap().len(), 1);
    }
}
