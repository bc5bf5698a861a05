//! Challenges by anybody.

use frame_support::{dispatch::DispatchResult, ensure, traits::Get};
use sp_runtime::traits::Saturating;
use surety_pallet_results::{Pallet as Results, RoundOf, Rounds, asset};
use surety_types::{TaskId, limits, task::ResultClaim, traits::TaskOutcome, trust::Party};

use crate::{Config, Disputes, Error, HoldReason, Pallet};

impl<T: Config> Pallet<T> {
    /// What a challenge in this round puts on hold.
    ///
    /// A lost bond is half burned, the other half may go to a friend. With `2 S / places`, where S is the
    /// burned part of the dearest lock, taking all places costs as much as being found out. That lock is the
    /// round's, or one beside it that is lost with it. Where the claim has cells that no block can compute
    /// there is what a committee costs beside that.
    pub fn challenge_bond(task: TaskId, round: &RoundOf<T>, claim: &ResultClaim) -> T::Balance {
        let (bond, _) = Self::challenge_bonds(task, round, claim);
        bond
    }

    /// The same, and the part of it that is for a committee.
    fn challenge_bonds(task: TaskId, round: &RoundOf<T>, claim: &ResultClaim) -> (T::Balance, T::Balance) {
        let prices = round.members.iter().map(|member| member.price);
        let price = prices.max().unwrap_or_default();
        let of_price = price.saturating_mul(T::ChallengeBondMultiple::get().into());
        let of_round = Results::<T>::burned_lock(price, &round.security, &round.terms);
        let beside = T::Outcome::at_stake(task).unwrap_or_default();
        let burned = of_round.max(Results::<T>::burned_part(beside, &round.terms));
        let of_committee = Self::committee_bond(task, round, (claim, price));
        let bond = of_price.max(Self::least_bond(burned));
        (bond.saturating_add(of_committee), of_committee)
    }

    /// What a challenge puts on hold at least where the dearest lock burns so much.
    pub fn least_bond(burned: u128) -> T::Balance {
        let of_lock = burned.saturating_mul(2).div_ceil(limits::CHALLENGES_MAX.into());
        let of_cost = T::DefenseCost::get().saturating_mul(2u32.into());
        of_cost.max(of_lock.into())
    }

    /// Has `challenger` dispute what a provider of the round says, with its own bond.
    ///
    /// # Errors
    /// Those of [`Pallet::challenge`].
    pub fn do_challenge(challenger: T::AccountId, task: TaskId, provider: &T::AccountId) -> DispatchResult {
        let mut round = Results::<T>::round(task)?;
        Results::<T>::ensure_challengeable(&round)?;
        Results::<T>::member(&mut round, provider)?;
        let matchup = Self::matchup_of(&round, provider, Party::Account(challenger.clone()))
            .ok_or(Error::<T>::NotDisputable)?;
        ensure!(!Self::are_places_taken(&round), Error::<T>::TooManyDisputes);
        ensure!(
            !Self::is_challenging(&round, &challenger, &matchup.claim),
            Error::<T>::AlreadyChallenging
        );
        let game = Self::new_game(task, &round, &matchup.claim).ok_or(Error::<T>::NotDisputable)?;
        let bonds = Self::challenge_bonds(task, &round, &matchup.claim);
        asset::hold::<T>(HoldReason::Challenge, &challenger, bonds.0)?;
        round.challenges = round.challenges.saturating_add(1);
        Self::open_dispute(task, &mut round, matchup, bonds, game);
        Rounds::<T>::insert(task, round);
        Ok(())
    }

    /// Whether an account has a challenge of this claim on record, whoever defends it. One after the other it
    /// plays all that stand by it; more at once would only cost them time.
    fn is_challenging(round: &RoundOf<T>, account: &T::AccountId, claim: &ResultClaim) -> bool {
        let mut open = round.disputes.iter();
        open.any(|open| {
            let dispute = Disputes::<T>::get(open.id);
            dispute.is_some_and(|dispute| {
                dispute.claim == *claim
                    && matches!(&dispute.challenger, Party::Account(other) if other == account)
            })
        })
    }

    /// Whether nobody else can challenge now.
    pub(crate) fn are_places_taken(round: &RoundOf<T>) -> bool {
        round.challenges >= limits::CHALLENGES_MAX
    }

    /// Frees the place of a challenger that is done. While all were taken others could not come in: they have
    /// the whole window again.
    pub(crate) fn free_place(task: TaskId, round: &mut RoundOf<T>) {
        let was_full = Self::are_places_taken(round);
        round.challenges = round.challenges.saturating_sub(1);
        if was_full {
            Results::<T>::reopen_challenges(task, round);
        }
    }
}
