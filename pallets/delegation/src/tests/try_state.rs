//! The checker notices each kind of damage.

use frame_support::{assert_err, assert_ok, traits::fungible::Mutate};
use sp_runtime::Perquintill;
use surety_types::traits::PoolLedger;

use crate::{
    Buckets, Delegators, Fund, Pending, Pools, StakeOf, Stakes, Totals, asset,
    mock::*,
    types::{PendingSlashes, Pool},
};

/// Does `damage` to a sound state of two pools with four delegators, slashes and rewards, and expects the
/// checker to say `complaint`.
#[track_caller]
fn damaged(damage: impl FnOnce(), complaint: &'static str) {
    let sound = TestExt::new().pool(1, 1_000).pool(2, 2_000);
    let sound = sound
        .delegation(3, 1, 300)
        .delegation(4, 1, 400)
        .delegation(5, 2, 500);
    sound.build().execute_with(|| {
        assert_ok!(Delegation::undelegate(signed(3), 1, 100));
        assert_ok!(Delegation::undelegate(signed(2), 2, 1_000));
        reward(1, 1_001);
        Delegation::note_pending(&1, Session::get());
        Delegation::slash(&1, Perquintill::from_rational(1u64, 7u64), Session::get());
        Delegation::note_pending(&2, Session::get());
        assert_ok!(Delegation::do_try_state());
        damage();
        assert_err!(Delegation::do_try_state(), complaint);
    });
}

fn edit(who: AccountId, change: impl FnOnce(&mut StakeOf<Test>)) {
    Stakes::<Test>::mutate(who, |stake| change(stake.as_mut().unwrap()));
}

fn edit_pool(operator: AccountId, change: impl FnOnce(&mut Pool)) {
    Pools::<Test>::mutate(operator, |pool| change(pool.as_mut().unwrap()));
}

fn edit_bucket(operator: AccountId, change: impl FnOnce(&mut Fund)) {
    Buckets::<Test>::mutate(operator, 1, |bucket| change(bucket.as_mut().unwrap()));
}

#[test]
fn pool_1_notices_a_hold_that_differs_from_what_is_recorded() {
    let complaint = "POOL-1: the hold differs from what is delegated and leaving";
    damaged(|| edit(3, |stake| stake.delegations[0].held += 1), complaint);
    damaged(|| edit(3, |stake| stake.leaving[0].held -= 1), complaint);
    damaged(|| assert_eq!(asset::burn::<Test>(&1, 1), 1), complaint);
    let leaked = || {
        assert_ok!(Balances::mint_into(&9, 300 + EXISTENTIAL_DEPOSIT));
        assert_ok!(asset::hold::<Test>(&9, 300));
    };
    damaged(leaked, complaint);
}

#[test]
fn pool_2_notices_lists_that_do_not_fit() {
    let reversed = |list: &mut crate::DelegatorList<Test>| {
        let first = list.remove(0);
        list.try_push(first).unwrap();
    };
    damaged(
        || Delegators::<Test>::mutate(1, reversed),
        "POOL-2: a list of delegators is empty or not sorted",
    );
    damaged(
        || Delegators::<Test>::insert(2, crate::DelegatorList::<Test>::default()),
        "POOL-2: a list of delegators is empty or not sorted",
    );
    let twice = |list: &mut crate::DelegatorList<Test>| list.try_insert(0, list[0]).unwrap();
    damaged(
        || Delegators::<Test>::mutate(1, twice),
        "POOL-2: a delegator is listed twice",
    );
    damaged(
        || Delegators::<Test>::mutate(1, |list| list[1].0 += 1),
        "POOL-2: a pool knows other shares of a delegation",
    );
    damaged(
        || edit_pool(1, |pool| pool.own_shares -= 1),
        "POOL-2: a pool knows other shares of a delegation",
    );
    damaged(
        || Delegators::<Test>::mutate(2, |list| list.try_push((501, 9)).unwrap()),
        "POOL-2: somebody is listed who has no stake",
    );
}

#[test]
fn pool_2_notices_stakes_that_cannot_be() {
    let complaint = "POOL-2: somebody has two of a kind";
    let twice = |stake: &mut StakeOf<Test>| {
        let again = stake.delegations[0].clone();
        stake.delegations[0].held = 0;
        stake.delegations.try_push(again).unwrap();
    };
    damaged(|| edit(4, twice), complaint);
    let twice = |stake: &mut StakeOf<Test>| {
        let again = stake.leaving[0].clone();
        stake.leaving[0].held = 0;
        stake.leaving.try_push(again).unwrap();
    };
    damaged(|| edit(3, twice), complaint);
    damaged(
        || Stakes::<Test>::insert(9, StakeOf::<Test>::default()),
        "POOL-2: somebody has nothing, or too much",
    );
    damaged(
        || edit(3, |stake| stake.leaving[0].shares = 0),
        "POOL-2: somebody has a stake without shares",
    );
    damaged(
        || Totals::<Test>::mutate(|totals| totals.led += 1),
        "POOL-2: pools are miscounted",
    );
}

#[test]
fn pool_3_notices_funds_that_are_not_their_holders() {
    damaged(
        || edit_pool(1, |pool| pool.fund.amount += 700),
        "POOL-3: a delegation is worth more than is on hold for it",
    );
    damaged(
        || edit_pool(1, |pool| pool.fund.shares += 1),
        "POOL-3: a pool is not what its delegators have",
    );
    damaged(
        || edit_bucket(1, |bucket| bucket.amount = 101),
        "POOL-3: a chunk is worth more than is on hold for it",
    );
    damaged(
        || edit_bucket(1, |bucket| bucket.shares += 1),
        "POOL-3: what left on a day is not what its chunks are",
    );
    damaged(
        || Buckets::<Test>::remove(1, 1),
        "POOL-3: somebody has shares of what is not there",
    );
    damaged(
        || {
            let empty = Fund::default();
            Buckets::<Test>::insert(1, 9, empty);
        },
        "POOL-3: what left on a day is not what its chunks are",
    );
}

#[test]
fn pool_4_notices_a_pot_that_is_not_what_is_promised() {
    let complaint = "POOL-4: what can be claimed is not what was shared";
    damaged(|| edit_pool(1, |pool| pool.carried += 1), complaint);
    damaged(|| edit_pool(1, |pool| pool.earned += 1), complaint);
    damaged(|| edit_pool(1, |pool| pool.per_share -= 1), complaint);
    damaged(
        || Totals::<Test>::mutate(|totals| totals.unclaimed -= 1),
        complaint,
    );
    damaged(
        || edit(4, |stake| stake.delegations[0].paid_to = u128::MAX),
        "POOL-4: a delegation was paid what was not earned yet",
    );
    damaged(
        || {
            assert_ok!(asset::pay::<Test>(&4, 1));
        },
        "POOL-4: the pot has less than can be claimed",
    );
}

#[test]
fn pool_5_notices_totals_that_do_not_add_up() {
    let complaint = "POOL-5: the totals differ from what they are of";
    damaged(|| Totals::<Test>::mutate(|totals| totals.held -= 1), complaint);
    damaged(|| Totals::<Test>::mutate(|totals| totals.backing += 1), complaint);
}

#[test]
fn pool_6_notices_slashes_that_cannot_wait() {
    let complaint = "POOL-6: slashes wait that are none, of no days or of too many";
    let edit = |change: fn(&mut PendingSlashes)| {
        Pending::<Test>::mutate(2, |pending| change(pending.as_mut().unwrap()));
    };
    damaged(|| edit(|pending| pending.count = 0), complaint);
    damaged(|| edit(|pending| pending.since = pending.until + 1), complaint);
}
