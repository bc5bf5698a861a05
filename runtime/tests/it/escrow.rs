//! What votes and what vests is not paid in advance: neither into escrow nor into a channel. It would be
//! somebody else's then, to vote again or to be spent.

use frame_support::{assert_ok, traits::fungible::Inspect};
use frame_system::RawOrigin;
use pallet_identity::{Data, legacy::IdentityInfo};
use pallet_vesting::VestingInfo;
use sp_keyring::Sr25519Keyring::{self, Alice, Bob, BobStash, DaveStash};
use sp_runtime::{DispatchError, TokenError};
use surety_pallet_channels::Call as Channel;
use surety_pallet_staking::Call as Stake;
use surety_runtime::{
    Balance, Balances, Billing, Channels, Parameters, Runtime, RuntimeCall, RuntimeParameters,
    configs::origins::Origin,
    params::dynamic::billing,
    units::{DAYS, EXISTENTIAL_DEPOSIT, SURE},
};
use surety_runtime_api::runtime_decl_for_channel_api::ChannelApi;
use surety_types::{stake::Role, task::Assignment, traits::Escrow};

use crate::{
    chain::{Chain, account},
    disputes::World,
    market::{self, CAP, CLIENT, impoverish},
    referenda::{min_bond, propose_with, vote},
    shop::{DEPOSIT, PROVIDER, Shop},
};

/// What a task takes: a quarter of the cap is locked beside it.
const TASK: Balance = CAP + CAP / 4;

const FROZEN: Result<(), DispatchError> = Err(DispatchError::Token(TokenError::Frozen));

fn post() -> RuntimeCall {
    let spec = market::spec(1);
    surety_pallet_task_auction::Call::post { spec, cap: CAP }.into()
}

fn bond(amount: Balance) -> RuntimeCall {
    let role = Role::Verifier;
    Stake::bond { role, amount }.into()
}

fn total(chain: &mut Chain, who: Sr25519Keyring) -> Balance {
    chain.query(|| Balances::total_balance(&account(who)))
}

/// Votes with all but `free` of what somebody has, staked or not.
fn vote_with_all_but(chain: &mut Chain, who: Sr25519Keyring, free: Balance) -> Balance {
    let poll = propose_with(chain, Origin::ParameterAdmin.into(), min_bond(1), &[]);
    let votes = total(chain, who) - free;
    chain.call(who, vote(poll, true, votes));
    votes
}

#[test]
fn what_a_vote_has_locked_is_put_into_no_escrow_whatever_is_on_hold_beside_it() {
    let mut chain = market::open();
    // More than that is on hold: the currency looks past a freeze by as much.
    chain.call(CLIENT, bond(400_000 * SURE));
    let votes = vote_with_all_but(&mut chain, CLIENT, 3 * TASK / 2);
    chain.call(CLIENT, post());
    assert_eq!(chain.try_call(CLIENT, post()), FROZEN);
    // Nor does it help to bond the rest.
    chain.call(CLIENT, bond(500_000 * SURE));
    assert_eq!(chain.try_call(CLIENT, post()), FROZEN);
    assert!(total(&mut chain, CLIENT) >= votes);
    let pot = chain.free(&Billing::pot());
    assert_eq!(pot, TASK + EXISTENTIAL_DEPOSIT);
}

#[test]
fn what_a_vote_has_locked_or_vests_is_deposited_in_no_channel() {
    let world = World::new();
    let mut shop = Shop::open(&world);
    let (channel, chain) = (shop.channel, &mut shop.chain);
    let expiry = chain.query(Runtime::time) + DAYS;
    let open = |by| Channel::open {
        payee: PROVIDER.account(),
        key: account(by),
        deposit: DEPOSIT,
        expiry,
    };
    let top_up = || Channel::top_up {
        channel,
        amount: DEPOSIT,
    };
    let before = chain.free(&Channels::pot());
    assert_eq!(before, DEPOSIT + EXISTENTIAL_DEPOSIT);
    chain.call(CLIENT, bond(400_000 * SURE));
    vote_with_all_but(chain, CLIENT, 3 * DEPOSIT / 2);
    chain.call(CLIENT, top_up());
    assert_eq!(chain.try_call(CLIENT, top_up()), FROZEN);
    assert_eq!(chain.try_call(CLIENT, open(CLIENT)), FROZEN);

    vests(chain, DaveStash);
    assert_eq!(chain.try_call(DaveStash, open(DaveStash)), FROZEN);
    assert_eq!(chain.free(&Channels::pot()), before + DEPOSIT);
}

/// Has somebody have nothing but what vests in a long while, and a little for fees.
fn vests(chain: &mut Chain, who: Sr25519Keyring) {
    const GIVEN: Balance = 10_000 * SURE;
    impoverish(chain, who);
    let vest = pallet_vesting::Call::vested_transfer {
        target: account(who).into(),
        schedule: VestingInfo::new(GIVEN, GIVEN / 1_000, 1_000_000),
    };
    chain.call(Alice, vest);
    let (dest, value) = (account(who).into(), SURE);
    chain.call(Alice, pallet_balances::Call::transfer_allow_death { dest, value });
}

#[test]
fn what_vests_is_put_into_no_escrow_though_it_can_be_staked() {
    let mut chain = market::open();
    vests(&mut chain, DaveStash);
    assert_eq!(chain.try_call(DaveStash, post()), FROZEN);
    chain.call(DaveStash, bond(5_000 * SURE));
    assert_eq!(chain.try_call(DaveStash, post()), FROZEN);
}

/// Reserves look past what is locked: what they are for must not be given away either.
#[test]
fn deposits_of_identities_go_back_to_who_made_them_and_to_nobody_else() {
    let mut chain = market::open();
    vests(&mut chain, DaveStash);
    let before = chain.free(&account(BobStash));
    let subs = vec![(account(BobStash), Data::None)];
    let info = Box::new(IdentityInfo::default());
    chain.call(DaveStash, pallet_identity::Call::set_identity { info });
    chain.call(DaveStash, pallet_identity::Call::set_subs { subs });
    let quit = pallet_identity::Call::quit_sub {};
    chain.call(BobStash, quit);
    assert!(
        chain.free(&account(BobStash)) < before,
        "whoever leaves gets nothing and pays a fee"
    );
    chain.call(DaveStash, pallet_identity::Call::clear_identity {});
    assert_eq!(chain.query(|| Balances::reserved_balance(account(DaveStash))), 0);
}

/// A cap is a maximum: what it is above the price is the client's.
#[test]
fn no_parameter_takes_the_change_of_tasks_that_were_posted_before_it_was_set() {
    use billing::{FeeMin, Parameters as Of};

    let mut chain = market::open();
    let task = market::post(&mut chain, 1);
    let settled = chain.query(|| {
        let parameter = RuntimeParameters::Billing(Of::FeeMin(FeeMin, Some(CAP)));
        assert_ok!(Parameters::set_parameter(RawOrigin::Root.into(), parameter));
        let (provider, price) = (account(Bob), SURE);
        Billing::settle(task, &[Assignment { provider, price }], &[])
    });
    let fee = SURE / 20;
    let settled = settled.map(|settled| (settled.fee, settled.refund));
    assert_eq!(settled, Ok((fee, CAP - SURE - fee)));
}

/// A pot is anybody's to give to, and its own alone to take from.
#[test]
fn nobody_freezes_or_empties_a_pot_by_what_they_give_it() {
    let mut chain = market::open();
    let task = market::post(&mut chain, 1);
    let gift = pallet_vesting::Call::vested_transfer {
        target: Billing::pot().into(),
        schedule: VestingInfo::new(1_000 * SURE, SURE, 1_000_000),
    };
    chain.call(BobStash, gift);
    let before = chain.free(&account(CLIENT));
    chain.call(CLIENT, surety_pallet_task_auction::Call::cancel { task });
    assert!(chain.free(&account(CLIENT)) > before + TASK - SURE);
    let left = chain.free(&Billing::pot());
    assert_eq!(left, 1_000 * SURE + EXISTENTIAL_DEPOSIT);
}
