//! Stake behind validators: what is read of it, and runtimes that have none.

#![allow(dead_code, non_camel_case_types)]

use codec::Encode;
use scale_info::{TypeInfo, meta_type};
use sp_core::{ConstU32, bounded::BoundedVec, crypto::AccountId32, ed25519, sr25519};
use sp_runtime::Permill;
use subxt::ext::frame_metadata::{v14, v15};

use super::{
    fixture::{AuctionCall, Map, blake, pallet, pallets, plain, runtime, runtime_with},
    node::Node,
};
use crate::{RpcChain, RpcConfig, entries::Entry};
use surety_chain_client::{
    Call, ChainError, DelegatedStake, OperatorPool, StakeCall, StakeChain, StakeFund, ValidatorSets, When,
    sample::{self, stake::records},
};

type Account = AccountId32;

/// As the runtime's, whose keys are of types of their own.
#[derive(TypeInfo, Encode)]
struct Keys {
    babe: sr25519::Public,
    grandpa: ed25519::Public,
    authority_discovery: sr25519::Public,
}

#[derive(TypeInfo)]
enum DelegationCall<Commission = Permill> {
    open {
        bond: u128,
        commission: Commission,
    },
    delegate {
        operator: Account,
        amount: u128,
    },
    undelegate {
        operator: Account,
        amount: u128,
    },
    redelegate {
        operator: Account,
        day: u32,
        to: Account,
        amount: u128,
    },
    withdraw,
    claim {
        operator: Account,
    },
    settle {
        delegator: Account,
        operator: Account,
    },
    set_commission {
        commission: Commission,
    },
}

#[derive(TypeInfo)]
enum ValidatorsCall {
    validate,
    chill,
}

#[derive(TypeInfo)]
enum SessionCall {
    set_keys { keys: Keys, proof: Vec<u8> },
    purge_keys,
}

/// As the pallet has it, with what this program does not look at.
#[derive(TypeInfo, Encode)]
struct Pool {
    fund: StakeFund,
    own_shares: u128,
    commission: Permill,
    raised_on: u32,
    earned: u128,
    per_share: u128,
    carried: u128,
}

#[derive(Debug, TypeInfo, Encode)]
struct Delegation {
    operator: Account,
    shares: u128,
    held: u128,
    paid_to: u128,
}

#[derive(Debug, TypeInfo, Encode)]
struct Chunk {
    operator: Account,
    day: u32,
    shares: u128,
    held: u128,
    available_at: u32,
}

#[derive(TypeInfo, Encode)]
struct Stake {
    delegations: BoundedVec<Delegation, ConstU32<16>>,
    leaving: BoundedVec<Chunk, ConstU32<48>>,
}

#[derive(TypeInfo, Encode)]
struct Service {
    made: u32,
    expected_millionths: u64,
    owed: u128,
}

fn by_operator_and_day() -> Map {
    let hashers = vec![
        v14::StorageHasher::Blake2_128Concat,
        v14::StorageHasher::Twox64Concat,
    ];
    (hashers, meta_type::<(Account, u32)>(), meta_type::<StakeFund>())
}

fn keys_of_next() -> Map {
    let hashers = vec![v14::StorageHasher::Twox64Concat];
    (hashers, meta_type::<Account>(), meta_type::<Keys>())
}

/// The pallets of stake behind validators.
pub fn stake_pallets() -> [v15::PalletMetadata; 3] {
    let entries = vec![
        ("Pools", blake::<Account, Pool>()),
        (
            "Delegators",
            blake::<Account, BoundedVec<(u128, Account), ConstU32<128>>>(),
        ),
        ("Stakes", blake::<Account, Stake>()),
        ("Buckets", by_operator_and_day()),
        ("Pending", blake::<Account, surety_chain_client::PendingSlashes>()),
    ];
    let delegation = pallet(60, "Delegation", meta_type::<DelegationCall>(), entries);
    let entries = vec![
        (
            "Candidates",
            blake::<Account, surety_chain_client::CandidateRecord>(),
        ),
        ("Services", blake::<Account, Service>()),
        ("Authored", blake::<Account, u32>()),
    ];
    let validators = pallet(61, "Validators", meta_type::<ValidatorsCall>(), entries);
    let entries = vec![
        ("CurrentIndex", plain::<u32>()),
        ("Validators", plain::<Vec<Account>>()),
        ("QueuedKeys", plain::<Vec<(Account, Keys)>>()),
        ("NextKeys", keys_of_next()),
    ];
    let session = pallet(20, "Session", meta_type::<SessionCall>(), entries);
    [delegation, validators, session]
}

fn keys() -> Keys {
    let keys = sample::stake::keys();
    Keys {
        babe: keys.babe.into(),
        grandpa: keys.grandpa.into(),
        authority_discovery: keys.authority_discovery.into(),
    }
}

fn stake_of(of: &DelegatedStake) -> Stake {
    let delegations = of.delegations.iter().map(|one| Delegation {
        operator: one.operator.clone(),
        shares: one.shares,
        held: one.held,
        paid_to: one.paid_to,
    });
    let leaving = of.leaving.iter().map(|one| Chunk {
        operator: one.operator.clone(),
        day: one.day,
        shares: one.shares,
        held: one.held,
        available_at: one.available_at,
    });
    Stake {
        delegations: delegations.collect::<Vec<_>>().try_into().unwrap(),
        leaving: leaving.collect::<Vec<_>>().try_into().unwrap(),
    }
}

fn pool_of(of: &OperatorPool) -> Pool {
    Pool {
        fund: of.fund,
        own_shares: of.own_shares,
        commission: Permill::from_parts(of.commission),
        raised_on: 9,
        earned: of.earned,
        per_share: of.per_share,
        carried: 7,
    }
}

#[tokio::test]
async fn pools_candidates_and_validators_are_read_as_the_runtime_writes_them() {
    let (node, runtime) = (Node::start(1).await, runtime());
    let (operator, other) = (AccountId32::new([1; 32]), AccountId32::new([2; 32]));
    let by: [&[u8]; 1] = [operator.as_ref()];
    let (pool, stake, fund) = (records::pool(), records::delegated(), records::fund());
    let (pending, candidate) = (records::pending(), records::candidate());
    let service = Service {
        made: records::service().made,
        expected_millionths: records::service().expected_millionths,
        owed: 11,
    };
    node.put(&runtime, Entry::Pools, &by, pool_of(&pool).encode());
    node.put(
        &runtime,
        Entry::Delegators,
        &by,
        vec![(5u128, other.clone())].encode(),
    );
    node.put(&runtime, Entry::DelegatedStakes, &by, stake_of(&stake).encode());
    let day: [&[u8]; 2] = [operator.as_ref(), &2u32.encode()];
    node.put(&runtime, Entry::Buckets, &day, fund.encode());
    node.put(&runtime, Entry::Pending, &by, pending.encode());
    node.put(&runtime, Entry::Candidates, &by, candidate.encode());
    node.put(&runtime, Entry::Services, &by, service.encode());
    node.put(&runtime, Entry::Authored, &by, 3u32.encode());
    node.put(&runtime, Entry::CurrentIndex, &[], 7u32.encode());
    let present = vec![operator.clone(), other.clone()];
    node.put(&runtime, Entry::Validators, &[], present.encode());
    node.put(
        &runtime,
        Entry::QueuedKeys,
        &[],
        vec![(other.clone(), keys())].encode(),
    );
    node.put(&runtime, Entry::NextKeys, &by, keys().encode());

    let chain = RpcChain::connect(RpcConfig::new(&node.url)).await.unwrap();
    let at = When::Finalized;
    assert_eq!(chain.pool(at, &operator).await, Ok(Some(pool)));
    assert_eq!(chain.pool(at, &other).await, Ok(None));
    assert_eq!(chain.operators(at).await, Ok(vec![(operator.clone(), pool)]));
    assert_eq!(chain.delegators(at, &operator).await, Ok(1));
    assert_eq!(chain.delegators(at, &other).await, Ok(0));
    assert_eq!(chain.delegated(at, &operator).await, Ok(stake));
    assert_eq!(chain.left(at, &operator, 2).await, Ok(fund));
    assert_eq!(chain.left(at, &operator, 3).await, Ok(StakeFund::default()));
    assert_eq!(chain.pending_slashes(at, &operator).await, Ok(Some(pending)));
    assert_eq!(chain.candidate(at, &operator).await, Ok(Some(candidate)));
    assert_eq!(
        chain.candidates(at).await,
        Ok(vec![(operator.clone(), candidate)])
    );
    assert_eq!(chain.service(at, &operator).await, Ok(records::service()));
    assert_eq!(chain.authored(at, &operator).await, Ok(3));
    let sets = ValidatorSets {
        session: 7,
        present,
        next: vec![other],
    };
    assert_eq!(chain.validator_sets(at).await, Ok(sets));
    assert_eq!(
        chain.session_keys(at, &operator).await,
        Ok(Some(sample::stake::keys()))
    );
}

#[tokio::test]
async fn a_chain_without_such_stake_fits_and_says_that_it_has_none() {
    let mut without = pallets(meta_type::<AuctionCall>());
    without.retain(|pallet| !["Delegation", "Validators", "Session"].contains(&pallet.name));
    let node = Node::start(1).await;
    node.change(|state| state.runtime = super::fixture::metadata(without.clone()));
    let chain = RpcChain::connect(RpcConfig::new(&node.url)).await.unwrap();
    let error = chain.operators(When::Finalized).await.unwrap_err();
    assert!(matches!(&error, ChainError::Outgrown { .. }), "{error}");
    assert!(error.to_string().contains("Delegation.Pools"), "{error}");
    let call = Call::Stake(StakeCall::Validate);
    let error = runtime_with(without).unwrap().encoded(&call).unwrap_err();
    assert!(error.to_string().contains("Validators.validate"), "{error}");
}

#[test]
fn stake_that_differs_is_refused_with_what_differs() {
    let mut other = pallets(meta_type::<AuctionCall>());
    let delegation = other
        .iter_mut()
        .find(|pallet| pallet.name == "Delegation")
        .unwrap();
    delegation.calls.as_mut().unwrap().ty = meta_type::<DelegationCall<bool>>();
    let error = runtime_with(other).err().unwrap().to_string();
    assert!(
        error.contains("Delegation.open takes another commission"),
        "{error}"
    );
}
