//! `/surety/blob/1`: messages and their framing.
//!
//! One request and one response a stream. A frame is its length as `u32`, little endian, then SCALE. The length is
//! checked before anything is allocated.

use std::io;

use codec::{Decode, DecodeAll, Encode};
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use libp2p::{request_response::Codec, StreamProtocol};
use surety_types::{ContentHash, TaskId};

/// The protocol's name.
pub(crate) const PROTOCOL: StreamProtocol = StreamProtocol::new("/surety/blob/1");

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
pub(crate) enum Response {
    /// A part of the blob, and the size of all of it.
    Chunk { total: u64, bytes: Vec<u8> },
    /// The output.
    Output { hash: ContentHash, bytes: u64 },
    /// There is no such thing here.
    NotFound,
    /// Ask later, or somebody else.
    Busy,
    /// The request makes no sense.
    Refused,
}

/// Frames with SCALE in them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScaleCodec;

impl Codec for ScaleCodec {
    type Protocol = StreamProtocol;
    type Request = Request;
    type Response = Response;

    async fn read_request<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Request>
    where
        T: AsyncRead + Unpin + Send,
    {
        read_frame(io, REQUEST_BYTES_MAX).await
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Response>
    where
        T: AsyncRead + Unpin + Send,
    {
        read_frame(io, RESPONSE_BYTES_MAX).await
    }

    async fn write_request<T>(&mut self, _: &StreamProtocol, io: &mut T, request: Request) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        write_frame(io, &request.encode(), REQUEST_BYTES_MAX).await
    }

    async fn write_response<T>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        response: Response,
    ) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        write_frame(io, &response.encode(), RESPONSE_BYTES_MAX).await
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

    async fn read(bytes: Vec<u8>) -> io::Result<Response> {
        ScaleCodec.read_response(&PROTOCOL, &mut Cursor::new(bytes)).await
    }

    #[tokio::test]
    async fn the_largest_messages_pass() {
        let chunk = Response::Chunk {
            total: u64::MAX,
            bytes: vec![7; CHUNK_BYTES as usize],
        };
        let mut io = Cursor::new(Vec::new());
        ScaleCodec
            .write_response(&PROTOCOL, &mut io, chunk.clone())
            .await
            .unwrap();
        assert_eq!(read(io.into_inner()).await.unwrap(), chunk);

        let request = Request::Blob {
            hash: ContentHash::repeat_byte(1),
            offset: u64::MAX,
            len: u32::MAX,
        };
        let mut io = Cursor::new(Vec::new());
        ScaleCodec
            .write_request(&PROTOCOL, &mut io, request.clone())
            .await
            .unwrap();
        io.set_position(0);
        assert_eq!(
            ScaleCodec.read_request(&PROTOCOL, &mut io).await.unwrap(),
            request
        );
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
