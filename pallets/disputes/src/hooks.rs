//! What rounds ask of disputes.

use frame_support::weights::Weight;
use surety_pallet_results::{RoundDisputes, RoundOf};
use surety_types::{TaskId, trust::DisputeId};

use crate::{Config, Disputes, Pallet, WeightInfo};

impl<T: Config> RoundDisputes<RoundOf<T>> for Pallet<T> {
    fn match_up(task: TaskId, round: &mut RoundOf<T>) -> bool {
        Self::do_match_up(task, round)
    }

    fn poll(id: DisputeId, round: &mut RoundOf<T>) -> bool {
        let dispute = Disputes::<T>::get(id);
        dispute.is_some_and(|dispute| {
            Self::poll_dispute(round, id, dispute);
            true
        })
    }

    fn poll_weight() -> Weight {
        <T as Config>::WeightInfo::poll()
    }

    fn answer_weight() -> Weight {
        let vote = <T as Config>::WeightInfo::reveal_vote()
            .saturating_add(<T as Config>::WeightInfo::authorize_reveal_vote());
        <T as Config>::WeightInfo::play()
            .max(<T as Config>::WeightInfo::join_committee())
            .max(vote)
    }
}
