//! What was signed and may still be carried out, signer by signer.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex as StdMutex, MutexGuard as StdMutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use codec::Encode;
use sp_core::{H256, crypto::AccountId32};
use sp_crypto_hashing::blake2_256;
use tokio::sync::{Mutex, MutexGuard};

use super::sign::Terms;
use surety_chain_client::{Balance, BlockNumber, BlockRef, Call, ChainError};

/// Most calls of one signer that wait for their turn: more than a worker has under way, so that no move of a
/// dispute is turned away because of bids.
const WAITING_MAX: usize = 256;
/// Most signers whose queues are kept.
const QUEUES_MAX: usize = 256;
/// Most calls of one signer that are remembered, those that nobody asks about any more included: far more
/// than get lost.
const CALLS_MAX: usize = 512;

/// One queue for each signer: its nonces are given out one after the other.
#[derive(Default)]
pub(super) struct Queues(StdMutex<HashMap<AccountId32, Arc<Queue>>>);

#[derive(Default)]
struct Queue {
    turn: Mutex<()>,
    waiting: AtomicUsize,
    calls: StdMutex<Calls>,
}

/// A call's place in its signer's queue; leaving it makes room.
pub(super) struct Place {
    queue: Arc<Queue>,
    account: AccountId32,
    call: H256,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.calls().leave(&self.call);
        self.queue.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Queues {
    pub fn enter(&self, account: &AccountId32, call: &Call) -> Result<Place, ChainError> {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if queues.len() >= QUEUES_MAX {
            queues.retain(|_, queue| queue.waiting.load(Ordering::Relaxed) > 0);
        }
        let queue = queues.entry(account.clone()).or_default().clone();
        let waiting = queue.waiting.fetch_add(1, Ordering::Relaxed);
        let place = Place {
            queue,
            account: account.clone(),
            call: identity(call),
        };
        place.calls().join(place.call);
        if waiting >= WAITING_MAX {
            return Err(ChainError::Busy { waiting });
        }
        Ok(place)
    }
}

/// The same call of the same signer is the same intention.
fn identity(call: &Call) -> H256 {
    let name = call.name();
    H256(blake2_256(
        &(name.pallet, name.call, call.encode_arguments()).encode(),
    ))
}

impl Place {
    pub fn account(&self) -> &AccountId32 {
        &self.account
    }

    /// Waits until no other call of the signer is given a nonce.
    pub async fn turn(&self) -> MutexGuard<'_, ()> {
        self.queue.turn.lock().await
    }

    fn calls(&self) -> StdMutexGuard<'_, Calls> {
        self.queue.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The signatures of this call that may get into a block, or are in one.
    pub fn attempt(&self) -> Option<Attempt> {
        self.calls().0.get(&self.call)?.attempt.clone()
    }

    /// Takes note of a signature that was sent. Those with the same nonce before it stay in mind.
    pub fn remember(&self, attempt: Attempt) {
        self.change(|known| {
            let old = known.take().filter(|old| old.nonce == attempt.nonce);
            *known = Some(match old {
                Some(old) => Attempt {
                    hashes: [old.hashes, attempt.hashes].concat(),
                    first_block: old.first_block,
                    last_block: old.last_block.max(attempt.last_block),
                    ..attempt
                },
                None => attempt,
            });
        });
    }

    /// The last signature was refused: what is known is what was known before it.
    pub fn recall(&self, before: Option<Attempt>) {
        self.change(|attempt| *attempt = before);
    }

    /// None of these signatures can get into a block.
    pub fn forget(&self, these: &Attempt) {
        self.change(|attempt| {
            // Whoever else waits for the call may have had it signed again meanwhile.
            attempt.take_if(|attempt| attempt.hashes == these.hashes);
        });
    }

    /// None of these signatures is in a block up to this one.
    pub fn seen(&self, these: &Attempt, number: BlockNumber) {
        self.change_these(these, |attempt| {
            attempt.first_block = attempt.first_block.max(number.saturating_add(1));
        });
    }

    /// The last signature will not be taken again.
    pub fn spoil(&self) {
        self.change(|attempt| {
            if let Some(attempt) = attempt {
                attempt.is_spoiled = true;
            }
        });
    }

    /// One of these signatures is in a block.
    pub fn land(&self, these: &Attempt, block: BlockRef, extrinsic: H256) {
        self.change_these(these, |attempt| attempt.landed = Some((block, extrinsic)));
    }

    /// The block that one of them was in has been replaced.
    pub fn unland(&self, these: &Attempt) {
        self.change_these(these, |attempt| {
            attempt.landed.take_if(|landed| these.landed == Some(*landed));
        });
    }

    /// Whether one of the call's signatures is in a block, as far as is known.
    pub fn has_landed(&self) -> bool {
        self.attempt().is_some_and(|attempt| attempt.landed.is_some())
    }

    /// Changes what is known of these signatures, and of those that followed with the same nonce.
    fn change_these(&self, these: &Attempt, change: impl FnOnce(&mut Attempt)) {
        self.change(|attempt| {
            if let Some(attempt) = attempt.as_mut().filter(|attempt| attempt.nonce == these.nonce) {
                change(attempt);
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut Option<Attempt>)) {
        if let Some(record) = self.calls().0.get_mut(&self.call) {
            change(&mut record.attempt);
        }
    }

    /// What became of the call was told: whoever else waits for it may still ask.
    pub fn settle(&self) {
        if let Some(record) = self.calls().0.get_mut(&self.call) {
            record.is_settled = true;
        }
    }

    /// The lowest nonce from `first` on that no call of ours holds. A call that nobody waits for any more
    /// holds none once its signature is dead: calls that wait behind it would never get their turn.
    pub fn free_nonce(&self, spec_version: u32, best: BlockNumber, first: u64) -> u64 {
        let calls = self.calls();
        let is_held = |record: &Record, nonce: u64| {
            let attempt = record.attempt.as_ref().filter(|attempt| attempt.nonce == nonce);
            attempt.is_some_and(|attempt| {
                let is_followed = record.followers > 0 && best <= attempt.last_block;
                is_followed || attempt.may_land(spec_version, best)
            })
        };
        let taken = |nonce: u64| calls.0.values().any(|record| is_held(record, nonce));
        let mut nonce = first;
        while taken(nonce) {
            nonce = nonce.saturating_add(1);
        }
        nonce
    }

    /// The bytes of the call of ours with that nonce, if they may still get into a block.
    pub fn bytes_at(&self, nonce: u64, spec_version: u32, best: BlockNumber) -> Option<Vec<u8>> {
        let calls = self.calls();
        let mut attempts = calls.0.values().filter_map(|record| record.attempt.as_ref());
        let attempt =
            attempts.find(|attempt| attempt.nonce == nonce && attempt.may_land(spec_version, best))?;
        Some(attempt.bytes.clone())
    }

    /// These bytes, of whichever call of this signer, will not be taken again.
    pub fn spoil_bytes(&self, bytes: &[u8]) {
        let mut calls = self.calls();
        let attempts = calls.0.values_mut().filter_map(|record| record.attempt.as_mut());
        for attempt in attempts.filter(|attempt| attempt.bytes == bytes) {
            attempt.is_spoiled = true;
        }
    }
}

/// What is known of the calls of one signer.
#[derive(Default)]
struct Calls(HashMap<H256, Record>);

#[derive(Default)]
struct Record {
    /// How many wait for it.
    followers: usize,
    attempt: Option<Attempt>,
    is_settled: bool,
}

impl Calls {
    fn join(&mut self, call: H256) {
        self.retire();
        let record = self.0.entry(call).or_default();
        record.followers = record.followers.saturating_add(1);
    }

    fn leave(&mut self, call: &H256) {
        let Some(record) = self.0.get_mut(call) else {
            return;
        };
        record.followers = record.followers.saturating_sub(1);
        if record.followers == 0 && (record.is_settled || record.attempt.is_none()) {
            self.0.remove(call);
        }
    }

    /// Makes room: the call that was good the longest time ago is forgotten. Time alone is no reason: what
    /// was forgotten would be signed again.
    fn retire(&mut self) {
        if self.0.len() < CALLS_MAX {
            return;
        }
        let last_block = |record: &Record| record.attempt.as_ref().map_or(0, |attempt| attempt.last_block);
        let unasked = self.0.iter().filter(|(_, record)| record.followers == 0);
        let oldest = unasked.min_by_key(|(_, record)| last_block(record));
        if let Some(oldest) = oldest.map(|(call, _)| *call) {
            self.0.remove(&oldest);
        }
    }
}

/// Signatures of one call with one nonce: at most one of them is ever carried out.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub nonce: u64,
    pub tip: Balance,
    /// Hashes of all that were sent.
    pub hashes: Vec<H256>,
    /// The last one.
    pub bytes: Vec<u8>,
    /// No block before this one has one of them.
    pub first_block: BlockNumber,
    /// Last block that one of them can get into.
    pub last_block: BlockNumber,
    pub landed: Option<(BlockRef, H256)>,
    spec_version: u32,
    is_spoiled: bool,
}

impl Attempt {
    pub fn new(terms: Terms, spec_version: u32, bytes: Vec<u8>) -> Self {
        Self {
            nonce: terms.nonce,
            tip: terms.tip,
            hashes: vec![H256(blake2_256(&bytes))],
            bytes,
            first_block: terms.anchor.number.saturating_add(1),
            last_block: terms.last_block(),
            landed: None,
            spec_version,
            is_spoiled: false,
        }
    }

    /// Whether its last signature will do.
    pub fn is_good(&self, tip: Balance, spec_version: u32, best: BlockNumber) -> bool {
        tip <= self.tip && self.may_land(spec_version, best)
    }

    /// Whether its last signature may get into a block after the best one.
    fn may_land(&self, spec_version: u32, best: BlockNumber) -> bool {
        !self.is_spoiled && spec_version == self.spec_version && best < self.last_block
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn account() -> AccountId32 {
        AccountId32::new([1; 32])
    }

    fn attempt(nonce: u64, tip: Balance) -> Attempt {
        let terms = Terms {
            genesis: H256::zero(),
            anchor: BlockRef {
                number: 10,
                hash: H256::zero(),
            },
            period: 256,
            nonce,
            tip,
        };
        Attempt::new(terms, 1, vec![nonce as u8, tip as u8])
    }

    #[test]
    fn a_queue_takes_so_many_and_no_more_and_leaving_makes_room() {
        let queues = Queues::default();
        let enter = |account: &AccountId32| queues.enter(account, &Call::Heartbeat);
        let mut places: Vec<_> = (0..WAITING_MAX).map(|_| enter(&account()).unwrap()).collect();
        assert!(matches!(enter(&account()), Err(ChainError::Busy { .. })));
        enter(&AccountId32::new([2; 32])).unwrap();
        places.pop();
        enter(&account()).unwrap();
    }

    #[test]
    fn a_call_whose_fate_is_unknown_is_remembered_and_one_that_was_told_is_not() {
        let queues = Queues::default();
        let enter = || queues.enter(&account(), &Call::Heartbeat).unwrap();
        let place = enter();
        place.remember(attempt(3, 0));
        place.remember(attempt(3, 1));
        drop(place);
        let place = enter();
        let known = place.attempt().unwrap();
        assert_eq!((known.nonce, known.tip, known.hashes.len()), (3, 1, 2));
        place.settle();
        let other = enter();
        drop(place);
        // Whoever waits for the same call is told the same.
        assert!(other.attempt().is_some());
        drop(other);
        assert!(enter().attempt().is_none());
    }

    #[test]
    fn nonces_of_calls_that_are_on_their_way_are_not_given_out_again() {
        let queues = Queues::default();
        let commit = |task| Call::AdvanceTask { task };
        let first = queues.enter(&account(), &commit(1)).unwrap();
        first.remember(attempt(3, 0));
        let second = queues.enter(&account(), &commit(2)).unwrap();
        assert_eq!(second.free_nonce(1, 11, 3), 4);
        assert_eq!(second.free_nonce(1, 11, 5), 5);
        // A dead signature holds no nonce.
        assert_eq!(second.free_nonce(1, 10_000, 3), 3);
        assert_eq!(second.bytes_at(3, 1, 11), Some(vec![3, 0]));
        assert_eq!(second.bytes_at(3, 1, 10_000), None);
        assert_eq!(second.bytes_at(3, 2, 11), None);
        first.spoil();
        assert_eq!(second.bytes_at(3, 1, 11), None);
        assert!(!first.attempt().unwrap().is_good(0, 1, 11));
    }

    #[test]
    fn a_call_that_nobody_waits_for_holds_its_nonce_as_long_as_its_signature_may_be_carried_out() {
        let queues = Queues::default();
        let commit = |task| Call::AdvanceTask { task };
        let second = queues.enter(&account(), &commit(2)).unwrap();
        let first = queues.enter(&account(), &commit(1)).unwrap();
        first.remember(attempt(3, 0));
        second.spoil_bytes(&[3, 0]);
        // Whoever waits for it has it signed again, with the same nonce.
        assert_eq!(second.free_nonce(1, 11, 3), 4);
        drop(first);
        assert_eq!(second.free_nonce(1, 11, 3), 3);

        let third = queues.enter(&account(), &commit(3)).unwrap();
        third.remember(attempt(3, 1));
        drop(third);
        assert_eq!(second.free_nonce(1, 11, 3), 4);
        assert_eq!(second.free_nonce(2, 11, 3), 3, "another runtime");
    }

    #[test]
    fn a_signature_is_good_for_its_runtime_its_tip_and_its_era() {
        let attempt = attempt(3, 5);
        assert!(attempt.is_good(5, 1, 11));
        assert!(!attempt.is_good(6, 1, 11));
        assert!(!attempt.is_good(5, 2, 11));
        assert!(!attempt.is_good(5, 1, 10_000));
    }
}
