//! The fast track: what the technical committee whitelists, holders of SURE may have root do within days.
//! They decide; the committee can do nothing by itself.

#![allow(clippy::arithmetic_side_effects, reason = "constants of the configuration")]

use frame_support::{parameter_types, traits::ConstU32, weights::Weight};
use frame_system::EnsureRoot;
use pallet_collective::{DefaultVote, EnsureProportionAtLeast, MemberCount};
use sp_runtime::Perbill;

use super::{origins::WhitelistedCaller, system::RuntimeBlockWeights, tracks::GovernanceUnit};
use crate::{AccountId, BlockNumber, Preimage, Runtime, RuntimeCall, RuntimeEvent, RuntimeOrigin, System};

parameter_types! {
    /// Blocks for a motion of the committee: as many as the fast track decides in.
    pub MotionDuration: BlockNumber = 3 * GovernanceUnit::get();
    /// The dearest call that it may make.
    pub MaxProposalWeight: Weight = Perbill::from_percent(50) * RuntimeBlockWeights::get().max_block;
}

/// Who says nothing agrees to nothing. (A prime member's vote would else be that of all who are silent.)
pub struct SilenceIsNo;

impl DefaultVote for SilenceIsNo {
    fn default_vote(_: Option<bool>, _: MemberCount, _: MemberCount, _: MemberCount) -> bool {
        false
    }
}

impl pallet_collective::Config for Runtime {
    type RuntimeOrigin = RuntimeOrigin;
    type Proposal = RuntimeCall;
    type RuntimeEvent = RuntimeEvent;
    type MotionDuration = MotionDuration;
    type MaxProposals = ConstU32<20>;
    type MaxMembers = ConstU32<7>;
    type DefaultVote = SilenceIsNo;
    type WeightInfo = pallet_collective::weights::SubstrateWeight<Runtime>;
    type SetMembersOrigin = EnsureRoot<AccountId>;
    type MaxProposalWeight = MaxProposalWeight;
    type DisapproveOrigin = EnsureRoot<AccountId>;
    type KillOrigin = EnsureRoot<AccountId>;
    type Consideration = ();
}

impl pallet_whitelist::Config for Runtime {
    type RuntimeEvent = RuntimeEvent;
    type RuntimeCall = RuntimeCall;
    type WhitelistOrigin = EnsureProportionAtLeast<AccountId, (), 3, 4>;
    type DispatchWhitelistedOrigin = WhitelistedCaller;
    type Preimages = Preimage;
    // A referendum that is faster than the committee waits a unit for it.
    type DeferredDispatchExpiration = GovernanceUnit;
    type BlockNumberProvider = System;
    type WeightInfo = pallet_whitelist::weights::SubstrateWeight<Runtime>;
}
