//! What finalised blocks say of a provider's channels.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use surety_chain_client::{
    BatchView, BlockNumber, BlockRef, ChainError, ChannelRules, ChannelView, DemandView, OfferView,
    StandingView, When,
};
use surety_channels::{BatchNumber, BatchWindow, ChannelId, Time};
use surety_types::TaskId;
use tokio::{
    sync::{mpsc, watch},
    time::sleep,
};

use crate::{
    Fees, Parts,
    defense::{Round, rounds},
    desk::Event,
    float::Money,
    watch::ONE,
};

/// Between two attempts when the chain is out of sight, at first and at most.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Batches that are not final: the chain takes no more.
const UNFINISHED_MAX: usize = 64;

/// Of those, before the ones that are for what is demanded.
const UNFINISHED_BEFORE_DEMANDS: usize = 56;

/// A finalised block, as far as it is about calls.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    pub(crate) block: BlockNumber,
    /// How often blocks were followed anew before it, because somebody asked for that.
    pub(crate) subscription: u64,
    pub(crate) time: Time,
    pub(crate) rules: ChannelRules,
    /// What the provider stands behind; nothing where it never has.
    pub(crate) standing: Option<StandingView>,
    /// Whether this agent still acts for it.
    pub(crate) is_agent: bool,
    /// Its offers.
    pub(crate) offers: Vec<OfferView>,
    /// Its channels; those that were known last where they cannot be read.
    pub(crate) channels: Arc<Vec<ChannelView>>,
    /// Whether these are all that there are.
    pub(crate) knows_channels: bool,
    /// Its batches that are kept.
    pub(crate) batches: Vec<BatchView>,
    /// What is demanded of it.
    pub(crate) demands: Vec<DemandView>,
    /// Rounds about its receipts.
    pub(crate) rounds: BTreeMap<TaskId, Round>,
    /// What is free to pay with; nothing where that cannot be read.
    pub(crate) money: Option<Money>,
    /// What calls cost in the next block.
    pub(crate) fees: Fees,
}

impl Sight {
    /// What it can lose stands behind it, and what this agent signs binds it.
    pub(crate) fn may_sell(&self, parts: &Parts) -> bool {
        let agent = parts.signer.account();
        let stands = self.standing.as_ref().filter(|standing| standing.lock > 0);
        self.is_agent && stands.is_some_and(|standing| standing.signers.contains(agent))
    }

    /// Whether somebody plays about a receipt, or may demand what it is about.
    pub(crate) fn is_disputed(&self) -> bool {
        self.standing
            .as_ref()
            .is_some_and(|standing| standing.disputes > 0)
    }

    /// Batches that are kept.
    pub(crate) fn windows(&self) -> BTreeMap<BatchNumber, BatchWindow> {
        let windows = self.batches.iter().map(|view| (view.batch, view.window.clone()));
        windows.collect()
    }

    /// The first channel that still pays: with a conviction all that was not paid is void.
    pub(crate) fn since_channel(&self) -> ChannelId {
        let standing = self.standing.as_ref();
        standing.map_or(0, |standing| standing.since_channel)
    }

    /// So long before the last time of a channel its answers are cut, and nothing more is paid for: their
    /// receipts have to be batched, and that to become final. Most of a closing period is left for an answer
    /// that has begun.
    pub(crate) fn notice(&self, margin: Time) -> Time {
        let needed = self.rules.batch_window.saturating_add(margin.saturating_mul(2));
        needed.min(self.rules.closing_period / 2)
    }

    /// What batches may still cost now, in plancks. The chain takes what has become final off only when it is
    /// asked for something.
    pub(crate) fn room(&self) -> u128 {
        let cap = self.standing.as_ref().map_or(0, |standing| standing.cap);
        cap.saturating_sub(self.committed())
    }

    /// What batches cost that are not final, in plancks.
    pub(crate) fn committed(&self) -> u128 {
        let batches = self
            .standing
            .iter()
            .flat_map(|standing| self.unfinished(standing));
        let prices = batches.map(|batch| batch.window.root.sums.price);
        prices.fold(0, u128::saturating_add)
    }

    /// Whether there is a place for another batch beside those that are left for what is demanded. Whatever
    /// was signed has to be batched then, and others can keep what is there from becoming final.
    pub(crate) fn has_place(&self) -> bool {
        let standing = self.standing.as_ref();
        standing.is_some_and(|standing| self.unfinished(standing).count() < UNFINISHED_BEFORE_DEMANDS)
    }

    /// How many more batches the chain takes.
    pub(crate) fn places(&self) -> usize {
        let standing = self.standing.as_ref();
        let taken = standing.map_or(UNFINISHED_MAX, |standing| self.unfinished(standing).count());
        UNFINISHED_MAX.saturating_sub(taken)
    }

    fn unfinished(&self, standing: &StandingView) -> impl Iterator<Item = &BatchView> {
        let first = standing.unfinished;
        let batches = self.batches.iter();
        batches.filter(move |batch| batch.batch >= first && !batch.window.is_final(self.time))
    }
}

/// Why blocks are followed no further.
enum Ended {
    /// Nobody listens.
    ForGood,
    /// They are followed anew, over another subscription.
    ForAnother,
}

/// Tells the desk of each finalised block, and everybody else of its number, until nobody listens. A node
/// that is down is waited for; whenever `anew` grows blocks are followed anew.
pub(crate) async fn follow(
    parts: Arc<Parts>,
    newest: watch::Sender<BlockNumber>,
    events: mpsc::Sender<Event>,
    mut anew: watch::Receiver<u64>,
) {
    let (mut pause, mut known) = (PAUSE, None);
    loop {
        match follow_once(&parts, (&newest, &events, &mut anew), &mut pause, &mut known).await {
            Ok(Ended::ForGood) => return,
            // A node that names other batches each time has this asked for each time.
            Ok(Ended::ForAnother) => {
                sleep(PAUSE).await;
                continue;
            }
            Err(error) => tracing::warn!(%error, "calls have lost the chain, trying again"),
        }
        sleep(pause).await;
        pause = pause.saturating_mul(2).min(PAUSE_MAX);
    }
}

async fn follow_once(
    parts: &Parts,
    (newest, events, anew): (
        &watch::Sender<BlockNumber>,
        &mpsc::Sender<Event>,
        &mut watch::Receiver<u64>,
    ),
    pause: &mut Duration,
    known: &mut Option<Arc<Vec<ChannelView>>>,
) -> Result<Ended, ChainError> {
    let subscription = *anew.borrow_and_update();
    let mut blocks = parts.chain.finalized_blocks().await?;
    loop {
        let block = tokio::select! {
            block = blocks.next() => block?,
            Ok(()) = anew.changed() => return Ok(Ended::ForAnother),
        };
        let sight = match read(parts, (block, subscription), known).await {
            Ok(sight) => sight,
            // There is a newer one already, whose state is there.
            Err(ChainError::Pruned { .. }) => continue,
            Err(error) => return Err(error),
        };
        *pause = PAUSE;
        if events.send(Event::Seen(Box::new(sight))).await.is_err() {
            return Ok(Ended::ForGood);
        }
        newest.send_replace(block.number);
    }
}

async fn read(
    parts: &Parts,
    (block, subscription): (BlockRef, u64),
    known: &mut Option<Arc<Vec<ChannelView>>>,
) -> Result<Sight, ChainError> {
    let (chain, when, stash) = (&parts.channels, When::At(block.hash), &parts.stash);
    let (time, rules, standing, offers, batches, demands, agent_of) = tokio::try_join!(
        chain.time(when),
        chain.rules(when),
        chain.standing(when, stash),
        chain.offers(when),
        chain.batches(when, stash),
        chain.demands(when, stash),
        parts.chain.agent_stash(when, parts.signer.account()),
    )?;
    let disputed = standing.as_ref().map_or(0, |standing| standing.disputes);
    let (rounds, money, channels) = tokio::join!(
        rounds::read(parts, block, disputed),
        read_money(parts, when),
        read_channels(parts, when, known),
    );
    // What is demanded is shown whatever is known of money; nothing new is taken without that.
    let money = money.inspect_err(|error| tracing::warn!(%error, "what is free for fees cannot be read"));
    let (money, multiplier) = money.map_or((None, ONE), |(money, by)| (Some(money), by));
    let (channels, knows_channels) = channels?;
    let own = offers.into_iter().filter(|offer| offer.provider == *stash);
    Ok(Sight {
        block: block.number,
        subscription,
        time,
        rules,
        standing,
        is_agent: agent_of.as_ref() == Some(stash),
        offers: own.collect(),
        channels,
        knows_channels,
        batches,
        demands,
        rounds: rounds?,
        money,
        fees: parts.config.fees.at(multiplier),
    })
}

/// Its channels, and whether these are all that there are: whoever fills what a node can read of them at once
/// would keep a provider from seeing what is demanded, so those that were known last do for that.
async fn read_channels(
    parts: &Parts,
    when: When,
    known: &mut Option<Arc<Vec<ChannelView>>>,
) -> Result<(Arc<Vec<ChannelView>>, bool), ChainError> {
    let read = parts.channels.channels_of(when, &parts.stash).await;
    match (read, known.clone()) {
        (Ok(channels), _) => {
            let channels = Arc::new(channels);
            *known = Some(channels.clone());
            Ok((channels, true))
        }
        // There is a newer block, or none can be read.
        (Err(error @ ChainError::Pruned { .. }), _) | (Err(error), None) => Err(error),
        (Err(error), Some(channels)) => {
            tracing::error!(
                %error,
                "the channels that pay this provider cannot be read: nothing new is taken, and what is demanded is \
                 met by those that were known last. Ask a node that is faster, or nearer"
            );
            Ok((channels, false))
        }
    }
}

/// What is free, and what fees are multiplied by.
async fn read_money(parts: &Parts, when: When) -> Result<(Money, u128), ChainError> {
    let (stash, agent) = (&parts.stash, parts.signer.account());
    let deposit = parts.chain.info().existential_deposit;
    let free = async |account| {
        let funds = parts.chain.funds(when, account).await?;
        Ok::<_, ChainError>(funds.for_fees(deposit))
    };
    let of_agent = async {
        match stash == agent {
            true => Ok(0),
            false => free(agent).await,
        }
    };
    let (stash, agent, multiplier) =
        tokio::try_join!(free(stash), of_agent, parts.chain.fee_multiplier(when))?;
    let money = Money { stash, agent };
    Ok((money, multiplier.into_inner()))
}
