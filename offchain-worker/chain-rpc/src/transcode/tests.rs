//! Records of older and newer runtimes.

use super::*;
use codec::DecodeAll;
use proptest::prelude::*;

#[derive(Debug, Clone, PartialEq, Encode, Decode, TypeInfo)]
enum OldState {
    Open { until: u32 },
    Over,
}

#[derive(Debug, Clone, PartialEq, Encode, Decode, TypeInfo)]
struct Old {
    owner: [u8; 4],
    state: OldState,
    parts: Vec<(u16, bool)>,
    price: u64,
}

#[derive(Debug, Clone, PartialEq, Encode, Decode, TypeInfo)]
enum NewState {
    Drawing,
    Over,
    Open { since: u32, until: u64 },
}

/// Another order, wider numbers, variants and fields in between and at the end.
#[derive(Debug, Clone, PartialEq, Encode, Decode, TypeInfo)]
struct New {
    version: u8,
    price: u64,
    state: NewState,
    parts: Vec<(u16, bool)>,
    owner: [u8; 4],
    note: Option<Vec<u8>>,
}

/// The old record as a reader knows it who wants wide numbers.
#[derive(Debug, Clone, PartialEq, Encode, Decode, TypeInfo)]
enum ReaderState {
    Open { until: u64 },
    Over,
}

#[derive(Debug, Clone, PartialEq, Encode, Decode, TypeInfo)]
struct Reader {
    owner: [u8; 4],
    state: ReaderState,
    parts: Vec<(u16, bool)>,
    price: u128,
    note: Option<Vec<u8>>,
}

fn across<A: Encode + TypeInfo + 'static, B: DecodeAll + TypeInfo + 'static>(a: &A) -> Result<B, String> {
    let (from, to) = (Shape::of::<A>(), Shape::of::<B>());
    fits(from.end(), to.end())?;
    let bytes = a.encode();
    let mut input = bytes.as_slice();
    let out = transcode(&mut input, from.end(), to.end())?;
    assert!(input.is_empty());
    B::decode_all(&mut out.as_slice()).map_err(|error| error.to_string())
}

prop_compose! {
    fn new_record()(
        price: u64,
        owner: [u8; 4],
        open in any::<Option<(u32, u64)>>(),
        parts: Vec<(u16, bool)>,
        note: Option<Vec<u8>>,
    ) -> New {
        let state = open.map_or(NewState::Over, |(since, until)| NewState::Open { since, until });
        New { version: 1, price, state, parts, owner, note }
    }
}

proptest! {
    #[test]
    fn fields_are_found_by_name_wherever_they_moved(new in new_record()) {
        let read: Reader = across(&new).unwrap();
        let state = match new.state {
            NewState::Open { until, .. } => ReaderState::Open { until },
            _ => ReaderState::Over,
        };
        let expected = Reader {
            owner: new.owner,
            state,
            parts: new.parts.clone(),
            price: new.price.into(),
            note: new.note.clone(),
        };
        prop_assert_eq!(read, expected);
        prop_assert_eq!(across::<New, New>(&new).unwrap(), new);
    }

    #[test]
    fn bytes_that_are_no_record_are_an_error_and_no_panic(bytes: Vec<u8>) {
        let (from, to) = (Shape::of::<New>(), Shape::of::<Reader>());
        let mut input = bytes.as_slice();
        if let Ok(out) = transcode(&mut input, from.end(), to.end()) {
            prop_assert!(Reader::decode_all(&mut out.as_slice()).is_ok());
        }
    }
}

#[test]
fn text_is_read_where_bytes_were_and_bytes_where_text_is() {
    let text = String::from("all-MiniLM-L6-v2");
    let bytes = text.clone().into_bytes();
    assert_eq!(across::<String, Vec<u8>>(&text), Ok(bytes.clone()));
    assert_eq!(across::<Vec<u8>, String>(&bytes), Ok(text));
    // What was bytes and is no text is no name.
    assert!(across::<Vec<u8>, String>(&vec![0xff]).is_err());
    assert!(across::<Vec<u16>, String>(&vec![7]).is_err());
}

#[test]
fn what_is_absent_must_be_an_option() {
    let old = Old {
        owner: [1; 4],
        state: OldState::Open { until: 5 },
        parts: vec![(7, true)],
        price: 9,
    };
    let read: Reader = across(&old).unwrap();
    assert_eq!((read.price, read.note), (9, None));
    let error = across::<Old, New>(&old).unwrap_err();
    assert!(error.contains("version"), "{error}");
}

#[test]
fn a_variant_that_the_reader_does_not_know_is_an_error_of_that_record_alone() {
    let record = |state| New {
        version: 1,
        price: 2,
        state,
        parts: Vec::new(),
        owner: [0; 4],
        note: None,
    };
    let error = across::<New, Reader>(&record(NewState::Drawing)).unwrap_err();
    assert!(error.contains("Drawing"), "{error}");
    assert!(across::<New, Reader>(&record(NewState::Over)).is_ok());
}

#[test]
fn numbers_grow_but_never_shrink() {
    assert_eq!(across::<u32, u64>(&7), Ok(7));
    assert!(across::<u64, u32>(&7).is_err());
    assert_eq!(across::<Compact<u32>, Compact<u64>>(&Compact(7)), Ok(Compact(7)));
}
