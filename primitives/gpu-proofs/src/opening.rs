//! What a provider shows of a run, and whether it is right.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::{ConstU32, H256, bounded::BoundedVec};
use sp_crypto_hashing::blake2_256;
use surety_proofs::Proof;

use crate::{
    BATCHES, PARENTS, ROW, SAMPLES,
    job::{Job, Place, Row, tag, tag_of},
    sample::Sample,
};

/// Why what was shown is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A run cannot have this size.
    Plan,
    /// Other samples were shown than were drawn, or more or fewer rows than it takes.
    Count,
    /// A row is not what was committed to at its place.
    Row,
    /// A cell is not what follows from the rows that it is computed from.
    Cell,
}

/// A row that was committed to.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct ShownRow {
    /// Its cells, as bytes.
    pub bytes: [u8; ROW],
    /// That it is in its batch.
    pub in_batch: Proof,
    /// That the batch is in the run.
    pub in_run: Proof,
}

impl ShownRow {
    pub(crate) fn digest(bytes: &[u8; ROW]) -> H256 {
        H256(blake2_256(bytes))
    }

    /// Its cells and its [`tag`], if it is what was committed to at this place.
    fn check(&self, job: &Job, root: &H256, place: Place) -> Result<(Row, u64), Fault> {
        let plan = job.plan();
        let batch = job.batch_of(place.row);
        let index = place.row.saturating_sub(batch.saturating_mul(plan.batch_rows()));
        let batches_before = place.layer.saturating_sub(1).saturating_mul(BATCHES);
        let digest = Self::digest(&self.bytes);
        let batch_root = self
            .in_batch
            .root(&digest, index, plan.batch_rows())
            .ok_or(Fault::Row)?;
        let number = batches_before.saturating_add(batch);
        if self.in_run.verify(root, &batch_root, number, plan.batches()) {
            Ok((self.bytes.map(|byte| byte as i8), tag_of(&digest)))
        } else {
            Err(Fault::Row)
        }
    }
}

/// What is shown for a sample.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Opening {
    /// The row that was drawn.
    pub row: ShownRow,
    /// Its parents in their order. Those of layer 0 are left out: anybody can generate them.
    pub parents: BoundedVec<ShownRow, ConstU32<{ PARENTS as u32 }>>,
}

/// What is shown of a run.
pub type Openings = BoundedVec<Opening, ConstU32<{ SAMPLES as u32 }>>;

/// Whether a sample of the run that `root` commits to is right.
///
/// # Errors
/// Says what is wrong. Who computed all of the run can always show what is not.
pub fn verify(job: &Job, root: &H256, sample: &Sample, opening: &Opening) -> Result<(), Fault> {
    if !job.plan().is_sound() {
        return Err(Fault::Plan);
    }
    let (row, _) = opening.row.check(job, root, sample.place)?;
    let mut shown = opening.parents.iter();
    let mut parents = [([0; ROW], 0); PARENTS];
    for (parent, place) in parents.iter_mut().zip(job.parents(sample.place)) {
        *parent = if place.layer == 0 {
            let row = job.initial_row(place.row);
            (row, tag(&row))
        } else {
            shown.next().ok_or(Fault::Count)?.check(job, root, place)?
        };
    }
    if shown.next().is_some() {
        return Err(Fault::Count);
    }
    let parents = parents.each_ref().map(|(row, tag)| (row, *tag));
    let gathered = job.gather(sample.place, parents);
    let is_right = |column: &u32| row.get(*column as usize) == Some(&job.cell(&gathered, *column));
    if sample.columns.iter().all(is_right) {
        Ok(())
    } else {
        Err(Fault::Cell)
    }
}

/// Whether all samples are there, in their order, and right.
///
/// # Errors
/// As [`verify`], for the first that is wrong.
pub fn verify_all(
    job: &Job,
    root: &H256,
    samples: &[Sample; SAMPLES],
    openings: &Openings,
) -> Result<(), Fault> {
    if openings.len() != samples.len() {
        return Err(Fault::Count);
    }
    samples
        .iter()
        .zip(openings)
        .try_for_each(|(sample, opening)| verify(job, root, sample, opening))
}
