//! Two ends of a connection within one process.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::{AsyncRead, AsyncWrite};
use tokio::io::{AsyncRead as _, AsyncWrite as _, DuplexStream, ReadBuf};

/// One end.
pub(crate) struct Pipe(DuplexStream);

/// Both ends, with room for so many bytes on the way in each direction.
pub(crate) fn pipe(bytes: usize) -> (Pipe, Pipe) {
    let (one, other) = tokio::io::duplex(bytes);
    (Pipe(one), Pipe(other))
}

impl AsyncRead for Pipe {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut room = ReadBuf::new(room);
        ready!(Pin::new(&mut self.0).poll_read(cx, &mut room))?;
        Poll::Ready(Ok(room.filled().len()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
