//! What vests: staked and voted with from the first block, slashed like anything else, and spent later.

use frame_support::traits::{VestingSchedule, fungible::Inspect};
use pallet_vesting::VestingInfo;
use sp_keyring::Sr25519Keyring::{self, Alice, Bob, Ferdie, Two};
use sp_runtime::BuildStorage;
use surety_pallet_staking::{Call as Stake, Ledgers};
use surety_runtime::{
    Balance, Balances, BlockNumber, Runtime, RuntimeCall, Staking, System, Vesting,
    configs::{compute::TreasuryAccount, origins::Origin},
    units::SURE,
};
use surety_types::{stake::Role, traits::StakeLedger};

use crate::{
    chain::{Chain, account, genesis},
    market::impoverish,
    referenda::{dev, min_bond, propose_with, vote},
};

const GIVEN: Balance = 10_000 * SURE;

/// A dev chain on which somebody has nothing but what vests from a block on, and a little for fees.
fn vested(from: BlockNumber, blocks: u32) -> Chain {
    let mut chain = dev();
    impoverish(&mut chain, Two);
    let vest = pallet_vesting::Call::vested_transfer {
        target: account(Two).into(),
        schedule: VestingInfo::new(GIVEN, GIVEN / Balance::from(blocks), from),
    };
    chain.call(Alice, vest);
    chain.call(Alice, transfer(Two, SURE));
    chain
}

fn transfer(to: Sr25519Keyring, value: Balance) -> RuntimeCall {
    let dest = account(to).into();
    pallet_balances::Call::transfer_allow_death { dest, value }.into()
}

#[test]
fn what_vests_is_staked_votes_and_is_slashed_but_not_spent() {
    let mut chain = vested(1_000_000, 1_000);
    assert!(chain.try_call(Two, transfer(Bob, 2 * SURE)).is_err());
    let (role, amount) = (Role::Verifier, GIVEN);
    chain.call(Two, Stake::bond { role, amount });
    let poll = propose_with(&mut chain, Origin::ParameterAdmin.into(), min_bond(1), &[]);
    chain.call(Two, vote(poll, true, GIVEN));

    let total = |chain: &mut Chain| chain.query(|| Balances::total_balance(&account(Two)));
    let (before, slash) = (total(&mut chain), 1_000 * SURE);
    assert_eq!(
        chain.query(|| Staking::seize(&account(Two), 0, slash, &[])),
        slash
    );
    assert_eq!(total(&mut chain), before - slash);
    let ledger = chain.query(|| Ledgers::<Runtime>::get(account(Two)));
    assert_eq!(ledger.map(|ledger| ledger.bonded), Some(GIVEN - slash));
    chain.run_to(chain.number() + 1);
}

#[test]
fn what_has_vested_is_free_once_anybody_says_so() {
    let mut chain = vested(5, 10);
    chain.run_to(20);
    assert!(chain.try_call(Two, transfer(Bob, GIVEN)).is_err());
    let target = account(Two).into();
    chain.call(Ferdie, pallet_vesting::Call::vest_other { target });
    chain.call(Two, transfer(Bob, GIVEN));
}

/// A year in which nothing vests, then three in which all of it does.
#[test]
fn founders_have_a_tenth_of_the_cap_nothing_to_spend_in_the_first_year_and_everything_after_four() {
    const YEAR: BlockNumber = 15_778_800;
    let config = genesis("testnet");
    let (founder, ..) = config.vesting.vesting[0].clone();
    let storage = config.build_storage().unwrap();
    sp_io::TestExternalities::new(storage).execute_with(|| {
        let all = Balances::free_balance(&founder);
        assert_eq!(all, surety_pallet_emission::CAP / 10);
        let liquid = Balances::usable_balance(&founder);
        assert_eq!(liquid, 10 * SURE);
        let unvested = |block| {
            System::set_block_number(block);
            Vesting::vesting_balance(&founder)
        };
        assert_eq!(unvested(1), Some(all - liquid));
        assert_eq!(unvested(YEAR), Some(all - liquid));
        let half = unvested(YEAR + 3 * YEAR / 2).unwrap();
        assert!(half.abs_diff((all - liquid) / 2) < SURE);
        assert_eq!(unvested(4 * YEAR + 1), Some(0));

        // What it was shared out as is all there is: the rest is minted for work.
        assert_eq!(Balances::total_issuance(), surety_pallet_emission::genesis::ALL);
        let treasury = Balances::free_balance(TreasuryAccount::get());
        assert_eq!(treasury, surety_pallet_emission::genesis::TREASURY);
    });
}
