//! What view functions answer.

use alloc::vec::Vec;

use surety_dispute_game::dispute::DisputeView;
use surety_pallet_results::Rounds;
use surety_types::TaskId;

use crate::{Config, DisputeViewOf, Disputes, Pallet};

impl<T: Config> Pallet<T> {
    pub(crate) fn views_of(task: TaskId) -> Vec<DisputeViewOf<T>> {
        let open = Rounds::<T>::get(task).map(|round| round.disputes);
        let view = |id| {
            let dispute = Disputes::<T>::get(id)?;
            Some(DisputeView { id, dispute })
        };
        let open = open.into_iter().flatten();
        open.filter_map(|open| view(open.id)).collect()
    }
}
