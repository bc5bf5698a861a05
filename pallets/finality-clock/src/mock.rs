//! A runtime of System and this pallet.

use frame_support::{assert_ok, derive_impl, parameter_types, traits::Hooks};
use sp_inherents::InherentData;
use sp_runtime::{BuildStorage, DispatchResult};

use crate::{self as pallet_finality_clock, BlockAuthors, inherent::INHERENT_IDENTIFIER};

type Block = frame_system::mocking::MockBlock<Test>;

#[frame_support::runtime]
mod runtime {
    #[runtime::runtime]
    #[runtime::derive(
        RuntimeCall,
        RuntimeEvent,
        RuntimeError,
        RuntimeOrigin,
        RuntimeFreezeReason,
        RuntimeHoldReason,
        RuntimeSlashReason,
        RuntimeLockId,
        RuntimeTask
    )]
    pub struct Test;

    #[runtime::pallet_index(0)]
    pub type System = frame_system;
    #[runtime::pallet_index(1)]
    pub type FinalityClock = pallet_finality_clock;
}

#[derive_impl(frame_system::config_preludes::TestDefaultConfig)]
impl frame_system::Config for Test {
    type Block = Block;
}

parameter_types! {
    pub const AuthoritiesMax: u32 = 32;
    pub static IsFull: bool = false;
    pub static Authorities: Vec<u64> = Vec::new();
    /// Who makes every block, if not each authority in turn.
    pub static AuthorNow: Option<u64> = None;
}

impl pallet_finality_clock::Config for Test {
    type AuthoritiesMax = AuthoritiesMax;
    type Authors = Authors;
    type IsFull = IsFull;
    type WeightInfo = ();
}

pub struct Authors;

impl BlockAuthors<u64> for Authors {
    fn all() -> Vec<u64> {
        Authorities::get()
    }

    fn of_this_block() -> Option<u64> {
        let in_turn = || {
            let authorities = Authorities::get();
            let turn = System::block_number() % authorities.len().max(1) as u64;
            authorities.get(turn as usize).copied()
        };
        AuthorNow::get().or_else(in_turn)
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn set_for_benchmark(count: u32) {
        Authorities::set((0..count.into()).collect());
    }
}

/// Runs a test in block 1 with `authorities` that make blocks in turn; checks every invariant when it is
/// over.
pub(crate) fn execute(authorities: u64, test: impl FnOnce()) {
    Authorities::set((0..authorities).collect());
    AuthorNow::set(None);
    IsFull::set(false);
    let storage = RuntimeGenesisConfig::default().build_storage();
    sp_io::TestExternalities::new(storage.expect("the genesis is valid")).execute_with(|| {
        System::set_block_number(1);
        test();
        assert_ok!(FinalityClock::do_try_state());
    });
}

/// Has the author of block `now` note `finalized`, and ends the block.
pub(crate) fn note_in(now: u64, finalized: u64) -> DispatchResult {
    System::set_block_number(now);
    let noted = FinalityClock::note(RuntimeOrigin::none(), finalized);
    FinalityClock::on_finalize(now);
    noted
}

/// What a node that has seen `finalized` gives to a block's author.
pub(crate) fn inherents(finalized: u64) -> InherentData {
    let mut data = InherentData::new();
    data.put_data(INHERENT_IDENTIFIER, &finalized)
        .expect("nothing is there yet");
    data
}
