//! The checker notices each kind of damage.

use frame_support::{assert_err, assert_ok, traits::fungible::Mutate};
use frame_system::{DecRefStatus, IncRefStatus};
use surety_types::stake::{Role, UnlockChunk};

use crate::{
    Agents, BondedInAll, Collateral, Collaterals, Config, HeldCollateral, LedgerOf, Ledgers, PendingAgents,
    asset, mock::*,
};

/// Does `damage` to a sound state of two providers, and expects the checker to say `complaint`.
#[track_caller]
fn damaged(damage: impl FnOnce(), complaint: &'static str) {
    let sound = TestExt::new()
        .provider(1, 300)
        .provider(2, 300)
        .agent(1, 11)
        .agent(2, 12)
        .owns(1, GOLD, 50);
    sound.build().execute_with(|| {
        assert_ok!(Staking::unbond(signed(1), 50));
        assert_ok!(Staking::do_try_state());
        damage();
        assert_err!(Staking::do_try_state(), complaint);
    });
}

fn edit(stash: AccountId, change: impl FnOnce(&mut LedgerOf<Test>)) {
    Ledgers::<Test>::mutate(stash, |ledger| change(ledger.as_mut().unwrap()));
}

#[test]
fn stake_1_notices_a_hold_that_differs_from_the_ledger() {
    let complaint = "STAKE-1: the hold differs from the ledger";
    damaged(|| edit(1, |ledger| ledger.bonded += 1), complaint);
    damaged(|| assert_eq!(asset::burn::<Test>(&1, 1), 1), complaint);
    damaged(|| edit(1, |ledger| ledger.unlocking[0].amount -= 1), complaint);
    // Of an account whose ledger is gone.
    let leaked = || {
        assert_ok!(Balances::mint_into(&3, 300 + EXISTENTIAL_DEPOSIT));
        assert_ok!(asset::hold::<Test>(&3, 300));
    };
    damaged(leaked, complaint);
}

#[test]
fn stake_2_notices_locked_stake_that_is_on_its_way_out() {
    damaged(
        || edit(1, |ledger| ledger.locked = 251),
        "STAKE-2: stake is on its way out that is locked",
    );
}

#[test]
fn stake_3_notices_empty_ledgers_and_chunks() {
    let empty = UnlockChunk {
        amount: 0,
        available_at: 9,
    };
    damaged(
        || edit(1, |ledger| ledger.unlocking.try_push(empty).unwrap()),
        "STAKE-3: a chunk is empty",
    );
    let nothing = || Ledgers::<Test>::insert(3, crate::ledger::new::<Test>(ledger(1).role));
    damaged(nothing, "STAKE-3: a ledger is empty");
}

#[test]
fn stake_4_notices_agents_that_do_not_match() {
    damaged(
        || Agents::<Test>::insert(13, 1),
        "STAKE-4: an agent is not named by its stash",
    );
    damaged(
        || Agents::<Test>::remove(11),
        "STAKE-4: a ledger names an agent that serves somebody else",
    );
}

#[test]
fn stake_5_notices_a_nomination_without_ledger() {
    damaged(
        || PendingAgents::<Test>::insert(3, 13),
        "STAKE-5: a nomination has no ledger",
    );
}

#[test]
fn stake_6_notices_a_sum_that_differs_from_its_ledgers() {
    let complaint = "STAKE-6: the sum of a role differs from its ledgers";
    damaged(
        || BondedInAll::<Test>::mutate(Role::Provider, |all| all.bonded -= 1),
        complaint,
    );
    damaged(
        || BondedInAll::<Test>::mutate(Role::Verifier, |all| all.stashes += 1),
        complaint,
    );
}

#[test]
fn stake_7_notices_an_agent_without_account() {
    damaged(
        || assert!(System::dec_sufficients(&11) == DecRefStatus::Reaped),
        "STAKE-7: an agent has no account",
    );
    damaged(
        || assert!(System::inc_sufficients(&11) == IncRefStatus::Existed),
        "STAKE-7: an account is kept for an agent that is none, or not for one that is",
    );
}

#[test]
fn stake_8_notices_who_backs_a_validator_beside() {
    damaged(
        || Delegators::set(vec![2]),
        "STAKE-8: a stash has stake behind a validator, too",
    );
}

#[test]
fn stake_9_notices_collateral_that_is_not_recorded_or_not_there() {
    let record = || {
        let (asset, amount) = (GOLD, 1);
        Collaterals::<Test>::insert(1, HeldCollateral { asset, amount });
    };
    damaged(
        record,
        "STAKE-9: the hold of another asset differs from what is recorded",
    );
    let hold = || {
        Required::set(Some((GOLD, 50)));
        assert_ok!(<Test as Config>::Collateral::hold(&GOLD, &1, 50));
    };
    damaged(hold, "STAKE-9: another asset is on hold, and nothing is recorded");
}
