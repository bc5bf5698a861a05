//! What a challenger has not got is shown by its defender, for all to read. The challenger puts the price on
//! hold, and the loser bears it.
//!
//! What the members of a committee need is shown before they are asked, or a defender could serve it to its
//! challenger alone and leave the dispute undecided. Nobody puts a price on hold for that: a challenger
//! without money for it would lose by it.

use frame_support::{dispatch::DispatchResult, traits::Get};
use sp_runtime::traits::{Saturating, Zero};
use surety_dispute_game::{
    bisection::{Game, Missing, Move, Shape, Side, State, missing_blobs},
    dispute::Prepaid,
};
use surety_pallet_results::{Pallet as Results, asset};
use surety_types::{TaskId, trust::DisputeId};

use crate::{Config, DisputeOf, Event, HoldReason, Pallet};

impl<T: Config> Pallet<T> {
    /// Carries out what a move means for what is shown, beside the game, which is `after` it.
    pub(crate) fn note_showing(
        player: &T::AccountId,
        (id, dispute): (DisputeId, &mut DisputeOf<T>),
        (played, after): (Move, &mut Game),
        shape: &impl Shape,
    ) -> DispatchResult {
        match played {
            Move::Ask(missing) => {
                let mut blobs = missing_blobs(missing, shape);
                if blobs.all(|blob| Results::<T>::is_shown(dispute.task, &blob)) {
                    after.note_all_shown();
                    return Ok(());
                }
                Self::prepay(player, (id, dispute), missing, shape)?;
            }
            Move::Supply(part) => {
                if let Some(due) = dispute.game.due_part(shape) {
                    Results::<T>::keep_part(dispute.task, &due.blob, part);
                }
            }
            _ => {}
        }
        skip_shown::<T>(dispute.task, after, shape);
        Ok(())
    }

    fn prepay(
        player: &T::AccountId,
        (id, dispute): (DisputeId, &mut DisputeOf<T>),
        missing: Missing,
        shape: &impl Shape,
    ) -> DispatchResult {
        let mut amount = T::Balance::zero();
        for blob in missing_blobs(missing, shape) {
            let price = T::SupplyPrice::get().saturating_mul(blob.segments().into());
            amount = amount.saturating_add(price);
        }
        let asks = (player, dispute.challenger.account());
        let by = asset::hold_for_work::<T>(HoldReason::Showing, asks, amount)?;
        dispute.prepaid = Some(Prepaid {
            by: by.clone(),
            amount,
        });
        Self::deposit_event(Event::ContentDemanded {
            dispute: id,
            by,
            missing,
            amount,
        });
        Ok(())
    }

    /// After a dispute: a defender that has won is paid for what it has shown. When nobody has won each side
    /// bears a half of it.
    pub(crate) fn settle_showing(id: DisputeId, dispute: &DisputeOf<T>, winner: Option<Side>) {
        let Some(Prepaid { by, amount }) = &dispute.prepaid else {
            return;
        };
        let was_shown = dispute.game.asked().is_some_and(|asked| !asked.is_owed());
        let share = match winner {
            _ if !was_shown => T::Balance::zero(),
            Some(Side::Defender) => *amount,
            Some(Side::Challenger) => T::Balance::zero(),
            None => T::Balance::from(Into::<u128>::into(*amount) / 2),
        };
        let defender = dispute.defender.account();
        let paid = asset::hand_over::<T>(HoldReason::Showing, by, defender, share);
        let returned = amount.saturating_sub(share);
        asset::release::<T>(HoldReason::Showing, by, returned);
        Self::deposit_event(Event::ShowingSettled {
            dispute: id,
            by: by.clone(),
            paid,
            returned,
        });
    }
}

/// What members of a committee need and can read already is not shown again.
fn skip_shown<T: Config>(task: TaskId, game: &mut Game, shape: &impl Shape) {
    while matches!(game.state(), State::Evidence { .. })
        && let Some(due) = game.due_part(shape)
        && Results::<T>::is_part_shown(task, &due.blob, due.part)
    {
        game.note_part_shown();
    }
}
