//! What must hold between any two blocks, one function an invariant. The ids are explained in the README.

use frame_support::ensure;
use sp_runtime::{
    Saturating, TryRuntimeError,
    traits::{CheckedAdd, Zero},
};

use crate::{BalanceOf, Config, Escrows, Pallet, Totals, asset};

impl<T: Config> Pallet<T> {
    /// Checks every invariant.
    pub fn do_try_state() -> Result<(), TryRuntimeError> {
        Self::bill_1_escrow_is_conserved()?;
        Self::bill_2_the_pot_has_what_is_recorded()?;
        Self::bill_3_no_record_is_empty()
    }

    fn bill_1_escrow_is_conserved() -> Result<(), TryRuntimeError> {
        let totals = Totals::<T>::get();
        let open = Escrows::<T>::iter_values().flat_map(|escrow| [escrow.held, escrow.lock]);
        let accounted = [totals.paid, totals.fees, totals.burned, totals.refunded]
            .into_iter()
            .chain(open)
            .try_fold(BalanceOf::<T>::zero(), |sum, amount| sum.checked_add(&amount));
        ensure!(
            accounted == Some(totals.opened),
            "BILL-1: escrow was made or lost"
        );
        Ok(())
    }

    fn bill_2_the_pot_has_what_is_recorded() -> Result<(), TryRuntimeError> {
        let recorded = Escrows::<T>::iter_values().fold(BalanceOf::<T>::zero(), |sum, escrow| {
            sum.saturating_add(escrow.held).saturating_add(escrow.lock)
        });
        ensure!(
            asset::covers::<T>(recorded),
            "BILL-2: less is in the pot than in escrow"
        );
        ensure!(
            asset::is_nothing_on_hold::<T>(),
            "BILL-2: escrow is on hold on an account"
        );
        Ok(())
    }

    fn bill_3_no_record_is_empty() -> Result<(), TryRuntimeError> {
        ensure!(
            Escrows::<T>::iter_values().all(|escrow| !escrow.held.is_zero()),
            "BILL-3: an empty escrow"
        );
        Ok(())
    }
}
