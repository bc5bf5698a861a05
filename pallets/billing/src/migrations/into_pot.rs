//! 1 -> 2: escrow is in a pot. Until then it was on hold on its client's account, and voted. And it remembers
//! its fee.

#[cfg(feature = "try-runtime")]
use alloc::vec::Vec;
use codec::{Decode, Encode};
use core::marker::PhantomData;
use frame_support::{
    defensive,
    migrations::VersionedMigration,
    traits::{Get, UncheckedOnRuntimeUpgrade},
    weights::Weight,
};
use sp_runtime::Saturating;

use crate::{BalanceOf, Config, EscrowRecord, Escrows, Pallet, asset};

/// Moves all escrow into the pot, in one block: tasks are open for hours, and each has one.
pub type EscrowIntoPot<T> =
    VersionedMigration<1, 2, Unchecked<T>, Pallet<T>, <T as frame_system::Config>::DbWeight>;

/// Escrow as it was stored.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct OldEscrow<AccountId, Balance> {
    /// As now, like all that follows.
    pub client: AccountId,
    /// What it pays out of, in plancks.
    pub held: Balance,
    /// The client's lock, beside that, in plancks.
    pub lock: Balance,
}

/// Without a look at the version: [`EscrowIntoPot`] has it.
pub struct Unchecked<T>(PhantomData<T>);

impl<T: Config> UncheckedOnRuntimeUpgrade for Unchecked<T> {
    fn on_runtime_upgrade() -> Weight {
        let mut escrows = 0u64;
        Escrows::<T>::translate::<OldEscrow<T::AccountId, BalanceOf<T>>, _>(|task, old| {
            let OldEscrow { client, held, lock } = old;
            escrows = escrows.saturating_add(1);
            if !asset::move_hold::<T>(&client, held.saturating_add(lock)) {
                defensive!("a task's escrow was not on hold", task);
            }
            Some(EscrowRecord {
                client,
                held,
                lock,
                // As it would have been taken until now.
                fee: Pallet::<T>::fee_terms(),
            })
        });
        // The fee and the pot; each escrow with its client's account and holds.
        T::DbWeight::get().reads_writes(
            escrows.saturating_mul(3).saturating_add(4),
            escrows.saturating_mul(3).saturating_add(1),
        )
    }

    #[cfg(feature = "try-runtime")]
    fn post_upgrade(_: Vec<u8>) -> Result<(), sp_runtime::TryRuntimeError> {
        Pallet::<T>::do_try_state()
    }
}
