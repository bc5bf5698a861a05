//! A runtime of System and this pallet.

use frame_support::{assert_ok, derive_impl};
use sp_inherents::InherentData;
use sp_runtime::{BuildStorage, DispatchResult};

use crate::{self as pallet_finality_clock, inherent::INHERENT_IDENTIFIER};

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

impl pallet_finality_clock::Config for Test {
    type WeightInfo = ();
}

/// Runs a test in block 1; checks every invariant when it is over.
pub(crate) fn execute(test: impl FnOnce()) {
    let storage = RuntimeGenesisConfig::default().build_storage();
    sp_io::TestExternalities::new(storage.expect("the genesis is valid")).execute_with(|| {
        System::set_block_number(1);
        test();
        assert_ok!(FinalityClock::do_try_state());
    });
}

/// Has the author of block `now` note `finalised`.
pub(crate) fn note_in(now: u64, finalised: u64) -> DispatchResult {
    System::set_block_number(now);
    FinalityClock::note(RuntimeOrigin::none(), finalised)
}

/// What a node that has seen `finalised` gives to a block's author.
pub(crate) fn inherents(finalised: u64) -> InherentData {
    let mut data = InherentData::new();
    data.put_data(INHERENT_IDENTIFIER, &finalised)
        .expect("nothing is there yet");
    data
}
