//! Chess clocks.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;

use super::Side;

/// Finalised blocks that each side has left for its moves.
///
/// Blocks count only once they are final: while finality stands still a side's moves may not get through, so
/// nobody's time runs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Clocks {
    /// The defender's.
    pub defender: u32,
    /// The challenger's.
    pub challenger: u32,
}

impl Clocks {
    /// The same for both.
    pub const fn equal(blocks: u32) -> Self {
        Self {
            defender: blocks,
            challenger: blocks,
        }
    }

    /// Blocks that `side` has left.
    pub const fn left(&self, side: Side) -> u32 {
        match side {
            Side::Defender => self.defender,
            Side::Challenger => self.challenger,
        }
    }

    /// Takes `blocks` from `side`. True when it has run out.
    pub(super) fn run(&mut self, side: Side, blocks: u32) -> bool {
        let left = match side {
            Side::Defender => &mut self.defender,
            Side::Challenger => &mut self.challenger,
        };
        *left = left.saturating_sub(blocks);
        *left == 0
    }
}
