//! Reads what finalised blocks say.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use surety_chain_client::{AccountId, BatchView, BlockRef, ChainError, PointsView, When};
use surety_types::stake::Role;
use tokio::{sync::watch, time::sleep};

use crate::{
    Parts,
    book::{BatchKey, Book, Sight, Stake},
};

/// Between two attempts when the chain is out of sight, at first and at most.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Providers whose batches are looked through after a start, for what was announced before it.
const RECOVERED_MAX: usize = 512;

/// Tells of each finalised block, until nobody listens.
pub(crate) async fn follow(parts: Arc<Parts>, newest: watch::Sender<Option<BlockRef>>) {
    let mut pause = PAUSE;
    loop {
        match follow_once(&parts, &newest, &mut pause).await {
            Ok(()) => return,
            Err(error) => tracing::warn!(%error, "audits of receipts have lost the chain, trying again"),
        }
        sleep(pause).await;
        pause = pause.saturating_mul(2).min(PAUSE_MAX);
    }
}

async fn follow_once(
    parts: &Parts,
    newest: &watch::Sender<Option<BlockRef>>,
    pause: &mut Duration,
) -> Result<(), ChainError> {
    let mut blocks = parts.chain.finalized_blocks().await?;
    loop {
        let block = blocks.next().await?;
        *pause = PAUSE;
        if newest.send(Some(block)).is_err() {
            return Ok(());
        }
    }
}

/// What a block says of open batches, and of all that is followed. At `first` it is looked for what was
/// announced before, also where the journal has nothing of it.
pub(crate) async fn read(
    parts: &Parts,
    book: &Book,
    block: BlockRef,
    first: bool,
) -> Result<Sight, ChainError> {
    let (chain, when, stash) = (&parts.channels, When::At(block.hash), &parts.stash);
    let (time, rules, open, stake) = tokio::try_join!(
        chain.time(when),
        chain.rules(when),
        chain.open_batches(when),
        stake(parts, when),
    )?;
    let mut providers = book.providers();
    if first {
        let all = parts.chain.providers(when).await?;
        providers.extend(all.into_iter().map(|(provider, _)| provider).take(RECOVERED_MAX));
    }
    let mut batches: BTreeMap<BatchKey, BatchView> = BTreeMap::new();
    let mut demands = Vec::new();
    for provider in &providers {
        let (kept, demanded) =
            tokio::try_join!(chain.batches(when, provider), chain.demands(when, provider))?;
        batches.extend(kept.into_iter().map(keyed));
        demands.extend(demanded.into_iter().filter(|demand| demand.demander == *stash));
    }
    let announceable: BTreeSet<BatchKey> = open
        .iter()
        .map(|view| (view.provider.clone(), view.batch))
        .collect();
    batches.extend(open.into_iter().map(keyed));
    let mut seen = Vec::new();
    for (key, view) in batches {
        let shown = match book.asks_points(&view) {
            true => ours(chain.points(when, &key.0, key.1).await?, stash),
            false => None,
        };
        if announceable.contains(&key) || shown.is_some() || book.knows(&key) {
            seen.push((view, shown));
        }
    }
    Ok(Sight {
        block: block.number,
        time,
        rules,
        stake,
        batches: seen,
        demands,
    })
}

/// The verifier's stake; nothing where its agent may not announce anything.
pub(crate) async fn stake(parts: &Parts, when: When) -> Result<Option<Stake>, ChainError> {
    let (record, agent_of) = tokio::try_join!(
        parts.chain.stake(when, &parts.stash),
        parts.chain.agent_stash(when, parts.signer.account()),
    )?;
    let is_agent = agent_of.as_ref() == Some(&parts.stash);
    let record = record.filter(|record| is_agent && record.role == Role::Verifier && record.bonded > 0);
    Ok(record.map(|record| Stake {
        bonded: record.bonded,
        settled_at: record.settled_at,
    }))
}

fn keyed(view: BatchView) -> (BatchKey, BatchView) {
    ((view.provider.clone(), view.batch), view)
}

fn ours(points: Vec<PointsView>, stash: &AccountId) -> Option<PointsView> {
    points.into_iter().find(|points| points.verifier == *stash)
}
