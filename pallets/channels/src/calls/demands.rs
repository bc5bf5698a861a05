//! What is not served, or not batched, is demanded: shown in time, or withheld.

use alloc::vec::Vec;

use frame_support::{BoundedVec, ensure, traits::Get};
use sp_runtime::{DispatchError, DispatchResult, TokenError};
use surety_audit_economics::channels::drawn_points;
use surety_channels::{
    BatchNumber, Batched, Request, SignedChunkStatement, Struck, Time,
    view::{NotMet, Says},
};
use surety_proofs::SegmentOpening;
use surety_types::{
    stake::Role,
    traits::{SoldModels, StakeLedger},
    trust::{AuditProof, FaultKind},
};

use super::disputes::By;
use crate::{
    BatchRecord, Batches, Channels, Config, Demand, Demands, Error, Event, Pallet, Provider, SignedBytes,
    Standings, Wanted, asset,
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
        let mut channel = Channels::<T>::get(statement.channel).ok_or(Error::<T>::NoChannel)?;
        let is_of_it = channel.payee == statement.payee && provider.since.channel <= statement.channel;
        ensure!(is_of_it, Error::<T>::TooLate);
        let is_payer = by == channel.payer || by == channel.key;
        ensure!(is_payer, Error::<T>::MayNotDemand);
        // What was batched long ago may be gone before it has to be shown.
        let is_in_time = |first: &BatchNumber| Self::now() <= Self::demanded_until(&channel.payee, *first);
        let counted = if statement.nonce < channel.purse.next {
            let first = channel.counted.oldest(statement.nonce).filter(is_in_time);
            Some((first.ok_or(Error::<T>::AlreadyCounted)?, channel.batch))
        } else {
            ensure!(is_in_time(&channel.batch), Error::<T>::TooLate);
            None
        };
        Self::ensure_signer(&provider, held)?;
        let genesis = T::Genesis::get();
        let is_signed = held.is_signed(&genesis, T::Signatures::is_signed);
        ensure!(is_signed, Error::<T>::BadSignature);
        let wanted = Wanted::Receipt {
            channel: statement.channel,
            nonce: statement.nonce,
            says: Says::of(statement, &genesis),
            counted,
        };
        let surplus = channel.demanded.demand(statement.nonce, T::DemandPrice::get());
        let until = Self::demand((&statement.payee, &by), &[&by], (wanted, surplus))?;
        channel.purse.demand(until.saturating_add(T::SupplyWindow::get()));
        Channels::<T>::insert(statement.channel, channel);
        Ok(())
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
        let wanted = Wanted::Point { batch, point };
        Self::demand((provider, &verifier), &[&agent, &verifier], (wanted, 0))?;
        Ok(())
    }

    /// Has the first pay the price, and `surplus` beside it, that can. It is due at once, whatever the
    /// provider has open: it signs no more than its cap has room for. Returns its last time.
    fn demand(
        (provider, demander): (&T::AccountId, &T::AccountId),
        payers: &[&T::AccountId],
        (wanted, surplus): (Wanted, u128),
    ) -> Result<Time, DispatchError> {
        let mut demands = Demands::<T>::get(provider, demander).unwrap_or_default();
        let is_known = demands.iter().any(|demand| demand.wanted.is_about_same(&wanted));
        ensure!(!is_known, Error::<T>::AlreadyDemanded);
        let price = wanted.price(T::DemandPrice::get()).saturating_add(surplus);
        let by = payers.iter().find(|payer| asset::can_put::<T>(payer, price));
        // Where none can, the first is told why.
        let by = by.or(payers.first()).ok_or(TokenError::FundsUnavailable)?;
        let by = (*by).clone();
        asset::put::<T>(&by, price)?;
        let until = Self::now().saturating_add(T::SupplyWindow::get());
        let demand = Demand {
            wanted: wanted.clone(),
            by,
            price,
            surplus,
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
        Ok(until)
    }

    pub(crate) fn do_show_receipt(
        agent: &T::AccountId,
        demander: &T::AccountId,
        (batch, receipt): (BatchNumber, &Batched<T::AccountId>),
        shown: Option<&SegmentOpening>,
    ) -> DispatchResult {
        let provider = T::Stake::stash_of(agent, Role::Provider).ok_or(Error::<T>::NotAgent)?;
        Self::ensure_batched(&provider, batch, receipt)?;
        let said = &receipt.statement;
        let channel = Channels::<T>::get(said.channel);
        let is_counted = channel.is_some_and(|channel| said.nonce < channel.purse.next);
        // Whoever batches what it has said beside what was counted has that looked at before it is paid.
        let is_settled = |record: BatchRecord<_>| record.window.is_settled(Self::now());
        ensure!(
            !is_counted || Batches::<T>::get(&provider, batch).is_some_and(is_settled),
            Error::<T>::NotSettled
        );
        let genesis = T::Genesis::get();
        let demands = Demands::<T>::get(&provider, demander).unwrap_or_default();
        // One at most is about it.
        let one = demands
            .iter()
            .find_map(|of| match of.wanted.met_by(batch, said, shown, &genesis) {
                Ok(()) => Some(Ok(&of.wanted)),
                Err(NotMet::Unproven) => Some(Err(Error::<T>::BeginningNotShown)),
                Err(NotMet::Other) => None,
            });
        let wanted = one.ok_or(Error::<T>::NotDemanded)??;
        let bytes = wanted.bytes_shown(said, shown);
        Self::show(&provider, demander, |of| of == wanted, bytes)
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
        Self::show(&provider, demander, is_in_it, 0)
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
            Self::meet(&provider, demander, demand, None);
        }
        Ok(())
    }

    /// Last time at which a receipt is demanded that may be in this batch of a provider, or in a later one:
    /// all of them are kept until it has to be shown. That one may be yet to come.
    pub(crate) fn demanded_until(provider: &T::AccountId, first: BatchNumber) -> Time {
        if let Some(record) = Batches::<T>::get(provider, first) {
            return record
                .window
                .demanded_until(T::RedeemBy::get(), T::SupplyWindow::get());
        }
        let next = Standings::<T>::get(provider).map_or(0, |provider| provider.next);
        if next <= first { Time::MAX } else { 0 }
    }

    /// Whether a provider loses its present lock for what it does not show. Nothing that was demanded of it
    /// was removed since.
    fn is_owed(standing: &Provider<T::AccountId>, wanted: &Wanted) -> bool {
        standing.lock > 0
            && match wanted {
                Wanted::Point { batch, .. } => standing.since.batch <= *batch,
                Wanted::Receipt { channel, .. } => standing.since.channel <= *channel,
            }
    }

    /// A provider has shown what somebody demands of it, as far as `is_shown` and in time, and so many bytes
    /// beside it.
    fn show(
        provider: &T::AccountId,
        demander: &T::AccountId,
        is_shown: impl Fn(&Wanted) -> bool,
        bytes: u32,
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
        // What is shown once is paid once, whatever it meets.
        let mut paid = Some(bytes);
        for demand in shown {
            let least = demand.price.saturating_sub(demand.surplus);
            let borne = paid.take().map_or(0, |bytes| Wanted::borne(least, bytes));
            let borne = borne.saturating_add(demand.surplus);
            Self::meet(provider, demander, demand, Some(borne));
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

    /// Ends a demand that is not kept any more. When it was shown its provider is paid this for it, if its
    /// account can take that.
    fn meet(
        provider: &T::AccountId,
        demander: &T::AccountId,
        demand: Demand<T::AccountId>,
        shown: Option<u128>,
    ) {
        asset::pay_out_price::<T>(provider, shown.unwrap_or(0), &demand.by, demand.price);
        Standings::<T>::mutate_extant(provider, |provider| {
            provider.demands = provider.demands.saturating_sub(1);
        });
        match demand.wanted {
            Wanted::Receipt { channel, .. } => Self::end_hold(channel, shown.is_some()),
            Wanted::Point { batch, .. } => Self::change_batch(provider, batch, |record| {
                record.window.disputes = record.window.disputes.saturating_sub(1);
            }),
        }
        Self::deposit_event(Event::DemandOver {
            provider: provider.clone(),
            demander: demander.clone(),
            wanted: demand.wanted,
        });
    }
}
