//! A computation small enough to see through: four leaves, of which all but the last are computed in two
//! steps.
//!
//! A *result* is a number. The right one is [`truth`]; any other below [`TOO_LARGE`] has one wrong cell in
//! each step of leaf 1, those from there on one in each step of leaf 0, which no referee can compute again.
//! Leaf 3 is the output: three segments of the result's number.

use std::{cell::Cell as Slot, convert::Infallible};

use sp_core::H256;
use sp_runtime::DispatchError;
use surety_dispute_game::bisection::{
    Cell, CellValue, Judgement, LeafKind, LeafShape, Length, Missing, Referee, Roots, RowsShape, Shape, Trace,
};
use surety_proofs::{Proof, merkle_root, row_digest, rows_digest};
use surety_types::{TaskId, task::ResultClaim, trust::ItemLeaves};

use crate::DisputeReferee;

/// From this result on something is wrong that no block can compute again.
pub const TOO_LARGE: u8 = 200;
pub const OUTPUT_BYTES: u32 = 2_500;
/// All others are of so many.
pub const CLAIMED_UNITS: u32 = 5;
/// No result is of so many units.
pub const IMPOSSIBLE_UNITS: u32 = 13;
/// The leaf that every item has.
pub const ITEM_LEAF: u32 = 1;
const LEAVES: u32 = 4;
const WORDS: u32 = 8;

/// What the tasks' model is.
#[derive(Clone, Copy)]
pub enum Model {
    /// Anybody can compute its results again.
    Exact,
    /// Nobody can.
    Native,
    /// It is gone.
    Unknown,
}

thread_local! {
    static MODEL: Slot<Model> = const { Slot::new(Model::Exact) };
    static TRUTH: Slot<u8> = const { Slot::new(9) };
}

pub fn truth() -> u8 {
    TRUTH.get()
}

pub fn set_truth(result: u8) {
    TRUTH.set(result);
}

/// For rounds that are opened from now on.
pub fn set_model(model: Model) {
    MODEL.set(model);
}

pub fn output(result: u8) -> Vec<u8> {
    vec![result; OUTPUT_BYTES as usize]
}

/// What a provider claims that has this result.
pub fn claim(result: u8) -> ResultClaim {
    ResultClaim {
        output: row_digest(&output(result)),
        trace_root: merkle_root(ToyTrace::new(result).leaves.into_iter()),
        units: CLAIMED_UNITS,
    }
}

/// The trace of whoever has this result.
pub struct ToyTrace {
    result: u8,
    leaves: Vec<H256>,
}

impl ToyTrace {
    pub fn new(result: u8) -> Self {
        let digest = |leaf| match leaf {
            3 => row_digest(&output(result)),
            _ => rows_digest(core::iter::once(row(result, leaf, 1).as_slice())),
        };
        Self {
            result,
            leaves: (0..LEAVES).map(digest).collect(),
        }
    }
}

/// The leaves of the trace of whoever has this result.
pub fn trace_leaves(result: u8) -> Vec<H256> {
    ToyTrace::new(result).leaves
}

fn row(result: u8, leaf: u32, step: u32) -> Vec<u8> {
    if leaf == 3 {
        return output(result);
    }
    let wrong = result != truth() && leaf == u32::from(result < TOO_LARGE);
    let word = |cell: u32| {
        let right = leaf * 1_000 + step * 100 + cell;
        if wrong && cell == u32::from(result) % WORDS {
            right + 1 + u32::from(result)
        } else {
            right
        }
    };
    (0..WORDS).flat_map(|cell| word(cell).to_le_bytes()).collect()
}

impl Trace for ToyTrace {
    type Error = Infallible;

    fn leaves(&mut self) -> Result<&[H256], Infallible> {
        Ok(&self.leaves)
    }

    fn steps(&mut self, leaf: u32) -> Result<Vec<H256>, Infallible> {
        let digest = |step| rows_digest(core::iter::once(row(self.result, leaf, step).as_slice()));
        Ok((0..2).map(digest).collect())
    }

    fn rows(&mut self, leaf: u32, step: u32) -> Result<Vec<H256>, Infallible> {
        let step = if leaf < 3 { step } else { 1 };
        Ok(vec![row_digest(&row(self.result, leaf, step))])
    }

    fn row(&mut self, leaf: u32, step: u32, _: u32) -> Result<Vec<u8>, Infallible> {
        let step = if leaf < 3 { step } else { 1 };
        Ok(row(self.result, leaf, step))
    }

    fn open(&mut self, _: &Cell) -> Result<Vec<u8>, Infallible> {
        Ok(vec![1])
    }
}

/// Knows the truth.
pub struct ToyClaimReferee {
    output: H256,
}

impl Shape for ToyClaimReferee {
    fn leaves(&self) -> u32 {
        LEAVES
    }

    fn leaf(&self, leaf: u32) -> Option<LeafShape> {
        let kind = match leaf {
            0..=2 => LeafKind::Computed,
            3 => LeafKind::Fixed(self.output),
            _ => return None,
        };
        Some(LeafShape {
            length: Length::Known(1),
            kind,
        })
    }

    fn steps(&self, leaf: u32, _: u32) -> Option<u32> {
        (leaf < 3).then_some(2)
    }

    fn rows(&self, leaf: u32, _: u32, step: u32) -> Option<RowsShape> {
        let row_bytes = match leaf {
            3 => OUTPUT_BYTES,
            _ => WORDS * 4,
        };
        (step < 2 && leaf < LEAVES).then_some(RowsShape {
            rows: 1,
            row_bytes,
            quantized: None,
        })
    }
}

impl Referee for ToyClaimReferee {
    fn opening_bytes(&self, cell: &Cell) -> Option<u32> {
        (cell.leaf > 0).then_some(4)
    }

    /// There is no input.
    fn needed(&self, _: &Cell) -> Option<Missing> {
        Some(Missing::Output)
    }

    fn judge(&self, cell: &Cell, _: &Roots, opening: &[u8]) -> Judgement {
        if opening.is_empty() {
            return Judgement::Unproven;
        }
        let step = if cell.leaf < 3 { cell.step } else { 1 };
        let right = row(truth(), cell.leaf, step);
        let word = right.chunks(4).nth(cell.cell as usize);
        let holds =
            word.is_some_and(|word| cell.value == CellValue::Word(word.try_into().unwrap_or_default()));
        if holds {
            Judgement::Holds
        } else {
            Judgement::Refuted
        }
    }
}

/// Mock of [`DisputeReferee`].
pub struct ToyReferee;

impl ToyReferee {
    /// The answer to a task whose model is not known.
    pub const UNKNOWN: DispatchError = DispatchError::Other("UnknownModel");
}

impl DisputeReferee for ToyReferee {
    type DisputeContext = u8;
    type ClaimReferee = ToyClaimReferee;

    fn dispute_context(_: TaskId) -> Result<Option<u8>, DispatchError> {
        match MODEL.get() {
            Model::Exact => Ok(Some(1)),
            Model::Native => Ok(None),
            Model::Unknown => Err(Self::UNKNOWN),
        }
    }

    fn claim_referee(_: &u8, said: &ResultClaim) -> Option<ToyClaimReferee> {
        let output = said.output;
        (said.units != IMPOSSIBLE_UNITS).then_some(ToyClaimReferee { output })
    }

    /// Of every item, it is the first leaf that is computed.
    fn item_root(_: &u8, claim: &ResultClaim, item: u32, shown: &ItemLeaves) -> Option<H256> {
        let leaf = shown.leaves.first()?;
        let siblings = shown.siblings.to_vec().try_into().ok()?;
        let is_shown = Proof(siblings).verify(&claim.trace_root, leaf, ITEM_LEAF, LEAVES);
        (is_shown && item < claim.units).then(|| merkle_root(core::iter::once(*leaf)))
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn item_for_benchmark() -> (u8, ResultClaim, ItemLeaves) {
        unimplemented!("benchmarks run over the runtime")
    }

    fn needs_committee(_: &u8, _: &ResultClaim) -> bool {
        true
    }

    fn output_bytes(_: &u8, _: &ResultClaim) -> Option<u32> {
        Some(OUTPUT_BYTES)
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn largest_for_benchmark(_: surety_types::model::Operation) -> (u8, ResultClaim) {
        unimplemented!("benchmarks run over the runtime")
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn for_benchmark(
        _: surety_pallet_results::LongCell,
    ) -> (u8, ResultClaim, Vec<surety_dispute_game::bisection::Move>) {
        unimplemented!("benchmarks run over the runtime")
    }
}
