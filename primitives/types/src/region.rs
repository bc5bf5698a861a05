//! Where a provider says that it is.

use core::{fmt, str::FromStr};

use codec::{Decode, DecodeWithMemTracking, Encode, Error, Input, MaxEncodedLen};
use scale_info::TypeInfo;

/// A country, by two capital letters of ISO 3166-1 alpha-2: `DE`. Its provider says so. Nobody checks whether
/// there is such a country, and nobody could whether a machine is there.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Encode,
    DecodeWithMemTracking,
    MaxEncodedLen,
    TypeInfo,
)]
pub struct Region([u8; 2]);

/// It is not two capital letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotARegion;

impl fmt::Display for NotARegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("write the two capital letters of a country, such as DE (ISO 3166-1 alpha-2)")
    }
}

impl core::error::Error for NotARegion {}

impl TryFrom<[u8; 2]> for Region {
    type Error = NotARegion;

    fn try_from(letters: [u8; 2]) -> Result<Self, NotARegion> {
        let are_capital = letters.iter().all(u8::is_ascii_uppercase);
        are_capital.then_some(Self(letters)).ok_or(NotARegion)
    }
}

impl FromStr for Region {
    type Err = NotARegion;

    fn from_str(text: &str) -> Result<Self, NotARegion> {
        let letters = <[u8; 2]>::try_from(text.as_bytes());
        letters.map_err(|_| NotARegion)?.try_into()
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.0.map(char::from);
        write!(f, "{first}{second}")
    }
}

// By hand, so that there is none that is not two letters: people are shown it.
impl Decode for Region {
    fn decode<I: Input>(input: &mut I) -> Result<Self, Error> {
        let letters = <[u8; 2]>::decode(input)?;
        Self::try_from(letters).map_err(|_| "a region is two capital letters".into())
    }
}
