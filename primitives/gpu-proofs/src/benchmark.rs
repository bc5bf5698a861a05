//! Openings that are right in a run of any size, without making it: what is not shown is left empty.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "places in a run whose size was checked"
)]

extern crate alloc;

use alloc::{collections::BTreeMap, vec::Vec};

use sp_core::H256;
use surety_proofs::{Proof, leaf_hash, node_hash};

use crate::{BATCHES, Job, Opening, Openings, Place, ROW, Row, SAMPLES, Sample, ShownRow, job::tag};

/// What commits to a run of which these samples are right, and what shows them.
pub fn for_benchmark(job: &Job, samples: &[Sample; SAMPLES]) -> (H256, Openings) {
    // Parents come before their children.
    let mut sorted: Vec<&Sample> = samples.iter().collect();
    sorted.sort_by_key(|sample| sample.place);
    let mut rows: BTreeMap<Place, Row> = BTreeMap::new();
    for sample in sorted {
        let parents = job.parents(sample.place).map(|place| {
            let row = match place.layer {
                0 => job.initial_row(place.row),
                _ => rows.get(&place).copied().unwrap_or([0; ROW]),
            };
            (row, tag(&row))
        });
        let parents = parents.each_ref().map(|(row, tag)| (row, *tag));
        let gathered = job.gather(sample.place, parents);
        let row = rows.entry(sample.place).or_insert([0; ROW]);
        for column in sample.columns {
            if let Some(cell) = row.get_mut(column as usize) {
                *cell = job.cell(&gathered, column);
            }
        }
    }
    shown(job, samples, &rows, [0; ROW])
}

/// What commits to a run of these rows, all others of which are the same, and what shows samples of it.
fn shown(
    job: &Job,
    samples: &[Sample; SAMPLES],
    rows: &BTreeMap<Place, Row>,
    other: Row,
) -> (H256, Openings) {
    let plan = job.plan();
    let number = |place: &Place| (place.layer - 1) * BATCHES + job.batch_of(place.row);
    let index = |place: &Place| place.row - job.batch_of(place.row) * plan.batch_rows();
    let digest = |row: &Row| ShownRow::digest(&row.map(|cell| cell as u8));
    let mut digests: BTreeMap<u32, BTreeMap<u32, H256>> = BTreeMap::new();
    for (place, row) in rows {
        let batch = digests.entry(number(place)).or_default();
        batch.insert(index(place), digest(row));
    }
    let tree = |leaves: &BTreeMap<u32, H256>| Tree::new(leaves, plan.batch_rows(), digest(&other));
    let batches: BTreeMap<u32, Tree> = digests
        .iter()
        .map(|(number, leaves)| (*number, tree(leaves)))
        .collect();
    let same = tree(&BTreeMap::new());
    let roots = batches
        .iter()
        .map(|(number, tree)| (*number, tree.root))
        .collect();
    let run = Tree::new(&roots, plan.batches(), same.root);

    let show = |place: &Place| ShownRow {
        bytes: rows.get(place).unwrap_or(&other).map(|cell| cell as u8),
        in_batch: batches.get(&number(place)).unwrap_or(&same).proof(index(place)),
        in_run: run.proof(number(place)),
    };
    let openings = samples.iter().map(|sample| {
        let parents = job.parents(sample.place);
        let parents = parents.iter().filter(|place| place.layer > 0);
        Opening {
            row: show(&sample.place),
            parents: parents
                .map(show)
                .collect::<Vec<_>>()
                .try_into()
                .unwrap_or_default(),
        }
    });
    (run.root, Openings::truncate_from(openings.collect()))
}

/// A tree of so many leaves, most of which are the same.
struct Tree {
    /// How many nodes there are, those that are not the same, and what the others are, from the bottom up.
    levels: Vec<(u32, BTreeMap<u32, H256>, H256)>,
    root: H256,
}

impl Tree {
    fn new(leaves: &BTreeMap<u32, H256>, mut count: u32, other: H256) -> Self {
        let mut nodes: BTreeMap<u32, H256> = leaves
            .iter()
            .map(|(index, leaf)| (*index, leaf_hash(leaf)))
            .collect();
        let mut other = leaf_hash(&other);
        let mut levels = Vec::new();
        while count > 1 {
            // The last node alone may be above fewer leaves than others of its level are.
            nodes.entry(count - 1).or_insert(other);
            let node = |index: u32| *nodes.get(&index).unwrap_or(&other);
            let above = nodes.keys().map(|index| {
                let (left, right) = (index & !1, index | 1);
                let node = if right < count {
                    node_hash(&node(left), &node(right))
                } else {
                    node(left)
                };
                (index / 2, node)
            });
            let above = above.collect();
            levels.push((count, core::mem::replace(&mut nodes, above), other));
            other = node_hash(&other, &other);
            count = count.div_ceil(2);
        }
        let root = *nodes.get(&0).unwrap_or(&other);
        Self { levels, root }
    }

    fn proof(&self, index: u32) -> Proof {
        let levels = self.levels.iter().enumerate();
        let siblings = levels.filter_map(|(height, (count, nodes, other))| {
            let sibling = (index >> height) ^ 1;
            (sibling < *count).then(|| *nodes.get(&sibling).unwrap_or(other))
        });
        Proof(siblings.collect::<Vec<_>>().try_into().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use surety_proofs::merkle_root;

    use crate::{Fault, LAYERS_MAX, LAYERS_MIN, Plan, draw, verify, verify_all};

    use super::*;

    #[test]
    fn what_is_made_for_benchmarks_is_believed_and_as_deep_as_can_be() {
        let plan = Plan {
            rows: 32 * ((1 << 21) + 1),
            layers: (1 << 12) - 1,
        };
        assert!(plan.is_sound());
        let job = Job::new(plan, &H256::repeat_byte(1));
        let samples = draw(plan, &H256::repeat_byte(2), 3, &4u64);
        let (root, openings) = for_benchmark(&job, &samples);
        assert_eq!(verify_all(&job, &root, &samples, &openings), Ok(()));
        // Of a batch 2^21 < rows <= 2^22, of the run 2^16 < batches <= 2^17; two depths of a sum of 40 would
        // take more than 2^38 rows.
        let depth = |opening: &Opening| opening.row.in_batch.0.len() + opening.row.in_run.0.len();
        assert_eq!(openings.iter().map(depth).max(), Some(39));
    }

    #[test]
    fn trees_are_those_that_are_believed() {
        for count in [1u32, 2, 3, 5, 8, 13, 64, 100] {
            let other = H256::repeat_byte(9);
            let mut leaves = vec![other; count as usize];
            let some: BTreeMap<u32, H256> = (0..count)
                .step_by(3)
                .map(|index| (index, H256::from_low_u64_be(index.into())))
                .collect();
            for (index, leaf) in &some {
                leaves[*index as usize] = *leaf;
            }
            let tree = Tree::new(&some, count, other);
            assert_eq!(tree.root, merkle_root(leaves.iter().copied()), "{count}");
            for index in 0..count {
                assert_eq!(
                    Some(tree.proof(index)),
                    Proof::new(&leaves, index),
                    "{index} of {count}"
                );
            }
        }
    }

    /// Rows that are the same commit to a run of any size for nothing. In no layer do they follow from each
    /// other, whatever is in them: not zeros, of which every sum is zero, nor what is right in one place.
    #[test]
    fn a_run_of_equal_rows_is_found_at_every_sample_however_long_it_is() {
        for (rows, layers) in [(32, LAYERS_MIN), (4_194_368, 100), (4_194_368, LAYERS_MAX)] {
            let plan = Plan { rows, layers };
            assert!(plan.is_sound());
            let job = Job::new(plan, &H256::repeat_byte(7));
            let noise = job.initial_row(3);
            // What follows from itself at one place.
            let place = Place { layer: 5, row: 20 };
            let gathered = job.gather(place, [(&noise, tag(&noise)); 4]);
            let mut columns = 0..;
            let right = [(); ROW].map(|()| columns.next().map_or(0, |column| job.cell(&gathered, column)));
            for row in [[0; ROW], [1; ROW], [-128; ROW], noise, right] {
                for round in 0..4 {
                    let samples = draw(plan, &H256::repeat_byte(8), round, &4u64);
                    let (root, openings) = shown(&job, &samples, &BTreeMap::new(), row);
                    for (sample, opening) in samples.iter().zip(&openings) {
                        assert_eq!(
                            verify(&job, &root, sample, opening),
                            Err(Fault::Cell),
                            "{sample:?}, rows of {}",
                            row[0]
                        );
                    }
                }
            }
        }
    }
}
