//! What a worker looks after every now and then: its free stake, whether it may bid, how long work may take,
//! its money, and whom it keeps places for; in each block, what the chain's benchmark has measured of it,
//! and where it is on the list as being.

use std::sync::Arc;

use surety_chain_client::{AccountId, Balance, ChainError, When};
use surety_types::{BLOCK_SECONDS, multiaddr::Endpoint, region::Region, speed::MeasuredView};
use surety_worker_core::{BlockNumber, Event, demand_reserve};
use tokio::sync::mpsc;

use super::{Tools, retry::Backoff};

/// Blocks between two looks: a minute.
const EVERY: BlockNumber = 30;

/// Blocks until the next look after one that did not see everything, and at free stake and money: bids are
/// taken for half a minute, and one that the stake was wanting for is made again when there is enough.
const SOON: BlockNumber = 5;

/// Looks again and again, for as long as it is polled. Who `bids` has to know what was measured of it,
/// and where the chain takes it to be.
pub(super) async fn see_to(tools: Arc<Tools>, bids: bool, events: mpsc::Sender<Event>) {
    let mut backoff = Backoff::new();
    loop {
        match until_error(&tools, bids, &events, &mut backoff).await {
            Ok(()) => return,
            Err(e) => tracing::warn!(error = %e, "cannot look after money and peers, trying again"),
        }
        backoff.wait().await;
    }
}

async fn until_error(
    tools: &Tools,
    bids: bool,
    events: &mpsc::Sender<Event>,
    backoff: &mut Backoff,
) -> Result<(), ChainError> {
    let mut blocks = tools.chain.finalized_blocks().await?;
    let (mut next, mut next_stake) = (0, 0);
    let (mut told, mut told_region, mut told_kept) = (None, None, None);
    loop {
        let block = blocks.next().await?.number;
        // With the block that ends a round other tasks can be bid for, and some no more.
        let (measured, region) = match bids {
            true => (
                tell_measured(tools, events, &mut told).await,
                tell_region(tools, events, &mut told_region).await,
            ),
            false => (Ok(()), Ok(())),
        };
        // What is bid with money that is kept since cannot be taken back.
        let kept = *tools.kept.channels.borrow();
        let is_other = told_kept.replace(kept) != Some(kept);
        if block < next {
            if let Err(e) = measured.and(region) {
                tracing::debug!(block, error = %e, "what was measured of it, or where it is, cannot be read");
            }
            if block >= next_stake || is_other {
                event(stake(tools).await, events).await?;
                tell_money(tools, events).await?;
                keep_for_tasks(tools).await?;
                next_stake = block.saturating_add(SOON);
            }
            continue;
        }
        let mut all_went_well = true;
        // What one of them cannot read keeps none of the others.
        for (what, looked) in [
            ("what it has to bid by", event(stake(tools).await, events).await),
            ("its money", see_money(tools, events).await),
            ("whether it may bid", event(barred(tools).await, events).await),
            ("what was measured of it", measured),
            ("where the chain takes it to be", region),
            ("how long work may take", tell_windows(tools, events).await),
            ("whom to keep places for", name_peers(tools).await),
        ] {
            if let Err(e) = looked {
                all_went_well = false;
                tracing::warn!(what, error = %e, "cannot look after something, trying again");
            }
        }
        if events.is_closed() {
            return Ok(());
        }
        next = block.saturating_add(if all_went_well { EVERY } else { SOON });
        next_stake = block.saturating_add(SOON);
        backoff.reset();
    }
}

/// Tells core, if it still listens.
async fn event(read: Result<Event, ChainError>, events: &mpsc::Sender<Event>) -> Result<(), ChainError> {
    // Whether anybody does is asked once a round.
    events.send(read?).await.ok();
    Ok(())
}

/// Tells core what is free for the fees of tasks, and shows its operator all that there is. Whichever of
/// stash and agent can pays for a call. What is kept for what is sold over channels is not free, and nothing
/// is before that is known.
async fn tell_money(tools: &Tools, events: &mpsc::Sender<Event>) -> Result<Balance, ChainError> {
    let (stash, agent) = (&tools.stash, tools.signer.account());
    let of_stash = tools.chain.funds(When::Finalized, stash).await?;
    let of_agent = match agent == stash {
        true => None,
        false => Some(tools.chain.funds(When::Finalized, agent).await?),
    };
    let deposit = tools.chain.info().existential_deposit;
    let of_agents = of_agent.map_or(0, |funds| funds.for_fees(deposit));
    let all = of_stash.for_fees(deposit).saturating_add(of_agents);
    let kept = *tools.kept.channels.borrow();
    let free = kept.map_or(0, |kept| all.saturating_sub(kept));
    event(Ok(Event::Money { free }), events).await?;
    // Of an account that is both it is told once: whoever adds them up has what there is.
    for (name, funds) in [("stash", Some(of_stash)), ("agent", of_agent)] {
        if let Some(funds) = funds {
            tools.vitals.metrics.funds(name, funds.free, funds.held);
        }
    }
    Ok(free)
}

/// What a provider keeps for its tasks, and for those that it has bid for: a verifier has nothing that is
/// demanded. What is sold over channels leaves it alone.
async fn keep_for_tasks(tools: &Tools) -> Result<Balance, ChainError> {
    let open = tools
        .chain
        .open_tasks(When::Finalized, Some(&tools.stash))
        .await?;
    let kept = open.tasks.iter().fold(0, |sum: Balance, open| {
        let (task, round) = (&open.task, open.round.as_ref());
        sum.saturating_add(demand_reserve(task, round, open.bid.is_some(), &tools.stash))
    });
    tools.vitals.metrics.demand_reserve(kept);
    tools.kept.tasks.send_replace(Some(kept));
    Ok(kept)
}

async fn see_money(tools: &Tools, events: &mpsc::Sender<Event>) -> Result<(), ChainError> {
    let told = tell_money(tools, events).await;
    // Others have to know it whatever is free.
    let kept = keep_for_tasks(tools).await?;
    let free = told?;
    if kept > free && tools.kept.channels.borrow().is_some() {
        tracing::warn!(
            kept,
            free,
            "too little money for the fees of what may be demanded: nothing is bid until the stash has more"
        );
    }
    Ok(())
}

async fn stake(tools: &Tools) -> Result<Event, ChainError> {
    let stake = tools.chain.stake(When::Finalized, &tools.stash).await?;
    Ok(Event::Stake {
        free: stake.map_or(0, |stake| stake.bonded.saturating_sub(stake.locked)),
    })
}

/// Governance may change them, and who does not know takes on what it cannot finish.
async fn tell_windows(tools: &Tools, events: &mpsc::Sender<Event>) -> Result<(), ChainError> {
    let terms = tools.chain.provider_terms(When::Finalized).await?;
    let seconds = |blocks: BlockNumber| blocks.saturating_mul(BLOCK_SECONDS);
    let (commit, opening) = (seconds(terms.commit_window), seconds(terms.opening_window));
    event(Ok(Event::CommitWindow { seconds: commit }), events).await?;
    event(Ok(Event::OpeningWindow { seconds: opening }), events).await
}

async fn barred(tools: &Tools) -> Result<Event, ChainError> {
    let record = tools.chain.trust(When::Finalized, &tools.stash).await?;
    let until = record.suspended_until.max(record.jailed_until);
    Ok(Event::Barred { until })
}

/// Tells what the chain's benchmark has measured, where that is not what was `told` last.
async fn tell_measured(
    tools: &Tools,
    events: &mpsc::Sender<Event>,
    told: &mut Option<Option<MeasuredView>>,
) -> Result<(), ChainError> {
    let measured = tools.chain.benchmarked(When::Finalized, &tools.stash).await?;
    match told.replace(measured) == Some(measured) {
        true => Ok(()),
        false => event(Ok(Event::Benchmarked { measured }), events).await,
    }
}

/// Tells where the chain takes the provider to be, where that is not what was `told` last. What it has been
/// configured to be since counts once it is registered.
async fn tell_region(
    tools: &Tools,
    events: &mpsc::Sender<Event>,
    told: &mut Option<Option<Region>>,
) -> Result<(), ChainError> {
    let record = tools.chain.provider(When::Finalized, &tools.stash).await?;
    let region = record.and_then(|record| record.device.region);
    match told.replace(region) == Some(region) {
        true => Ok(()),
        false => event(Ok(Event::Declared { region }), events).await,
    }
}

/// Providers, and clients of open tasks: strangers cannot take their places at our door.
async fn name_peers(tools: &Tools) -> Result<(), ChainError> {
    let providers = tools.chain.providers(When::Finalized).await?;
    let others = providers
        .into_iter()
        .filter(|(stash, _): &(AccountId, _)| *stash != tools.stash);
    let open = tools.chain.open_tasks(When::Finalized, None).await?;
    let partly = open.unread.into_iter().filter_map(|part| part.task);
    let tasks = open.tasks.into_iter().map(|open| open.task).chain(partly);
    let clients = tasks.flat_map(|task| task.spec.sources);
    let mut named: Vec<Endpoint> = others
        .flat_map(|(_, record)| record.endpoints)
        .chain(clients)
        .collect();
    named.sort_unstable();
    named.dedup();
    if let Err(e) = tools.plane.set_named_peers(&named).await {
        tracing::warn!(error = %e, "no places are kept for peers that the chain names");
    }
    Ok(())
}
