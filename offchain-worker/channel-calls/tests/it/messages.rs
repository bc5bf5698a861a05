//! Hostile bytes.

use crate::support::*;
use codec::{Compact, Encode};
use proptest::{collection::vec, prelude::*};
use surety_channel_calls::{
    message::{Chunk, Input, Message, Unreadable, read},
    *,
};
use surety_channels::*;
use surety_types::limits::INPUT_BYTES_MAX;

fn ask(input: Vec<u8>) -> ToPayee {
    let voucher = Voucher {
        channel: CHANNEL,
        payee: account(STASH),
        expiry: EXPIRY,
        nonce: 3,
        request: named("request"),
        sum: u128::MAX,
    };
    ToPayee::Ask(Ask {
        request: text(3, 4, 0, 2).request,
        chunk_units: u32::MAX,
        input: Input::try_from(input).unwrap(),
        voucher: SignedVoucher {
            voucher,
            signature: [7; 64],
        },
    })
}

fn chunk(bytes: Vec<u8>) -> FromPayee {
    FromPayee::Chunk {
        bytes: Chunk::try_from(bytes).unwrap(),
        statement: SignedChunkStatement {
            statement: ChunkStatement {
                channel: CHANNEL,
                payee: account(STASH),
                nonce: 3,
                request: named("request"),
                bytes: 8,
                output: named("output"),
                units: 4,
                price: u128::MAX,
                end: Some(Ending {
                    how: End::Stop,
                    trace_root: named("trace"),
                }),
            },
            agent: account(AGENT),
            signature: [7; 64],
        },
    }
}

/// Whether these bytes are no message, or are written as they were read.
fn reads_back<M: Message>(bytes: &[u8]) -> bool {
    read::<M>(bytes).map_or(true, |message| message.encode() == bytes)
}

#[test]
fn the_largest_messages_can_be_read_and_no_longer_ones() {
    let largest = ask(vec![1; INPUT_BYTES_MAX as usize]).encode();
    assert!(read::<ToPayee>(&largest).is_ok());
    assert!(largest.len() <= ToPayee::bytes_max() && ToPayee::bytes_max() < largest.len() + 8);
    let largest = chunk(vec![1; CHUNK_BYTES_MAX as usize]).encode();
    assert!(read::<FromPayee>(&largest).is_ok());
    assert!(largest.len() <= FromPayee::bytes_max() && FromPayee::bytes_max() < largest.len() + 8);
    let bytes = FromPayee::bytes_max() + 1;
    let bytes_max = FromPayee::bytes_max();
    let refused = read::<FromPayee>(&vec![1; bytes]);
    assert_eq!(refused, Err(Unreadable::TooLong { bytes, bytes_max }));
}

#[test]
fn a_length_that_is_not_there_is_refused() {
    let ToPayee::Ask(small) = ask(Vec::new()) else {
        panic!("it asks");
    };
    for claimed in [1u32, INPUT_BYTES_MAX, INPUT_BYTES_MAX + 1, u32::MAX] {
        let bytes = (
            0u8,
            &small.request,
            small.chunk_units,
            Compact(claimed),
            &small.voucher,
        )
            .encode();
        assert!(read::<ToPayee>(&bytes).is_err(), "{claimed}");
    }
    // What is behind a message is not its.
    let mut bytes = ToPayee::Ask(small).encode();
    assert!(read::<ToPayee>(&bytes).is_ok());
    bytes.push(0);
    assert!(read::<ToPayee>(&bytes).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn hostile_bytes_are_read_as_they_are_written_or_not_at_all(
        bytes in vec(any::<u8>(), 0..600), kind in 0u8..4,
    ) {
        let bytes = [&[kind][..], &bytes].concat();
        prop_assert!(reads_back::<ToPayee>(&bytes));
        prop_assert!(reads_back::<FromPayee>(&bytes));
    }

    #[test]
    fn messages_with_a_wrong_byte_are_too(
        size in 0usize..300, at in any::<prop::sample::Index>(), flip in 1u8..=255, cut in any::<bool>(),
    ) {
        for honest in [ask(vec![5; size]).encode(), chunk(vec![5; size]).encode()] {
            let at = at.index(honest.len());
            let mut bytes = honest;
            bytes[at] ^= flip;
            if cut {
                bytes.truncate(at);
            }
            prop_assert!(reads_back::<ToPayee>(&bytes));
            prop_assert!(reads_back::<FromPayee>(&bytes));
        }
    }
}
