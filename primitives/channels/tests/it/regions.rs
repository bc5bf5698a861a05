//! Regions are two capital letters, however they come.

use codec::{Decode, Encode};
use proptest::prelude::*;
use surety_channels::{NotARegion, Region};

#[test]
fn a_region_is_read_and_shown_as_its_two_letters() {
    let region: Region = "DE".parse().unwrap();
    assert_eq!(region.to_string(), "DE");
    assert_eq!(region.encode(), b"DE");
    for other in ["", "D", "DEU", "de", "De", "D1", "Ä", "D\u{1b}", " DE"] {
        assert_eq!(other.parse::<Region>(), Err(NotARegion), "{other:?}");
    }
}

proptest! {
    #[test]
    fn nothing_else_can_be_decoded(bytes in any::<[u8; 2]>(), letters in "[A-Z]{2}") {
        let are_letters = bytes.iter().all(|byte| b"ABCDEFGHIJKLMNOPQRSTUVWXYZ".contains(byte));
        prop_assert_eq!(Region::decode(&mut &bytes[..]).is_ok(), are_letters);
        let region = Region::decode(&mut letters.as_bytes());
        prop_assert_eq!(region, Ok(letters.parse().unwrap()));
    }
}
