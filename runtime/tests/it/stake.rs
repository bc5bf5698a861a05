//! Stake behind validators: who comes to validate, what it is paid, and what two blocks of a slot cost.

use codec::{Decode, Encode};
use frame_support::{assert_ok, traits::Get};
use frame_system::RawOrigin;
use sp_keyring::Sr25519Keyring::{self, Alice, Bob, Charlie, Dave, Eve};
use sp_keystore::{KeystoreExt, testing::MemoryKeystore};
use sp_runtime::Permill;
use sp_session::runtime_decl_for_session_keys::SessionKeys as SessionKeysApi;
use surety_pallet_delegation::{Call as Pools, Error as PoolError};
use surety_pallet_staking::{Call as Staking, Error as StakingError};
use surety_pallet_trust_lock::{Records, Slashes};
use surety_pallet_validators::{Authored, Call, Candidates, Error};
use surety_runtime::{
    Balance, Balances, Delegation, Emission, Runtime, RuntimeCall, RuntimeEvent, Session, SessionKeys,
    TrustLock,
    configs::{compute::ValidatorPot, trust::InsurancePool},
    params::dynamic::delegation::UnbondingPeriod,
    units::{EPOCH_SLOTS, SURE},
};
use surety_types::{
    stake::Role,
    traits::{Jail, PoolLedger},
    trust::{FaultKind, SlashCause},
};

use crate::{
    chain::{Chain, account},
    consensus::{evidence, four_validators, report_bob, run_sessions},
    market::{self, BOND, PROVIDERS},
};

/// What validators have in their pools at genesis.
const OWN: Balance = 20_000 * SURE;

fn works(who: Sr25519Keyring) -> bool {
    Session::validators().contains(&account(who))
}

fn own(operator: Sr25519Keyring) -> Balance {
    Delegation::own(&account(operator))
}

/// What somebody has behind an operator, and has lost of it that is not burned yet.
fn behind(operator: Sr25519Keyring, who: Sr25519Keyring) -> (Balance, Balance) {
    let stake = Delegation::stake(account(who)).unwrap();
    let [delegation] = &stake.delegations[..] else {
        panic!("{stake:?}")
    };
    assert_eq!(delegation.operator, account(operator));
    (delegation.worth, delegation.lost)
}

fn claimable(who: Sr25519Keyring) -> Balance {
    Delegation::claimable(account(who), account(who))
}

/// New session keys with the account's own for blocks, and the proof that they are, as a node makes them.
fn set_keys(who: Sr25519Keyring) -> RuntimeCall {
    let mut node = sp_io::TestExternalities::default();
    node.register_extension(KeystoreExt::new(MemoryKeystore::new()));
    let (owner, seed) = (account(who).encode(), who.to_seed().into_bytes());
    let made = node.execute_with(|| Runtime::generate_session_keys(owner, Some(seed)));
    let keys = SessionKeys::decode(&mut &made.keys[..]).unwrap();
    let proof = made.proof;
    pallet_session::Call::set_keys { keys, proof }.into()
}

#[test]
fn a_validator_comes_works_is_paid_and_leaves_with_its_stake() {
    let mut chain = Chain::new("local_testnet");
    run_sessions(&mut chain, 1);
    let (bond, commission) = (2_000 * SURE, Permill::from_percent(5));
    let calls = vec![
        set_keys(Dave),
        Pools::open { bond, commission }.into(),
        Call::validate {}.into(),
    ];
    chain.call(Dave, pallet_utility::Call::batch_all { calls });
    let joined = chain.query(Session::current_index);
    chain.run_until(2 * EPOCH_SLOTS as u32, || works(Dave));
    assert_eq!(chain.query(Session::current_index), joined + 2);
    // Places in the set are others now: the session's first block is its author's all the same.
    let author = chain.author();
    let made: Vec<_> = chain.query(|| Authored::<Runtime>::iter().collect());
    assert_eq!(made, [(author, 1)]);

    run_sessions(&mut chain, 1);
    let paid = chain.query(|| claimable(Dave));
    assert!(paid > 0);
    chain.call(Dave, Call::chill {});
    run_sessions(&mut chain, 1);
    assert!(chain.query(|| works(Dave)));
    run_sessions(&mut chain, 1);
    assert!(!chain.query(|| works(Dave)));

    let before = chain.free(&account(Dave));
    let operator = account(Dave);
    chain.call(
        Dave,
        Pools::undelegate {
            operator,
            amount: bond,
        },
    );
    // It claimed nothing, and has all of it as the pool closes.
    assert!(chain.free(&account(Dave)) > before + paid);
    assert!(!chain.query(|| Candidates::<Runtime>::contains_key(account(Dave))));
    let early = chain.try_call(Dave, Pools::withdraw {});
    assert_eq!(early, Err(PoolError::<Runtime>::NothingToWithdraw.into()));
    let period = chain.query(UnbondingPeriod::get);
    // The clock is two blocks behind.
    chain.run_to(chain.number() + period + 2);
    let before = chain.free(&account(Dave));
    chain.call(Dave, Pools::withdraw {});
    assert!(chain.free(&account(Dave)) > before + bond - SURE);
    chain.call(Dave, pallet_session::Call::purge_keys {});
}

/// Eve backs Bob, who makes two blocks of a slot.
fn bob_equivocates(backed: Balance) -> Chain {
    let mut chain = four_validators();
    let delegate = Pools::delegate {
        operator: account(Bob),
        amount: backed,
    };
    chain.call(Eve, delegate);
    let slot = chain.query(pallet_babe::CurrentSlot::<Runtime>::get);
    let evidence = evidence(&mut chain, Bob, slot);
    report_bob(&mut chain, evidence);
    chain.query(|| {
        let slash = Slashes::<Runtime>::get(0).unwrap();
        assert_eq!(slash.cause, SlashCause::Equivocation(Session::current_index()));
        assert_eq!(
            (slash.offender, slash.kind),
            (account(Bob), FaultKind::Equivocation)
        );
        assert!(TrustLock::is_jailed(&account(Bob)) && Delegation::is_pending(&account(Bob)));
        // Nothing is lost while it can be vetoed.
        assert_eq!((own(Bob), behind(Bob, Eve)), (OWN, (backed, 0)));
    });
    chain
}

#[test]
fn two_blocks_of_a_slot_cost_all_who_back_their_author_the_same_part_and_it_its_place() {
    let backed = 1_600 * SURE;
    let mut chain = bob_equivocates(backed);
    let refused = chain.try_call(Bob, Call::validate {});
    assert_eq!(refused, Err(Error::<Runtime>::Jailed.into()));
    let pool = InsurancePool::get();
    let (issued, insured) = chain.query(|| (Balances::total_issuance(), Balances::free_balance(&pool)));

    chain.run_until(60, || !Slashes::<Runtime>::contains_key(0));
    // Of one in four: (3/4)^2.
    let lost = |stake: Balance| stake / 16 * 9;
    assert_eq!(chain.query(|| own(Bob)), OWN - lost(OWN));
    assert_eq!(
        chain.query(|| behind(Bob, Eve)),
        (backed - lost(backed), lost(backed))
    );
    assert_eq!(chain.query(Balances::total_issuance), issued - lost(OWN));

    // A delegator's part burns when somebody asks for it, which costs nothing.
    let before = chain.free(&account(Charlie));
    let settle = Pools::settle {
        delegator: account(Eve),
        operator: account(Bob),
    };
    chain.call(Charlie, settle);
    assert_eq!(chain.free(&account(Charlie)), before);
    chain.query(|| {
        assert_eq!(behind(Bob, Eve), (backed - lost(backed), 0));
        assert_eq!(Balances::total_issuance(), issued - lost(OWN) - lost(backed));
        assert_eq!(Balances::free_balance(&pool), insured);
    });

    run_sessions(&mut chain, 2);
    assert!(!chain.query(|| works(Bob)));
    assert_eq!(chain.query(Session::validators).len(), 3);
}

#[test]
fn a_vetoed_slash_costs_nothing_and_its_operator_validates_again() {
    let backed = 1_600 * SURE;
    let mut chain = bob_equivocates(backed);
    chain.query(|| {
        assert_ok!(TrustLock::cancel_slash(RawOrigin::Root.into(), 0));
        assert_eq!((own(Bob), behind(Bob, Eve)), (OWN, (backed, 0)));
        assert!(!TrustLock::is_jailed(&account(Bob)) && !Delegation::is_pending(&account(Bob)));
    });
    chain.call(Bob, Call::validate {});
    for _ in 0..3 {
        run_sessions(&mut chain, 1);
        assert!(chain.query(|| works(Bob)));
        assert_eq!(chain.query(Session::disabled_validators), [0u32; 0]);
    }
    assert_eq!(chain.query(|| (own(Bob), behind(Bob, Eve))), (OWN, (backed, 0)));
}

#[test]
fn a_validator_whose_node_is_off_leaves_the_set_and_loses_no_stake() {
    let mut chain = four_validators();
    chain.absent.push(Bob);
    chain.run_until(5 * EPOCH_SLOTS as u32, || !works(Bob));
    assert_eq!(chain.query(Session::validators).len(), 3);
    assert_eq!(chain.query(|| own(Bob)), OWN);
}

#[test]
fn a_day_pays_each_pool_what_its_stake_earns_and_a_part_of_the_fees() {
    let operators = [Alice, Bob, Charlie];
    // A session is a day there.
    let mut chain = Chain::new("local_testnet");
    chain.run_to(1);
    let minted = chain.query(|| Emission::supply().minted);
    run_sessions(&mut chain, 1);
    // Seven in a hundred a year, of 105,192 sessions.
    let earned = OWN * 7 / 100 / 105_192;
    // What does not divide waits for the next day.
    let is_about = |what: Balance, wanted: Balance| what <= wanted && what + 2 > wanted;
    for operator in operators {
        let due = chain.query(|| claimable(operator));
        assert!(is_about(due, earned), "{due} of {earned}");
    }
    let more = chain.query(|| Emission::supply().minted) - minted;
    assert!(is_about(more, 3 * earned), "{more}");

    let fees = 30 * SURE;
    let collected = pallet_balances::Call::transfer_keep_alive {
        dest: ValidatorPot::get().into(),
        value: fees,
    };
    chain.call(Eve, collected);
    run_sessions(&mut chain, 1);
    for operator in operators {
        let due = chain.query(|| claimable(operator));
        let wanted = 2 * earned + fees / 3;
        assert!(is_about(due, wanted), "{due} of {wanted}");
    }
    let due = chain.query(|| claimable(Alice));
    let operator = account(Alice);
    chain.call(Alice, Pools::claim { operator });
    let claimed = chain.events().into_iter().find_map(|event| match event {
        RuntimeEvent::Delegation(surety_pallet_delegation::Event::Claimed { amount, .. }) => Some(amount),
        _ => None,
    });
    assert_eq!(claimed, Some(due));
}

#[test]
fn who_is_a_provider_by_now_keeps_its_record_when_the_pool_closes_that_it_left() {
    let mut chain = Chain::new("local_testnet");
    let (bond, backed, commission) = (2_000 * SURE, 100 * SURE, Permill::from_percent(5));
    chain.call(Dave, Pools::open { bond, commission });
    let operator = account(Dave);
    chain.call(
        Eve,
        Pools::delegate {
            operator: operator.clone(),
            amount: backed,
        },
    );
    chain.call(
        Dave,
        Pools::undelegate {
            operator: operator.clone(),
            amount: bond,
        },
    );
    let period = chain.query(UnbondingPeriod::get);
    chain.run_to(chain.number() + period + 2);
    chain.call(Dave, Pools::withdraw {});
    let (role, amount) = (Role::Provider, BOND);
    chain.call(Dave, Staking::bond { role, amount });
    chain.query(|| TrustLock::note_clean_task(&account(Dave)));
    let done = |chain: &mut Chain| chain.query(|| Records::<Runtime>::get(account(Dave)).clean_tasks);
    assert_eq!(done(&mut chain), 1);

    chain.call(
        Eve,
        Pools::undelegate {
            operator,
            amount: backed,
        },
    );
    assert_eq!(chain.query(|| Delegation::pool(account(Dave))), None);
    assert_eq!(done(&mut chain), 1);
}

#[test]
fn an_account_has_stake_in_a_pool_or_as_a_provider_and_never_both() {
    let mut chain = market::open();
    let (role, amount) = (Role::Provider, BOND);
    let bonded = chain.try_call(Alice, Staking::bond { role, amount });
    assert_eq!(bonded, Err(StakingError::<Runtime>::WrongRole.into()));
    let operator = account(Alice);
    let delegated = chain.try_call(PROVIDERS[0].stash, Pools::delegate { operator, amount });
    assert_eq!(delegated, Err(PoolError::<Runtime>::WrongRole.into()));
}
