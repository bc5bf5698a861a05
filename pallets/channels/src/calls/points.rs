//! What verifiers do: announce what they found where their points are, and open it. Who found something else
//! than the receipts say disputes them; who did neither can be refuted.

use alloc::vec::Vec;

use frame_support::{
    ensure,
    pallet_prelude::{InvalidTransaction, TransactionSource, TransactionValidityWithRefund},
    traits::{
        Get,
        fungible::{Inspect, Mutate},
        tokens::{Fortitude, Preservation},
    },
    weights::Weight,
};
use frame_system::pallet_prelude::BlockNumberFor;
use sp_core::H256;
use sp_runtime::{DispatchResult, FixedU128, SaturatedConversion, traits::Saturating};
use surety_audit_economics::{
    channels::{
        RECEIPTS_CONTEXT, RECEIPTS_LABEL, ReceiptsInput, drawn_points, item_at, points_drawn, points_mean,
        receipts_seed,
    },
    draw::borrowed,
};
use surety_channels::{
    BatchNumber, Batched, NOT_COMPUTED, PointsFound, Request, Time, computed, points_seal,
};
use surety_types::{
    model::Operation,
    opening::pooled,
    stake::Role,
    task::ResultClaim,
    traits::{BlockEntropy, DrawVerifier, ENTROPY_BLOCKS, ENTROPY_PATIENCE_BLOCKS, Jail, StakeLedger},
    trust::{AuditProof, FaultKind, ItemLeaves},
};

use crate::{
    ANNOUNCED_MAX, BatchRecord, Batches, Config, Convictions, Error, Event, Pallet, PointsAudit,
    PointsAudits, PointsState, Provider, ReceiptReferee, Standings,
};

/// Audits of one old batch that a commitment, or a step of the sweep, ends at most.
const ENDED: usize = 4;

impl<T: Config> Pallet<T> {
    pub(crate) fn do_announce_points(
        agent: &T::AccountId,
        provider: &T::AccountId,
        batch: BatchNumber,
        proof: &AuditProof,
        seal: H256,
    ) -> DispatchResult {
        let verifier = Self::verifier_of(agent)?;
        let mut record = Batches::<T>::get(provider, batch).ok_or(Error::<T>::NoBatch)?;
        ensure!(Self::now() <= record.announce_until, Error::<T>::WrongTime);
        let of = (provider.clone(), batch);
        let is_new = !PointsAudits::<T>::contains_key(&of, &verifier);
        ensure!(is_new, Error::<T>::AlreadyAnnounced);
        ensure!(record.announced < ANNOUNCED_MAX, Error::<T>::TooManyAnnounced);
        let (output, mean) = Self::drawn(agent, &verifier, (provider, batch), &mut record, proof)?;
        let points = points_drawn(&output, mean);
        ensure!(points > 0, Error::<T>::NotDrawn);
        let bond = T::PointBond::get().saturating_mul(points.into());
        T::Stake::lock(&verifier, bond)?;
        let audit = PointsAudit {
            bond,
            output: output.into(),
            mean,
            state: PointsState::Sealed(seal),
        };
        PointsAudits::<T>::insert(&of, &verifier, audit);
        record.announced = record.announced.saturating_add(1);
        Batches::<T>::insert(provider, batch, record);
        Standings::<T>::mutate_extant(provider, |provider| {
            provider.audits = provider.audits.saturating_add(1);
        });
        Self::deposit_event(Event::PointsAnnounced {
            provider: provider.clone(),
            batch,
            verifier,
            points,
        });
        Ok(())
    }

    /// The stash that an agent audits for.
    pub(crate) fn verifier_of(agent: &T::AccountId) -> Result<T::AccountId, Error<T>> {
        let verifier = T::Stake::stash_of(agent, Role::Verifier).ok_or(Error::<T>::NotVerifierAgent)?;
        ensure!(!T::Jail::is_jailed(&verifier), Error::<T>::InJail);
        Ok(verifier)
    }

    /// What a verifier has drawn on a batch, and how many points it expected.
    pub(crate) fn drawn(
        agent: &T::AccountId,
        verifier: &T::AccountId,
        (provider, batch): (&T::AccountId, BatchNumber),
        record: &mut BatchRecord<BlockNumberFor<T>>,
        proof: &AuditProof,
    ) -> Result<([u8; 32], FixedU128), Error<T>> {
        let seed = Self::seed_of(provider, batch, record).ok_or(Error::<T>::WrongTime)?;
        // Others draw with the same one, whenever they come.
        record.draw.seed = Some(seed);
        let now = frame_system::Pallet::<T>::block_number();
        let since: u32 = now.saturating_sub(record.draw.settled_by).saturated_into();
        let is_settled = T::Stake::settled_for(verifier) >= since;
        ensure!(is_settled, Error::<T>::Unsettled);
        let input = ReceiptsInput {
            seed,
            provider: provider.clone(),
            batch,
        };
        let fields = input.fields();
        let output = T::Draws::output(agent, RECEIPTS_LABEL, &borrowed(&fields), RECEIPTS_CONTEXT, proof);
        let output = output.ok_or(Error::<T>::NotDrawn)?;
        let stake = T::Stake::bonded(verifier, Role::Verifier);
        let price = record.window.root.sums.price;
        ensure!(price > 0, Error::<T>::NotDrawn);
        let mean = points_mean(record.rate, price, stake, record.draw.verifier_stake);
        Ok((output, mean))
    }

    /// What verifiers draw their points on a batch with; nothing before it is known.
    ///
    /// Blocks' entropy is kept for a while only, and what is kept after that is a later block's, which
    /// whoever comes first would choose. So when nobody has announced anything for [`ENTROPY_BLOCKS`], or
    /// when there is none for long, the epoch's randomness alone does: what a verifier draws from that is
    /// still known to its own key alone.
    pub fn seed_of(
        provider: &T::AccountId,
        batch: BatchNumber,
        record: &BatchRecord<BlockNumberFor<T>>,
    ) -> Option<H256> {
        let draw = &record.draw;
        if draw.seed.is_some() {
            return draw.seed;
        }
        let now = frame_system::Pallet::<T>::block_number();
        let patience = draw.begun_at.saturating_add(ENTROPY_PATIENCE_BLOCKS.into());
        let kept = draw.begun_at.saturating_add(ENTROPY_BLOCKS.into());
        let entropy = T::Entropy::first_after(draw.begun_at).filter(|_| now <= kept);
        if entropy.is_none() && now <= patience {
            return None;
        }
        let output = entropy.map(|(output, _)| output);
        Some(receipts_seed(
            &T::Genesis::get(),
            provider,
            batch,
            &draw.epoch_randomness,
            output.as_ref(),
        ))
    }

    /// Whoever calls: the opening proves that it is what the verifier sealed.
    pub(crate) fn do_open_points(
        provider: T::AccountId,
        batch: BatchNumber,
        verifier: T::AccountId,
        found: PointsFound,
        salt: &H256,
    ) -> DispatchResult {
        let of = (provider, batch);
        let mut audit = Self::opens(&of, &verifier, &found, salt)?;
        audit.state = PointsState::Opened {
            found,
            at: Self::now(),
        };
        PointsAudits::<T>::insert(&of, &verifier, audit);
        let (provider, batch) = of;
        Self::deposit_event(Event::PointsOpened {
            provider,
            batch,
            verifier,
        });
        Ok(())
    }

    /// Lets an opening in that [`Self::do_open_points`] carries out now, and no other.
    ///
    /// # Errors
    /// `Future` when it is too early, `Stale` when it is too late or was opened, `BadProof` when it is not
    /// what was sealed, `Call` when nothing was.
    pub(crate) fn authorize_open_points(
        _: TransactionSource,
        provider: &T::AccountId,
        batch: &BatchNumber,
        verifier: &T::AccountId,
        found: &PointsFound,
        salt: &H256,
    ) -> TransactionValidityWithRefund {
        let of = (provider.clone(), *batch);
        let record = Batches::<T>::get(provider, batch).ok_or(InvalidTransaction::Call)?;
        ensure!(record.announce_until < Self::now(), InvalidTransaction::Future);
        Self::opens(&of, verifier, found, salt).map_err(|error| match error {
            Error::WrongTime | Error::AlreadyOpened => InvalidTransaction::Stale,
            Error::SealMismatch => InvalidTransaction::BadProof,
            _ => InvalidTransaction::Call,
        })?;
        let validity = pooled("Channels.open_points", u64::from(*batch), &(provider, verifier));
        Ok((validity, Weight::zero()))
    }

    /// The audit that this opens, if it does and may. Only when nobody can announce any longer: what is
    /// opened can be read.
    fn opens(
        of: &(T::AccountId, BatchNumber),
        verifier: &T::AccountId,
        found: &PointsFound,
        salt: &H256,
    ) -> Result<PointsAudit, Error<T>> {
        let record = Batches::<T>::get(&of.0, of.1).ok_or(Error::<T>::NoBatch)?;
        let is_time = record.announce_until < Self::now() && Self::now() <= Self::opened_by(&record);
        ensure!(is_time, Error::<T>::WrongTime);
        let audit = PointsAudits::<T>::get(of, verifier).ok_or(Error::<T>::NothingAnnounced)?;
        let PointsState::Sealed(seal) = audit.state else {
            return Err(Error::<T>::AlreadyOpened);
        };
        let opened = points_seal(&of.0, of.1, verifier, found, salt);
        let is_whole = found.len() == audit.points() as usize;
        ensure!(is_whole && opened == seal, Error::<T>::SealMismatch);
        Ok(audit)
    }

    pub(crate) fn do_refute_points(
        finder: &T::AccountId,
        of: (T::AccountId, BatchNumber),
        verifier: T::AccountId,
        place: u32,
        (batched, request, leaves): &(Batched<T::AccountId>, Request, Option<ItemLeaves>),
    ) -> DispatchResult {
        let record = Batches::<T>::get(&of.0, of.1).ok_or(Error::<T>::NoBatch)?;
        let window = &record.window;
        // While it is disputed the verifier may be right, and of a batch that is void it may have been.
        ensure!(window.is_final(Self::now()), Error::<T>::WrongTime);
        let audit = PointsAudits::<T>::get(&of, &verifier).ok_or(Error::<T>::NothingAnnounced)?;
        let PointsState::Opened { found, .. } = &audit.state else {
            return Err(Error::<T>::WrongTime.into());
        };
        let points = drawn_points(&audit.output.0, window.root.sums.price, audit.mean);
        let of_place = points.get(place as usize).zip(found.get(place as usize));
        let (point, found) = of_place.ok_or(Error::<T>::NothingRefuted)?;
        let shown = batched.place_in(&T::Genesis::get(), &window.root);
        let (shown, statement) = (shown.ok_or(Error::<T>::BadOpening)?, &batched.statement);
        let offset = shown.offset(*point).ok_or(Error::<T>::NothingRefuted)?;
        let is_struck = window.has_struck(shown.channel, shown.nonce);
        let is_paid = !window.is_void && !is_struck && statement.check(request).is_ok();
        let ending = statement
            .end
            .filter(|_| is_paid)
            .ok_or(Error::<T>::NothingRefuted)?;
        let said = match request.operation {
            Operation::Generate => Some(ending.trace_root),
            Operation::Embed => {
                let claim = ResultClaim {
                    output: statement.output,
                    trace_root: ending.trace_root,
                    units: statement.units,
                };
                let item = item_at(offset, shown.price, statement.units);
                let leaves = leaves.as_ref().ok_or(Error::<T>::NothingRefuted)?;
                T::Referee::item_root(request, &claim, item, leaves)
            }
        };
        let is_other = said.is_some_and(|said| said != *found) && *found != NOT_COMPUTED;
        ensure!(is_other, Error::<T>::NothingRefuted);
        let (provider, batch) = of;
        Self::remove_audit(&provider, batch, &verifier);
        Self::count_ended(&provider);
        Self::convict_verifier(verifier, FaultKind::ConfirmedWrong, audit.bond, Some(finder));
        Ok(())
    }

    pub(crate) fn do_end_points(
        provider: &T::AccountId,
        batch: BatchNumber,
        verifier: &T::AccountId,
    ) -> DispatchResult {
        let record = Batches::<T>::get(provider, batch).ok_or(Error::<T>::NoBatch)?;
        let audit = PointsAudits::<T>::get((provider, batch), verifier);
        let audit = audit.ok_or(Error::<T>::NothingAnnounced)?;
        let until = match &audit.state {
            PointsState::Sealed(_) => Self::opened_by(&record),
            PointsState::Opened { at, .. } => record.window.until.max(*at),
        };
        let refutable = until.saturating_add(T::RefuteWindow::get());
        let is_over = record.window.is_final(Self::now()) && refutable < Self::now();
        ensure!(is_over, Error::<T>::WrongTime);
        // Levies pay for points in the mean: who comes when there are few is not to get less for good. But
        // its bond, and its provider's lock, are not kept for long by that.
        let is_awaited = Self::now() <= refutable.saturating_add(T::ClosingPeriod::get());
        let is_there = Self::pay_for(&audit) <= Self::levies();
        ensure!(is_there || !is_awaited, Error::<T>::PotLacksPay);
        Self::end_audit(provider, batch, verifier.clone(), &audit);
        Self::count_ended(provider);
        Ok(())
    }

    /// Last time to open what was sealed: as long after the announcements as a provider has for what it owes.
    pub(crate) fn opened_by(record: &BatchRecord<BlockNumberFor<T>>) -> Time {
        let supplied = record.announce_until.saturating_add(T::SupplyWindow::get());
        record.window.until.max(supplied)
    }

    /// Ends some audits of a batch that nobody has ended, so that it can be removed.
    pub(crate) fn end_some_points(
        stash: &T::AccountId,
        provider: &mut Provider<T::AccountId>,
        batch: BatchNumber,
    ) {
        let some = PointsAudits::<T>::iter_prefix((stash, batch)).take(ENDED);
        for (verifier, audit) in some.collect::<Vec<_>>() {
            Self::end_audit(stash, batch, verifier, &audit);
            provider.audits = provider.audits.saturating_sub(1);
        }
    }

    /// What an audit is paid, in plancks: nothing that was not opened is.
    fn pay_for(audit: &PointsAudit) -> u128 {
        let each = T::Pay::get().point(T::PointCost::get());
        match &audit.state {
            PointsState::Opened { found, .. } => each.saturating_mul(computed(found).into()),
            PointsState::Sealed(_) => 0,
        }
    }

    /// What there is of levies, in plancks.
    fn levies() -> u128 {
        T::Currency::reducible_balance(&T::LevyPot::get(), Preservation::Preserve, Fortitude::Polite)
    }

    /// Pays an audit that was opened, as far as there are levies, and takes the bond of one that was not.
    fn end_audit(provider: &T::AccountId, batch: BatchNumber, verifier: T::AccountId, audit: &PointsAudit) {
        Self::remove_audit(provider, batch, &verifier);
        let mut paid = 0;
        if matches!(audit.state, PointsState::Opened { .. }) {
            T::Stake::unlock(&verifier, audit.bond);
            let pay = Self::pay_for(audit).min(Self::levies());
            let pot = T::LevyPot::get();
            if T::Currency::transfer(&pot, &verifier, pay, Preservation::Preserve).is_ok() {
                paid = pay;
            }
        } else {
            Self::convict_verifier(verifier.clone(), FaultKind::AuditNoShow, audit.bond, None);
        }
        Self::deposit_event(Event::PointsEnded {
            provider: provider.clone(),
            batch,
            verifier,
            paid,
        });
    }

    fn remove_audit(provider: &T::AccountId, batch: BatchNumber, verifier: &T::AccountId) {
        PointsAudits::<T>::remove((provider, batch), verifier);
        Self::change_batch(provider, batch, |record| {
            record.announced = record.announced.saturating_sub(1);
        });
    }

    fn count_ended(provider: &T::AccountId) {
        Standings::<T>::mutate_extant(provider, |provider| {
            provider.audits = provider.audits.saturating_sub(1);
        });
    }

    fn convict_verifier(offender: T::AccountId, kind: FaultKind, bond: u128, finder: Option<&T::AccountId>) {
        T::Convictions::convict(&offender, kind, bond, finder);
        Self::deposit_event(Event::Convicted {
            offender,
            kind,
            by: finder.cloned(),
        });
    }
}
