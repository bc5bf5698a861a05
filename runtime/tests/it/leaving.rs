//! Stashes that leave, and what is remembered of them.

use frame_support::assert_ok;
use surety_pallet_staking::{Call as StakingCall, Ledgers};
use surety_pallet_trust_lock::Records;
use surety_runtime::{
    BlockNumber, Parameters, Runtime, RuntimeParameters, TrustLock,
    configs::stake::UNBONDING_MIN,
    params::dynamic::{staking, trust_lock},
};
use surety_types::traits::Jail;

use crate::{chain::Chain, market::*};

const UNBONDING: BlockNumber = UNBONDING_MIN;
const JAIL: BlockNumber = 60;

/// A chain that lets stake out before it lets anybody out of jail.
fn open_early() -> Chain {
    let mut chain = open();
    let unbonding = staking::Parameters::UnbondingPeriod(staking::UnbondingPeriod, Some(UNBONDING));
    let jail = trust_lock::Parameters::JailPeriod(trust_lock::JailPeriod, Some(JAIL));
    chain.query(|| {
        for parameter in [
            RuntimeParameters::Staking(unbonding),
            RuntimeParameters::TrustLock(jail),
        ] {
            assert_ok!(Parameters::set_parameter(
                frame_system::RawOrigin::Root.into(),
                parameter
            ));
        }
    });
    chain
}

#[test]
fn who_leaves_while_in_jail_is_remembered_until_that_is_over_and_then_forgotten() {
    let mut chain = open_early();
    let [leaver, stays, ..] = PROVIDERS;
    let (gone, there) = (leaver.account(), stays.account());
    chain.query(|| {
        TrustLock::jail(&gone, 0);
        TrustLock::jail(&there, 1);
    });
    chain.call(leaver.stash, StakingCall::unbond { amount: BOND });
    let until = chain.number() + UNBONDING + 1;
    chain.run_to(until);
    chain.call(leaver.stash, StakingCall::withdraw_unbonded {});
    assert!(!chain.query(|| Ledgers::<Runtime>::contains_key(&gone)));
    assert!(chain.query(|| TrustLock::is_jailed(&gone) && Records::<Runtime>::contains_key(&gone)));
    // The clock is a few blocks behind, and every record has its turn.
    chain.run_until(JAIL + 10, || !Records::<Runtime>::contains_key(&gone));
    assert!(chain.query(|| !TrustLock::is_jailed(&there) && Records::<Runtime>::contains_key(&there)));
}
