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
    Batches, Channels, Config, Demand, Demands, Error, Event, HoldReason, Pallet, SignedBytes, Standings,
    Wanted,
};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_demand_receipt(
        by: T::AccountId,
        held: &SignedChunkStatement<T::AccountId>,
    ) -> DispatchResult {
        let statement = &held.statement;
        let provider = Self::standing(&statement.payee)?;
        let channel = Channels::<T>::get(statement.channel).ok_or(Error::<T>::NoChannel)?;
        let is_of_it = channel.payee == statement.payee && provider.since.channel <= statement.channel;
        ensure!(is_of_it, Error::<T>::TooLate);
        let is_payer = by == channel.payer || by == channel.key;
        ensure!(is_payer, Error::<T>::MayNotDemand);
        let is_counted = statement.nonce < channel.purse.next;
        ensure!(!is_counted, Error::<T>::AlreadyCounted);
        Self::ensure_signer(&provider, held)?;
        let is_signed = held.is_signed(&T::Genesis::get(), T::Signatures::is_signed);
        ensure!(is_signed, Error::<T>::BadSignature);
        let wanted = Wanted::Receipt {
            channel: statement.channel,
            nonce: statement.nonce,
            bytes: statement.bytes,
        };
        Self::demand((&statement.payee, &by), &[&by], wanted)
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
        )
    }

    /// Puts the price on hold with the first that has it.
    fn demand(
        (provider, demander): (&T::AccountId, &T::AccountId),
        payers: &[&T::AccountId],
        wanted: Wanted,
    ) -> DispatchResult {
        let is_new = !Demands::<T>::contains_key(provider, demander);
        ensure!(is_new, Error::<T>::AlreadyDemanded);
        let (reason, price) = (HoldReason::Demand.into(), T::DemandPrice::get());
        let mut payers = payers.iter();
        let by = payers.find(|payer| T::Currency::can_hold(&reason, payer, price));
        let by = (*by.ok_or(TokenError::FundsUnavailable)?).clone();
        T::Currency::hold(&reason, &by, price)?;
        let until = Self::now().saturating_add(T::SupplyWindow::get());
        let demand = Demand {
            wanted: wanted.clone(),
            by,
            price,
            until,
        };
        Demands::<T>::insert(provider, demander, demand);
        Standings::<T>::mutate_extant(provider, |provider| {
            provider.demands = provider.demands.saturating_add(1);
        });
        Self::deposit_event(Event::Demanded {
            provider: provider.clone(),
            demander: demander.clone(),
            wanted,
            until,
        });
        Ok(())
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
        // Whoever has lost its lock owes nothing more.
        let is_owed = standing.lock > 0;
        ensure!(!is_owed || demand.until < Self::now(), Error::<T>::WrongTime);
        if is_owed {
            // While the demand keeps its batch from being final.
            Self::convict(provider.clone(), standing, FaultKind::WithheldData, demander);
        }
        Self::meet(&provider, demander, demand, false)
    }

    /// The provider that an agent acts for, and what somebody demands of it that it can still show.
    fn demanded(
        agent: &T::AccountId,
        demander: &T::AccountId,
    ) -> Result<(T::AccountId, Demand<T::AccountId>), DispatchError> {
        let provider = T::Stake::stash_of(agent, Role::Provider).ok_or(Error::<T>::NotAgent)?;
        let demand = Demands::<T>::get(&provider, demander).ok_or(Error::<T>::NotDemanded)?;
        ensure!(Self::now() <= demand.until, Error::<T>::WrongTime);
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
