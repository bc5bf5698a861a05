//! More bidders than a task has places for, on a chain of real stake and real entropy.

use frame_support::{
    assert_ok,
    traits::{fungible::Mutate, tokens::Preservation::Preserve},
};
use sp_core::H256;
use sp_runtime::traits::Dispatchable;
use surety_pallet_task_auction::{BidCounts, Bids, Error, Rankings};
use surety_runtime::{AccountId, Balances, Runtime, RuntimeCall, RuntimeOrigin, Staking, units::SURE};
use surety_types::{limits::BIDS_MAX, stake::Role, task::TaskState, traits::StakeLedger};

use crate::{
    chain::account,
    market::{CLIENT, PROVIDERS, all_ok, device, open, post, spec, state},
};

/// The least that a stash may bond on a dev chain.
const LITTLE: u128 = 100 * SURE;

fn name(number: u32) -> (AccountId, AccountId) {
    let account = |sort: u8| {
        let mut bytes = [sort; 32];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        AccountId::from(bytes)
    };
    (account(100), account(200))
}

fn calls(who: &AccountId, call: impl Into<RuntimeCall>) {
    assert_ok!(call.into().dispatch(RuntimeOrigin::signed(who.clone())));
}

/// One of a crowd: a stash with as little as it can have, and everything that a bidder needs.
fn enter(number: u32) {
    use surety_pallet_staking::Call as Stake;
    let (stash, agent) = name(number);
    for of_crowd in [&stash, &agent] {
        let client = account(CLIENT);
        assert_ok!(Balances::transfer(&client, of_crowd, 2 * LITTLE, Preserve));
    }
    let (role, amount) = (Role::Provider, LITTLE);
    calls(&stash, Stake::bond { role, amount });
    calls(&stash, Stake::set_agent { agent: agent.clone() });
    calls(&agent, Stake::confirm_agent { stash });
    let register = surety_pallet_provider_registry::Call::register {
        device: device(),
        endpoints: spec(1).sources,
    };
    calls(&agent, register);
}

#[test]
fn a_crowd_of_cheap_stashes_that_came_first_keeps_no_provider_out_and_loses_nothing_by_being_displaced() {
    let mut chain = open();
    chain.query(|| (0..BIDS_MAX).for_each(enter));
    let task = post(&mut chain, 3);
    chain.query(|| {
        for number in 0..BIDS_MAX {
            let bid = surety_pallet_task_auction::Call::bid {
                task,
                seal: H256::zero(),
            };
            calls(&name(number).1, bid);
        }
    });
    let late = || PROVIDERS.map(|provider| provider.sealed(task)).to_vec();
    let undecided = Err(Error::<Runtime>::PlacesUndecided.into());
    assert_eq!(chain.block(late()), [undecided; 4]);
    all_ok(chain.block(late()));
    chain.query(|| {
        assert!(
            PROVIDERS
                .iter()
                .all(|provider| Bids::<Runtime>::contains_key(task, provider.account()))
        );
        assert_eq!(BidCounts::<Runtime>::get(task).placed, BIDS_MAX);
        assert_eq!(
            Rankings::<Runtime>::get(task).unwrap().places.len(),
            BIDS_MAX as usize
        );
        let displaced = (0..BIDS_MAX)
            .map(name)
            .filter(|(stash, _)| !Bids::<Runtime>::contains_key(task, stash));
        let free: Vec<_> = displaced
            .map(|(stash, _)| Staking::unlocked_stake(&stash))
            .collect();
        assert_eq!(free, [LITTLE; 4]);
    });
    chain.run_until(60, || matches!(state(task), TaskState::Revealing { .. }));
    all_ok(chain.block(PROVIDERS.map(|provider| provider.opened(task)).to_vec()));
}
