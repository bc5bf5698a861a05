//! Why a committee refuses an input.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use core::fmt;
use scale_info::TypeInfo;

/// Why an input is refused. Nothing has changed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub enum CommitteeError {
    /// Not in this stage.
    NotNow,
    /// Not the right number of members, or one of them twice.
    BadDraw,
    /// Not a member of this ballot.
    NotDrawn,
    /// Has committed, or revealed, before.
    Twice,
    /// Does not open the member's commitment, or there is none.
    WrongOpening,
}

impl fmt::Display for CommitteeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotNow => "not in this stage",
            Self::BadDraw => "not the right number of members, or one of them twice",
            Self::NotDrawn => "not a member of this ballot",
            Self::Twice => "answered before",
            Self::WrongOpening => "does not open a commitment",
        })
    }
}

impl core::error::Error for CommitteeError {}
