//! What is not served, or not batched, is demanded: shown in time, or withheld.

use alloc::vec::Vec;

use frame_support::{
    BoundedVec, ensure,
    traits::{
        Get,
        fungible::{InspectHold, MutateHold},
        tokens::Precision,
    },
};
use sp_runtime::{DispatchResult, TokenError};
use surety_audit_economics::channels::drawn_points;
use surety_channels::{BatchNumber, Batched, Request, SignedChunkStatement, Struck};
use surety_pallet_holds::hand_over;
use surety_proofs::SegmentOpening;
use surety_types::{
    stake::Role,
    traits::{SoldModels, StakeLedger},
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

    /// Puts the price on hold with the first that has it. It is due at once, whatever the provider has open:
    /// it signs no more than its cap has room for.
    fn demand(
        (provider, demander): (&T::AccountId, &T::AccountId),
        payers: &[&T::AccountId],
        wanted: Wanted,
    ) -> DispatchResult {
        let mut demands = Demands::<T>::get(provider, demander).unwrap_or_default();
        let is_known = demands.iter().any(|demand| match demand.wanted {
            Wanted::Point { .. } => demand.wanted == wanted,
            Wanted::Receipt { .. } => matches!(wanted, Wanted::Receipt { .. }),
        });
        ensure!(!is_known, Error::<T>::AlreadyDemanded);
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
        demands.try_push(demand).map_err(|_| Error::<T>::TooManyDemands)?;
        Demands::<T>::insert(provider, demander, demands);
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
        let provider = T::Stake::stash_of(agent, Role::Provider).ok_or(Error::<T>::NotAgent)?;
        Self::ensure_batched(&provider, batch, receipt)?;
        let said = &receipt.statement;
        Self::show(&provider, demander, |wanted| match *wanted {
            Wanted::Receipt {
                channel,
                nonce,
                bytes,
            } => (said.channel, said.nonce) == (channel, nonce) && said.end.is_some() && bytes <= said.bytes,
            Wanted::Point { .. } => false,
        })
    }

    pub(crate) fn do_show_point(
        agent: &T::AccountId,
        demander: &T::AccountId,
        (batch, receipt): (BatchNumber, Batched<T::AccountId>),
        request: Request,
        head: Option<&SegmentOpening>,
    ) -> DispatchResult {
        let provider = T::Stake::stash_of(agent, Role::Provider).ok_or(Error::<T>::NotAgent)?;
        let start = Self::ensure_batched(&provider, batch, &receipt)?;
        let statement = receipt.statement;
        let price = statement.price;
        let is_in_it = |wanted: &Wanted| match *wanted {
            Wanted::Receipt { .. } => false,
            Wanted::Point { batch: of, point } => {
                let offset = point.checked_sub(start);
                of == batch && offset.is_some_and(|offset| offset < price)
            }
        };
        let demands = Demands::<T>::get(&provider, demander).unwrap_or_default();
        let one = demands.iter().find(|demand| is_in_it(&demand.wanted));
        let by = one.ok_or(Error::<T>::NotDemanded)?.by.clone();
        if T::Models::speed(&request.model).is_some() {
            // Also after the batch's window, in which it was demanded: there is one for each verifier.
            match Self::open_round((statement, Some(batch)), request, head, By::Unserved(&by)) {
                // Whoever disputes it has had it shown.
                Err(error) if error != Error::<T>::AlreadyDisputed.into() => return Err(error),
                _ => {}
            }
        } else {
            // It was sold without being offered, and its model is gone: what nobody can check is not paid.
            ensure!(statement.check(&request).is_ok(), Error::<T>::NotDisputable);
            let unchecked = Struck {
                channel: statement.channel,
                nonce: statement.nonce,
                price,
            };
            Self::change_batch(&provider, batch, |record| record.window.strike(unchecked));
        }
        Self::show(&provider, demander, is_in_it)
    }

    pub(crate) fn do_end_demand(provider: T::AccountId, demander: &T::AccountId) -> DispatchResult {
        let demands = Demands::<T>::get(&provider, demander).ok_or(Error::<T>::NotDemanded)?;
        let standing = Standings::<T>::get(&provider).ok_or(Error::<T>::NotStanding)?;
        let now = Self::now();
        let is_owed = |demand: &Demand<_>| Self::is_owed(&standing, &demand.wanted);
        let is_withheld = demands.iter().any(|demand| is_owed(demand) && demand.until < now);
        let (over, left): (Vec<_>, Vec<_>) = demands
            .into_iter()
            .partition(|demand| is_withheld || !is_owed(demand));
        ensure!(!over.is_empty(), Error::<T>::WrongTime);
        if is_withheld {
            // While the demand keeps its batch from being final. Nothing else is owed any more.
            Self::convict(provider.clone(), standing, FaultKind::WithheldData, demander);
        }
        Self::keep_demands(&provider, demander, left);
        for demand in over {
            Self::meet(&provider, demander, demand, false)?;
        }
        Ok(())
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

    /// A provider has shown what somebody demands of it, as far as `is_shown` and in time.
    fn show(
        provider: &T::AccountId,
        demander: &T::AccountId,
        is_shown: impl Fn(&Wanted) -> bool,
    ) -> DispatchResult {
        let demands = Demands::<T>::get(provider, demander).ok_or(Error::<T>::NotDemanded)?;
        let now = Self::now();
        let is_late = demands
            .iter()
            .any(|demand| is_shown(&demand.wanted) && demand.until < now);
        let (shown, left): (Vec<_>, Vec<_>) = demands
            .into_iter()
            .partition(|demand| is_shown(&demand.wanted) && now <= demand.until);
        let refusal = if is_late {
            Error::<T>::WrongTime
        } else {
            Error::<T>::NotDemanded
        };
        ensure!(!shown.is_empty(), refusal);
        Self::keep_demands(provider, demander, left);
        for demand in shown {
            Self::meet(provider, demander, demand, true)?;
        }
        Ok(())
    }

    fn keep_demands(provider: &T::AccountId, demander: &T::AccountId, left: Vec<Demand<T::AccountId>>) {
        if left.is_empty() {
            Demands::<T>::remove(provider, demander);
        } else {
            // No more than there were.
            Demands::<T>::insert(provider, demander, BoundedVec::truncate_from(left));
        }
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

    /// Ends a demand that is not kept any more. When it was shown, half of its price is the provider's, if
    /// its account can take that.
    fn meet(
        provider: &T::AccountId,
        demander: &T::AccountId,
        demand: Demand<T::AccountId>,
        is_shown: bool,
    ) -> DispatchResult {
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
            wanted: demand.wanted,
        });
        Ok(())
    }
}
