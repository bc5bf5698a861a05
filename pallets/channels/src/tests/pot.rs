//! Where deposits are.

use frame_support::traits::{LockableCurrency, WithdrawReasons, fungible::Mutate};
use sp_runtime::TokenError;

use super::{
    demands::{committed, demand_receipt, end_as_withheld, receipt, show_receipt},
    *,
};

fn try_open(deposit: u128) -> sp_runtime::DispatchResult {
    ChannelsPallet::open(signed(payer()), stash(), payer(), deposit, 200)
}

fn leave(who: AccountId32) {
    assert_ok!(Balances::transfer_all(signed(who), reporter(), false));
}

/// As votes and vesting do.
fn freeze(amount: u128) {
    Balances::set_lock(*b"pyconvot", &payer(), amount, WithdrawReasons::all());
}

#[test]
fn what_is_frozen_is_not_deposited() {
    run(|| {
        freeze(START - 2 * SURE);
        assert_noop!(try_open(2 * SURE + 1), TokenError::Frozen);
        assert_ok!(try_open(SURE));
        let top_up = |amount| ChannelsPallet::top_up(signed(payer()), 0, amount);
        assert_noop!(top_up(SURE + 1), TokenError::Frozen);
        assert_ok!(top_up(SURE));
        assert_eq!((whole(&payer()), in_pot()), (START - 2 * SURE, 2 * SURE));
        // What comes back is as free as it was.
        assert_ok!(ChannelsPallet::close_agreed(signed(agent()), 0));
        assert_ok!(try_open(2 * SURE - MinDeposit::get()));
    });
}

#[test]
fn a_deposit_leaves_its_payer_an_account() {
    run(|| {
        assert_noop!(try_open(START), TokenError::NotExpendable);
        assert_ok!(try_open(START - ExistentialDeposit::get()));
        assert_eq!(free(&payer()), ExistentialDeposit::get());
    });
}

#[test]
fn a_channel_outlives_its_payers_account_and_ends_all_the_same() {
    run(|| {
        let (channel, other) = (open(5 * SURE), open(5 * SURE));
        let less_than_an_account = ExistentialDeposit::get() - 1;
        let price = 5 * SURE - less_than_an_account;
        let made = batch(channel, 0, &[price]);
        let batches = [(commit(&made), made)];
        pass(WINDOW + 1);
        leave(payer());
        assert!(!System::account_exists(&payer()));
        redeem_and_wait(channel, price, &batches);
        let issued = Balances::total_issuance();
        assert_ok!(ChannelsPallet::close_agreed(signed(agent()), channel));
        pass(CLOSING + 3);
        assert_eq!(issued - Balances::total_issuance(), less_than_an_account);
        let mut refunds = System::events()
            .into_iter()
            .filter_map(|record| match record.event {
                RuntimeEvent::ChannelsPallet(crate::Event::Ended { refund, .. }) => Some(refund),
                _ => None,
            });
        assert_eq!(refunds.next_back(), Some(0));
        // More than that opens one.
        assert_ok!(ChannelsPallet::close_agreed(signed(agent()), other));
        let kept = MinDeposit::get();
        assert_eq!((free(&payer()), in_pot()), (5 * SURE - kept, kept));
        pass(CLOSING + 3);
        assert_eq!((free(&payer()), in_pot()), (5 * SURE, 0));
        assert_eq!(Channels::<Test>::iter().count(), 0);
    });
}

#[test]
fn a_pot_that_lacks_the_price_of_a_demand_stops_neither_showing_nor_convicting() {
    run(|| {
        let channel = open(5 * SURE);
        assert_ok!(demand_receipt(payer(), receipt(channel, 0, true)));
        let whole = receipt(channel, 0, true);
        let made = committed(std::slice::from_ref(&whole));
        leave(ChannelsPallet::pot());
        assert_ok!(show_receipt(&made, &whole));
        assert!(Demands::<Test>::iter().next().is_none());

        assert_ok!(demand_receipt(payer(), receipt(channel, 1, true)));
        leave(ChannelsPallet::pot());
        pass(SUPPLY + 1);
        end_as_withheld(payer());
        assert_eq!(
            Standings::<Test>::get(stash()).map(|stands| stands.demands),
            Some(0)
        );
        // As it was before somebody took it.
        let all = 5 * SURE + ExistentialDeposit::get();
        assert_ok!(Balances::mint_into(&ChannelsPallet::pot(), all));
    });
}
