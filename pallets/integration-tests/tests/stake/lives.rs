//! Whatever is done in whatever order, all pallets stay sound and no planck comes from nowhere.

use frame_support::storage::with_storage_layer;
use proptest::prelude::*;
use sp_runtime::{DispatchResult, Permill};
use surety_pallet_trust_lock::Slashes;
use surety_types::stake::Role;

use crate::chain::*;

#[derive(Clone, Debug)]
enum Step {
    Open(AccountId, Balance),
    Delegate(AccountId, AccountId, Balance),
    Undelegate(AccountId, AccountId, Balance),
    Withdraw(AccountId),
    Claim(AccountId, AccountId),
    Settle(AccountId, AccountId),
    Bond(AccountId, Balance),
    Unbond(AccountId, Balance),
    Keys(AccountId),
    Validate(AccountId),
    Chill(AccountId),
    Absent(AccountId),
    Present,
    /// So many sessions after it happened.
    Report(AccountId, u32),
    Veto(u32),
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let who = || 1..=8u64;
    let operator = || 1..=5u64;
    let sure = || 1..20_000u128;
    let step = prop_oneof![
        2 => (who(), sure()).prop_map(|(who, amount)| Step::Open(who, amount)),
        4 => (who(), operator(), sure()).prop_map(|(who, to, amount)| Step::Delegate(who, to, amount)),
        4 => (who(), operator(), sure()).prop_map(|(who, of, amount)| Step::Undelegate(who, of, amount)),
        3 => who().prop_map(Step::Withdraw),
        2 => (who(), operator()).prop_map(|(who, of)| Step::Claim(who, of)),
        2 => (who(), operator()).prop_map(|(who, of)| Step::Settle(who, of)),
        2 => (who(), sure()).prop_map(|(who, amount)| Step::Bond(who, amount)),
        1 => (who(), sure()).prop_map(|(who, amount)| Step::Unbond(who, amount)),
        2 => operator().prop_map(Step::Keys),
        3 => operator().prop_map(Step::Validate),
        1 => operator().prop_map(Step::Chill),
        1 => operator().prop_map(Step::Absent),
        1 => Just(Step::Present),
        4 => (operator(), 0..DAY).prop_map(|(who, ago)| Step::Report(who, ago)),
        2 => (0..4u32).prop_map(Step::Veto),
        8 => (1..40u64).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 20..80)
}

fn try_call(call: impl FnOnce() -> DispatchResult) {
    // Refused calls are part of the game.
    let _refused = with_storage_layer(call);
}

fn take(step: Step) {
    match step {
        Step::Open(who, amount) => {
            try_call(|| Delegation::open(signed(who), amount * SURE, Permill::from_percent(5)));
        }
        Step::Delegate(who, to, amount) => try_call(|| Delegation::delegate(signed(who), to, amount * SURE)),
        Step::Undelegate(who, of, amount) => {
            let has = Delegation::stake(who)
                .map(|stake| stake.delegations)
                .unwrap_or_default();
            let worth = has
                .iter()
                .find(|one| one.operator == of)
                .map_or(0, |one| one.worth);
            // All of it, every other time.
            let amount = if amount % 2 == 0 {
                worth
            } else {
                worth.min(amount * SURE)
            };
            try_call(|| Delegation::undelegate(signed(who), of, amount));
        }
        Step::Withdraw(who) => {
            try_call(|| Delegation::withdraw(signed(who)));
            try_call(|| Staking::withdraw_unbonded(signed(who)));
        }
        Step::Claim(who, of) => try_call(|| Delegation::claim(signed(who), of)),
        Step::Settle(who, of) => {
            let settle = || {
                Delegation::settle(signed(30), who, of)
                    .map(|_| ())
                    .map_err(|refused| refused.error)
            };
            try_call(settle);
        }
        Step::Bond(who, amount) => try_call(|| Staking::bond(signed(who), Role::Provider, amount * SURE)),
        Step::Unbond(who, amount) => try_call(|| Staking::unbond(signed(who), amount * SURE)),
        Step::Keys(who) => try_call(|| Session::set_keys(signed(who), key(who), Vec::new())),
        Step::Validate(who) => try_call(|| Validators::validate(signed(who))),
        Step::Chill(who) => try_call(|| Validators::chill(signed(who))),
        Step::Absent(who) => Absent::set([who].into()),
        Step::Present => drop(Absent::take()),
        Step::Report(who, ago) => {
            // By whoever works now, whether or not it did then.
            let session = Session::current_index().saturating_sub(ago);
            let validators = Session::validators();
            if validators.contains(&who) {
                let _duplicate = report(who, session, session.into(), validators.len() as u32);
            }
        }
        Step::Veto(at) => {
            if let Some(slash) = Slashes::<Test>::iter_keys().nth(at as usize) {
                veto(slash);
            }
        }
        Step::Pass(blocks) => pass(blocks),
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::contextualize_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) }))]

    #[test]
    fn all_stay_sound_and_nobody_has_what_was_not_minted(steps in steps()) {
        on_chain(|| {
            for step in steps {
                take(step);
                sound();
            }
            // In the end all slashes are decided, and whoever wants to leave can.
            Absent::take();
            pass(DEFERRAL + JAIL + UNBONDING);
            assert_eq!(Slashes::<Test>::iter().count(), 0);
            for who in 1..=8 {
                for of in 1..=8 {
                    take(Step::Settle(who, of));
                    let has = Delegation::stake(who).map(|stake| stake.delegations).unwrap_or_default();
                    if let Some(one) = has.iter().find(|one| one.operator == of) {
                        frame_support::assert_ok!(Delegation::undelegate(signed(who), of, one.worth));
                    }
                }
            }
            pass(UNBONDING);
            for who in 1..=8 {
                take(Step::Withdraw(who));
                assert_eq!(Delegation::stake(who), None);
            }
            assert_eq!(backing(1), 0);
        });
    }
}
