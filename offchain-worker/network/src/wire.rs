//! `/surety/blob/2` and `/surety/stream/1`: messages and their framing.
//!
//! One request and one response a substream. A frame is its length as `u32`, little endian, then SCALE. The length is
//! checked before anything is allocated.

use std::{io, marker::PhantomData};

use codec::{Decode, DecodeAll, Encode};
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use libp2p::{request_response::Codec, StreamProtocol};
use surety_types::{ContentHash, TaskId};

use crate::{
    plane::Statement,
    stream::{StreamPage, PAGE_BYTES_MAX, PAGE_TOKENS_MAX, REASON_BYTES_MAX},
};

/// Blobs, and which blob is a task's output.
pub(crate) const BLOBS: StreamProtocol = StreamProtocol::new("/surety/blob/2");

/// Tokens of tasks that are being computed.
pub(crate) const STREAMS: StreamProtocol = StreamProtocol::new("/surety/stream/1");

/// Largest part of a blob in one response: small enough to keep 64 of them in memory, large enough that round trips
/// do not matter on fast links.
pub(crate) const CHUNK_BYTES: u32 = 1 << 20;

/// The largest request (`Blob`) takes 45 bytes.
const REQUEST_BYTES_MAX: u32 = 64;

/// A chunk with its total, its own length and the variant: at most 16 bytes more than the chunk.
const RESPONSE_BYTES_MAX: u32 = CHUNK_BYTES + 16;

/// What one peer asks another.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum Request {
    /// Up to `len` bytes of a blob, from `offset` on.
    Blob {
        hash: ContentHash,
        offset: u64,
        len: u32,
    },
    /// The hash of the output for a task of the chain with this genesis.
    Output { genesis: ContentHash, task: TaskId },
}

/// What it is told.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[allow(clippy::large_enum_variant)] // One at a time is made and sent.
pub(crate) enum Response {
    /// A part of the blob, and the size of all of it.
    Chunk { total: u64, bytes: Vec<u8> },
    /// The output, with the provider's word on it: 200 bytes.
    Output {
        hash: ContentHash,
        bytes: u64,
        statement: Option<Statement>,
    },
    /// There is no such thing here.
    NotFound,
    /// Ask later, or somebody else.
    Busy,
    /// The request makes no sense.
    Refused,
}

/// One page of a task's stream. Answered as soon as there is something new, or when there was nothing for a while.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct PageRequest {
    /// The chain that the task is on.
    pub(crate) genesis: ContentHash,
    pub(crate) task: TaskId,
    /// Index of the first token that is wanted.
    pub(crate) from: u32,
}

/// A page, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum PageResponse {
    Page(StreamPage),
    /// There is no such stream here, or none that the asking peer may read.
    NotFound,
    /// Ask later, or somebody else.
    Busy,
}

/// A protocol's messages.
pub(crate) trait Messages: Send + 'static {
    type Request: Encode + Decode + Send;
    type Response: Encode + Decode + Send;
    const REQUEST_BYTES_MAX: u32;
    const RESPONSE_BYTES_MAX: u32;
}

/// Those of `/surety/blob/2`.
pub(crate) enum Blobs {}

impl Messages for Blobs {
    type Request = Request;
    type Response = Response;
    const REQUEST_BYTES_MAX: u32 = REQUEST_BYTES_MAX;
    const RESPONSE_BYTES_MAX: u32 = RESPONSE_BYTES_MAX;
}

/// Those of `/surety/stream/1`.
pub(crate) enum Streams {}

impl Messages for Streams {
    type Request = PageRequest;
    type Response = PageResponse;
    const REQUEST_BYTES_MAX: u32 = REQUEST_BYTES_MAX;
    /// A token takes its text and at most 8 bytes; the rest of a page a reason and at most 16.
    const RESPONSE_BYTES_MAX: u32 = (PAGE_BYTES_MAX + PAGE_TOKENS_MAX * 8 + REASON_BYTES_MAX + 16) as u32;
}

/// Frames with SCALE in them.
pub(crate) struct ScaleCodec<M>(PhantomData<fn() -> M>);

impl<M> Clone for ScaleCodec<M> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<M> Default for ScaleCodec<M> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<M: Messages> Codec for ScaleCodec<M> {
    type Protocol = StreamProtocol;
    type Request = M::Request;
    type Response = M::Response;

    async fn read_request<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<M::Request>
    where
        T: AsyncRead + Unpin + Send,
    {
        read_frame(io, M::REQUEST_BYTES_MAX).await
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<M::Response>
    where
        T: AsyncRead + Unpin + Send,
    {
        read_frame(io, M::RESPONSE_BYTES_MAX).await
    }

    async fn write_request<T>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        request: M::Request,
    ) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        write_frame(io, &request.encode(), M::REQUEST_BYTES_MAX).await
    }

    async fn write_response<T>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        response: M::Response,
    ) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        write_frame(io, &response.encode(), M::RESPONSE_BYTES_MAX).await
    }
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

async fn read_frame<M: Decode, T: AsyncRead + Unpin>(io: &mut T, max: u32) -> io::Result<M> {
    let mut prefix = [0u8; 4];
    io.read_exact(&mut prefix).await?;
    let len = u32::from_le_bytes(prefix);
    if len > max {
        return Err(invalid(format!(
            "message of {len} bytes, over the limit of {max}"
        )));
    }
    let mut frame = Vec::new();
    // Grows with what arrives: a length alone costs no memory.
    io.take(u64::from(len)).read_to_end(&mut frame).await?;
    if frame.len() as u64 != u64::from(len) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    M::decode_all(&mut frame.as_slice()).map_err(|e| invalid(format!("message is not SCALE: {e}")))
}

async fn write_frame<T: AsyncWrite + Unpin>(io: &mut T, frame: &[u8], max: u32) -> io::Result<()> {
    let len = u32::try_from(frame.len())
        .ok()
        .filter(|len| *len <= max)
        .ok_or_else(|| {
            invalid(format!(
                "message of {} bytes, over the limit of {max}",
                frame.len()
            ))
        })?;
    io.write_all(&len.to_le_bytes()).await?;
    io.write_all(frame).await
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures::io::Cursor;

    use super::*;
    use crate::stream::{StreamEnd, StreamToken};

    fn blobs() -> ScaleCodec<Blobs> {
        ScaleCodec::default()
    }

    fn streams() -> ScaleCodec<Streams> {
        ScaleCodec::default()
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

        let request = Request::Blob {
            hash: ContentHash::repeat_byte(1),
            offset: u64::MAX,
            len: u32::MAX,
        };
        let mut io = Cursor::new(Vec::new());
        blobs()
            .write_request(&BLOBS, &mut io, request.clone())
            .await
            .unwrap();
        io.set_position(0);
        assert_eq!(blobs().read_request(&BLOBS, &mut io).await.unwrap(), request);
    }

    #[tokio::test]
    async fn the_largest_page_passes() {
        let mut tokens = vec![
            StreamToken {
                id: u32::MAX,
                text: String::new()
            };
            PAGE_TOKENS_MAX
        ];
        // As many tokens as there may be, most of them with texts whose lengths take two bytes.
        for token in tokens.iter_mut() {
            token.text = "x".repeat(PAGE_BYTES_MAX / PAGE_TOKENS_MAX);
        }
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
    async fn a_page_that_is_no_text_is_an_error() {
        let page = PageResponse::Page(StreamPage {
            tokens: vec![StreamToken {
                id: 1,
                text: "ab".into(),
            }],
            end: None,
        });
        let mut frame = page.encode();
        let at = frame.iter().position(|byte| *byte == b'a').unwrap();
        frame[at] = 0xff;
        let bytes = [(frame.len() as u32).to_le_bytes().to_vec(), frame].concat();
        let read = streams().read_response(&STREAMS, &mut Cursor::new(bytes)).await;
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::InvalidData);
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
}
