//! What is believed of what is shown.

use std::{collections::BTreeMap, sync::OnceLock};

use proptest::{prelude::*, sample::Index};
use sp_core::H256;
use surety_gpu_proofs::{
    BATCHES, Fault, Job, Memory, Opening, Openings, PARENTS, Plan, SAMPLES, Sample, draw, open, run, seed,
    verify, verify_all,
};
use surety_proofs::{Proof, merkle_root};

use crate::support::{Cheat, Counting, ROWS, honest, processor};

/// What is shown of the honest run for some samples.
fn shown() -> &'static ([Sample; SAMPLES], Openings) {
    static SHOWN: OnceLock<([Sample; SAMPLES], Openings)> = OnceLock::new();
    SHOWN.get_or_init(|| {
        let samples = draw(honest().job().plan(), &H256::repeat_byte(2), 5, &4u64);
        let openings = open(&mut processor(2), honest(), &samples).unwrap();
        (samples, openings)
    })
}

/// The sample of one opening, which has a parent that is shown.
fn one_of(index: Index) -> (Sample, Opening) {
    let (samples, openings) = shown();
    let with_parents: Vec<_> = samples
        .iter()
        .zip(openings)
        .filter(|(_, opening)| opening.parents.len() > 1)
        .collect();
    let (sample, opening) = with_parents[index.index(with_parents.len())];
    (*sample, opening.clone())
}

fn verdict(sample: &Sample, opening: &Opening) -> Result<(), Fault> {
    verify(honest().job(), honest().root(), sample, opening)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_opening_of_a_true_run_is_believed(
        batch_rows in 1u32..4,
        more in 0u32..4,
        entropy: [u8; 32],
        round: u32,
        provider: u64,
    ) {
        let rows = batch_rows * BATCHES;
        let key = seed(&H256(entropy), round, &provider);
        let made = run(&mut processor(2), rows, &key, |done| done < 8 + more).unwrap();
        let samples = draw(made.job().plan(), &H256(entropy), round, &provider);
        let openings = open(&mut processor(1), &made, &samples).unwrap();
        let job = Job::new(Plan { rows, layers: 8 + more }, &key);
        prop_assert_eq!(verify_all(&job, made.root(), &samples, &openings), Ok(()));
    }
}

proptest! {
    #[test]
    fn no_other_bytes_are_believed(
        index: Index,
        which in 0usize..=PARENTS,
        byte in 0usize..1024,
        bit in 0u32..8,
    ) {
        let (sample, mut opening) = one_of(index);
        let shown = opening.parents.len();
        let row = if which < shown { &mut opening.parents[which] } else { &mut opening.row };
        row.bytes[byte] ^= 1 << bit;
        prop_assert_eq!(verdict(&sample, &opening), Err(Fault::Row));
    }

    #[test]
    fn no_other_place_is_believed(index: Index, layer in 1u32..=10, row in 0u32..ROWS) {
        let (mut sample, opening) = one_of(index);
        prop_assume!((sample.place.layer, sample.place.row) != (layer, row));
        (sample.place.layer, sample.place.row) = (layer, row);
        prop_assert_eq!(verdict(&sample, &opening), Err(Fault::Row));
    }

    #[test]
    fn no_other_proof_is_believed(index: Index, sibling: Index, in_run: bool, bit in 0u32..8) {
        let (sample, mut opening) = one_of(index);
        let proof = if in_run { &mut opening.row.in_run } else { &mut opening.row.in_batch };
        let place = sibling.index(proof.0.len());
        proof.0[place].0[0] ^= 1 << bit;
        prop_assert_eq!(verdict(&sample, &opening), Err(Fault::Row));
    }

    #[test]
    fn no_other_run_is_believed(index: Index, key: [u8; 32]) {
        let (sample, opening) = one_of(index);
        let (plan, root) = (honest().job().plan(), honest().root());
        let other = Job::new(plan, &H256(key));
        prop_assert!(verify(&other, root, &sample, &opening).is_err());
        prop_assert_eq!(
            verify(honest().job(), &H256(key), &sample, &opening),
            Err(Fault::Row)
        );
    }

    #[test]
    fn whatever_the_size_that_is_claimed_nothing_panics(index: Index, rows: u32, layers: u32) {
        let (sample, opening) = one_of(index);
        let plan = Plan { rows, layers };
        prop_assume!(plan != honest().job().plan());
        let job = Job::new(plan, &H256::repeat_byte(7));
        prop_assert!(verify(&job, honest().root(), &sample, &opening).is_err());
        let samples = draw(plan, &H256::zero(), 0, &0u64);
        prop_assert!(verify_all(&job, honest().root(), &samples, &shown().1).is_err());
    }
}

#[test]
fn parents_are_shown_in_their_order_all_of_them_and_no_more() {
    let (samples, openings) = shown();
    let full = samples
        .iter()
        .zip(openings)
        .find(|(_, opening)| opening.parents.len() == PARENTS);
    let (sample, opening) = full.unwrap();
    assert_eq!(verdict(sample, opening), Ok(()));

    let mut swapped = opening.clone();
    swapped.parents[..].swap(0, 1);
    assert_eq!(verdict(sample, &swapped), Err(Fault::Row));

    let mut fewer = opening.clone();
    fewer.parents.pop();
    assert_eq!(verdict(sample, &fewer), Err(Fault::Count));

    // A row of the first layer has parents that everybody can generate.
    let first = samples
        .iter()
        .zip(openings)
        .find(|(_, opening)| opening.parents.len() < PARENTS);
    let (sample, opening) = first.unwrap();
    let mut more = opening.clone();
    more.parents.try_push(opening.row.clone()).unwrap();
    assert_eq!(verdict(sample, &more), Err(Fault::Count));
}

#[test]
fn all_samples_are_shown_in_their_order() {
    let (samples, openings) = shown();
    let all = |openings: &Openings| verify_all(honest().job(), honest().root(), samples, openings);
    assert_eq!(all(openings), Ok(()));
    let mut fewer = openings.clone();
    fewer.pop();
    assert_eq!(all(&fewer), Err(Fault::Count));
    let mut swapped = openings.clone();
    swapped[..].swap(0, 1);
    assert_eq!(all(&swapped), Err(Fault::Row));
}

/// A tree of a large batch takes a processor as long as a device takes for the batch.
#[test]
fn there_is_one_tree_for_each_batch_of_which_something_is_shown() {
    let (samples, openings) = shown();
    let job = honest().job();
    let mut wanted = BTreeMap::<_, usize>::new();
    for sample in samples {
        let parents = job.parents(sample.place);
        for place in parents.into_iter().chain([sample.place]) {
            if place.layer > 0 {
                *wanted
                    .entry((place.layer, place.row / (ROWS / BATCHES)))
                    .or_default() += 1;
            }
        }
    }
    let mut memory = Counting::new(processor(2));
    assert_eq!(&open(&mut memory, honest(), samples).unwrap(), openings);
    assert_eq!(memory.proofs, wanted.into_values().collect::<Vec<_>>());
    assert_eq!(memory.digests, 0, "no other tree is made of them");
    // As a device shows it that gives digests alone.
    let mut memory = Cheat::new(0, |_, _, _| {});
    assert_eq!(&open(&mut memory, honest(), samples).unwrap(), openings);
}

#[test]
fn a_batch_has_the_proofs_of_the_definition_and_none_of_rows_that_it_has_not() {
    let job = Job::new(
        Plan {
            rows: 3 * BATCHES,
            layers: 8,
        },
        &H256::zero(),
    );
    let mut memory: Box<dyn Memory<Error = _>> = Box::new(processor(2));
    memory.fill(&job).unwrap();
    let root = memory.step(&job, 1, 4).unwrap();
    let digests = memory.digests().unwrap();
    assert_eq!(merkle_root(digests.iter().copied()), root);
    let expected = [2, 0, 2].map(|row| Proof::new(&digests, row).unwrap());
    assert_eq!(memory.proofs(&[2, 3, 0, u32::MAX, 2]).unwrap(), expected);
    assert!(memory.proofs(&[]).unwrap().is_empty());
}
