//! Whatever is done in whatever order, no planck appears or vanishes, and nothing of any other asset.

use std::collections::BTreeMap;

use frame_support::assert_ok;
use proptest::prelude::*;
use surety_types::{stake::Role, traits::StakeLedger};

use crate::{Ledgers, mock::*};

const STASHES: u64 = 3;
const ENDOWMENT: Balance = 1_000;
/// What each has of each other asset.
const WEALTH: Balance = 300;
const ASSETS: [AssetId; 2] = [GOLD, SILVER];

#[derive(Clone, Debug)]
enum Step {
    Bond(Role, Balance),
    Unbond(Balance),
    Withdraw,
    Rebond(Balance),
    SetAgent(AccountId),
    ConfirmAgent(AccountId),
    RemoveAgent,
    Lock(Balance),
    Unlock(Balance),
    Slash(Balance),
    Seize(Balance, Balance),
    Require(Option<(AssetId, Balance)>),
    Pass(u64),
    SetMinBond(Balance),
    SetPeriod(u64),
}

fn steps() -> impl Strategy<Value = Vec<(AccountId, Step)>> {
    let amount = || 0..400u128;
    let agent = || 10..14u64;
    let role = prop_oneof![4 => Just(Role::Provider), 1 => Just(Role::Verifier)];
    let step = prop_oneof![
        4 => (role, amount()).prop_map(|(role, amount)| Step::Bond(role, amount)),
        4 => amount().prop_map(Step::Unbond),
        3 => Just(Step::Withdraw),
        2 => amount().prop_map(Step::Rebond),
        1 => agent().prop_map(Step::SetAgent),
        1 => agent().prop_map(Step::ConfirmAgent),
        1 => Just(Step::RemoveAgent),
        3 => amount().prop_map(Step::Lock),
        2 => amount().prop_map(Step::Unlock),
        2 => amount().prop_map(Step::Slash),
        1 => (amount(), amount()).prop_map(|(locked, more)| Step::Seize(locked, more)),
        2 => prop::option::weighted(0.8, (GOLD..=SILVER, 0..200u128)).prop_map(Step::Require),
        3 => (1..8u64).prop_map(Step::Pass),
        1 => (1..200u128).prop_map(Step::SetMinBond),
        1 => (0..12u64).prop_map(Step::SetPeriod),
    ];
    prop::collection::vec((1..=STASHES, step), 1..80)
}

/// Takes the step; refused calls are part of the game. Returns what was slashed.
fn take(stash: AccountId, step: Step) -> Balance {
    let origin = signed(stash);
    let _refused = match step {
        Step::Bond(role, amount) => Staking::bond(origin, role, amount),
        Step::Unbond(amount) => Staking::unbond(origin, amount),
        Step::Withdraw => Staking::withdraw_unbonded(origin),
        Step::Rebond(amount) => Staking::rebond(origin, amount),
        Step::SetAgent(agent) => Staking::set_agent(origin, agent),
        Step::ConfirmAgent(agent) => Staking::confirm_agent(signed(agent), stash),
        Step::RemoveAgent => Staking::remove_agent(origin),
        Step::Lock(amount) => Staking::lock(&stash, amount),
        Step::Unlock(amount) => {
            Staking::unlock(&stash, amount);
            Ok(())
        }
        Step::Slash(amount) => {
            let slashed = Staking::slash(&stash, amount);
            assert!(slashed <= amount);
            return slashed;
        }
        Step::Seize(locked, more) => return Staking::seize(&stash, locked, more, &[]),
        Step::Require(terms) => {
            Required::set(terms);
            Ok(())
        }
        Step::Pass(blocks) => {
            pass_blocks(blocks);
            Ok(())
        }
        Step::SetMinBond(amount) => {
            MinBond::set(amount);
            Ok(())
        }
        Step::SetPeriod(blocks) => {
            UnbondingPeriod::set(blocks);
            Ok(())
        }
    };
    0
}

proptest! {
    #![proptest_config(proptest::test_runner::contextualize_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) }))]

    #[test]
    fn money_is_conserved_in_every_sequence_of_steps(steps in steps()) {
        let everybody = (1..=STASHES).fold(TestExt::new(), |ext, stash| {
            ASSETS.iter().fold(ext.endow(stash, ENDOWMENT), |ext, asset| ext.owns(stash, *asset, WEALTH))
        });
        everybody.execute_with(|| {
            let issued = Balances::total_issuance();
            let mut burned = [0; STASHES as usize + 1];
            let mut lost = BTreeMap::new();
            for (stash, step) in steps {
                let (stake, collateral_of) = (Staking::stake(&stash), Staking::collateral(stash));
                let slashed = take(stash, step);
                burned[stash as usize] += slashed;
                if let Some(held) = collateral_of.filter(|_| slashed > 0) {
                    let part = (held.amount * slashed).div_ceil(stake);
                    *lost.entry((held.asset, stash)).or_insert(0) += part;
                }
                assert_ok!(Staking::do_try_state());
                for stash in 1..=STASHES {
                    let left = ENDOWMENT - burned[stash as usize];
                    assert_eq!(held(stash) + spendable(stash), left);
                    // STAKE-1 says this for stashes with a ledger.
                    assert!(held(stash) == 0 || Ledgers::<Test>::contains_key(stash));
                    for asset in ASSETS {
                        let (on_hold, free) = collateral(stash, asset);
                        let left = WEALTH - lost.get(&(asset, stash)).unwrap_or(&0);
                        assert_eq!(on_hold + free, left);
                        assert!(on_hold == 0 || Ledgers::<Test>::contains_key(stash));
                    }
                }
                for asset in ASSETS {
                    let of_asset = lost.iter().filter(|((of, _), _)| *of == asset);
                    let all = Balance::from(STASHES) * (WEALTH + ASSET_MINIMUM);
                    let gone: Balance = of_asset.map(|(_, part)| part).sum();
                    assert_eq!(Assets::total_supply(asset), all - gone);
                }
                assert_eq!(Balances::total_issuance(), issued - burned.iter().sum::<Balance>());
            }
        });
    }

    #[test]
    fn whoever_leaves_gets_back_all_that_was_not_slashed(
        bonded in MINIMUM..ENDOWMENT,
        locked in 0..ENDOWMENT,
        slashed in 0..ENDOWMENT,
    ) {
        TestExt::new().provider(1, bonded).execute_with(|| {
            let locked = locked.min(bonded);
            assert_ok!(Staking::lock(&1, locked));
            let slashed = Staking::slash(&1, slashed);
            Staking::unlock(&1, locked);
            if slashed < bonded {
                assert_ok!(Staking::unbond(signed(1), bonded - slashed));
                pass_blocks(PERIOD);
                assert_ok!(Staking::withdraw_unbonded(signed(1)));
            }
            assert_eq!((held(1), spendable(1)), (0, bonded - slashed));
            assert!(!Ledgers::<Test>::contains_key(1));
        });
    }
}
