//! 1 -> 2: a slash says what it is about. Until then it named a task, whatever it was.

#[cfg(feature = "try-runtime")]
use alloc::vec::Vec;
use codec::{Decode, Encode};
use core::marker::PhantomData;
use frame_support::{
    BoundedVec,
    migrations::VersionedMigration,
    traits::{ConstU32, Get, UncheckedOnRuntimeUpgrade},
    weights::Weight,
};
use frame_system::pallet_prelude::BlockNumberFor;
use sp_runtime::Perquintill;
use surety_types::{
    TaskId,
    limits::FINDERS_MAX,
    trust::{FaultKind, Slash, SlashCause},
};

use crate::{Config, Pallet, Slashes};

/// Gives slashes that wait their cause. No more wait than were proven within one `SlashDeferral`.
pub type CauseOfSlashes<T> =
    VersionedMigration<1, 2, Unchecked<T>, Pallet<T>, <T as frame_system::Config>::DbWeight>;

/// A slash as it was stored.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct OldSlash<AccountId, Balance, BlockNumber> {
    /// Task id; a number that no task has had, for a fault over channels.
    pub task: TaskId,
    /// As now, like all that follows.
    pub offender: AccountId,
    /// Kind of the fault.
    pub kind: FaultKind,
    /// Locked stake that is lost, in plancks.
    pub lock: Balance,
    /// Part of the rest that is lost.
    pub part: Perquintill,
    /// Verifiers that found something else.
    pub finders: BoundedVec<AccountId, ConstU32<FINDERS_MAX>>,
    /// Who proved it.
    pub finder: Option<AccountId>,
    /// The task's client.
    pub client: Option<AccountId>,
    /// Time at which it was proven.
    pub proven_at: BlockNumber,
    /// Last time for a veto.
    pub until: BlockNumber,
}

impl<AccountId, Balance, BlockNumber> From<OldSlash<AccountId, Balance, BlockNumber>>
    for Slash<AccountId, Balance, BlockNumber>
{
    fn from(old: OldSlash<AccountId, Balance, BlockNumber>) -> Self {
        Self {
            cause: SlashCause::Task(old.task),
            offender: old.offender,
            kind: old.kind,
            lock: old.lock,
            part: old.part,
            finders: old.finders,
            finder: old.finder,
            client: old.client,
            proven_at: old.proven_at,
            until: old.until,
        }
    }
}

/// Without a look at the version: [`CauseOfSlashes`] has it.
pub struct Unchecked<T>(PhantomData<T>);

impl<T: Config> UncheckedOnRuntimeUpgrade for Unchecked<T> {
    fn on_runtime_upgrade() -> Weight {
        let mut slashes = 0u64;
        Slashes::<T>::translate::<OldSlash<T::AccountId, T::Balance, BlockNumberFor<T>>, _>(|_, old| {
            slashes = slashes.saturating_add(1);
            Some(old.into())
        });
        // Looking for the next one costs something where there is none.
        T::DbWeight::get().reads_writes(slashes.saturating_add(1), slashes)
    }

    #[cfg(feature = "try-runtime")]
    fn pre_upgrade() -> Result<Vec<u8>, sp_runtime::TryRuntimeError> {
        Ok(Slashes::<T>::iter_keys().collect::<Vec<_>>().encode())
    }

    #[cfg(feature = "try-runtime")]
    fn post_upgrade(state: Vec<u8>) -> Result<(), sp_runtime::TryRuntimeError> {
        let before = Vec::<surety_types::trust::SlashId>::decode(&mut state.as_slice());
        let before = before.map_err(|_| "no list of slashes")?;
        frame_support::ensure!(
            before.into_iter().all(|id| Slashes::<T>::get(id).is_some()),
            "a slash that waited was lost"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use codec::DecodeAll;
    use sp_runtime::AccountId32;

    use super::*;

    /// A slash as version 1 of the pallet stored it, with the runtime's accounts, balances and times.
    fn stored() -> Vec<u8> {
        let hex: Vec<u8> = include_str!("slash_1.hex")
            .bytes()
            .filter(|byte| !byte.is_ascii_whitespace())
            .collect();
        let byte = |digits: &[u8]| u8::from_str_radix(core::str::from_utf8(digits).unwrap(), 16).unwrap();
        hex.chunks(2).map(byte).collect()
    }

    #[test]
    fn a_slash_of_version_1_keeps_all_that_it_says_and_is_of_its_task() {
        let old = OldSlash::<AccountId32, u128, u32>::decode_all(&mut &stored()[..]).unwrap();
        assert_eq!(old.encode(), stored());
        let account = |byte| AccountId32::new([byte; 32]);
        let slash = Slash {
            cause: SlashCause::Task(7),
            offender: account(0x11),
            kind: FaultKind::Equivocation,
            lock: 1_234_567_890_123_456_789,
            part: Perquintill::from_percent(5),
            finders: BoundedVec::truncate_from(vec![account(0x21), account(0x22)]),
            finder: None,
            client: Some(account(0x31)),
            proven_at: 1_000,
            until: 44_200,
        };
        assert_eq!(Slash::from(old), slash);
        // It is one byte longer for it: what was stored cannot be taken for it.
        assert_eq!(slash.encode(), [&[0], &stored()[..]].concat());
        assert!(Slash::<AccountId32, u128, u32>::decode_all(&mut &stored()[..]).is_err());
    }
}
