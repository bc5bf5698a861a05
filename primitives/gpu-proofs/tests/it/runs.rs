//! What a run computes.

use proptest::prelude::*;
use sp_core::H256;
use surety_gpu_proofs::{
    Failure, Job, LAYERS_MIN, Memory, Place, Plan, ROW, Row, SAMPLES, draw, open, run, seed, tag,
};

use crate::support::{Cheat, Flaky, ROWS, gathered, honest, mask_key, processor};

#[test]
fn the_root_does_not_depend_on_threads_and_is_the_definitions() {
    let key = H256::repeat_byte(1);
    let by_definition = run(&mut Cheat::new(0, |_, _, _| {}), 96, &key, |_| false).unwrap();
    for threads in [1, 2, 3, 7] {
        let made = run(&mut processor(threads), 96, &key, |_| false).unwrap();
        assert_eq!(made.root(), by_definition.root(), "{threads} threads");
    }
}

/// What every device has to get.
#[test]
fn a_known_run_has_the_known_root() {
    let plan = Plan {
        rows: ROWS,
        layers: 10,
    };
    assert_eq!(honest().job().plan(), plan);
    assert_eq!(format!("{:?}", honest().root()), GOLDEN);
}

const GOLDEN: &str = "0xcedf59a539b3e17670916bb7837572ac457fa7763b42fe7a3d870e4c9809f70f";

#[test]
fn a_run_ends_when_there_is_no_more_time_but_not_before_it_is_mixed() {
    let layers = |until: u32| {
        let made = run(&mut processor(2), 32, &H256::zero(), |done| done < until).unwrap();
        made.job().plan().layers
    };
    assert_eq!(layers(0), LAYERS_MIN);
    assert_eq!(layers(LAYERS_MIN), LAYERS_MIN);
    assert_eq!(layers(LAYERS_MIN + 3), LAYERS_MIN + 3);
}

#[test]
fn no_run_has_rows_that_do_not_make_batches() {
    for rows in [0, 1, 31, 33, 100] {
        let refused = run(&mut processor(1), rows, &H256::zero(), |_| false);
        assert_eq!(refused.err(), Some(Failure::Plan), "{rows} rows");
    }
}

#[test]
fn a_device_that_errs_in_the_second_pass_shows_nothing() {
    let batches = LAYERS_MIN * 32;
    let mut flaky = Flaky {
        inner: processor(2),
        batches_left: batches + 5,
    };
    let made = run(&mut flaky, ROWS, &H256::zero(), |_| false).unwrap();
    let samples = draw(made.job().plan(), &H256::zero(), 0, &1u64);
    let differs = Failure::Differs(Place {
        layer: 1,
        row: 4 * ROWS / 32,
    });
    assert_eq!(open(&mut flaky, &made, &samples).err(), Some(differs));
}

/// States that collapse would need no memory, and states that look alike no products.
#[test]
fn cells_keep_looking_like_chance_however_many_layers_there_are() {
    let rows = 128;
    let plan = Plan { rows, layers: 24 };
    let job = Job::new(plan, &H256::repeat_byte(3));
    let mut memory = processor(2);
    memory.fill(&job).unwrap();
    for layer in 1..=plan.layers {
        for batch in 0..32 {
            memory.step(&job, layer, batch).unwrap();
        }
        let mut counts = [0u32; 256];
        for row in 0..rows {
            for cell in memory.row(row).unwrap() {
                counts[usize::from(cell as u8)] += 1;
            }
        }
        let expected = f64::from(rows) * ROW as f64 / 256.0;
        let chi_squared: f64 = counts
            .iter()
            .map(|count| (f64::from(*count) - expected).powi(2) / expected)
            .sum();
        // 255 degrees of freedom: seven standard deviations.
        assert!(chi_squared < 255.0 + 7.0 * 22.6, "layer {layer}: {chi_squared}");
    }
}

proptest! {
    #[test]
    fn parents_are_the_state_before_the_batch(layer in 1u32..100, row in 0u32..ROWS, key: [u8; 32]) {
        let job = Job::new(Plan { rows: ROWS, layers: 100 }, &H256(key));
        let batch = |row: u32| row / (ROWS / 32);
        for parent in job.parents(Place { layer, row }) {
            prop_assert!(parent.row < ROWS);
            let is_new = batch(parent.row) < batch(row);
            prop_assert_eq!(parent.layer, if is_new { layer } else { layer - 1 });
        }
    }

    #[test]
    fn nobody_has_the_run_or_samples_of_another(one: u64, other: u64, round: u32, entropy: [u8; 32]) {
        prop_assume!(one != other);
        let entropy = H256(entropy);
        let plan = Plan { rows: 1 << 20, layers: 50 };
        prop_assert_ne!(seed(&entropy, round, &one), seed(&entropy, round, &other));
        prop_assert_ne!(draw(plan, &entropy, round, &one), draw(plan, &entropy, round, &other));
        prop_assert_ne!(seed(&entropy, round, &one), seed(&entropy, round.wrapping_add(1), &one));
        for sample in draw(plan, &entropy, round, &one) {
            prop_assert!((1..=plan.layers).contains(&sample.place.layer) && sample.place.row < plan.rows);
            prop_assert!(sample.columns.iter().all(|column| *column < ROW as u32));
        }
    }
}

fn zeros(row: &Row) -> usize {
    row.iter().filter(|cell| **cell == 0).count()
}

proptest! {
    /// Otherwise zeros, or any row once, would do for a whole run.
    #[test]
    fn equal_parents_make_other_rows_at_other_places(
        one: (u8, u8),
        other: (u8, u8),
        cell: i8,
        key: [u8; 32],
    ) {
        prop_assume!(one != other);
        let job = Job::new(Plan { rows: 256, layers: 256 }, &H256(key));
        let row = [cell; ROW];
        let gathered = |(layer, row_number): (u8, u8)| {
            let place = Place { layer: layer.into(), row: row_number.into() };
            job.gather(place, [(&row, tag(&row)); 4])
        };
        let (one, other) = (gathered(one), gathered(other));
        let same = one.iter().zip(&other).filter(|(one, other)| one == other).count();
        // Once in 256 cells by chance; a sum of what is computed already has all of them.
        prop_assert!(same < 40 && zeros(&one) < 40 && zeros(&other) < 40, "{same}");
    }

    /// Otherwise a made-up row would save the computation of one that depends on it, too.
    #[test]
    fn no_parent_is_found_that_leaves_nothing_to_compute(key: [u8; 32], start: [u8; 32], which in 0usize..4) {
        let job = Job::new(Plan { rows: 64, layers: 8 }, &H256(key));
        let place = Place { layer: 3, row: 5 };
        let others = Job::new(job.plan(), &H256(start));
        let mut parents = [0, 1, 2, 3].map(|row| others.initial_row(row));
        for _ in 0..4 {
            // What would cancel all that is gathered, were the mask the same.
            let now = gathered(&job, place, parents.each_ref());
            let turn = mask_key(&job, place, parents.each_ref()).to_le_bytes()[which];
            for (k, gathered) in now.iter().enumerate() {
                parents[which][(k + 8 * usize::from(turn)) % ROW] ^= gathered;
            }
            let tagged = parents.each_ref().map(|row| (row, tag(row)));
            prop_assert!(zeros(&job.gather(place, tagged)) < 40);
        }
    }
}

/// Every row of every layer is drawn as often as any other.
#[test]
fn draws_favour_no_layer_and_no_batch() {
    let plan = Plan { rows: 320, layers: 8 };
    let (mut layers, mut batches) = ([0u32; 8], [0u32; 32]);
    let draws = 4_000u32;
    for round in 0..draws {
        for sample in draw(plan, &H256::repeat_byte(9), round, &5u64) {
            layers[sample.place.layer as usize - 1] += 1;
            batches[sample.place.row as usize / 10] += 1;
        }
    }
    let all = f64::from(draws) * SAMPLES as f64;
    for (counts, expected) in [(&layers[..], all / 8.0), (&batches[..], all / 32.0)] {
        let far = counts
            .iter()
            .any(|count| (f64::from(*count) - expected).abs() > 5.0 * expected.sqrt());
        assert!(!far, "{counts:?}");
    }
}
