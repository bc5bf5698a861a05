//! What a receipt claims, as a dispute is about it and an engine makes it.

use surety_channels::{ChunkStatement, End, Request};
use surety_proofs::{SEGMENT_BYTES, SegmentOpening};
use surety_types::input::WORD_BYTES;

use crate::AccountId;

/// First word of the output of a generation that a stop id has ended.
const STOP_WORD: [u8; WORD_BYTES as usize] = 1u32.to_le_bytes();

/// The output that it claims, of what was said as the statement names it.
pub fn claimed_output(statement: &ChunkStatement<AccountId>, mut said: Vec<u8>) -> Vec<u8> {
    if how(statement) == Some(End::Stop)
        && let Some(word) = said.first_chunk_mut()
    {
        *word = STOP_WORD;
    }
    said
}

/// Units that were asked for: of an answer that was cut it is as if no more had been.
pub fn claimed_units_max(statement: &ChunkStatement<AccountId>, request: &Request) -> u32 {
    match how(statement) {
        Some(End::Cut | End::Cancelled) => statement.units,
        Some(End::Stop | End::Length) | None => request.units_max,
    }
}

/// The segment of what `longer` says, which is `output`, in which `shorter` ends; nothing where it says no
/// less.
pub fn segment_of_end(
    shorter: &ChunkStatement<AccountId>,
    longer: &ChunkStatement<AccountId>,
    output: &[u8],
) -> Option<SegmentOpening> {
    if shorter.bytes >= longer.bytes {
        return None;
    }
    let last = shorter.bytes.checked_sub(1)?.checked_div(SEGMENT_BYTES)?;
    SegmentOpening::new(output, last)
}

fn how(statement: &ChunkStatement<AccountId>) -> Option<End> {
    statement.end.map(|end| end.how)
}
