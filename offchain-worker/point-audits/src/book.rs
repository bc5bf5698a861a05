//! What a verifier has begun about batches, and what is due of it: by what finalised blocks say, without
//! clock, key, input or output.
//!
//! Everything that is due is said with every block for as long as it is. Whoever carries it out does one
//! thing for each [`Purpose`] at a time.

mod due;
mod entry;

use std::collections::{BTreeMap, BTreeSet};

use codec::{Decode, DecodeAll, Encode};
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_audit_economics::channels::ReceiptsInput;
use surety_chain_client::{BatchView, BlockNumber, Call, ChannelRules, DemandView, PointsView, VrfDraw};
use surety_channel_calls::{AccountId, LoadError, Row, Table};
use surety_channels::{BatchEvidence, BatchNumber, ChannelId, Nonce, Time};
use surety_types::{
    TaskId,
    trust::{AuditProof, DisputeId},
};

use crate::shown::Receipt;
use entry::Entry;

/// A batch: the stash of its provider, and its number.
pub type BatchKey = (AccountId, BatchNumber);

/// Begins what is hashed into a salt.
const SALT: &[u8] = b"surety-points-salt";

/// Wrong receipts of a batch that are kept: one that is found wrong for good costs its provider everything.
const WRONG_MAX: usize = 2;

/// Wrong receipts that are kept in all, a few MiB each.
const ALL_WRONG_MAX: usize = 16;

/// What is not in finalised blocks any more is forgotten after so many: another node may be behind.
const GONE_BLOCKS: BlockNumber = 50;

/// How much a verifier does, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Batches that are looked at.
    pub batches_max: usize,
    /// Batches of which receipts are asked for and computed at once.
    pub working_max: usize,
    /// What is due is sent so much before its last time, and not later, by the chain's clock.
    pub margin: Time,
    /// Times that a receipt is asked for before it is demanded, spread over what is left of the time.
    pub tries_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            batches_max: 1_024,
            working_max: 4,
            margin: 3,
            tries_max: 4,
        }
    }
}

/// Who audits.
#[derive(Clone, Debug)]
pub struct Verifier {
    /// Whose stake it is.
    pub stash: AccountId,
    /// Hash of the chain's first block.
    pub genesis: H256,
    /// Salts are made of it, so that who has lost a disk can still open what was announced.
    pub secret: [u8; 32],
    /// How much it does.
    pub limits: Limits,
}

/// A verifier's stake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stake {
    /// In plancks.
    pub bonded: u128,
    /// Block in which it last grew, or its agent changed.
    pub settled_at: BlockNumber,
}

/// What a finalised block says.
#[derive(Clone, Debug)]
pub struct Sight {
    /// Its height.
    pub block: BlockNumber,
    /// The time on the chain's clock.
    pub time: Time,
    /// What everybody works by.
    pub rules: ChannelRules,
    /// The verifier's stake; nothing where its agent may not announce anything.
    pub stake: Option<Stake>,
    /// Batches that can be announced, and all that are followed, each with the verifier's own points.
    pub batches: Vec<(BatchView, Option<PointsView>)>,
    /// What the verifier demands of providers.
    pub demands: Vec<DemandView>,
}

/// What a call is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Points are announced.
    Announce(BatchKey),
    /// What was sealed is opened.
    Open(BatchKey),
    /// An audit is paid.
    End(BatchKey),
    /// A receipt is disputed.
    Dispute(BatchKey, ChannelId, Nonce),
    /// A batch is shown to be none.
    Report(BatchKey),
    /// The receipt is demanded that the point at a place is in.
    Demand(BatchKey, u32),
    /// A provider has not shown what was demanded.
    EndDemand(AccountId),
    /// Somebody else's round is joined.
    Challenge(TaskId, AccountId),
    /// A move.
    Play(DisputeId),
    /// The other side's time is over.
    Advance(DisputeId),
}

/// How a call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Went {
    /// It was carried out.
    Done,
    /// It may be taken later.
    Later,
    /// It will not be, or has no use any more.
    Over,
}

/// Receipts to be asked for and computed.
#[derive(Clone, Debug)]
pub struct Work {
    /// Of this batch.
    pub view: BatchView,
    /// That the points were drawn.
    pub proof: AuditProof,
    /// What they were drawn with.
    pub seed: H256,
    /// Points of which nothing is known, each with its place among all.
    pub open: Vec<(u32, u128)>,
    /// All points.
    pub points: Vec<u128>,
}

/// What is due.
#[derive(Clone, Debug)]
pub enum Action {
    /// Work has to begin.
    Work(Box<Work>),
    /// A call has to be sent.
    Send(Purpose, Box<Call>),
    /// A row of the journal is not needed any more.
    Forget(Row),
}

/// What came of work.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What was found at points.
    pub found: BTreeMap<u128, H256>,
    /// Receipts that claim something else.
    pub wrong: Vec<Receipt>,
    /// That the batch is none.
    pub faulty: Option<Box<BatchEvidence<AccountId>>>,
    /// The first point whose receipt was not shown.
    pub unserved: Option<Unserved>,
    /// Points in receipts that cannot be computed here.
    pub unable: BTreeSet<u128>,
    /// Points in receipts at which the machine has failed, and may not the next time.
    pub failed: BTreeSet<u128>,
}

/// A point whose receipt was not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unserved {
    /// Its place among all.
    pub place: u32,
    /// The provider was only busy: that is no try.
    pub is_busy: bool,
}

/// What the journal keeps of a batch.
#[derive(Clone, Debug, Default, Encode, Decode)]
struct Kept {
    seed: H256,
    found: Vec<(u128, H256)>,
    wrong: Vec<Receipt>,
}

/// All that a verifier has begun.
pub struct Book {
    verifier: Verifier,
    entries: BTreeMap<BatchKey, Entry>,
    /// Providers that have to show something.
    demanded: BTreeSet<AccountId>,
    time: Time,
}

impl Book {
    /// Goes on where the journal ends: rows of [`Table::Points`].
    ///
    /// # Errors
    /// [`LoadError`] where one of them is damaged.
    pub fn new(verifier: Verifier, rows: &[Row]) -> Result<Self, LoadError> {
        let mut entries = BTreeMap::new();
        for row in rows.iter().filter(|row| row.table == Table::Points) {
            let unreadable = |error: codec::Error| LoadError::Unreadable {
                table: Table::Points.name(),
                what: error.to_string(),
            };
            let (provider, batch) =
                <(AccountId, BatchNumber)>::decode_all(&mut &*row.key).map_err(unreadable)?;
            let value = row.value.as_deref().unwrap_or_default();
            let kept = Kept::decode_all(&mut &*value).map_err(unreadable)?;
            entries.insert((provider, batch), Entry::from_journal(kept));
        }
        Ok(Self {
            verifier,
            entries,
            demanded: BTreeSet::new(),
            time: 0,
        })
    }

    /// Providers whose batches are followed, and demanded from.
    pub fn providers(&self) -> BTreeSet<AccountId> {
        let followed = self.entries.iter().filter(|(_, entry)| entry.is_followed());
        let followed = followed.map(|((provider, _), _)| provider);
        followed.chain(&self.demanded).cloned().collect()
    }

    /// Whether something was begun about a batch.
    pub fn knows(&self, key: &BatchKey) -> bool {
        self.entries.contains_key(key)
    }

    /// Whether it matters whether the verifier has announced points on a batch.
    pub fn asks_points(&self, view: &BatchView) -> bool {
        let entry = self.entries.get(&(view.provider.clone(), view.batch));
        view.announced > 0 && entry.is_none_or(Entry::may_be_announced)
    }

    /// Takes in a finalised block, and says what is due. `draw` evaluates the agent's VRF.
    pub fn see(
        &mut self,
        sight: &Sight,
        draw: &dyn Fn(&ReceiptsInput<AccountId>) -> Option<VrfDraw>,
    ) -> Vec<Action> {
        self.time = sight.time;
        self.demanded = sight
            .demands
            .iter()
            .map(|demand| demand.provider.clone())
            .collect();
        for (view, shown) in &sight.batches {
            let key = (view.provider.clone(), view.batch);
            let is_full = self.entries.len() >= self.verifier.limits.batches_max;
            if is_full && !self.entries.contains_key(&key) && shown.is_none() {
                continue;
            }
            let entry = self.entries.entry(key).or_default();
            entry.see(view, shown.as_ref(), sight, draw);
            entry.begin(sight.time, self.verifier.limits.margin);
        }
        let mut actions = self.forget(sight);
        self.work(sight, &mut actions);
        self.calls(sight, &mut actions);
        actions
    }

    /// What is over, or in no block for long.
    fn forget(&mut self, sight: &Sight) -> Vec<Action> {
        let seen: BTreeSet<BatchKey> = sight
            .batches
            .iter()
            .map(|(view, _)| (view.provider.clone(), view.batch))
            .collect();
        let mut gone = Vec::new();
        for (key, entry) in &mut self.entries {
            let is_gone = match seen.contains(key) {
                true => {
                    entry.gone_since = None;
                    entry.is_over(sight.time)
                }
                false => {
                    let since = *entry.gone_since.get_or_insert(sight.block);
                    sight.block.saturating_sub(since) >= GONE_BLOCKS || entry.holds_nothing()
                }
            };
            if is_gone && !entry.is_working {
                gone.push(key.clone());
            }
        }
        let mut actions = Vec::new();
        for key in gone {
            if self.entries.remove(&key).is_some_and(|entry| entry.is_in_journal) {
                actions.push(Action::Forget(row(&key, None)));
            }
        }
        actions
    }

    /// Takes in what came of work. Returns the row that has to be durable before [`Self::written`] is called.
    pub fn worked(&mut self, key: &BatchKey, seed: H256, outcome: Outcome) -> Option<Row> {
        let all_wrong: usize = self.entries.values().map(|entry| entry.wrong.len()).sum();
        let (time, limits) = (self.time, self.verifier.limits);
        let entry = self.entries.get_mut(key)?;
        entry.is_working = false;
        if entry.seed() != Some(seed) {
            return None;
        }
        let room = ALL_WRONG_MAX
            .saturating_sub(all_wrong)
            .min(WRONG_MAX.saturating_sub(entry.wrong.len()));
        let mut is_news = !outcome.found.is_empty() || !outcome.wrong.is_empty();
        entry.found.extend(outcome.found);
        entry.wrong.extend(outcome.wrong.into_iter().take(room));
        entry.faulty = entry.faulty.take().or(outcome.faulty);
        entry.unable.extend(outcome.unable);
        entry.note_tries(outcome.unserved, time, &limits);
        entry.note_failed(outcome.failed, time, &limits);
        is_news |= entry.seal_unable();
        if !is_news {
            return None;
        }
        entry.is_written = false;
        entry.is_in_journal = true;
        let kept = Kept {
            seed,
            found: entry
                .found
                .iter()
                .map(|(point, found)| (*point, *found))
                .collect(),
            wrong: entry.wrong.clone(),
        };
        Some(row(key, Some(&kept)))
    }

    /// What [`Self::worked`] has returned last of this batch is durable.
    pub fn written(&mut self, key: &BatchKey) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.is_written = true;
        }
    }

    /// How a call went.
    pub fn went(&mut self, purpose: &Purpose, went: Went) {
        let (Purpose::Announce(key)
        | Purpose::Dispute(key, ..)
        | Purpose::Report(key)
        | Purpose::Demand(key, _)) = purpose
        else {
            return;
        };
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        let is_settled = went != Went::Later;
        match purpose {
            // Whether it was taken shows.
            Purpose::Announce(_) => entry.is_not_announced |= went == Went::Over,
            Purpose::Dispute(_, channel, nonce) if is_settled => {
                entry.disputed.insert((*channel, *nonce), went);
            }
            Purpose::Report(_) if is_settled => entry.faulty = None,
            Purpose::Demand(_, place) if is_settled => drop(entry.demanded.insert(*place)),
            _ => {}
        }
    }

    /// Receipts about which games may be played, and whether somebody else is known to have disputed them
    /// first.
    pub fn disputed(&self) -> impl Iterator<Item = (&BatchKey, &Receipt, bool)> {
        self.entries.iter().flat_map(|(key, entry)| {
            entry.wrong.iter().map(move |receipt| {
                let statement = &receipt.batched.statement;
                let went = entry.disputed.get(&(statement.channel, statement.nonce));
                (key, receipt, went == Some(&Went::Over))
            })
        })
    }

    fn salt(&self, (provider, batch): &BatchKey) -> H256 {
        let Verifier {
            secret,
            genesis,
            stash,
            ..
        } = &self.verifier;
        H256(blake2_256(
            &(secret, SALT, genesis, stash, provider, batch).encode(),
        ))
    }
}

fn row(key: &BatchKey, kept: Option<&Kept>) -> Row {
    Row {
        table: Table::Points,
        key: key.encode(),
        value: kept.map(Encode::encode),
    }
}
