//! Calls of a chain like ours, for its metadata.

#![allow(non_camel_case_types, dead_code)]

use scale_info::TypeInfo;
use sp_core::{H256, crypto::AccountId32};
use sp_runtime::MultiAddress;
use surety_dispute_game::bisection::Move;
use surety_proofs::{PartOpening, SegmentOpening, SignedStatement};
use surety_types::{
    model::ModelManifest,
    multiaddr::Endpoints,
    provider::DeviceProfile,
    stake::Role,
    task::{Bid, ResultClaim, TaskSpec},
    trust::{AuditAnswer, AuditProof, Content, DemandedParts, ItemLeaves, ItemsFound},
};

#[derive(TypeInfo)]
pub enum Nothing {}

#[derive(TypeInfo)]
pub(super) enum SystemCall {
    remark { remark: Vec<u8> },
}

#[derive(TypeInfo)]
pub enum UtilityCall<Calls = Vec<Nothing>> {
    #[codec(index = 2)]
    batch_all {
        // Of the outer enumeration of the fixture's metadata.
        calls: Calls,
    },
}

/// As above, with something else.
pub type OtherUtilityCall = UtilityCall<Vec<u8>>;

/// `frame_system::AccountInfo`.
#[derive(TypeInfo)]
pub(super) struct AccountInfo {
    nonce: u32,
    consumers: u32,
    providers: u32,
    sufficients: u32,
    data: AccountData,
}

/// `pallet_balances::AccountData`.
#[derive(TypeInfo)]
pub(super) struct AccountData {
    free: u128,
    reserved: u128,
    frozen: u128,
    flags: u128,
}

#[derive(TypeInfo)]
pub(super) enum StakingCall {
    #[codec(index = 0)]
    bond { role: Role, amount: u128 },
    #[codec(index = 1)]
    unbond { amount: u128 },
    #[codec(index = 2)]
    withdraw_unbonded,
    #[codec(index = 3)]
    rebond { amount: u128 },
    #[codec(index = 4)]
    set_agent { agent: AccountId32 },
    #[codec(index = 5)]
    confirm_agent { stash: AccountId32 },
    #[codec(index = 6)]
    remove_agent,
}

#[derive(TypeInfo)]
pub(super) enum ProviderCall {
    register {
        device: DeviceProfile,
        endpoints: Endpoints,
    },
    heartbeat,
    deregister,
}

#[derive(TypeInfo)]
// Never made: only its type counts.
#[allow(clippy::large_enum_variant)]
pub(super) enum ModelCall {
    register {
        manifest: ModelManifest,
    },
    retire {
        model: H256,
    },
    // The index that it has.
    #[codec(index = 3)]
    offer_audits {
        model: H256,
        offered: bool,
    },
}

/// The calls of `TaskAuction` after `post`, under the indices that they have.
macro_rules! auction_calls {
    ($(#[$attribute:meta])* $visibility:vis enum $name:ident $(<$cap:ident = $default:ty>)? { $($post:tt)* }) => {
        $(#[$attribute])*
        #[derive(TypeInfo)]
        #[allow(dead_code, non_camel_case_types)]
        $visibility enum $name $(<$cap = $default>)? {
            $($post)*
            bid {
                task: u64,
                seal: H256,
            },
            reveal_bid {
                task: u64,
                provider: AccountId32,
                bid: Bid<u128>,
            },
            cancel {
                task: u64,
            },
            advance {
                task: u64,
            },
        }
    };
}
pub(super) use auction_calls;

auction_calls! {
    pub enum AuctionCall<Cap = u128> {
        post { spec: TaskSpec, cap: Cap },
    }
}

/// As above, with a shorter number.
pub type OtherAuctionCall = AuctionCall<u64>;

#[derive(TypeInfo)]
// Never made: only its type counts.
#[allow(clippy::large_enum_variant)]
pub enum ResultsCall {
    commit {
        task: u64,
        commitment: H256,
    },
    reveal {
        task: u64,
        provider: AccountId32,
        claim: ResultClaim,
        salt: H256,
    },
    announce_audit {
        task: u64,
        provider: AccountId32,
        proof: AuditProof,
        seal: H256,
    },
    reveal_audit {
        task: u64,
        provider: AccountId32,
        verifier: AccountId32,
        claim: ResultClaim,
        salt: H256,
    },
    reveal_items {
        task: u64,
        provider: AccountId32,
        verifier: AccountId32,
        found: ItemsFound,
        answer: AuditAnswer,
    },
    refute_audit {
        task: u64,
        provider: AccountId32,
        verifier: AccountId32,
        opened: (ItemsFound, AuditAnswer),
        place: u32,
        shown: ItemLeaves,
    },
    demand {
        task: u64,
        provider: AccountId32,
        parts: DemandedParts,
        proof: Option<AuditProof>,
    },
    supply {
        task: u64,
        content: Content,
        bytes: u32,
        opening: PartOpening,
    },
    report_equivocation {
        statement: SignedStatement<AccountId32>,
        other: Option<SignedStatement<AccountId32>>,
    },
    demand_input {
        task: u64,
        segment: u32,
    },
    supply_input {
        task: u64,
        opening: SegmentOpening,
    },
}

#[derive(TypeInfo)]
pub enum DisputesCall {
    challenge {
        task: u64,
        provider: AccountId32,
    },
    play {
        dispute: u32,
        number: u32,
        played: Move,
    },
    advance_dispute {
        dispute: u32,
    },
    join_committee {
        dispute: u32,
        ballot: u32,
        proof: Option<AuditProof>,
        seal: H256,
    },
    reveal_vote {
        dispute: u32,
        verifier: AccountId32,
        value: H256,
        salt: H256,
    },
}

#[derive(TypeInfo)]
pub enum TrustLockCall {
    carry_out_slash { slash: u32 },
}

#[derive(TypeInfo)]
pub(super) enum BalancesCall {
    #[codec(index = 3)]
    transfer_keep_alive {
        dest: MultiAddress<AccountId32, ()>,
        #[codec(compact)]
        value: u128,
    },
}
