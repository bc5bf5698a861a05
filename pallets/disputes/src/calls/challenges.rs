//! Challenges by anybody.

use frame_support::{dispatch::DispatchResult, ensure, traits::Get};
use sp_runtime::traits::Saturating;
use surety_pallet_results::{Pallet as Results, RoundOf, Rounds, asset};
use surety_types::{TaskId, limits, trust::Party};

use crate::{
    Config, Error, HoldReason, Pallet,
    matching::{ChallengerStake, Matchup},
};

impl<T: Config> Pallet<T> {
    /// What the next challenge of a result that is paid `price` has to put on hold. Each on the same round is
    /// dearer by the first one's bond, so that whoever wants to use up the challenges of others pays for it.
    pub fn challenge_bond(round: &RoundOf<T>, price: T::Balance) -> T::Balance {
        let of_price = price.saturating_mul(T::ChallengeBondMultiple::get().into());
        let of_cost = T::DefenseCost::get().saturating_mul(2u32.into());
        let number = round.challenges.saturating_add(1);
        of_price.max(of_cost).saturating_mul(number.into())
    }

    pub(crate) fn do_challenge(
        challenger: T::AccountId,
        task: TaskId,
        provider: &T::AccountId,
    ) -> DispatchResult {
        let mut round = Results::<T>::round(task)?;
        Results::<T>::ensure_challengeable(&round)?;
        let member = Results::<T>::member(&mut round, provider)?;
        let claim = member
            .standing_claim()
            .cloned()
            .ok_or(Error::<T>::NotDisputable)?;
        let price = member.price;
        let game = Self::new_game(task, &claim).ok_or(Error::<T>::NotDisputable)?;
        ensure!(
            round.challenges < limits::CHALLENGES_MAX && Self::has_room(&round),
            Error::<T>::TooManyDisputes
        );
        let bond = Self::challenge_bond(&round, price);
        asset::hold::<T>(HoldReason::Challenge, &challenger, bond)?;
        round.challenges = round.challenges.saturating_add(1);
        let matchup = Matchup {
            defender: Party::Provider(provider.clone()),
            challenger: Party::Account(challenger),
            claim,
        };
        let stake = ChallengerStake { bond, proven: false };
        Self::open_dispute(task, &mut round, matchup, stake, game);
        Rounds::<T>::insert(task, round);
        Ok(())
    }
}
