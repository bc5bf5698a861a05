//! Points on a batch's price find what is wrong in it, wherever a provider has put it.

use super::*;
use sp_arithmetic::FixedU128;
use surety_audit_economics::{drawn_points, points_mean};

const SURE: u128 = surety_audit_economics::SURE;

#[test]
fn a_verifier_has_room_to_seal_as_many_points_as_it_can_draw() {
    assert_eq!(POINTS_MAX, surety_audit_economics::POINTS_MAX);
}

#[test]
fn every_point_of_a_draw_names_a_receipt_that_can_be_opened() {
    let channels: Vec<_> = (0u64..20)
        .map(|channel| (channel, 3, vec![u128::from(channel) * SURE / 7; 9]))
        .collect();
    let batch = Batch::new(&entries(&channels)).unwrap();
    let (root, mean) = (batch.root(), FixedU128::from_u32(16));
    for number in 0u32..100 {
        for point in drawn_points(&blake2_256(&number.to_le_bytes()), root.sums.price, mean) {
            let shown = batch.leaf_at(point).unwrap().verify(&root).unwrap();
            assert!(shown.offset(point).is_some() && shown.price > 0);
        }
    }
}

#[test]
fn one_wrong_receipt_is_found_as_often_wherever_it_stands() {
    // It costs a tenth of a SURE, at 5 points per SURE: missed with exp(-1/2).
    let (price, points) = (SURE / 10, FixedU128::from_u32(5));
    for wrong in [0, 17, 39] {
        let batch = Batch::new(&entries(&[(1, 0, vec![price; 15]), (2, 0, vec![price; 25])])).unwrap();
        let root = batch.root();
        let target = if wrong < 15 { (1, wrong) } else { (2, wrong - 15) };
        let mean = points_mean(points, root.sums.price, 1, 2);
        let trials = 4_000u32;
        let missed = (0..trials).filter(|trial| {
            (0..2u8).all(|verifier| {
                let output = blake2_256(&[&trial.to_le_bytes()[..], &[verifier]].concat());
                let points = drawn_points(&output, root.sums.price, mean);
                points.iter().all(|point| {
                    let shown = batch.leaf_at(*point).unwrap().verify(&root).unwrap();
                    (shown.channel, shown.nonce) != target
                })
            })
        });
        let share = missed.count() as f64 / f64::from(trials);
        // A deviation of 0.0077: five of them.
        assert!((share - (-0.5f64).exp()).abs() < 0.039, "{wrong}: {share}");
    }
}
