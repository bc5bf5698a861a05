//! Whatever happens in whatever order: nothing is minted beyond the cap, or beyond what stake has earned and
//! fees have paid for.

use frame_support::assert_ok;
use frame_system::RawOrigin;
use proptest::prelude::*;
use sp_runtime::Permill;
use surety_emission::{ALLOWANCE_BLOCKS, BLOCKS_PER_YEAR, CAP, SURE, TAPER};
use surety_types::{
    stake::Role,
    traits::{ServicePay, StakeLedger, WorkPay},
};

use crate::{Minted, mock::*};

const PROVIDERS: u64 = 3;
const OPERATORS: u64 = 3;

#[derive(Clone, Debug)]
enum Step {
    Bond(AccountId, Balance),
    Unbond(AccountId, Balance),
    Rebond(AccountId, Balance),
    Withdraw(AccountId),
    Slash(AccountId, Balance),
    Settle(AccountId, Balance),
    Serve(AccountId, u32, u64),
    EndDay,
    Burn(Balance),
    Pass(u64),
    SetShare(u32),
    SetMissed(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let who = || 1..=PROVIDERS;
    let amount = || 0..100_000 * SURE;
    let step = prop_oneof![
        3 => (who(), amount()).prop_map(|(who, amount)| Step::Bond(who, amount)),
        2 => (who(), amount()).prop_map(|(who, amount)| Step::Unbond(who, amount)),
        1 => (who(), amount()).prop_map(|(who, amount)| Step::Rebond(who, amount)),
        2 => who().prop_map(Step::Withdraw),
        1 => (who(), amount()).prop_map(|(who, amount)| Step::Slash(who, amount)),
        8 => (who(), prop_oneof![0..100u128, amount()]).prop_map(|(who, fee)| Step::Settle(who, fee)),
        4 => (11..=10 + OPERATORS, 0..30u32, 0..30u64).prop_map(|(of, made, of_them)| Step::Serve(of, made, of_them)),
        3 => Just(Step::EndDay),
        1 => amount().prop_map(Step::Burn),
        6 => prop_oneof![0..10u64, 0..40 * DAY].prop_map(Step::Pass),
        1 => (0..=100u32).prop_map(Step::SetShare),
        1 => (0..3u32).prop_map(Step::SetMissed),
    ];
    prop::collection::vec(step, 1..80)
}

/// What may have been paid, counted in another way: stake by the block, and fees.
#[derive(Default)]
struct Bounds {
    /// Bonded plancks times blocks, of all providers.
    stake_blocks: u128,
    /// What nine tenths of fees leave beside validators' part, at most half of each.
    fees: u128,
    /// What operators were owed.
    owed: u128,
}

/// Takes the step; refused calls are part of the game.
fn take(step: Step, bounds: &mut Bounds) {
    let origin = |who| RuntimeOrigin::from(RawOrigin::Signed(who));
    match step {
        Step::Bond(who, amount) => {
            let _refused = Staking::bond(origin(who), Role::Provider, amount);
        }
        Step::Unbond(who, amount) => {
            let _refused = Staking::unbond(origin(who), amount);
        }
        Step::Rebond(who, amount) => {
            let _refused = Staking::rebond(origin(who), amount);
        }
        Step::Withdraw(who) => {
            let _refused = Staking::withdraw_unbonded(origin(who));
        }
        Step::Slash(who, amount) => {
            Staking::slash(&who, amount);
        }
        Step::Settle(who, fee) => {
            Emission::note_settled(&who, fee);
            let share = ValidatorShare::get();
            let part = 900_000u32.saturating_sub(share.deconstruct()).min(500_000);
            bounds.fees += fee * u128::from(part) / 1_000_000;
        }
        Step::Serve(operator, made, expected) => {
            let owed = Emission::session_pay(200_000 * SURE) * 288;
            let before = Services::get(operator).map_or(0, |service| service.owed);
            serve(operator, made, expected, before + owed);
            bounds.owed += owed;
        }
        Step::EndDay => Emission::session_ended(287),
        Step::Burn(amount) => {
            let _refused = Balances::burn(origin(1_003), amount, true);
        }
        Step::Pass(blocks) => {
            let bonded = |who| Staking::bonded(&who, Role::Provider);
            let all: u128 = (1..=PROVIDERS).map(bonded).sum();
            bounds.stake_blocks += all * u128::from(blocks);
            pass_blocks(blocks);
        }
        Step::SetShare(percent) => ValidatorShare::set(Permill::from_percent(percent)),
        Step::SetMissed(missed) => MissedDeadlines::set(missed),
    }
}

/// So much may be minted at the beginning: plenty, or so little that the cap is met.
fn left() -> impl Strategy<Value = Balance> {
    prop_oneof![Just(2 * TAPER), 0..TAPER, 0..1_000 * SURE, 0..100u128]
}

proptest! {
    #![proptest_config(proptest::test_runner::contextualize_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) }))]

    #[test]
    fn nothing_is_minted_that_is_not_earned_and_nothing_beyond_the_cap(left in left(), steps in steps()) {
        let mut ext = TestExt::new();
        for who in 1..=PROVIDERS {
            ext = ext.endow(who, 250_000 * SURE);
        }
        for operator in 11..10 + OPERATORS {
            // The last one has no pool.
            ext = ext.pool(operator, 200_000 * SURE);
        }
        ext.all_but(left).execute_with(|| {
            let genesis = Minted::<Test>::get();
            let mut bounds = Bounds::default();
            let mut before = genesis;
            for step in steps {
                take(step, &mut bounds);
                assert_ok!(Emission::do_try_state());
                let minted = Minted::<Test>::get();
                assert!(before <= minted && minted <= CAP);
                before = minted;
                let by_stake = bounds.stake_blocks * 7 / (100 * u128::from(BLOCKS_PER_YEAR));
                assert!(minted - genesis <= by_stake.min(bounds.fees) + bounds.owed);
                assert_eq!(in_pot(POOLS), (11..10 + OPERATORS).map(rewards).sum::<Balance>());
                for who in 1..=PROVIDERS {
                    let most = Staking::bonded(&who, Role::Provider) * 7 * u128::from(ALLOWANCE_BLOCKS);
                    assert!(Emission::allowance(who) <= most / (100 * u128::from(BLOCKS_PER_YEAR)));
                }
            }
        });
    }
}
