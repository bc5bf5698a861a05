//! Slashes are dearer where many are at fault at once, and nobody makes them cheaper by faults of its own.

use frame_support::assert_ok;
use surety_pallet_test_kit::MockStake;
use surety_types::{
    limits::CONVICTIONS_MAX,
    stake::Role,
    trust::{FaultKind, SlashCause},
};

use surety_pallet_integration_tests::*;

/// More than a third of all providers: each of the ring loses everything because of the others.
const RING: std::ops::RangeInclusive<AccountId> = 1..=15;

/// Convicts a stash of a fault that costs more than its lock. Returns its slash.
fn convict(offender: AccountId) -> u32 {
    let offence = Offence {
        cause: SlashCause::Task(TASK),
        offender,
        kind: FaultKind::Equivocation,
        lock: 0,
        finders: Default::default(),
        finder: None,
        client: None,
    };
    TrustLock::convict(offence).unwrap()
}

fn carry_out(slash: u32) {
    assert_ok!(TrustLock::carry_out_slash(RuntimeOrigin::signed(1), slash));
}

fn veto(slash: u32) {
    assert_ok!(TrustLock::cancel_slash(RuntimeOrigin::root(), slash));
}

fn lost(stash: AccountId) -> Balance {
    MockStake::slashed(stash)
}

#[test]
fn one_stash_with_many_faults_does_not_make_the_slashes_of_a_ring_cheaper() {
    TestExt::new().execute_with(|| {
        RING.for_each(|stash| {
            convict(stash);
        });
        for _ in 0..CONVICTIONS_MAX {
            convict(STASHES);
        }
        assert_eq!(Convictions::<Test>::get().len(), 16);
        pass(DEFERRAL + 1);
        assert!(RING.map(lost).all(|lost| lost == BOND));
    });
}

#[test]
fn many_stashes_with_little_stake_do_not_either() {
    TestExt::new().execute_with(|| {
        let (first, last) = (10_000, 10_000 + AccountId::from(CONVICTIONS_MAX));
        for stash in first..last + 20 {
            MockStake::bond(stash, agent_of(stash), Role::Provider, 1);
        }
        // Some are there before the ring, and as many as have room come after it.
        for stash in (last..last + 20).chain(RING).chain(first..last) {
            convict(stash);
        }
        assert_eq!(Convictions::<Test>::get().len(), CONVICTIONS_MAX as usize);
        pass(DEFERRAL + 1);
        assert!(RING.map(lost).all(|lost| lost == BOND));
    });
}

#[test]
fn who_is_at_fault_again_still_counts_for_those_it_was_at_fault_with() {
    TestExt::new().execute_with(|| {
        let slash = convict(1);
        for stash in 2..=15 {
            convict(stash);
        }
        // The first fault of the others is as old as its own, their last is beyond the window.
        pass_unattended(51);
        for stash in 2..=15 {
            convict(stash);
        }
        carry_out(slash);
        assert_eq!(lost(1), BOND);
    });
}

#[test]
fn an_offender_counts_until_all_its_faults_are_vetoed() {
    for (vetoed, expected) in [(1, BOND), (2, BOND / 20)] {
        TestExt::new().execute_with(|| {
            let slash = convict(1);
            MockStake::bond(2, agent_of(2), Role::Provider, 40 * BOND);
            let of_other = [convict(2), convict(2)];
            of_other.into_iter().take(vetoed).for_each(veto);
            pass_unattended(DEFERRAL + 1);
            carry_out(slash);
            assert_eq!(lost(1), expected, "{vetoed} vetoed");
        });
    }
}

#[test]
fn an_offender_that_counts_twice_or_for_nothing_is_noticed() {
    let corruptions: [fn(&mut Vec<_>); 3] = [
        |convictions: &mut Vec<surety_pallet_trust_lock::ConvictionOf<Test>>| {
            convictions.push(convictions[0].clone());
        },
        |convictions| convictions[0].faults = 0,
        |convictions| convictions[0].last = convictions[0].first - 1,
    ];
    for corrupt in corruptions {
        TestExt::new().build().execute_with(|| {
            convict(1);
            assert_ok!(try_state());
            let mut convictions = Convictions::<Test>::get().into_inner();
            corrupt(&mut convictions);
            Convictions::<Test>::put(frame_support::BoundedVec::truncate_from(convictions));
            let noticed = try_state();
            assert!(
                matches!(noticed, Err(sp_runtime::DispatchError::Other(text)) if text.starts_with("TRUST-3")),
                "{noticed:?}"
            );
        });
    }
}
