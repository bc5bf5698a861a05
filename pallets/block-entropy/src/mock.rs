//! A runtime of System and this pallet.

use frame_support::{assert_ok, derive_impl, parameter_types, traits::Hooks};
use sp_core::H256;
use sp_runtime::BuildStorage;

use crate as pallet_block_entropy;

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
    pub type BlockEntropy = pallet_block_entropy;
}

#[derive_impl(frame_system::config_preludes::TestDefaultConfig)]
impl frame_system::Config for Test {
    type Block = Block;
}

parameter_types! {
    /// As BABE has it: of the last block that had one.
    pub static AuthorOutput: Option<H256> = None;
}

impl pallet_block_entropy::Config for Test {
    type AuthorOutput = AuthorOutput;
    type WeightInfo = ();
}

/// Runs a test on a new chain; checks every invariant when it is over.
pub(crate) fn execute(test: impl FnOnce()) {
    AuthorOutput::set(None);
    let storage = RuntimeGenesisConfig::default().build_storage();
    sp_io::TestExternalities::new(storage.expect("the genesis is valid")).execute_with(|| {
        begin();
        test();
        assert_ok!(BlockEntropy::do_try_state());
    });
}

/// The output of a block that has one.
pub(crate) fn output_of(block: u64) -> H256 {
    H256::from_low_u64_be(block)
}

fn begin() {
    let now = System::block_number() + 1;
    System::set_block_number(now);
    BlockEntropy::on_initialize(now);
}

/// Ends the present block, with an output or without, and begins the next.
pub(crate) fn pass(has_output: bool) {
    if has_output {
        AuthorOutput::set(Some(output_of(System::block_number())));
    }
    begin();
}
