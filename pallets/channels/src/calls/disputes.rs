//! Receipts that somebody says are wrong. A round about one is played as a task's is; what comes of it is the
//! standing lock.

use frame_support::{ensure, traits::Get};
use sp_runtime::{DispatchError, DispatchResult};
use surety_channels::{
    BatchNumber, Batched, ChunkStatement, End, Request, SignedChunkStatement, Struck, Time,
};
use surety_proofs::SegmentOpening;
use surety_types::{ContentHash, TaskId, task::ResultClaim, traits::SoldModels};

use crate::{
    Batches, Channels, ClaimedReceipt, Config, DisputeRounds, Disputed, DisputedReceipts, Error, Event,
    Pallet, Provider, ReceiptDisputes, ReceiptSource, SignedBytes, Standings,
};

/// The last time to dispute a batch, while all places for that are taken: it begins again when one is free.
pub(crate) const FROZEN: Time = Time::MAX;

/// Who has a round opened.
pub(crate) enum By<'a, AccountId> {
    /// Who says that the receipt is wrong.
    Challenger(&'a AccountId),
    /// The agent of a verifier that was not served it.
    Unserved(&'a AccountId),
}

impl<T: Config> Pallet<T> {
    pub(crate) fn do_dispute(
        challenger: &T::AccountId,
        source: ReceiptSource<T::AccountId>,
        request: Request,
        head: Option<&SegmentOpening>,
    ) -> DispatchResult {
        let (statement, batch) = match source {
            ReceiptSource::Batch(batch, batched) => (Self::disputed_batched(batch, batched)?, Some(batch)),
            ReceiptSource::Signed(signed) => (Self::disputed_signed(signed)?, None),
        };
        let provider = Self::standing(&statement.payee)?;
        ensure!(!provider.are_places_taken(), Error::<T>::TooManyDisputed);
        Self::open_round((statement, batch), request, head, By::Challenger(challenger))
    }

    /// Opens a round about a receipt that a provider has signed, or committed.
    pub(crate) fn open_round(
        (statement, batch): (ChunkStatement<T::AccountId>, Option<BatchNumber>),
        mut request: Request,
        head: Option<&SegmentOpening>,
        by: By<'_, T::AccountId>,
    ) -> DispatchResult {
        let mut provider = Self::standing(&statement.payee)?;
        ensure!(provider.since.channel <= statement.channel, Error::<T>::TooLate);
        let is_one = statement.check(&request).is_ok() && !statement.is_void();
        let claimed = statement.claimed_output(head).zip(statement.end);
        let (output, ending) = claimed.filter(|_| is_one).ok_or(Error::<T>::NotDisputable)?;
        // It is as if no more had been asked for.
        if matches!(ending.how, End::Cut | End::Cancelled) {
            request.units_max = statement.units;
        }
        let (challenger, unserved) = match by {
            By::Challenger(challenger) => (Some(challenger), None),
            By::Unserved(agent) => (None, Some(agent.clone())),
        };
        let disputed = Disputed {
            provider: statement.payee.clone(),
            batch,
            receipt: Struck {
                channel: statement.channel,
                nonce: statement.nonce,
                price: statement.price,
            },
            model: request.model,
            input: (request.input, request.input_bytes),
            unserved,
        };
        // Whoever else disputes the same does so in the same round.
        let key = disputed.key();
        let is_new = !DisputeRounds::<T>::contains_key(&statement.payee, key);
        ensure!(is_new, Error::<T>::AlreadyDisputed);
        let receipt = ClaimedReceipt {
            provider: statement.payee,
            price: statement.price,
            claim: ResultClaim {
                output,
                trace_root: ending.trace_root,
                units: statement.units,
            },
            request,
        };
        let round = T::Disputes::open(receipt)?;
        T::Models::acquire(&disputed.model);
        provider.disputes = provider.disputes.saturating_add(1);
        let stash = disputed.provider.clone();
        if disputed.unserved.is_none() {
            provider.challenged = provider.challenged.saturating_add(1);
            if provider.are_places_taken() {
                Self::freeze_windows(&stash, &provider);
            }
        }
        if let Some(batch) = batch {
            Self::change_batch(&stash, batch, |record| {
                record.window.disputes = record.window.disputes.saturating_add(1);
            });
        }
        Standings::<T>::insert(&stash, provider);
        let Struck { channel, nonce, .. } = disputed.receipt;
        DisputeRounds::<T>::insert(&stash, key, round);
        DisputedReceipts::<T>::insert(round, disputed);
        // Last: its bond follows what is at stake in the round.
        if let Some(challenger) = challenger {
            T::Disputes::challenge(round, &stash, challenger)?;
        }
        Self::deposit_event(Event::Disputed {
            round,
            provider: stash,
            batch,
            channel,
            nonce,
        });
        Ok(())
    }

    /// What a batch has for a receipt that can still be disputed.
    fn disputed_batched(
        batch: BatchNumber,
        batched: Batched<T::AccountId>,
    ) -> Result<ChunkStatement<T::AccountId>, DispatchError> {
        let record = Batches::<T>::get(&batched.statement.payee, batch).ok_or(Error::<T>::NoBatch)?;
        let window = record.window;
        // Not later, also while something else of it is disputed: that would go on for ever.
        let is_open = Self::now() <= window.until && !window.is_void;
        ensure!(is_open, Error::<T>::TooLate);
        let shown = batched.place_in(&T::Genesis::get(), &window.root);
        let shown = shown.ok_or(Error::<T>::BadOpening)?;
        let is_struck = window.has_struck(shown.channel, shown.nonce);
        ensure!(!is_struck, Error::<T>::NotDisputable);
        Ok(batched.statement)
    }

    /// A receipt that was signed, as long as the channel is there that it was signed for, and does not count
    /// it.
    fn disputed_signed(
        signed: SignedChunkStatement<T::AccountId>,
    ) -> Result<ChunkStatement<T::AccountId>, DispatchError> {
        let provider = Self::standing(&signed.statement.payee)?;
        Self::ensure_signer(&provider, &signed)?;
        let is_signed = signed.is_signed(&T::Genesis::get(), T::Signatures::is_signed);
        ensure!(is_signed, Error::<T>::BadSignature);
        let channel = Channels::<T>::get(signed.statement.channel).ok_or(Error::<T>::NoChannel)?;
        ensure!(channel.payee == signed.statement.payee, Error::<T>::NoChannel);
        let is_counted = signed.statement.nonce < channel.purse.next;
        ensure!(!is_counted, Error::<T>::AlreadyCounted);
        Ok(signed.statement)
    }

    /// A round about a receipt found its provider at fault. Returns the standing lock, which is lost; nothing
    /// where it was lost before, or the round is about no receipt.
    pub fn receipt_convicted(round: TaskId, stash: &T::AccountId) -> Option<u128> {
        let disputed = DisputedReceipts::<T>::get(round).filter(|disputed| disputed.provider == *stash)?;
        let provider = Self::at_stake(&disputed)?;
        Some(Self::take_standing(stash, provider))
    }

    /// What a fault would cost that a round about a receipt finds, in plancks. Bonds follow it, so that
    /// taking all places for disputes burns as much as being found out.
    pub fn receipt_at_stake(round: TaskId) -> Option<u128> {
        let disputed = DisputedReceipts::<T>::get(round)?;
        Some(Self::at_stake(&disputed)?.lock)
    }

    /// Its provider, if its present lock is one for that receipt.
    fn at_stake(disputed: &Disputed<T::AccountId>) -> Option<Provider<T::AccountId>> {
        let provider = Standings::<T>::get(&disputed.provider)?;
        let is_covered = provider.since.covers(disputed.receipt.channel, disputed.batch);
        (provider.lock > 0 && is_covered).then_some(provider)
    }

    /// A round about a receipt is over. One that does not stand is not paid.
    pub fn receipt_decided(round: TaskId, stands: bool) {
        let Some(disputed) = DisputedReceipts::<T>::take(round) else {
            return;
        };
        DisputeRounds::<T>::remove(&disputed.provider, disputed.key());
        T::Models::release(&disputed.model);
        let mut was_full = false;
        Standings::<T>::mutate_extant(&disputed.provider, |provider| {
            provider.disputes = provider.disputes.saturating_sub(1);
            if disputed.unserved.is_none() {
                was_full = provider.are_places_taken();
                provider.challenged = provider.challenged.saturating_sub(1);
            }
        });
        if let Some(batch) = disputed.batch {
            Self::change_batch(&disputed.provider, batch, |record| {
                let window = &mut record.window;
                window.disputes = window.disputes.saturating_sub(1);
                if !stands {
                    window.strike(disputed.receipt);
                }
            });
        }
        if was_full {
            Self::thaw_windows(&disputed.provider);
        }
        Self::deposit_event(Event::DisputeOver { round, stands });
    }

    /// While all places are taken others cannot come in. So nothing becomes final that can be disputed now.
    fn freeze_windows(stash: &T::AccountId, provider: &Provider<T::AccountId>) {
        let now = Self::now();
        for batch in &provider.unfinished {
            Self::change_batch(stash, *batch, |record| {
                if now <= record.window.until {
                    record.window.until = FROZEN;
                }
            });
        }
    }

    /// A place is free: others have time for what they were kept from.
    fn thaw_windows(stash: &T::AccountId) {
        let Some(provider) = Standings::<T>::get(stash) else {
            return;
        };
        // No less than a batch has that was just committed.
        let time = T::DisputeWindow::get().max(T::BatchWindowLength::get());
        let until = Self::now().saturating_add(time);
        for batch in &provider.unfinished {
            Self::change_batch(stash, *batch, |record| {
                if record.window.until == FROZEN {
                    record.window.until = until;
                }
            });
        }
    }

    /// Who may demand input and output of what a round is about, where that is a receipt: the verifier that
    /// was not served it, or the payer, while its channel is there.
    pub fn receipt_client(round: TaskId) -> Option<T::AccountId> {
        let Disputed {
            receipt, unserved, ..
        } = DisputedReceipts::<T>::get(round)?;
        unserved.or_else(|| Some(Channels::<T>::get(receipt.channel)?.payer))
    }

    /// Content hash and size, in bytes, of what a round's answer was asked with, where that is a receipt.
    pub fn receipt_input(round: TaskId) -> Option<(ContentHash, u32)> {
        Some(DisputedReceipts::<T>::get(round)?.input)
    }
}
