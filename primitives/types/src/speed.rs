//! How fast providers were measured to be, by the benchmark that the chain checks.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;

/// How fast a provider was measured to be, coarsely.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Encode,
    Decode,
    DecodeWithMemTracking,
    MaxEncodedLen,
    TypeInfo,
)]
pub enum Tier {
    /// 20 * 10^12 operations a second, or more.
    A,
    /// From 5 to 20 * 10^12.
    B,
    /// Less.
    C,
}

impl Tier {
    /// The tier of so many 10^9 operations a second.
    pub const fn of(giga_operations: u32) -> Self {
        match giga_operations {
            20_000.. => Self::A,
            5_000.. => Self::B,
            _ => Self::C,
        }
    }
}

/// What clients are told of a provider that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, TypeInfo)]
pub struct MeasuredView {
    /// The tier that its speed is in.
    pub tier: Tier,
    /// Speed, in 10^9 operations a second on 8-bit integers: no more than it has.
    pub giga_operations: u32,
    /// Memory that it was computed over, in MiB.
    pub memory_mib: u32,
    /// Rounds that it has missed since: one, or none.
    pub rounds_missed: u32,
}
