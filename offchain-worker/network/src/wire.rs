//! `/surety/blob/3`, `/surety/stream/1` and `/surety/reach/1`: messages and their framing. Of
//! `/surety/call/1` what is said before a call: the rest is no business of this crate.
//!
//! One request and one response a substream. A frame is its length as `u32`, little endian, then SCALE. The
//! length is checked before anything is allocated.

use std::{io, marker::PhantomData};

use codec::{Decode, DecodeAll, Encode};
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use libp2p::{StreamProtocol, request_response::Codec};
use surety_types::{ContentHash, TaskId, limits, multiaddr::Endpoint};

use crate::{
    access::{TICKET_BYTES_MAX, Ticket},
    plane::Statement,
    stream::{PAGE_TOKENS_MAX, REASON_BYTES_MAX, StreamPage},
};

/// Blobs, and which blob is a task's output.
pub(crate) const BLOBS: StreamProtocol = StreamProtocol::new("/surety/blob/3");

/// Tokens of tasks that are being computed.
pub(crate) const STREAMS: StreamProtocol = StreamProtocol::new("/surety/stream/1");

/// Whether others reach an address of whoever asks.
pub(crate) const REACH: StreamProtocol = StreamProtocol::new("/surety/reach/1");

/// Calls. What is said in them is defined by `surety-channel-calls`, and its changes are new versions, too.
pub(crate) const CALLS: StreamProtocol = StreamProtocol::new("/surety/call/1");

/// Largest part of a blob in one response: small enough to keep 64 of them in memory, large enough that round
/// trips do not matter on fast links. A power of two of segments, so that each part's own content hash is a
/// node of the blob's tree.
pub(crate) const CHUNK_BYTES: u32 = 1 << 20;

/// What is asked (`Blob`) takes at most 45 bytes, the ticket its own, its length and whether it is there.
const REQUEST_BYTES_MAX: u32 = 64 + TICKET_BYTES_MAX as u32;

/// A chunk with its total, its own length and the variant: at most 16 bytes more than the chunk.
const RESPONSE_BYTES_MAX: u32 = CHUNK_BYTES + 16;

/// Most chunks in an outline: as many hashes as a response takes, which is a blob of 32 GiB.
pub(crate) const OUTLINE_CHUNKS_MAX: usize = CHUNK_BYTES as usize / 32 - 1;

/// What one peer asks another, and what it shows to be told.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Request {
    pub(crate) wanted: Wanted,
    pub(crate) ticket: Option<Ticket>,
}

/// What can be asked for.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum Wanted {
    /// Up to `len` bytes of a blob, from `offset` on.
    Blob {
        hash: ContentHash,
        offset: u64,
        len: u32,
    },
    /// The hash of the output for a task of the chain with this genesis.
    Output { genesis: ContentHash, task: TaskId },
    /// The size of a blob and the content hashes of its chunks.
    Outline { hash: ContentHash },
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
        /// The blob of its trace's leaves.
        leaves: Option<ContentHash>,
    },
    /// There is no such thing here.
    NotFound,
    /// Ask later, or somebody else.
    Busy,
    /// The request makes no sense.
    Malformed,
    /// It is here, and not for whoever asked.
    Refused,
    /// The blob's size and the content hash of each [`CHUNK_BYTES`] of it.
    Outline { total: u64, chunks: Vec<ContentHash> },
}

/// One page of a task's stream. Answered as soon as there is something new, or when there was nothing for a
/// while.
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

/// Who asks wants to be dialled at this address, which is where it asks from.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ReachRequest {
    pub(crate) address: Endpoint,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum ReachResponse {
    /// It answered there.
    Reached,
    /// Nobody did, or another peer.
    Unreached,
    /// The address is not where the request comes from: nobody is dialled at others' wish. It comes from this
    /// address of IPv4.
    Elsewhere(Option<[u8; 4]>),
    /// Ask later, or somebody else.
    Busy,
}

/// Who opens a call says this first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct CallHello {
    /// The chain whose channels are spoken of.
    pub(crate) genesis: ContentHash,
}

/// A hash.
pub(crate) const CALL_HELLO_BYTES_MAX: usize = 32;

/// What it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum CallGreeting {
    /// The call may begin.
    Taken,
    /// Nobody here answers calls.
    NotServed,
    /// This node works for another chain.
    OtherChain,
    /// All places are taken, or those for peers that are not named on chain.
    Full,
    /// Too many of this peer, or of its address.
    TooMany,
}

/// Which of them.
pub(crate) const CALL_GREETING_BYTES_MAX: usize = 1;

/// A protocol's messages.
pub(crate) trait Messages: Send + 'static {
    type Request: Encode + Decode + Send;
    type Response: Encode + Decode + Send;
    const REQUEST_BYTES_MAX: u32;
    const RESPONSE_BYTES_MAX: u32;
}

/// Those of `/surety/blob/3`.
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
    const RESPONSE_BYTES_MAX: u32 = (PAGE_TOKENS_MAX * 4 + REASON_BYTES_MAX + 32) as u32;
}

/// Those of `/surety/reach/1`.
pub(crate) enum Reach {}

impl Messages for Reach {
    type Request = ReachRequest;
    type Response = ReachResponse;
    /// An address and its length.
    const REQUEST_BYTES_MAX: u32 = limits::MULTIADDR_BYTES_MAX + 4;
    const RESPONSE_BYTES_MAX: u32 = 6;
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
        let frame = read_frame(io, M::REQUEST_BYTES_MAX).await?;
        M::Request::decode_all(&mut frame.as_slice()).map_err(not_scale)
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<M::Response>
    where
        T: AsyncRead + Unpin + Send,
    {
        let frame = read_frame(io, M::RESPONSE_BYTES_MAX).await?;
        M::Response::decode_all(&mut frame.as_slice()).map_err(not_scale)
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

/// Whether these bytes are read the same once they have been read as each message that others may send, and
/// written again. They always are; for the fuzz target `wire`.
#[doc(hidden)]
pub fn reads_back(bytes: &[u8]) -> bool {
    fn is_same<M: Encode + DecodeAll>(bytes: &[u8]) -> bool {
        M::decode_all(&mut &*bytes).map_or(true, |message| message.encode() == bytes)
    }
    is_same::<Request>(bytes)
        && is_same::<Response>(bytes)
        && is_same::<PageRequest>(bytes)
        && is_same::<PageResponse>(bytes)
        && is_same::<ReachRequest>(bytes)
        && is_same::<ReachResponse>(bytes)
        && is_same::<CallHello>(bytes)
        && is_same::<CallGreeting>(bytes)
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

fn not_scale(error: codec::Error) -> io::Error {
    invalid(format!("message is not SCALE: {error}"))
}

async fn read_frame<T: AsyncRead + Unpin>(io: &mut T, max: u32) -> io::Result<Vec<u8>> {
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
    Ok(frame)
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
mod tests;
