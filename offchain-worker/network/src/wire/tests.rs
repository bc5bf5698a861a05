#![allow(clippy::unwrap_used)]
use futures::{executor::block_on, io::Cursor};
use proptest::{collection::vec, option, prelude::*};
use sp_core::crypto::AccountId32;
use surety_proofs::CommitStatement;

use super::*;
use crate::stream::StreamEnd;

fn blobs() -> ScaleCodec<Blobs> {
    ScaleCodec::default()
}

fn streams() -> ScaleCodec<Streams> {
    ScaleCodec::default()
}

/// A request as it arrives at the other end.
async fn there(request: &Request) -> io::Result<Request> {
    let mut io = Cursor::new(Vec::new());
    blobs()
        .write_request(&BLOBS, &mut io, request.clone())
        .await
        .unwrap();
    io.set_position(0);
    blobs().read_request(&BLOBS, &mut io).await
}

/// A response as it comes back.
async fn back(response: &Response) -> Response {
    let mut io = Cursor::new(Vec::new());
    blobs()
        .write_response(&BLOBS, &mut io, response.clone())
        .await
        .unwrap();
    io.set_position(0);
    blobs().read_response(&BLOBS, &mut io).await.unwrap()
}

async fn read(bytes: Vec<u8>) -> io::Result<Response> {
    blobs().read_response(&BLOBS, &mut Cursor::new(bytes)).await
}

#[tokio::test]
async fn the_largest_messages_pass() {
    let chunk = Response::Chunk {
        total: u64::MAX,
        bytes: vec![7; CHUNK_BYTES as usize],
    };
    let mut io = Cursor::new(Vec::new());
    blobs()
        .write_response(&BLOBS, &mut io, chunk.clone())
        .await
        .unwrap();
    assert_eq!(read(io.into_inner()).await.unwrap(), chunk);

    let request = Request {
        wanted: Wanted::Blob {
            hash: ContentHash::repeat_byte(1),
            offset: u64::MAX,
            len: u32::MAX,
        },
        ticket: Ticket::new(vec![1; TICKET_BYTES_MAX]),
    };
    assert_eq!(there(&request).await.unwrap(), request);
    let outline = Response::Outline {
        total: u64::MAX,
        chunks: vec![ContentHash::zero(); OUTLINE_CHUNKS_MAX],
    };
    assert_eq!(back(&outline).await, outline);
}

#[tokio::test]
async fn the_largest_page_passes() {
    let tokens = vec![u32::MAX; PAGE_TOKENS_MAX];
    let end = Some(StreamEnd::Failed {
        reason: "y".repeat(REASON_BYTES_MAX),
    });
    let page = PageResponse::Page(StreamPage { tokens, end });
    let mut io = Cursor::new(Vec::new());
    streams()
        .write_response(&STREAMS, &mut io, page.clone())
        .await
        .unwrap();
    io.set_position(0);
    assert_eq!(streams().read_response(&STREAMS, &mut io).await.unwrap(), page);
}

#[tokio::test]
async fn bad_frames_are_errors() {
    let over = (RESPONSE_BYTES_MAX + 1).to_le_bytes().to_vec();
    assert_eq!(read(over).await.unwrap_err().kind(), io::ErrorKind::InvalidData);
    let short = [8u32.to_le_bytes().to_vec(), vec![2]].concat();
    assert_eq!(
        read(short).await.unwrap_err().kind(),
        io::ErrorKind::UnexpectedEof
    );
    let trailing = [2u32.to_le_bytes().to_vec(), vec![2, 2]].concat();
    assert_eq!(
        read(trailing).await.unwrap_err().kind(),
        io::ErrorKind::InvalidData
    );
    let unknown = [1u32.to_le_bytes().to_vec(), vec![9]].concat();
    assert_eq!(
        read(unknown).await.unwrap_err().kind(),
        io::ErrorKind::InvalidData
    );
}

#[tokio::test]
async fn a_ticket_over_the_bound_is_an_error() {
    let wanted = Wanted::Outline {
        hash: ContentHash::zero(),
    };
    let over = (&wanted, Some(vec![0u8; TICKET_BYTES_MAX + 1])).encode();
    assert!(over.len() <= REQUEST_BYTES_MAX as usize);
    assert!(Request::decode_all(&mut over.as_slice()).is_err());
}

fn hash() -> impl Strategy<Value = ContentHash> {
    any::<[u8; 32]>().prop_map(ContentHash::from)
}

fn request() -> impl Strategy<Value = Request> {
    let wanted = prop_oneof![
        (hash(), any::<u64>(), any::<u32>()).prop_map(|(hash, offset, len)| Wanted::Blob {
            hash,
            offset,
            len
        }),
        (hash(), any::<u64>()).prop_map(|(genesis, task)| Wanted::Output { genesis, task }),
        hash().prop_map(|hash| Wanted::Outline { hash }),
    ];
    let ticket = vec(any::<u8>(), 0..=TICKET_BYTES_MAX).prop_map(|bytes| Ticket::new(bytes).unwrap());
    (wanted, option::of(ticket)).prop_map(|(wanted, ticket)| Request { wanted, ticket })
}

fn statement() -> impl Strategy<Value = Statement> {
    (any::<[u8; 32]>(), any::<u64>(), hash(), hash()).prop_map(|(account, task, commitment, output)| {
        Statement {
            statement: CommitStatement {
                task,
                provider: AccountId32::new(account),
                commitment,
                output,
            },
            agent: AccountId32::new(account),
            signature: [account[0]; 64],
        }
    })
}

fn response() -> impl Strategy<Value = Response> {
    prop_oneof![
        (any::<u64>(), vec(any::<u8>(), 0..2000)).prop_map(|(total, bytes)| Response::Chunk { total, bytes }),
        (hash(), any::<u64>(), option::of(statement()), option::of(hash())).prop_map(
            |(hash, bytes, statement, leaves)| Response::Output {
                hash,
                bytes,
                statement,
                leaves,
            }
        ),
        Just(Response::NotFound),
        Just(Response::Busy),
        Just(Response::Malformed),
        Just(Response::Refused),
        (any::<u64>(), vec(hash(), 0..70)).prop_map(|(total, chunks)| Response::Outline { total, chunks }),
    ]
}

proptest! {
    #[test]
    fn every_message_arrives_as_it_was_sent(request in request(), response in response()) {
        prop_assert_eq!(block_on(there(&request)).unwrap(), request);
        prop_assert_eq!(block_on(back(&response)), response);
    }

    #[test]
    fn whatever_arrives_is_an_error_or_a_message_that_reads_back_the_same(
        mut bytes in vec(any::<u8>(), 0..200),
        variant in 0u8..8,
        second in 0u8..3,
    ) {
        for (byte, small) in bytes.iter_mut().zip([variant, second]) {
            *byte = small;
        }
        prop_assert!(reads_back(&bytes));
    }

    #[test]
    fn a_frame_that_is_cut_is_an_error(request in request(), cut in any::<prop::sample::Index>()) {
        let mut io = Cursor::new(Vec::new());
        block_on(blobs().write_request(&BLOBS, &mut io, request)).unwrap();
        let mut bytes = io.into_inner();
        bytes.truncate(cut.index(bytes.len()));
        let read = block_on(blobs().read_request(&BLOBS, &mut Cursor::new(bytes)));
        prop_assert_eq!(read.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}

#[test]
fn what_is_said_before_a_call_is_as_long_as_it_may_be() {
    let genesis = ContentHash::repeat_byte(7);
    assert_eq!(CallHello { genesis }.encode().len(), CALL_HELLO_BYTES_MAX);
    for greeting in [CallGreeting::Taken, CallGreeting::TooMany] {
        assert_eq!(greeting.encode().len(), CALL_GREETING_BYTES_MAX);
    }
}
