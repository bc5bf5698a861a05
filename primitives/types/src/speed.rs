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

/// What a task asks of those who compute it, besides being available: what the chain has measured of them.
/// Nothing by default.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Requirements {
    /// The slowest tier that will do.
    pub tier: Option<Tier>,
    /// The least memory that was computed over, in MiB.
    pub memory_mib: u32,
}

impl Requirements {
    /// Whether nothing is asked for.
    pub const fn are_none(&self) -> bool {
        self.tier.is_none() && self.memory_mib == 0
    }

    /// Whether a provider has shown what is asked for, by what the chain has measured of it.
    pub fn are_met_by(&self, measured: Option<&MeasuredView>) -> bool {
        let Some(measured) = measured else {
            return self.are_none();
        };
        // The faster the tier, the less it is.
        self.tier.is_none_or(|slowest| measured.tier <= slowest) && self.memory_mib <= measured.memory_mib
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

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(tier: Tier, memory_mib: u32) -> MeasuredView {
        MeasuredView {
            tier,
            giga_operations: 1,
            memory_mib,
            rounds_missed: 0,
        }
    }

    #[test]
    fn a_faster_tier_and_more_memory_will_do_and_less_of_either_will_not() {
        let asked = Requirements {
            tier: Some(Tier::B),
            memory_mib: 100,
        };
        for (tier, memory_mib, is_met) in [
            (Tier::A, 100, true),
            (Tier::B, 200, true),
            (Tier::C, 200, false),
            (Tier::A, 99, false),
        ] {
            let shown = measured(tier, memory_mib);
            assert_eq!(asked.are_met_by(Some(&shown)), is_met, "{shown:?}");
        }
        assert!(!asked.are_met_by(None));
    }

    #[test]
    fn who_was_not_measured_meets_no_requirement_but_none() {
        let none = Requirements::default();
        assert!(none.are_met_by(None) && none.are_met_by(Some(&measured(Tier::C, 0))));
        let tier = Requirements {
            tier: Some(Tier::C),
            ..none
        };
        let memory = Requirements {
            memory_mib: 1,
            ..none
        };
        assert!(!tier.are_met_by(None) && !memory.are_met_by(None));
    }
}
