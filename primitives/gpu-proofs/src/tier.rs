//! Classes of speed.

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
