//! What is not served, or not batched, is demanded: shown in time, or withheld.

use frame_support::{
    ensure,
    traits::{
        Get,
        fungible::{InspectHold, MutateHold},
        tokens::Precision,
    },
};
use sp_runtime::{DispatchError, DispatchResult, TokenError};
use surety_audit_economics::channels::drawn_points;
use surety_channels::{BatchNumber, Batched, Request, SignedChunkStatement};
use surety_pallet_holds::hand_over;
use surety_proofs::SegmentOpening;
use surety_types::{
    stake::Role,
    traits::StakeLedger,
    trust::{AuditProof, FaultKind},
};

use super::disputes::By;
use crate::{
    Batches, Channels, Config, Demand, Demands, Error, Event, HoldReason, Pallet, Provider, SignedBytes,
    Standings, Wanted,
};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_demand_receipt(
        by: T::AccountId,
        held: &SignedChunkStatement<T::AccountId>,
    ) -> DispatchResult {
        let statement = &held.statement;
        let provider = Self::standing(&statement.payee)?;
        // The provider has no batch with a price for that.
        ensure!(!statement.is_void(), Error::<T>::MayNotDemand);
        let channel = Channels::<T>::get(statement.channel).ok_or(Error::<T>::NoChannel)?;
        let is_of_it = channel.payee == statement.payee && provider.since.channel <= statement.channel;
        ensure!(is_of_it, Error::<T>::TooLate);
        let is_payer = by == channel.payer || by == channel.key;
        ensure!(is_payer, Error::<T>::MayNotDemand);
        let is_counted = statement.nonce < channel.purse.next;
        ensure!(!is_counted, Error::<T>::AlreadyCounted);
        // What was batched long ago cannot be shown any more.
        ensure!(provider.oldest <= channel.batch, Error::<T>::TooLate);
        Self::ensure_signer(&provider, held)?;
        let is_signed = held.is_signed(&T::Genesis::get(), T::Signatures::is_signed);
        ensure!(is_signed, Error::<T>::BadSignature);
        let wanted = Wanted::Receipt {
            channel: statement.channel,
            nonce: statement.nonce,
            bytes: statement.bytes,
        };
        // Of an answer that goes on nobody knows what it will cost, but the deposit pays for it.
        let uncounted = channel.purse.deposit.saturating_sub(channel.purse.counted);
        let most = statement.end.map_or(uncounted, |_| statement.price);
        Self::demand((&statement.payee, &by), &[&by], wanted, most)
    }

    pub(crate) fn do_demand_point(
        agent: T::AccountId,
        provider: &T::AccountId,
        batch: BatchNumber,
        place: u32,
        proof: &AuditProof,
    ) -> DispatchResult {
        let verifier = Self::verifier_of(&agent)?;
        Self::standing(provider)?;
        let mut record = Batches::<T>::get(provider, batch).ok_or(Error::<T>::NoBatch)?;
        let is_time = Self::now() <= record.window.until && !record.window.is_void;
        ensure!(is_time, Error::<T>::WrongTime);
        let (output, mean) = Self::drawn(&agent, &verifier, (provider, batch), &mut record, proof)?;
        let points = drawn_points(&output, record.window.root.sums.price, mean);
        let point = *points.get(place as usize).ok_or(Error::<T>::NotDrawn)?;
        // Nothing of it is final before it was shown.
        record.window.disputes = record.window.disputes.saturating_add(1);
        Batches::<T>::insert(provider, batch, record);
        Self::demand(
            (provider, &verifier),
            &[&agent, &verifier],
            Wanted::Point { batch, point },
            0,
        )
    }

    /// Puts the price on hold with the first that has it. Batching what is wanted takes `room` of the cap.
    fn demand(
        (provider, demander): (&T::AccountId, &T::AccountId),
        payers: &[&T::AccountId],
        wanted: Wanted,
        room: u128,
    ) -> DispatchResult {
        let is_new = !Demands::<T>::contains_key(provider, demander);
        ensure!(is_new, Error::<T>::AlreadyDemanded);
        let (reason, price) = (HoldReason::Demand.into(), T::DemandPrice::get());
        let mut payers = payers.iter();
        let by = payers.find(|payer| T::Currency::can_hold(&reason, payer, price));
        let by = (*by.ok_or(TokenError::FundsUnavailable)?).clone();
        T::Currency::hold(&reason, &by, price)?;
        let mut standing = Self::standing(provider)?;
        standing.demands = standing.demands.saturating_add(1);
        let demand = Demand {
            wanted,
            by,
            price,
            until: 0,
            room: room.min(standing.standing.cap),
            is_due: false,
        };
        Self::begin_demand((provider, demander), standing, demand);
        Ok(())
    }

    /// Gives a provider time for what is demanded. It is only due if there is room for it under the cap, and
    /// a place for a batch, when that begins: others can keep a provider from batching.
    fn begin_demand(
        (provider, demander): (&T::AccountId, &T::AccountId),
        mut standing: Provider<T::AccountId>,
        mut demand: Demand<T::AccountId>,
    ) {
        demand.until = Self::now().saturating_add(T::SupplyWindow::get());
        demand.is_due = match demand.wanted {
            Wanted::Point { .. } => true,
            Wanted::Receipt { .. } => {
                Self::finish_batches(provider, &mut standing);
                standing.keep(demand.room)
            }
        };
        Standings::<T>::insert(provider, standing);
        Self::deposit_event(Event::Demanded {
            provider: provider.clone(),
            demander: demander.clone(),
            wanted: demand.wanted.clone(),
            until: demand.until,
        });
        Demands::<T>::insert(provider, demander, demand);
    }

    pub(crate) fn do_show_receipt(
        agent: &T::AccountId,
        demander: &T::AccountId,
        batch: BatchNumber,
        receipt: &Batched<T::AccountId>,
    ) -> DispatchResult {
        let (provider, demand) = Self::demanded(agent, demander)?;
        let Wanted::Receipt {
            channel,
            nonce,
            bytes,
        } = demand.wanted
        else {
            return Err(Error::<T>::NotDemanded.into());
        };
        Self::ensure_batched(&provider, batch, receipt)?;
        let said = &receipt.statement;
        let covers = (said.channel, said.nonce) == (channel, nonce) && said.end.is_some();
        ensure!(covers && bytes <= said.bytes, Error::<T>::NotDemanded);
        Self::meet(&provider, demander, demand, true)
    }

    pub(crate) fn do_show_point(
        agent: &T::AccountId,
        demander: &T::AccountId,
        receipt: Batched<T::AccountId>,
        request: Request,
        head: Option<&SegmentOpening>,
    ) -> DispatchResult {
        let (provider, demand) = Self::demanded(agent, demander)?;
        let Wanted::Point { batch, point } = demand.wanted else {
            return Err(Error::<T>::NotDemanded.into());
        };
        let start = Self::ensure_batched(&provider, batch, &receipt)?;
        let is_there = point
            .checked_sub(start)
            .is_some_and(|offset| offset < receipt.statement.price);
        ensure!(is_there, Error::<T>::NotDemanded);
        // Also after the batch's window, in which it was demanded: there is one for each verifier.
        let unserved = By::Unserved(&demand.by);
        match Self::open_round((receipt.statement, Some(batch)), request, head, unserved) {
            // Whoever disputes it has had it shown.
            Err(error) if error != Error::<T>::AlreadyDisputed.into() => return Err(error),
            _ => {}
        }
        Self::meet(&provider, demander, demand, true)
    }

    pub(crate) fn do_end_demand(provider: T::AccountId, demander: &T::AccountId) -> DispatchResult {
        let demand = Demands::<T>::get(&provider, demander).ok_or(Error::<T>::NotDemanded)?;
        let standing = Standings::<T>::get(&provider).ok_or(Error::<T>::NotStanding)?;
        let is_owed = Self::is_owed(&standing, &demand.wanted);
        ensure!(!is_owed || demand.until < Self::now(), Error::<T>::WrongTime);
        if is_owed && !demand.is_due {
            Self::begin_demand((&provider, demander), standing, demand);
            return Ok(());
        }
        if is_owed {
            // While the demand keeps its batch from being final.
            Self::convict(provider.clone(), standing, FaultKind::WithheldData, demander);
        }
        Self::meet(&provider, demander, demand, false)
    }

    /// Whether a provider loses its present lock for what it does not show.
    fn is_owed(standing: &Provider<T::AccountId>, wanted: &Wanted) -> bool {
        standing.lock > 0
            && match wanted {
                Wanted::Point { batch, .. } => standing.since.batch <= *batch,
                Wanted::Receipt { channel, .. } => {
                    // Meanwhile it may have been batched too long ago.
                    let there = Channels::<T>::get(channel);
                    let is_there = there.is_none_or(|channel| standing.oldest <= channel.batch);
                    standing.since.channel <= *channel && is_there
                }
            }
    }

    /// The provider that an agent acts for, and what somebody demands of it that it can still show.
    fn demanded(
        agent: &T::AccountId,
        demander: &T::AccountId,
    ) -> Result<(T::AccountId, Demand<T::AccountId>), DispatchError> {
        let provider = T::Stake::stash_of(agent, Role::Provider).ok_or(Error::<T>::NotAgent)?;
        let demand = Demands::<T>::get(&provider, demander).ok_or(Error::<T>::NotDemanded)?;
        let is_time = Self::now() <= demand.until || !demand.is_due;
        ensure!(is_time, Error::<T>::WrongTime);
        Ok((provider, demand))
    }

    /// Where on the line of its batch's price a receipt of the provider begins.
    fn ensure_batched(
        provider: &T::AccountId,
        batch: BatchNumber,
        receipt: &Batched<T::AccountId>,
    ) -> Result<u128, Error<T>> {
        let record = Batches::<T>::get(provider, batch).ok_or(Error::<T>::NoBatch)?;
        let shown = receipt.place_in(&T::Genesis::get(), &record.window.root);
        let shown = shown.filter(|_| receipt.statement.payee == *provider);
        Ok(shown.ok_or(Error::<T>::BadOpening)?.start)
    }

    /// Ends a demand. When it was shown, half of its price is the provider's, if its account can take that.
    fn meet(
        provider: &T::AccountId,
        demander: &T::AccountId,
        demand: Demand<T::AccountId>,
        is_shown: bool,
    ) -> DispatchResult {
        Demands::<T>::remove(provider, demander);
        let reason = HoldReason::Demand.into();
        let borne = if is_shown { demand.price / 2 } else { 0 };
        let is_paid =
            borne > 0 && hand_over::<T::AccountId, T::Currency>(&reason, &demand.by, provider, borne)?;
        let left = demand.price.saturating_sub(if is_paid { borne } else { 0 });
        T::Currency::release(&reason, &demand.by, left, Precision::Exact)?;
        Standings::<T>::mutate_extant(provider, |provider| {
            provider.demands = provider.demands.saturating_sub(1);
            if demand.is_due {
                provider.kept = provider.kept.saturating_sub(demand.room);
            }
        });
        if let Wanted::Point { batch, .. } = demand.wanted {
            Self::change_batch(provider, batch, |record| {
                record.window.disputes = record.window.disputes.saturating_sub(1);
            });
        }
        Self::deposit_event(Event::DemandOver {
            provider: provider.clone(),
            demander: demander.clone(),
        });
        Ok(())
    }
}
