//! What a unit costs: the least price of a pool, and of each offer in it.

use super::*;
use crate::Offers;

fn price_of(model: ModelId) -> u128 {
    let pools = ChannelsPallet::pools();
    let pool = pools.iter().find(|pool| pool.model == model);
    pool.expect("somebody offers it").price
}

#[test]
fn a_full_pool_gets_dearer_by_an_eighth_a_period_up_to_its_ceiling_and_cheaper_when_it_is_idle() {
    run(|| {
        let own = FLOOR + FLOOR / 16;
        assert_ok!(offer(model(1), own, 10));
        // Until the next period begins, none is said to be taken.
        pass(PERIOD - 1);
        assert_ok!(report(model(1), 10));
        assert_eq!((price_of(model(1)), shown().unit_price), (FLOOR, own));
        pass(PERIOD);
        let dearer = FLOOR + FLOOR / 8;
        assert_eq!((price_of(model(1)), shown().unit_price), (dearer, dearer));
        // It is not there before somebody looks, and the same then.
        let stored = |number| {
            Pools::<Test>::get((model(number), GENERATE))
                .expect("offered")
                .price
        };
        assert_eq!(stored(1), FLOOR);
        assert_ok!(report(model(1), 10));
        assert_eq!(stored(1), dearer);
        let priced = Event::PoolPriced {
            model: model(1),
            operation: GENERATE,
            price: dearer,
        };
        System::assert_has_event(priced.into());
        pass(30 * PERIOD);
        assert_eq!(price_of(model(1)), FLOOR * u128::from(CEILING));
        assert_ok!(report(model(1), 0));
        pass(30 * PERIOD);
        assert_eq!((price_of(model(1)), shown().unit_price), (FLOOR, own));
        // What work is worth at least has risen.
        WorkPrice::set(2 * SECOND);
        assert_eq!(price_of(model(1)), 2 * FLOOR);
    });
}

#[test]
fn places_of_others_keep_the_price_down_and_each_weighs_as_much() {
    run(|| {
        let (other, others_agent) = another(0);
        assert_ok!(offer(model(1), FLOOR, 50));
        let theirs = ChannelsPallet::offer(signed(other), model(1), GENERATE, FLOOR, 50, None);
        assert_ok!(theirs);
        pass(PERIOD - 1);
        assert_ok!(report(model(1), 50));
        pass(PERIOD);
        // Half of all places are taken: as it should be.
        assert_eq!(price_of(model(1)), FLOOR);
        let busy = ChannelsPallet::report_busy(signed(others_agent), model(1), GENERATE, 25);
        assert_ok!(busy);
        pass(PERIOD);
        assert_eq!(price_of(model(1)), FLOOR + FLOOR / 16);
    });
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Offer(u8, u8, u32),
    Withdraw(u8, u8),
    Report(u8, u8, u32),
    Stand(u8, u128),
    Pass(u32),
    Work(u128),
}

fn step() -> impl Strategy<Value = Step> {
    let (who, model) = (0..3u8, 1..3u8);
    prop_oneof![
        (who.clone(), model.clone(), 0..60u32)
            .prop_map(|(who, model, places)| Step::Offer(who, model, places)),
        (who.clone(), model.clone()).prop_map(|(who, model)| Step::Withdraw(who, model)),
        (who.clone(), model, 0..60u32).prop_map(|(who, model, busy)| Step::Report(who, model, busy)),
        (who, 0..CAP).prop_map(|(who, cap)| Step::Stand(who, cap)),
        (1..25u32).prop_map(Step::Pass),
        (1..4u128).prop_map(|times| Step::Work(times * SECOND)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn prices_keep_their_bounds_and_everything_is_counted_in_any_order_of_calls(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        run(|| {
            let providers = [(stash(), agent()), another(0), another(1)];
            let stakes: Vec<_> = providers.iter().map(|(stash, _)| whole(stash)).collect();
            for step in steps {
                let who = |number: u8| providers[usize::from(number)].clone();
                // Refused or not.
                let _ = match step {
                    Step::Offer(number, of, places) => {
                        let (stash, price) = (signed(who(number).0), 4 * FLOOR);
                        ChannelsPallet::offer(stash, model(of), GENERATE, price, places, None)
                    }
                    Step::Withdraw(number, of) => {
                        ChannelsPallet::withdraw_offer(signed(who(number).0), model(of), GENERATE)
                    }
                    Step::Report(number, of, busy) => {
                        ChannelsPallet::report_busy(signed(who(number).1), model(of), GENERATE, busy)
                    }
                    Step::Stand(number, cap) => ChannelsPallet::stand(signed(who(number).0), LOCK, cap),
                    Step::Pass(blocks) => {
                        pass(blocks);
                        Ok(())
                    }
                    Step::Work(price) => {
                        WorkPrice::set(price);
                        Ok(())
                    }
                };
                check();
                let floor = WorkPrice::get() * 1_000 / u128::from(SPEED);
                for pool in ChannelsPallet::pools() {
                    assert!((floor..=floor * u128::from(CEILING)).contains(&pool.price));
                }
                for view in ChannelsPallet::offers() {
                    assert!(view.unit_price >= price_of(view.model).max(4 * FLOOR));
                }
            }
            // Nobody has paid anything for it.
            let left: Vec<_> = providers.iter().map(|(stash, _)| whole(stash)).collect();
            assert_eq!(left, stakes);
            for (number, (stash, _)) in providers.iter().enumerate() {
                let offers = Offers::<Test>::iter_prefix(stash).count();
                let counted = Standings::<Test>::get(stash).expect("stands").offers;
                assert_eq!(offers, counted as usize, "provider {number}");
            }
        });
    }
}
