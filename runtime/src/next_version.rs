//! A next version of this runtime, so that an upgrade can be tried out before there is one: its number is
//! higher, and it writes what is under way anew. It is built with the feature `next-version`, which
//! `scripts/bench upgrade` alone asks for.

use codec::FullCodec;
use frame_support::{
    migrations::VersionedMigration,
    storage::IterableStorageMap,
    storage_alias,
    traits::{StorageVersion, UncheckedOnRuntimeUpgrade},
    weights::Weight,
};
use surety_pallet_disputes::Disputes;
use surety_pallet_results::Rounds;
use surety_pallet_task_auction::Tasks;

use crate::{GenesisParameters, Runtime};

/// How many tasks, rounds and disputes were written anew.
#[storage_alias(verbatim)]
pub type Written = StorageValue<NextVersion, (u32, u32, u32)>;

/// What `GenesisParameters` counts: it has no state of its own, and its migrations are those made here.
pub const STORAGE_VERSION: StorageVersion = StorageVersion::new(cfg!(feature = "next-version") as u16);

/// 0 -> 1: reads every task, round and dispute by the new code, and writes it anew.
pub type WriteAnew =
    VersionedMigration<0, 1, Unchecked, GenesisParameters, <Runtime as frame_system::Config>::DbWeight>;

/// Without a look at the version: [`WriteAnew`] has it.
pub struct Unchecked;

impl UncheckedOnRuntimeUpgrade for Unchecked {
    fn on_runtime_upgrade() -> Weight {
        let written = (
            anew::<_, _, Tasks<Runtime>>(),
            anew::<_, _, Rounds<Runtime>>(),
            anew::<_, _, Disputes<Runtime>>(),
        );
        Written::put(written);
        let (tasks, rounds, disputes) = written;
        let all = u64::from(tasks)
            .saturating_add(rounds.into())
            .saturating_add(disputes.into());
        // Looking for the next one of each costs something where there is none.
        <Runtime as frame_system::Config>::DbWeight::get()
            .reads_writes(all.saturating_add(3), all.saturating_add(1))
    }
}

/// Returns how many values there were. What cannot be read any more is left as it is, and not counted.
fn anew<K: FullCodec, V: FullCodec, M: IterableStorageMap<K, V>>() -> u32 {
    let mut count = 0u32;
    M::translate::<V, _>(|_, value| {
        count = count.saturating_add(1);
        Some(value)
    });
    count
}
