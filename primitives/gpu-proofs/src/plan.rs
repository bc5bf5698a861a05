//! How large a run is, and what it shows.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;

use crate::{BATCHES, LAYERS_MAX, LAYERS_MIN, ROWS_MAX};

/// Additions and multiplications of a row.
const ROW_OPERATIONS: u64 = 2 * 1024 * 1024;

/// Rows of a MiB.
const MIB_ROWS: u32 = 1024;

/// Most rows that a run computes, in all of its layers: 5 * 10^17 operations.
pub const RUN_ROWS_MAX: u64 = 1 << 38;

/// How large a run is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Plan {
    /// Rows of the state, 1,024 bytes each: a multiple of [`BATCHES`], at most [`ROWS_MAX`].
    pub rows: u32,
    /// How often every row is computed anew: from [`LAYERS_MIN`] to [`LAYERS_MAX`].
    pub layers: u32,
}

impl Plan {
    /// Whether a run can have this size.
    pub const fn is_sound(self) -> bool {
        self.rows > 0
            && self.rows.is_multiple_of(BATCHES)
            && self.rows <= ROWS_MAX
            && LAYERS_MIN <= self.layers
            && self.layers <= LAYERS_MAX
            && self.run_rows() <= RUN_ROWS_MAX
    }

    /// Rows of one batch of a layer.
    pub const fn batch_rows(self) -> u32 {
        self.rows / BATCHES
    }

    /// Batches of all layers.
    pub const fn batches(self) -> u32 {
        self.layers.saturating_mul(BATCHES)
    }

    /// Rows that are computed, in all layers together.
    const fn run_rows(self) -> u64 {
        (self.rows as u64).saturating_mul(self.layers as u64)
    }

    /// Additions and multiplications of a run, as processors' speeds are counted. Hashes count as nothing.
    pub const fn operations(self) -> u64 {
        self.run_rows().saturating_mul(ROW_OPERATIONS)
    }

    /// What a run that fills a window of so many milliseconds shows at least, in 10^9 operations a second,
    /// rounded down.
    pub const fn giga_operations(self, window_ms: u64) -> u32 {
        let per_ms = match self.operations().checked_div(window_ms) {
            Some(per_ms) => per_ms / 1_000_000,
            None => 0,
        };
        if per_ms > u32::MAX as u64 {
            u32::MAX
        } else {
            per_ms as u32
        }
    }

    /// Size of the state, in MiB, rounded down.
    pub const fn memory_mib(self) -> u32 {
        self.rows / MIB_ROWS
    }
}
