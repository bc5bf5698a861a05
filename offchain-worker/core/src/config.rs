//! What the owner of a machine decides: how much work, at what price, and with which salts.

use std::{collections::BTreeMap, fmt};

use codec::Encode;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_types::{BLOCK_SECONDS, ModelId, TaskId, model::Operation, task::TaskSpec, trust::DisputeId};

use crate::{AccountId, Balance, BlockNumber};

/// The slowest that a source of blobs may be on the whole: one that trickles holds a place for no longer than
/// that, and a bid allows that much time.
pub const FETCH_BYTES_PER_SECOND: u32 = 256 << 10;

/// Most of the running clock that is kept for opening a seal which waits for a report: ten blocks, in each of
/// which the clock may move by six.
const OPENING_KEPT: BlockNumber = 60;

/// How a provider or a verifier works.
pub struct Config {
    /// The stash it works for.
    pub stash: AccountId,
    /// The key that signs, where it may be a party to disputes of its own.
    pub agent: Option<AccountId>,
    /// Most tasks it has anything to do with at once, open bids and those that only wait for time to pass
    /// included. A bound on memory; what bounds work is [`Config::commit_seconds`].
    pub tasks_max: usize,
    /// Most tasks, or audits, it computes at once. Moves of disputes and votes have places of their own.
    pub computing_max: usize,
    /// Most inputs it fetches at once. No client has more than half of the places.
    pub fetching_max: usize,
    /// Most draws it makes at once. Each asks the chain two things.
    pub draws_max: usize,
    /// How long the chain gives a provider to compute and commit, in seconds. Work that does not fit is not
    /// bid for.
    pub commit_seconds: u32,
    /// Whether there is no room for records but what is kept for those of promises made before: nothing new
    /// is promised.
    pub is_short_of_room: bool,
    /// Whether a provider finishes what it has begun and bids for nothing more.
    pub is_draining: bool,
    /// How long the chain gives an auditor to open its seal, in seconds, at least. It takes no more on than
    /// it could compute in whole by then.
    pub opening_seconds: u32,
    /// How much of a bid's work counts before it is decided who gets the task, in per cent.
    pub undecided_percent: u32,
    /// Blocks it waits after a first failure that cost something; doubles with every further one.
    pub backoff_blocks: BlockNumber,
    /// Most blocks it waits between two attempts.
    pub backoff_blocks_max: BlockNumber,
    /// What is left of the running clock when a deadline is near: attempts then follow each other with every
    /// block.
    pub near_blocks: BlockNumber,
    /// Blocks it waits for finalised state to show an extrinsic that made it into a block, before it sends it
    /// again.
    pub confirm_blocks: BlockNumber,
    /// What it takes on.
    pub policy: Box<dyn Policy>,
    /// Where salts come from.
    pub salts: Box<dyn SaltSource>,
}

impl Config {
    /// Usual limits.
    pub fn new(stash: AccountId, policy: impl Policy + 'static, salts: impl SaltSource + 'static) -> Self {
        Self {
            stash,
            agent: None,
            tasks_max: 4096,
            computing_max: 1,
            fetching_max: 8,
            draws_max: 32,
            commit_seconds: 600,
            is_short_of_room: false,
            is_draining: false,
            opening_seconds: 6 * 3600,
            undecided_percent: 50,
            backoff_blocks: 1,
            backoff_blocks_max: 8,
            near_blocks: 10,
            // Finality lags by two or three blocks; a block that is this far behind has been replaced.
            confirm_blocks: 8,
            policy: Box::new(policy),
            salts: Box::new(salts),
        }
    }

    /// Whether bids are made, and those sent that the chain has not heard of.
    pub(crate) fn takes_work(&self) -> bool {
        !self.is_short_of_room && !self.is_draining
    }

    /// What is left of the time for openings when a seal waits for a report no longer: half of it at most.
    pub(crate) fn kept_for_opening(&self) -> BlockNumber {
        OPENING_KEPT.min(self.opening_seconds / BLOCK_SECONDS / 2)
    }

    /// Whether an account is the stash, or the key that signs for it.
    pub(crate) fn is_ours(&self, account: &AccountId) -> bool {
        *account == self.stash || Some(account) == self.agent.as_ref()
    }
}

/// What a provider asks for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// For `units_max` units, in plancks.
    pub price: Balance,
    /// Seconds it needs besides computing, to fetch the input and load the model.
    pub seconds_ahead: u32,
    /// Units it computes in a second, until that has been measured; 0 counts as 1.
    pub units_per_second: u32,
}

/// Decides which tasks to bid for.
pub trait Policy: Send + Sync {
    /// What to ask for a task; nothing to leave it to others.
    fn offer(&self, spec: &TaskSpec) -> Option<Offer>;
}

/// Bids for nothing: a verifier does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoBids;

impl Policy for NoBids {
    fn offer(&self, _: &TaskSpec) -> Option<Offer> {
        None
    }
}

/// A fixed price per unit for each model and operation on offer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriceList {
    /// What is on offer.
    pub rates: BTreeMap<(ModelId, Operation), Rate>,
    /// Longest input it fetches, in bytes.
    pub input_bytes_max: u32,
    /// Most units it computes for one task.
    pub units_max: u32,
}

/// Price and speed of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Plancks for each unit.
    pub price_per_unit: Balance,
    /// Units it computes in a second, until that has been measured; 0 counts as 1.
    pub units_per_second: u32,
    /// Seconds it needs besides, whatever the size of the input.
    pub seconds_ahead: u32,
}

impl PriceList {
    /// An empty list with bounds on what is taken on.
    pub fn new(input_bytes_max: u32, units_max: u32) -> Self {
        Self {
            rates: BTreeMap::new(),
            input_bytes_max,
            units_max,
        }
    }

    /// Puts an operation of a model on offer.
    pub fn with(mut self, model: ModelId, operation: Operation, rate: Rate) -> Self {
        self.rates.insert((model, operation), rate);
        self
    }
}

impl Policy for PriceList {
    fn offer(&self, spec: &TaskSpec) -> Option<Offer> {
        if spec.input_bytes > self.input_bytes_max || spec.units_max > self.units_max {
            return None;
        }
        let rate = self.rates.get(&(spec.model, spec.operation))?;
        let price = rate.price_per_unit.checked_mul(spec.units_max.into())?.max(1);
        let fetching = spec.input_bytes / FETCH_BYTES_PER_SECOND;
        Some(Offer {
            price,
            seconds_ahead: rate.seconds_ahead.saturating_add(fetching),
            units_per_second: rate.units_per_second,
        })
    }
}

/// What a salt is for. No two purposes share a salt: opening one must not open the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode)]
pub enum Purpose {
    /// Sealing a bid.
    Bid,
    /// Committing to a result.
    Result,
    /// Sealing what we say of a provider's result; the provider by [`crate::key_of`].
    Audit(H256),
    /// Choosing which piece of a provider's output to demand; the provider by [`crate::key_of`].
    Demand(H256),
    /// Sealing an answer to the committee of a dispute, in the ballot after so many others.
    Vote(DisputeId, u32),
    /// Choosing which piece of an input to demand, after so many other demands.
    Input(u32),
    /// The answer of a seal over items that says that a provider's result shows something else; the provider
    /// by [`crate::key_of`].
    Differing(H256),
}

/// Gives the salt of a task: always the same one, and one that nobody else can guess.
pub trait SaltSource: Send + Sync {
    /// The salt.
    fn salt(&self, task: TaskId, purpose: Purpose) -> H256;
}

/// Salts that are hashes of a secret, the task and the purpose. A lost journal costs nothing then: the same
/// salts come out again.
#[derive(Clone)]
pub struct SecretSalts([u8; 32]);

impl SecretSalts {
    /// Salts from a secret that is used for nothing else, for example one derived from the agent's key.
    pub fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }
}

impl fmt::Debug for SecretSalts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretSalts")
    }
}

impl SaltSource for SecretSalts {
    fn salt(&self, task: TaskId, purpose: Purpose) -> H256 {
        H256(blake2_256(&(self.0, task, purpose).encode()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn spec(units_max: u32, input_bytes: u32) -> TaskSpec {
        TaskSpec {
            model: H256([1; 32]),
            operation: Operation::Embed,
            input: H256([2; 32]),
            input_bytes,
            units_max,
            redundancy: 1,
            sources: Default::default(),
            security: Default::default(),
            requirements: Default::default(),
        }
    }

    #[test]
    fn the_price_list_multiplies_and_declines_what_is_too_large_or_unknown() {
        let rate = Rate {
            price_per_unit: 7,
            units_per_second: 10,
            seconds_ahead: 3,
        };
        let list = PriceList::new(1000, 100).with(H256([1; 32]), Operation::Embed, rate);
        let offer = list.offer(&spec(25, 1000)).unwrap();
        assert_eq!(
            offer,
            Offer {
                price: 175,
                seconds_ahead: 3,
                units_per_second: 10,
            }
        );
        assert_eq!(list.offer(&spec(101, 1000)), None);
        assert_eq!(list.offer(&spec(25, 1001)), None);
        let mut unknown = spec(25, 1000);
        unknown.model = H256([9; 32]);
        assert_eq!(list.offer(&unknown), None);
    }

    #[test]
    fn each_operation_of_a_model_has_a_price_of_its_own() {
        let rate = |price_per_unit| Rate {
            price_per_unit,
            units_per_second: 10,
            seconds_ahead: 3,
        };
        let model = H256([1; 32]);
        let list = PriceList::new(1000, 100)
            .with(model, Operation::Embed, rate(7))
            .with(model, Operation::Generate, rate(2));
        let generate = TaskSpec {
            operation: Operation::Generate,
            ..spec(25, 1000)
        };
        assert_eq!(list.offer(&spec(25, 1000)).unwrap().price, 175);
        assert_eq!(list.offer(&generate).unwrap().price, 50);
    }

    #[test]
    fn a_price_that_overflows_is_no_offer() {
        let rate = Rate {
            price_per_unit: Balance::MAX,
            units_per_second: 0,
            seconds_ahead: 0,
        };
        let list = PriceList::new(1000, 100).with(H256([1; 32]), Operation::Embed, rate);
        assert_eq!(list.offer(&spec(2, 1)), None);
    }

    #[test]
    fn salts_differ_by_secret_task_and_purpose_and_do_not_show_the_secret() {
        let salts = SecretSalts::new([5; 32]);
        let salt = salts.salt(1, Purpose::Bid);
        assert_eq!(salt, salts.salt(1, Purpose::Bid));
        assert_ne!(salt, salts.salt(2, Purpose::Bid));
        assert_ne!(salt, salts.salt(1, Purpose::Result));
        assert_ne!(salt, SecretSalts::new([6; 32]).salt(1, Purpose::Bid));
        assert_eq!(format!("{salts:?}"), "SecretSalts");
    }
}
