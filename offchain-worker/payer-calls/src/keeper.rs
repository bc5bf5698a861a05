//! The task that follows the chain: it sees channels and offers change, and has done what that calls for.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use surety_chain_client::{
    Call, ChainError, ChannelView, ErrorClass, Included, Remedy, Until, When, is_message_signed,
};
use surety_channel_calls::{LoadError, Payer, PayerConfig, Row, payer};
use surety_channels::{ChannelId, Purse};
use surety_journal::CallStore;
use tokio::{
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::{Instant, sleep},
};

use crate::{
    AccountId, Running, StartError,
    about::About,
    channel::{HELD_MAX, Handle, Message, Seen},
    config::Config,
    cover,
    demands::{Demands, counted_wait, demanded_by},
    evidence,
    funds::{Funded, Funds, asked_until, deposited},
    journal,
    market::{Market, Shared},
    read::{Read, is_gone, read},
};

/// Calls that are on their way at once, and how many of them may be demands of receipts.
const CALLS_MAX: usize = 8;
const DEMANDS_SENT_MAX: usize = 4;

/// For so long another block is read at the start where the state of the last was gone before it was read.
const START_TIME: Duration = Duration::from_secs(30);

/// Until that is read.
const SOON: Duration = Duration::from_millis(10);

/// After a question that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Blocks after which it is looked again where a provider answers.
const ADDRESSES_KEPT: u32 = 100;

/// Blocks after which a call whose fate was unknown cannot be carried out any more: it is signed for less.
const DOUBTED: u32 = 512;

/// A channel and what keeps its task going.
struct Kept {
    handle: Arc<Handle>,
    running: Running,
    /// By the newest block that was read.
    purse: Purse,
}

pub(crate) struct Keeper {
    shared: Arc<Shared>,
    kept: BTreeMap<ChannelId, Kept>,
    /// What was signed for over channels that no finalised block has, in plancks.
    ended: BTreeMap<ChannelId, u128>,
    /// The newest block that was read.
    newest: u32,
    /// When addresses were read.
    addresses_at: u32,
    calls: JoinSet<(About, u128, Call, Result<Included, ChainError>)>,
    /// What calls are about that are on their way, and what they deposit.
    sent: BTreeMap<About, u128>,
    /// What calls have deposited that no block which was read has yet, or may have where their fate is
    /// unknown, and until which block that is to be counted.
    doubts: Vec<(u128, u32)>,
    /// How many calls this account had sent when this program began, until all of these are final, and the
    /// block after which none that is not can be carried out any more. An earlier run may have deposited
    /// what no final block has yet: until then nothing is deposited.
    before: Option<(u32, u32)>,
    /// What is not tried again before.
    paused: BTreeMap<About, Instant>,
    demands: Demands,
}

impl Keeper {
    /// Takes up where the journal ends.
    pub async fn start(config: Config) -> Result<(Arc<Shared>, JoinHandle<()>), StartError> {
        let rows = journal::read(&config.store, CallStore::load).await?;
        let ended = payer::signed_sums(&rows)?;
        let blocks = config.chain.finalized_blocks().await?;
        // Before the block is: it has all that is final by then.
        let sent = config.chain.sent(config.signer.account()).await?;
        let mut block = config.chain.block(When::Finalized).await?;
        let before = (sent.finalized < sent.all).then(|| (sent.all, block.number.saturating_add(DOUBTED)));
        // A block whose state is gone is followed by another.
        let begun = Instant::now();
        let mut read_first = read(&config, block, None).await;
        while is_gone(&read_first) && begun.elapsed() < START_TIME {
            sleep(SOON).await;
            block = config.chain.block(When::Finalized).await?;
            read_first = read(&config, block, None).await;
        }
        let read = read_first?;
        let there = read.channels.iter().map(|channel| channel.channel);
        let ended_unseen = payer::end_unseen(&rows, &there.collect(), read.market.now)?;
        journal::write(&config.store, ended_unseen).await?;
        let (none_yet, changed) = (read.market.clone(), watch::Sender::new(0));
        let mut keeper = Self {
            shared: Arc::new(Shared::new(config, none_yet, changed)),
            kept: BTreeMap::new(),
            ended,
            newest: block.number,
            addresses_at: block.number,
            calls: JoinSet::new(),
            sent: BTreeMap::new(),
            doubts: Vec::new(),
            before,
            paused: BTreeMap::new(),
            demands: Demands::default(),
        };
        let mut seen = keeper.see(read, &rows).await;
        while is_gone(&seen) && begun.elapsed() < START_TIME {
            sleep(SOON).await;
            seen = keeper.refresh().await;
        }
        seen?;
        let shared = keeper.shared.clone();
        let task = tokio::spawn(keeper.run(blocks));
        Ok((shared, task))
    }

    async fn run(mut self, mut blocks: Box<dyn surety_chain_client::BlockStream>) {
        // Waiting for a block is not given up for something else.
        let (newest, mut seen) = watch::channel(None);
        let follow = async move {
            loop {
                match blocks.next().await {
                    Ok(block) => drop(newest.send_replace(Some(block))),
                    Err(error) => {
                        tracing::warn!(%error, "cannot see what is final");
                        sleep(PAUSE).await;
                    }
                }
                if newest.is_closed() {
                    return;
                }
            }
        };
        let _follow = Running::new(tokio::spawn(follow));
        let mut is_stale = false;
        loop {
            let shared = self.shared.clone();
            is_stale |= tokio::select! {
                changed = seen.changed() => match changed {
                    Ok(()) => true,
                    Err(_) => return,
                },
                Some(done) = self.calls.join_next() => {
                    if let Ok((about, deposit, call, outcome)) = done {
                        self.done(about, deposit, call, outcome);
                    }
                    // What it has done is there in the newest final block.
                    true
                }
                () = shared.wanted.notified() => false,
                () = sleep(PAUSE), if is_stale => true,
            };
            if is_stale {
                match self.refresh().await {
                    Ok(()) => is_stale = false,
                    // A block whose state is gone is followed by another.
                    Err(error) => {
                        tracing::warn!(%error, "cannot see this account's channels");
                        continue;
                    }
                }
            }
            self.shared.look_at_wanted().await;
            self.act();
        }
    }

    async fn refresh(&mut self) -> Result<(), StartError> {
        let config = &self.shared.config;
        if let Some((all, _)) = self.before {
            let sent = config.chain.sent(config.signer.account()).await?;
            self.before.take_if(|_| sent.finalized >= all);
        }
        let block = config.chain.block(When::Finalized).await?;
        self.newest = block.number;
        self.before.take_if(|(_, until)| *until < block.number);
        let known = self.shared.market();
        let is_old = block.number > self.addresses_at.saturating_add(ADDRESSES_KEPT);
        let read = read(config, block, (!is_old).then_some(&*known)).await?;
        if is_old {
            self.addresses_at = block.number;
        }
        self.doubts.retain(|(_, until)| *until > block.number);
        self.see(read, &[]).await
    }

    /// Channels that are new get a task, those that have ended lose theirs; all are told.
    async fn see(&mut self, read: Read, rows: &[Row]) -> Result<(), StartError> {
        let Read {
            block,
            channels,
            mut market,
        } = read;
        let ids: BTreeSet<ChannelId> = channels.iter().map(|channel| channel.channel).collect();
        let signers = self.signers(When::At(block.hash), &channels, &market).await?;
        for channel in &channels {
            let seen = Seen {
                terms: channel.terms(),
                purse: channel.purse,
                signers: signers.get(&channel.payee).cloned().unwrap_or_default(),
                now: market.now,
                demanded_by: demanded_by(channel, &market.rules),
                counted: counted_wait(&market.rules),
            };
            if channel.key != *self.shared.config.signer.account() {
                continue;
            }
            let is_stopped = |kept: &Kept| kept.running.is_finished();
            if self.kept.get(&channel.channel).is_none_or(is_stopped) {
                let kept = self.open(&seen, rows).await?;
                self.kept.insert(channel.channel, kept);
                self.ended.remove(&channel.channel);
            }
            if let Some(kept) = self.kept.get_mut(&channel.channel) {
                kept.purse = seen.purse;
                kept.handle.see(seen);
                if market.now > asked_until(channel.demanded_until, &market.rules) {
                    kept.handle.counts_nothing();
                }
            }
        }
        let over: Vec<ChannelId> = self.kept.keys().filter(|id| !ids.contains(id)).copied().collect();
        for id in over {
            if let Some(kept) = self.kept.remove(&id) {
                kept.handle.tell(Message::Over).await;
                let signed = kept.handle.status().signed;
                if signed > 0 {
                    self.ended.insert(id, signed);
                }
                // It forgets what it holds, and stops.
                kept.running.detach();
            }
        }
        season(&self.shared.config, &channels, &mut market);
        for (id, kept) in &self.kept {
            let cover = market.covers.get(&kept.handle.payee);
            if cover.is_some_and(|cover| *id < cover.since) {
                kept.handle.is_before_a_fault();
            }
        }
        market.channels = self
            .kept
            .iter()
            .map(|(id, kept)| (*id, kept.handle.clone()))
            .collect();
        self.shared.see(market);
        let market = self.shared.market();
        let demands = self
            .demands
            .look(&self.shared, (When::At(block.hash), block.number), &market)
            .await;
        for call in demands? {
            self.submit(call);
        }
        Ok(())
    }

    /// Agents whose statements bind those that are paid.
    async fn signers(
        &self,
        when: When,
        channels: &[ChannelView],
        market: &Market,
    ) -> Result<BTreeMap<AccountId, Vec<AccountId>>, ChainError> {
        let mut signers: BTreeMap<_, _> = market
            .offers
            .iter()
            .map(|offer| (offer.provider.clone(), offer.signers.clone()))
            .collect();
        for channel in channels {
            // One that offers nothing any more still stands by what it has said.
            if !signers.contains_key(&channel.payee) {
                let standing = self.shared.config.channels.standing(when, &channel.payee).await?;
                let of = standing.map(|standing| standing.signers).unwrap_or_default();
                signers.insert(channel.payee.clone(), of);
            }
        }
        Ok(signers)
    }

    async fn open(&self, seen: &Seen, rows: &[Row]) -> Result<Kept, StartError> {
        let config = &self.shared.config;
        let signer = config.signer.clone();
        let payer = PayerConfig {
            genesis: config.chain.info().genesis,
            sign: Arc::new(move |message| signer.sign_hash(message)),
            verify: Arc::new(|key, bytes, signature| is_message_signed(key, bytes, *signature)),
            held_max: HELD_MAX,
        };
        let (terms, signers, now) = (seen.terms.clone(), seen.signers.clone(), seen.now);
        let mut read = Vec::new();
        if rows.is_empty() {
            // One that is new, or whose task has stopped.
            read = journal::read(&config.store, CallStore::load).await?;
        }
        let channel = terms.channel;
        let is_own = |row: &&Row| row.channel().map_or(true, |of| of == channel);
        let rows: Vec<_> = rows.iter().chain(&read).filter(is_own).cloned().collect();
        let (payer, begun) = Payer::open(payer, terms, signers, now, rows)?;
        let evidence = match payer.is_distrusted() {
            true => evidence::unreported(config, &seen.terms).await?,
            false => None,
        };
        let (store, patience) = (config.store.clone(), config.patience);
        let changed = self.shared.changed.clone();
        let (handle, running) = Handle::start(payer, begun, seen, (store, patience), changed);
        handle.status().evidence = evidence;
        Ok(Kept {
            handle,
            running,
            purse: seen.purse,
        })
    }

    /// Has done what is due.
    fn act(&mut self) {
        let market = self.shared.market();
        for handle in market.channels.values() {
            let evidence = handle.status().evidence.clone();
            if let Some(equivocation) = evidence {
                self.submit(Call::ReportChunkEquivocation { equivocation });
            }
        }
        let funded = |kept: &Kept| kept.handle.funded(kept.purse);
        let channels: Vec<Funded> = self.kept.values().map(funded).collect();
        let opening = self.sent.keys().filter_map(|about| match about {
            About::Opening(payee) => Some(payee.clone()),
            _ => None,
        });
        let opening: BTreeSet<AccountId> = opening.collect();
        let wants = self.shared.covered_wants();
        let under_way = self
            .sent
            .values()
            .chain(self.doubts.iter().map(|(deposit, _)| deposit));
        let committed = self.ended.values().chain(under_way);
        let unknown = if self.before.is_some() { u128::MAX } else { 0 };
        let funds = Funds {
            spending: &self.shared.config.spending,
            idle: self.shared.config.patience.idle,
            rules: &market.rules,
            now: market.now,
            channels: &channels,
            wants: &wants,
            committed: committed.fold(unknown, |sum, more| sum.saturating_add(*more)),
            opening: &opening,
        };
        self.shared.may_deposit(funds.left());
        for call in funds.plan(self.shared.config.signer.account()) {
            self.submit(call);
        }
    }

    /// Sends a call, unless one about the same is on its way, or has just failed.
    fn submit(&mut self, call: Call) {
        let Some(about) = About::of(&call) else { return };
        let now = Instant::now();
        self.paused.retain(|_, until| *until > now);
        let is_due = !self.sent.contains_key(&about) && !self.paused.contains_key(&about.paused(&call));
        let is_demand = |about: &About| matches!(about, About::Demand(..));
        let demands = self.sent.keys().filter(|about| is_demand(about)).count();
        let is_full = is_demand(&about) && demands >= DEMANDS_SENT_MAX;
        if !is_due || is_full || self.calls.len() >= CALLS_MAX {
            return;
        }
        let deposit = deposited(&call);
        self.sent.insert(about.clone(), deposit);
        let (chain, signer) = (
            self.shared.config.chain.clone(),
            self.shared.config.signer.clone(),
        );
        self.calls.spawn(async move {
            let outcome = chain.submit(&signer, call.clone(), Until::Finalized.into()).await;
            (about, deposit, call, outcome)
        });
    }

    fn done(&mut self, about: About, deposit: u128, call: Call, outcome: Result<Included, ChainError>) {
        self.sent.remove(&about);
        let name = call.name();
        let error = match outcome {
            Ok(included) => {
                let block = included.block.number;
                tracing::info!(call = name.call, ?about, deposit, block, "done");
                self.doubts.push((deposit, block));
                match call {
                    Call::ReportChunkEquivocation { .. } => self.reported(&about),
                    Call::DemandReceipt { held } => self.demands.placed(&held),
                    _ => {}
                }
                return;
            }
            Err(error) => error,
        };
        tracing::warn!(call = name.call, ?about, %error, "the chain has not done what is due");
        if let ChainError::Unknown { .. } = error
            && deposit > 0
        {
            self.doubts.push((deposit, self.newest.saturating_add(DOUBTED)));
        }
        if error.class() == ErrorClass::Failed && matches!(call, Call::ReportChunkEquivocation { .. }) {
            // Somebody else was first, or it is too late.
            self.reported(&about);
        }
        if let Call::DemandReceipt { held } = &call
            && matches!(error.remedy(), Some(Remedy::Look | Remedy::Never))
        {
            self.demands.refused(held);
            if let Some(kept) = self.kept.get(&held.statement.channel) {
                kept.handle
                    .give_up("what its provider has said cannot be demanded any more".into());
            }
        }
        let paused = about.paused(&call);
        if let Some(until) = Instant::now().checked_add(paused.again_after(&error)) {
            self.paused.insert(paused, until);
        }
    }

    fn reported(&self, about: &About) {
        if let About::Report(channel) = about
            && let Some(kept) = self.kept.get(channel)
        {
            kept.handle.status().evidence = None;
        }
    }
}

/// What of this account's deposits counts in full.
fn season(config: &Config, channels: &[ChannelView], market: &mut Market) {
    let (now, supply) = (market.now, market.rules.supply_window);
    for cover in market.covers.values_mut() {
        cover.seasoned = 0;
    }
    let own = channels
        .iter()
        .filter(|channel| channel.key == *config.signer.account());
    for channel in own {
        if let Some(cover) = market.covers.get_mut(&channel.payee) {
            let stood = cover::seasoned(&channel.purse, now, supply);
            cover.seasoned = cover.seasoned.saturating_add(stood);
        }
    }
}

impl From<LoadError> for StartError {
    fn from(error: LoadError) -> Self {
        Self::Journal(error.to_string())
    }
}
