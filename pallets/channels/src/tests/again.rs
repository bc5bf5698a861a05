//! What it costs to demand receipts of a channel again and again.

use super::{
    demands::{committed, demand_receipt, end_as_withheld, receipt, show_receipt},
    *,
};
use crate::DEMANDS_MAX;

#[test]
fn whoever_demands_the_same_again_and_again_pays_more_each_time_and_whoever_shows_it_has_that() {
    run(|| {
        let channel = open(5 * SURE);
        let one = receipt(channel, 0, true);
        let made = committed(std::slice::from_ref(&one));
        let (price, mut borne) = (DemandPrice::get(), DemandPrice::get() / 2);
        for _ in 0..6 {
            let (paid, had) = (free(&payer()), free(&stash()));
            assert_ok!(demand_receipt(payer(), one.clone()));
            assert_ok!(show_receipt(&made, &one));
            assert_eq!((paid - free(&payer()), free(&stash()) - had), (borne, borne));
            borne += price;
        }
        assert_eq!(held(), 5 * SURE);
    });
}

#[test]
fn as_many_of_a_channel_as_may_be_demanded_at_once_cost_the_least_and_the_next_one_twice_that() {
    run(|| {
        let channel = open(5 * SURE);
        let (before, price) = (free(&payer()), DemandPrice::get());
        for nonce in 0..DEMANDS_MAX {
            assert_ok!(demand_receipt(payer(), receipt(channel, nonce, true)));
        }
        assert_eq!(before - free(&payer()), u128::from(DEMANDS_MAX) * price);
        let first = receipt(channel, 0, true);
        let made = committed(std::slice::from_ref(&first));
        assert_ok!(show_receipt(&made, &first));
        let left = free(&payer());
        assert_ok!(demand_receipt(payer(), receipt(channel, DEMANDS_MAX, true)));
        assert_eq!(left - free(&payer()), 2 * price);
        // All of it comes back where nothing is shown.
        pass(SUPPLY + 1);
        end_as_withheld(payer());
        assert_eq!(free(&payer()), before - price / 2 + LOCK / 5);
    });
}

#[test]
fn what_was_demanded_of_one_channel_makes_no_other_dearer() {
    run(|| {
        let (channel, other) = (open(5 * SURE), open(5 * SURE));
        let one = receipt(channel, 0, true);
        let made = committed(std::slice::from_ref(&one));
        for _ in 0..3 {
            assert_ok!(demand_receipt(payer(), one.clone()));
            assert_ok!(show_receipt(&made, &one));
        }
        let before = free(&payer());
        assert_ok!(demand_receipt(payer(), receipt(other, 0, true)));
        assert_eq!(before - free(&payer()), DemandPrice::get());
    });
}
