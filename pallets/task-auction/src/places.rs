//! Who has a place among a task's bids.
//!
//! - While there are free places every bid has one.
//! - Once there are none, bidders are ranked ([`PlaceRank`]), and a new one that is better than the worst
//!   takes its place. Of all who have bid by the end the best ranks have the places: when they came makes no
//!   difference.
//! - Ranks are drawn with the entropy of the first block after the one in which the task was posted, and
//!   weighed with stake that was bonded long before: there is nothing that anybody can do for a better one.
//! - They are kept from the first time on that somebody loses a place, so that the usual task pays nothing.

use alloc::vec::Vec;
use frame_support::{ensure, traits::Get};
use frame_system::pallet_prelude::BlockNumberFor;
use sp_core::H256;
use sp_runtime::{SaturatedConversion, traits::Saturating};
use surety_audit_economics::PlaceRank;
use surety_types::{
    TaskId,
    stake::Role,
    task::PerBid,
    traits::{BlockEntropy, StakeLedger},
};

use crate::{Bids, Config, Error, Event, Pallet, Place, Ranking, Rankings, TaskOf};

impl<T: Config> Pallet<T> {
    /// Gives `provider` the place of the worst bidder of a task that has no free ones. Who loses it has its
    /// deposit back.
    ///
    /// # Errors
    /// `PlacesUndecided` while it is not known yet who ranks how, `Outranked` when nobody ranks worse.
    pub(crate) fn displace(id: TaskId, task: &TaskOf<T>, provider: &T::AccountId) -> Result<(), Error<T>> {
        let mut ranking = match Rankings::<T>::get(id) {
            Some(ranking) => ranking,
            None => Self::rank_bidders(id, task)?,
        };
        let place = Self::place(id, task, (provider.clone(), &ranking.entropy));
        let at = ranking.places.partition_point(|other| *other < place);
        ensure!(at < ranking.places.len(), Error::<T>::Outranked);
        let worst = ranking.places.pop().ok_or(Error::<T>::Outranked)?;
        ranking
            .places
            .try_insert(at, place)
            .map_err(|_| Error::<T>::Outranked)?;
        Rankings::<T>::insert(id, ranking);
        if let Some(bid) = Bids::<T>::take(id, &worst.provider) {
            T::Stake::unlock(&worst.provider, bid.deposit);
        }
        Self::deposit_event(Event::BidDisplaced {
            task: id,
            provider: worst.provider,
            by: provider.clone(),
        });
        Ok(())
    }

    /// Ranks all who have bid so far.
    fn rank_bidders(id: TaskId, task: &TaskOf<T>) -> Result<Ranking<T::AccountId>, Error<T>> {
        let (entropy, _) = T::Entropy::first_after(task.posted_at).ok_or(Error::<T>::PlacesUndecided)?;
        let bidders = Self::bids_of(id).into_iter();
        let mut places: Vec<_> = bidders
            .map(|(provider, _)| Self::place(id, task, (provider, &entropy)))
            .collect();
        places.sort();
        Ok(Ranking {
            entropy,
            // There are no more bids than that.
            places: PerBid::truncate_from(places),
        })
    }

    fn place(
        id: TaskId,
        task: &TaskOf<T>,
        (provider, entropy): (T::AccountId, &H256),
    ) -> Place<T::AccountId> {
        let stake = match Self::is_seasoned(&provider, task.posted_at) {
            true => T::Stake::bonded(&provider, Role::Provider),
            false => 0,
        };
        Place {
            rank: PlaceRank::new(id, &provider, entropy, stake),
            provider,
        }
    }

    /// Whether a provider's stake and agent are what they were for long when a task was posted: before
    /// anybody could know what ranks are drawn with.
    fn is_seasoned(provider: &T::AccountId, posted_at: BlockNumberFor<T>) -> bool {
        let settled_by = posted_at.saturating_sub(T::BidderSeasoning::get().into());
        let block = frame_system::Pallet::<T>::block_number();
        let since: u32 = block.saturating_sub(settled_by).saturated_into();
        T::Stake::settled_for(provider) >= since
    }
}
