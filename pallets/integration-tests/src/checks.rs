//! What is checked after every test.

use sp_runtime::TryRuntimeError;
use surety_pallet_test_kit::MockStake;

use crate::*;

/// Every invariant, and that everybody's locks are those of its rounds, audits and slashes.
pub fn check() {
    assert_eq!(try_state(), Ok(()));
    for stash in (1..=STASHES).chain(verifiers()) {
        let expected = locks_of(stash).min(MockStake::bonded(stash));
        assert_eq!(MockStake::locked(stash), expected, "locks of {stash}");
    }
}

/// Checks every invariant of the three pallets.
pub fn try_state() -> Result<(), TryRuntimeError> {
    TrustLock::do_try_state()?;
    Results::do_try_state()?;
    Disputes::do_try_state()
}

/// What is locked for a stash by what the pallets know.
pub fn locks_of(stash: AccountId) -> Balance {
    let of_rounds = Rounds::<Test>::iter_values().map(|round| {
        let members = round.members.iter().filter(|member| member.provider == stash);
        let audits = round.audits.iter().filter(|audit| audit.verifier == stash);
        members.map(|member| member.lock).sum::<Balance>() + audits.map(|audit| audit.bond).sum::<Balance>()
    });
    let of_slashes = Slashes::<Test>::iter_values().filter(|slash| slash.offender == stash);
    let funds = Committees::<Test>::iter_values().filter_map(|committee| committee.fund);
    let of_funds = funds.filter(|fund| fund.payer == stash && fund.is_stake);
    let for_members: Balance = of_funds.map(|fund| fund.left).sum();
    for_members + of_rounds.sum::<Balance>() + of_slashes.map(|slash| slash.lock).sum::<Balance>()
}
