//! How fast providers were measured to be, by the benchmark that the chain checks.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;

use crate::region::Region;

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

    /// As it is written.
    pub const fn letter(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
        }
    }

    /// The tier that is written like this.
    pub fn from_letter(text: &str) -> Option<Self> {
        let all = [Self::A, Self::B, Self::C];
        all.into_iter().find(|tier| tier.letter() == text)
    }
}

/// What a task asks of those who compute it, besides being available: what the chain has measured of them,
/// and what they say of where they are. Nothing by default.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Requirements {
    /// The slowest tier that will do.
    pub tier: Option<Tier>,
    /// The least memory that was computed over, in MiB.
    pub memory_mib: u32,
    /// Where its provider says that it is. Nothing on the chain proves it: what the client has is the
    /// provider's word.
    pub region: Option<Region>,
}

impl Requirements {
    /// Whether something is asked for that has to have been measured.
    pub const fn ask_for_measured(&self) -> bool {
        self.tier.is_some() || self.memory_mib > 0
    }

    /// Whether a provider is what is asked for, by the region that it has declared and by what the chain has
    /// measured of it.
    pub fn are_met_by(&self, declared: Option<Region>, measured: Option<&MeasuredView>) -> bool {
        self.region.is_none_or(|region| declared == Some(region)) && self.are_shown_by(measured)
    }

    fn are_shown_by(&self, measured: Option<&MeasuredView>) -> bool {
        let Some(measured) = measured else {
            return !self.ask_for_measured();
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
            region: None,
        };
        for (tier, memory_mib, is_met) in [
            (Tier::A, 100, true),
            (Tier::B, 200, true),
            (Tier::C, 200, false),
            (Tier::A, 99, false),
        ] {
            let shown = measured(tier, memory_mib);
            assert_eq!(asked.are_met_by(None, Some(&shown)), is_met, "{shown:?}");
        }
        assert!(!asked.are_met_by(None, None));
    }

    #[test]
    fn who_was_not_measured_meets_no_requirement_but_none() {
        let none = Requirements::default();
        assert!(none.are_met_by(None, None) && none.are_met_by(None, Some(&measured(Tier::C, 0))));
        let tier = Requirements {
            tier: Some(Tier::C),
            ..none
        };
        let memory = Requirements {
            memory_mib: 1,
            ..none
        };
        assert!(!tier.are_met_by(None, None) && !memory.are_met_by(None, None));
    }

    #[test]
    fn a_tier_is_read_as_it_is_written() {
        for tier in [Tier::A, Tier::B, Tier::C] {
            assert_eq!(Tier::from_letter(tier.letter()), Some(tier));
        }
        for other in ["D", "a", "", "A "] {
            assert_eq!(Tier::from_letter(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_region_has_to_be_declared_as_it_is_asked_for_whatever_was_measured() {
        let region = |letters: &str| letters.parse().ok();
        let asked = Requirements {
            region: region("DE"),
            ..Default::default()
        };
        let shown = measured(Tier::A, 1_000);
        assert!(asked.are_met_by(region("DE"), None));
        for declared in [region("FR"), None] {
            assert!(!asked.are_met_by(declared, Some(&shown)), "{declared:?}");
        }
        // It stands in for nothing that is to be measured.
        let both = Requirements {
            tier: Some(Tier::B),
            ..asked
        };
        assert!(both.are_met_by(region("DE"), Some(&shown)));
        assert!(!both.are_met_by(region("DE"), None) && !both.are_met_by(region("FR"), Some(&shown)));
        assert!(Requirements::default().are_met_by(region("DE"), None));
    }
}
