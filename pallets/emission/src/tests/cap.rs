//! No planck is minted beyond the cap.

use frame_support::{assert_noop, assert_ok};
use frame_system::RawOrigin;
use sp_runtime::{BuildStorage, Perquintill};
use surety_emission::{CAP, SURE, TAPER};
use surety_types::traits::{ServicePay, WorkPay};

use crate::{Error, Minted, Supply, asset, mock::*};

#[test]
fn the_genesis_counts_and_may_be_the_cap() {
    TestExt::new().endow(1, 9 * SURE).execute_with(|| {
        let endowed = 9 * SURE + 2 * EXISTENTIAL_DEPOSIT;
        let supply = Supply {
            issued: endowed,
            minted: endowed,
            left: CAP - endowed,
            tau: Perquintill::one(),
        };
        assert_eq!(Emission::supply(), supply);
    });
    TestExt::new().all_but(0).execute_with(|| {
        assert_eq!((Emission::supply().left, Minted::<Test>::get()), (0, CAP));
    });
}

#[test]
#[should_panic(expected = "the genesis endows more than 21 million SURE")]
fn a_genesis_of_more_does_not_build() {
    let balances = pallet_balances::GenesisConfig {
        balances: vec![(1, CAP + 1)],
        ..Default::default()
    };
    let genesis = RuntimeGenesisConfig {
        balances,
        ..Default::default()
    };
    let _never = genesis.build_storage();
}

#[test]
fn what_is_paid_falls_with_what_is_left() {
    TestExt::new().all_but(TAPER / 2).execute_with(|| {
        let half = Perquintill::from_percent(50);
        assert_eq!(Emission::supply().tau, half);
        let session = surety_emission::session_pay(1_000 * SURE, half);
        assert_eq!(Emission::session_pay(1_000 * SURE), session);
    });
}

#[test]
fn the_last_plancks_are_minted_and_then_nothing() {
    let poor = TestExt::new()
        .provider(3, 10 * SURE)
        .pool(1, SURE)
        .pool(2, SURE)
        .all_but(5 * SURE);
    poor.execute_with(|| {
        serve(1, 1, 1, 3 * SURE);
        serve(2, 1, 1, 3 * SURE);
        Emission::session_ended(287);
        assert_eq!(rewards(1) + rewards(2), 5 * SURE);
        assert_eq!(Minted::<Test>::get(), CAP);

        serve(1, 1, 1, 3 * SURE);
        Emission::session_ended(575);
        pass_days(10);
        Emission::note_settled(&3, 100 * SURE);
        assert_eq!((Minted::<Test>::get(), Balances::total_issuance()), (CAP, CAP));
        assert_eq!(Emission::session_pay(CAP), 0);
    });
}

#[test]
fn a_burn_reopens_nothing() {
    TestExt::new().pool(1, SURE).all_but(SURE).execute_with(|| {
        assert_ok!(Balances::burn(RawOrigin::Signed(1_003).into(), TAPER, true));
        assert_eq!(Emission::supply().left, SURE);
        serve(1, 1, 1, TAPER);
        Emission::session_ended(287);
        assert_eq!((rewards(1), Minted::<Test>::get()), (SURE, CAP));
        assert_eq!(Balances::total_issuance(), CAP - TAPER);
    });
}

#[test]
fn what_somebody_else_minted_is_not_minted_again() {
    TestExt::new()
        .pool(1, SURE)
        .all_but(SURE)
        .build()
        .execute_with(|| {
            let there = Balances::free_balance(POOLS);
            let root = RawOrigin::Root.into();
            // Half of what was left.
            assert_ok!(Balances::force_set_balance(root, POOLS, there + SURE / 2));
            serve(1, 1, 1, TAPER);
            Emission::session_ended(287);
            assert_eq!(Balances::total_issuance(), CAP);
            assert_ok!(Emission::do_try_state());
        });
}

#[test]
fn whoever_asks_for_more_than_is_left_gets_nothing() {
    TestExt::new().endow(1, SURE).all_but(5).execute_with(|| {
        assert_noop!(asset::mint::<Test>(&1, 6), Error::<Test>::BeyondCap);
        assert_noop!(asset::mint::<Test>(&1, u128::MAX), Error::<Test>::BeyondCap);
        assert_ok!(asset::mint::<Test>(&1, 5));
        assert_noop!(asset::mint::<Test>(&1, 1), Error::<Test>::BeyondCap);
    });
}
