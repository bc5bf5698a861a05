use core::ops::Range;

use super::{flipped, row_bytes};
use codec::{Decode, Encode, MaxEncodedLen};
use proptest::prelude::*;
use sp_core::H256;
use surety_proofs::{
    CellOpening, Proof, RowOpening, SEGMENT_BYTES, SegmentOpening, WeightOpening, content_hash, merkle_root,
    row_digest, rows_digest, segment_hashes, segments, weight_row_leaf,
};

fn rows(count: u32, length: u32) -> Vec<Vec<u8>> {
    (0..count)
        .map(|row| row_bytes(u64::from(row), u64::from(length)))
        .collect()
}

fn open_row(rows: &[Vec<u8>], row: u32) -> RowOpening {
    RowOpening::new(&digests(rows), row).unwrap()
}

fn open_segment(row: &[u8], segment: u32) -> SegmentOpening {
    SegmentOpening::new(row, segment).unwrap()
}

fn open_cell(rows: &[Vec<u8>], row: u32, byte: u32) -> CellOpening {
    CellOpening::new(&digests(rows), row, &rows[row as usize], byte).unwrap()
}

fn digests(rows: &[Vec<u8>]) -> Vec<H256> {
    rows.iter().map(|row| row_digest(row)).collect()
}

fn digest(rows: &[Vec<u8>]) -> H256 {
    rows_digest(rows.iter().map(Vec::as_slice))
}

#[test]
fn what_is_not_there_cannot_be_opened() {
    let rows = rows(3, 2500);
    assert_eq!(RowOpening::new(&digests(&rows), 3), None);
    assert_eq!(SegmentOpening::new(&rows[0], 3), None);
    assert_eq!(SegmentOpening::new(&[], 0), None);
    assert_eq!(CellOpening::new(&digests(&rows), 2, &rows[2], 3072), None);
}

#[test]
fn any_piece_of_a_blob_can_be_shown_under_its_address() {
    let blob = row_bytes(4, 5000);
    let address = content_hash(&blob);
    for segment in 0..5 {
        let piece = SegmentOpening::new(&blob, segment).unwrap();
        assert_eq!(piece.row_digest(5000), Some(address));
        let start = segment * SEGMENT_BYTES;
        assert_eq!(piece.slice(start..start + 4), Some(&blob[start as usize..][..4]));
    }
    assert_eq!(merkle_root(segment_hashes(&blob).into_iter()), address);
}

#[test]
fn a_segment_of_the_wrong_length_is_refused() {
    let row = row_bytes(1, 2500);
    let last = open_segment(&row, 2);
    assert_eq!(last.row_digest(2500), Some(row_digest(&row)));
    // The bytes are those of this row, but a row of another length would end elsewhere.
    for other in [0, 2047, 2048, 2499, 2501, 3072, 3073, u32::MAX] {
        assert_eq!(last.row_digest(other), None, "{other}");
    }
    let far = SegmentOpening {
        segment: u32::MAX,
        ..last
    };
    assert_eq!((far.row_digest(u32::MAX), far.slice(0..4)), (None, None));
}

#[test]
fn a_slice_lies_within_its_segment() {
    let opening = open_segment(&row_bytes(1, 2500), 1);
    assert_eq!(opening.slice(1024..1026), Some(&row_bytes(1, 2500)[1024..1026]));
    for at in [
        0..4,
        1020..1028,
        2044..2052,
        2048..2052,
        Range {
            start: 1030,
            end: 1029,
        },
        u32::MAX - 1..u32::MAX,
    ] {
        assert_eq!(opening.slice(at.clone()), None, "{at:?}");
    }
}

#[test]
fn a_cell_opening_is_bounded() {
    // A transaction must hold it, with room for the inputs of the cell.
    assert!(
        CellOpening::max_encoded_len() < 3200,
        "{}",
        CellOpening::max_encoded_len()
    );
    let rows = rows(64, 10_240);
    let opening = open_cell(&rows, 63, 9000);
    assert!(opening.encode().len() < 1024 + 11 * 32 + 16);
    assert_eq!(CellOpening::decode(&mut &opening.encode()[..]), Ok(opening));
}

#[test]
fn a_number_is_read_little_endian() {
    let row: Vec<u8> = (0..600).flat_map(|i| (i as f32 - 7.5).to_le_bytes()).collect();
    let rows = vec![row_bytes(9, 2400), row];
    for column in [0u32, 7, 255, 256, 599] {
        let opening = open_cell(&rows, 1, 4 * column);
        assert_eq!(
            opening.number(&digest(&rows), 2, 2400, column),
            Some(column as f32 - 7.5)
        );
        assert_eq!(opening.number(&digest(&rows), 2, 2400, column ^ 256), None);
        assert_eq!(opening.number(&digest(&rows), 2, 2400, u32::MAX), None);
    }
}

#[test]
fn a_row_of_weights_is_bound_to_its_name_number_and_values() {
    let row =
        |name: &str, row, q: &[u8], scale, bias| weight_row_leaf(name.as_bytes(), row, q, &[scale], bias);
    let leaves: Vec<H256> = (0..11)
        .map(|number| row("up", number, &[1, 254], 0.5, Some(1.0)))
        .collect();
    let root = merkle_root(leaves.iter().copied());
    let opening = WeightOpening {
        index: 6,
        leaves: 11,
        proof: Proof::new(&leaves, 6).unwrap(),
    };
    assert!(opening.verify(&root, &row("up", 6, &[1, 254], 0.5, Some(1.0))));
    for other in [
        row("up", 5, &[1, 254], 0.5, Some(1.0)),
        row("down", 6, &[1, 254], 0.5, Some(1.0)),
        row("up", 6, &[1, 253], 0.5, Some(1.0)),
        row("up", 6, &[1, 254], 0.25, Some(1.0)),
        row("up", 6, &[1, 254], 0.5, Some(-1.0)),
        row("up", 6, &[1, 254], 0.5, None),
    ] {
        assert!(!opening.verify(&root, &other));
    }
}

#[test]
fn an_opening_shows_what_is_in_a_row_and_equal_rows_hold_the_same() {
    let rows = vec![vec![7], vec![7], vec![8]];
    let mut opening = open_cell(&rows, 0, 0);
    for (row, found) in [(0, Some(&[7][..])), (1, Some(&[7][..])), (2, None), (3, None)] {
        opening.row.row = row;
        assert_eq!(opening.bytes(&digest(&rows), 3, 1, 0..1), found, "{row}");
    }
}

proptest! {
    #[test]
    fn every_cell_opens_and_nothing_else_does(
        count in 1u32..20, length in 1u32..5000, row in any::<prop::sample::Index>(),
        byte in any::<prop::sample::Index>(), bit in 0usize..256,
    ) {
        let rows = rows(count, length);
        let root = digest(&rows);
        let (row, byte) = (row.index(count as usize) as u32, byte.index(length as usize) as u32);
        let opening = open_cell(&rows, row, byte);
        let found = |opening: &CellOpening| opening.bytes(&root, count, length, byte..byte + 1).map(<[u8]>::to_vec);
        prop_assert_eq!(found(&opening), Some(vec![rows[row as usize][byte as usize]]));
        prop_assert_eq!(opening.bytes(&flipped(&root, bit), count, length, byte..byte + 1), None);

        let mut other = opening.clone();
        let place = bit % other.segment.bytes.len();
        other.segment.bytes[place] ^= 1 << (bit % 8);
        prop_assert_eq!(found(&other), None);

        let mut other = opening.clone();
        other.segment.segment ^= 1;
        prop_assert_eq!(found(&other), None);

        // Its neighbor is another row, unless it holds the same bytes: then it is shown that it does.
        let mut other = opening.clone();
        other.row.row ^= 1;
        let neighbor = rows.get(other.row.row as usize).filter(|neighbor| **neighbor == rows[row as usize]);
        prop_assert_eq!(found(&other), neighbor.map(|neighbor| vec![neighbor[byte as usize]]));

        for sibling in 0..opening.segment.proof.0.len() {
            let mut other = opening.clone();
            other.segment.proof.0[sibling] = flipped(&opening.segment.proof.0[sibling], bit);
            prop_assert_eq!(found(&other), None);
        }
    }

    #[test]
    fn a_whole_row_opens_with_its_own_bytes_alone(
        count in 1u32..40, length in 1u32..3000, row in any::<prop::sample::Index>(), byte in any::<prop::sample::Index>(),
    ) {
        let rows = rows(count, length);
        let root = digest(&rows);
        let row = row.index(count as usize);
        let opening = open_row(&rows, row as u32);
        prop_assert!(opening.verify(&root, count, &rows[row]));
        let mut other = rows[row].clone();
        let byte = byte.index(other.len());
        other[byte] ^= 1;
        prop_assert!(!opening.verify(&root, count, &other));
        other[byte] ^= 1;
        other.push(0);
        prop_assert!(!opening.verify(&root, count, &other));
    }

    #[test]
    fn segments_cover_a_row(length in 0u32..100_000) {
        prop_assert_eq!(segments(length) as usize, vec![0u8; length as usize].chunks(SEGMENT_BYTES as usize).count());
    }
}
