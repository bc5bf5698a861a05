//! What the calls do once their origin is known.

use frame_support::{
    dispatch::{DispatchResultWithPostInfo, WithPostDispatchInfo},
    ensure,
    pallet_prelude::{InvalidTransaction, TransactionSource, TransactionValidityWithRefund},
    traits::Get,
    weights::Weight,
};
use frame_system::pallet_prelude::BlockNumberFor;
use sp_core::H256;
use sp_runtime::{
    DispatchError, DispatchResult,
    traits::{BlockNumberProvider, CheckedAdd, Saturating, Zero},
};
use surety_types::{
    TaskId, limits, multiaddr,
    opening::pooled,
    stake::Role,
    task::{AuditTerms, Bid, TaskSpec},
    traits::{Escrow, ModelCatalog, ProviderDirectory, StakeLedger, TaskClock, TaskTrust},
    view::BidTerms,
};

use crate::{
    Balance, BidCount, BidCounts, BidRecord, Bids, Config, Error, Event, NextTaskId, OpenTasks, Pallet,
    TaskOf, TaskStateOf, Tasks, WeightInfo, step::Step,
};

/// Where an auction stands at some time, whether or not anybody has swept.
enum Auction<BlockNumber> {
    /// Bids are taken.
    Bidding,
    /// Bids are opened; in the long window if `late`.
    Revealing { until: BlockNumber, late: bool },
    /// Neither any more.
    Closed,
}

impl<T: Config> Pallet<T> {
    pub(crate) fn do_post(client: T::AccountId, mut spec: TaskSpec, cap: Balance) -> DispatchResult {
        let (_, audits) = Self::secure(&mut spec, cap)?;
        let id = NextTaskId::<T>::get();
        let next = id.checked_add(1).ok_or(Error::<T>::Overflow)?;
        let until = Self::now()
            .checked_add(&T::BidWindow::get())
            .ok_or(Error::<T>::Overflow)?;
        T::Escrow::open(id, &client, cap)?;
        T::Models::acquire(&spec.model);

        NextTaskId::<T>::put(next);
        let state = TaskStateOf::<T>::Bidding { until };
        let task = TaskOf::<T> {
            client: client.clone(),
            spec,
            audits,
            cap,
            posted_at: frame_system::Pallet::<T>::block_number(),
            state,
        };
        Tasks::<T>::insert(id, task);
        OpenTasks::<T>::insert(id, ());
        Self::wake_after(id, until);
        Self::deposit_event(Event::TaskPosted {
            task: id,
            client,
            cap,
        });
        Ok(())
    }

    /// Whether a task may be posted, with its level raised where that is needed. Returns the most that each
    /// provider can be paid, and how its results would be audited.
    ///
    /// # Errors
    /// Those of [`crate::Call::post`], but for the client's money.
    pub(crate) fn secure(spec: &mut TaskSpec, cap: Balance) -> Result<(Balance, AuditTerms), DispatchError> {
        Self::ensure_acceptable(spec)?;
        // For its error: a cap that can pay nobody is refused now, not after the auction.
        let limit = T::Escrow::price_limit(cap, spec.redundancy)?;
        let bond = T::Trust::audit_bond(limit);
        let audits = T::Models::audits(&spec.model, &spec.work(), bond)?;
        let (level, audits) = T::Trust::secure(limit, spec, audits)?;
        spec.security.level = level;
        Ok((limit, audits))
    }

    /// Costs more where all places are taken.
    pub(crate) fn do_bid(agent: T::AccountId, id: TaskId, seal: H256) -> DispatchResultWithPostInfo {
        let count = BidCounts::<T>::get(id);
        let weight = match count.has_room() {
            true => T::WeightInfo::bid(),
            false => T::WeightInfo::displace_bid(),
        };
        Self::place_bid(agent, (id, count), seal).map_err(|error| error.with_weight(weight))?;
        Ok(Some(weight).into())
    }

    fn place_bid(agent: T::AccountId, (id, mut count): (TaskId, BidCount), seal: H256) -> DispatchResult {
        let task = Tasks::<T>::get(id).ok_or(Error::<T>::UnknownTask)?;
        ensure!(
            matches!(Self::auction_at_now(id, &task), Auction::Bidding),
            Error::<T>::WrongPhase
        );
        let provider = Self::provider_of(&agent)?;
        ensure!(
            T::Providers::is_available(&provider),
            Error::<T>::ProviderUnavailable
        );
        // The draw passes over it, too, where that has changed by then.
        ensure!(
            T::Providers::meets(&provider, &task.spec.requirements),
            Error::<T>::RequirementsUnmet
        );
        ensure!(!Bids::<T>::contains_key(id, &provider), Error::<T>::AlreadyBid);
        // The draw would pass over it: it would only have kept somebody else from a place.
        let is_backed = |terms: BidTerms<Balance>| T::Stake::unlocked_stake(&provider) >= terms.lock;
        ensure!(
            Self::terms_of(&task).is_some_and(is_backed),
            Error::<T>::NotBacked
        );
        if count.has_room() {
            count.placed.saturating_inc();
            BidCounts::<T>::insert(id, count);
        } else {
            Self::displace(id, &task, &provider)?;
        }
        let deposit = T::BidDeposit::get();
        T::Stake::lock(&provider, deposit)?;
        let record = BidRecord {
            seal,
            opened: None,
            deposit,
        };
        Bids::<T>::insert(id, &provider, record);
        Self::deposit_event(Event::BidPlaced { task: id, provider });
        Ok(())
    }

    /// Whoever calls: the opening proves that it is what the provider bid.
    pub(crate) fn do_reveal_bid(id: TaskId, provider: T::AccountId, bid: Bid<Balance>) -> DispatchResult {
        let task = Tasks::<T>::get(id).ok_or(Error::<T>::UnknownTask)?;
        let Auction::Revealing { until, late } = Self::auction_at_now(id, &task) else {
            return Err(Error::<T>::WrongPhase.into());
        };
        let mut record = Self::sealed(id, &provider, &bid)?;

        BidCounts::<T>::mutate(id, |count| {
            count.opened.saturating_inc();
            count.late |= late;
        });
        let known = matches!(task.state, TaskStateOf::<T>::Revealing { until: known } if known == until);
        if !known {
            Self::open_reveals(id, task, until);
        }
        T::Stake::unlock(&provider, record.deposit);
        let Bid { price, seconds, salt } = bid;
        record.opened = Some(bid);
        Bids::<T>::insert(id, &provider, record);
        Self::deposit_event(Event::BidOpened {
            task: id,
            provider,
            price,
            seconds,
            salt,
        });
        Ok(())
    }

    /// Lets an opening in that [`Self::do_reveal_bid`] carries out in this block, and no other. So what
    /// enters a block without a fee is one opening for each bid, which was paid for.
    ///
    /// Changes nothing. It costs the task, the bid and a hash.
    ///
    /// # Errors
    /// `Future` when it is too early, `Stale` when it is too late or the bid is open already, `BadProof` when
    /// it is not opened by this, `Call` when there is none.
    pub(crate) fn authorize_reveal_bid(
        _: TransactionSource,
        id: &TaskId,
        provider: &T::AccountId,
        bid: &Bid<Balance>,
    ) -> TransactionValidityWithRefund {
        let task = Tasks::<T>::get(id).ok_or(InvalidTransaction::Call)?;
        match Self::auction_at_now(*id, &task) {
            Auction::Bidding => return Err(InvalidTransaction::Future.into()),
            Auction::Revealing { .. } => {}
            Auction::Closed => return Err(InvalidTransaction::Stale.into()),
        }
        Self::sealed(*id, provider, bid).map_err(|error| match error {
            Error::AlreadyOpened => InvalidTransaction::Stale,
            Error::SealMismatch => InvalidTransaction::BadProof,
            _ => InvalidTransaction::Call,
        })?;
        let validity = pooled("TaskAuction.reveal_bid", *id, provider);
        Ok((validity, Weight::zero()))
    }

    /// The provider's bid on a task, if it is sealed and this opens it.
    fn sealed(id: TaskId, provider: &T::AccountId, bid: &Bid<Balance>) -> Result<BidRecord, Error<T>> {
        let record = Bids::<T>::get(id, provider).ok_or(Error::<T>::UnknownBid)?;
        ensure!(record.opened.is_none(), Error::<T>::AlreadyOpened);
        ensure!(bid.seal(id, provider) == record.seal, Error::<T>::SealMismatch);
        Ok(record)
    }

    /// Whoever has bid has paid for that: once somebody has, the client pays the least fee of a task, as for
    /// a settlement that pays nobody. Returns how many deposits went back.
    pub(crate) fn do_cancel(client: T::AccountId, id: TaskId) -> Result<u32, DispatchError> {
        let task = Tasks::<T>::get(id).ok_or(Error::<T>::UnknownTask)?;
        ensure!(task.client == client, Error::<T>::NotClient);
        ensure!(
            !matches!(Self::auction_at_now(id, &task), Auction::Closed),
            Error::<T>::WrongPhase
        );
        let fee = if BidCounts::<T>::get(id).placed > 0 {
            T::Escrow::settle(id, &[], &[])?.fee
        } else {
            T::Escrow::refund(id)?;
            Zero::zero()
        };
        Ok(Self::call_off(id, task, fee))
    }

    pub(crate) fn do_advance(id: TaskId) -> DispatchResultWithPostInfo {
        let step = Self::step(id)?;
        let weight = step.weight::<T>();
        match step {
            Step::Unknown => Err(Error::<T>::UnknownTask.with_weight(weight)),
            Step::Waits { .. } => Err(Error::<T>::NotDue.with_weight(weight)),
            _ => Ok(Some(weight).into()),
        }
    }

    /// What the clock shows.
    pub(crate) fn now() -> BlockNumberFor<T> {
        T::BlockNumberProvider::current_block_number()
    }

    /// The last time for opening bids when the last time for placing them is `bidding_until`. A function of
    /// the bidding window alone, so that sweeping late moves no deadline.
    pub(crate) fn reveals_until(bidding_until: BlockNumberFor<T>) -> BlockNumberFor<T> {
        bidding_until.saturating_add(T::RevealWindow::get())
    }

    /// The last time for bids that are still sealed when the first window for opening them ends. There are
    /// these two ends and no other: whoever opens last must not choose when the draw is.
    pub(crate) fn late_reveals_until(reveals_until: BlockNumberFor<T>) -> BlockNumberFor<T> {
        reveals_until.saturating_add(T::LateRevealWindow::get())
    }

    fn auction_at_now(id: TaskId, task: &TaskOf<T>) -> Auction<BlockNumberFor<T>> {
        let now = Self::now();
        let until = match task.state {
            TaskStateOf::<T>::Bidding { until } if now <= until => return Auction::Bidding,
            TaskStateOf::<T>::Bidding { until } => Self::reveals_until(until),
            TaskStateOf::<T>::Revealing { until } => until,
            _ => return Auction::Closed,
        };
        if now <= until {
            return Auction::Revealing { until, late: false };
        }
        let until = Self::late_reveals_until(until);
        if now <= until && BidCounts::<T>::get(id).are_waited_for() {
            Auction::Revealing { until, late: true }
        } else {
            Auction::Closed
        }
    }

    fn provider_of(agent: &T::AccountId) -> Result<T::AccountId, Error<T>> {
        T::Stake::stash_of(agent, Role::Provider).ok_or(Error::<T>::NotAgent)
    }

    fn ensure_acceptable(spec: &TaskSpec) -> DispatchResult {
        let redundancy_max = T::RedundancyMax::get().min(limits::REDUNDANCY_MAX);
        ensure!(spec.redundancy > 0, Error::<T>::ZeroRedundancy);
        ensure!(spec.redundancy <= redundancy_max, Error::<T>::RedundancyTooHigh);
        ensure!(spec.input_bytes > 0, Error::<T>::InputEmpty);
        ensure!(
            spec.input_bytes <= T::InputBytesMax::get().min(limits::INPUT_BYTES_MAX),
            Error::<T>::InputTooLarge
        );
        ensure!(spec.units_max > 0, Error::<T>::ZeroUnits);
        ensure!(spec.units_max <= T::UnitsMax::get(), Error::<T>::TooManyUnits);
        ensure!(!spec.sources.is_empty(), Error::<T>::NoSources);
        for source in &spec.sources {
            multiaddr::check(source).map_err(|_| Error::<T>::InvalidSource)?;
        }
        T::Models::check(&spec.model, &spec.work())
    }
}
