//! What comes of parameters that change under a provider.

use sp_runtime::{DispatchResult, FixedU128};

use super::*;

fn offer(number: u8, places: u32) -> DispatchResult {
    ChannelsPallet::offer(
        signed(stash()),
        model(number),
        Operation::Generate,
        FLOOR,
        places,
        None,
    )
}

#[test]
fn whoever_has_lost_of_the_stake_behind_its_lock_sells_nothing_new_until_it_bonds_as_much() {
    use surety_types::{stake::Role, traits::StakeLedger};
    run(|| {
        assert_ok!(offer(1, 1));
        let channel = open(5 * SURE);
        let bonded = Staking::bonded(&stash(), Role::Provider);
        // For a task that it had something locked for, too.
        Staking::seize(&stash(), 0, bonded - LOCK + SURE, &[]);
        let expiry = ChannelsPallet::time() + 250;
        let open = || ChannelsPallet::open(signed(payer()), stash(), payer(), SURE, expiry);
        let top_up = || ChannelsPallet::top_up(signed(payer()), channel, SURE);
        assert_noop!(open(), Error::<Test>::NotCovered);
        assert_noop!(top_up(), Error::<Test>::NotCovered);
        let extend = || ChannelsPallet::extend(signed(payer()), channel, expiry);
        assert_noop!(extend(), Error::<Test>::NotCovered);
        let more = || ChannelsPallet::stand(signed(stash()), LOCK, CAP + 1);
        assert_noop!(more(), Error::<Test>::NotCovered);
        assert_noop!(offer(2, 1), Error::<Test>::NotCovered);
        assert!(ChannelsPallet::offers().is_empty());
        assert_ok!(Staking::bond(signed(stash()), Role::Provider, 10 * SURE));
        assert_ok!(open());
        assert_ok!(top_up());
        assert_ok!(extend());
        assert_eq!(ChannelsPallet::offers().len(), 1);
    });
}

#[test]
fn whoever_stands_by_old_terms_sells_nothing_new_until_it_locks_more() {
    run(|| {
        assert_ok!(offer(1, 1));
        let channel = open(5 * SURE);
        let levy = |nonce| {
            let before = free(&Pot::get());
            commit(&batch(channel, nonce, &[SURE]));
            free(&Pot::get()) - before
        };
        let first = levy(0);
        PointRate::set(FixedU128::from_u32(4));
        assert_eq!(levy(1), 4 * first, "the levy is the present one");
        // With so few points a lie is found so seldom that the lock would have to be larger.
        PointRate::set(FixedU128::from_rational(1, 15));
        let needed = ChannelsPallet::least_lock(CAP).expect("insurable");
        assert!(needed > LOCK);
        let standing = || ChannelsPallet::standing_view(&stash()).expect("stands");
        assert!(standing().has_old_terms() && standing().needed_lock == Some(needed));
        let old = || Error::<Test>::OldTerms;
        let expiry = ChannelsPallet::time() + 250;
        let open = || ChannelsPallet::open(signed(payer()), stash(), payer(), SURE, expiry);
        let top_up = || ChannelsPallet::top_up(signed(payer()), channel, SURE);
        let extend = || ChannelsPallet::extend(signed(payer()), channel, expiry);
        assert_noop!(open(), old());
        assert_noop!(top_up(), old());
        assert_noop!(extend(), old());
        assert_noop!(offer(2, 1), old());
        assert!(ChannelsPallet::offers().is_empty());
        // What was sold before is batched, and nothing keeps it from selling less.
        levy(2);
        assert_ok!(offer(1, 0));
        assert_ok!(ChannelsPallet::stand(signed(stash()), needed, CAP));
        assert!(!standing().has_old_terms());
        assert_ok!(open());
        assert_ok!(top_up());
        assert_ok!(extend());
        assert_eq!(ChannelsPallet::offers().len(), 1);
    });
}
