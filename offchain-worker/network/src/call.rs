//! Calls: frames both ways over one stream of a connection, for as long as both ends want.
//!
//! What the frames hold is not looked at (`surety-channel-calls`). Whoever opens a call says which chain it
//! means, and is told whether the call is taken before it says anything else. A frame of length 0 ends one
//! direction: a stream that ends without one has broken, whatever the transport makes of it.
//!
//! A call is as fast as its slower end: what the other end does not read waits in the windows of the
//! transport (256 KiB of a stream over TCP at first), and after that in `send`.

pub(crate) mod behaviour;
pub(crate) mod desk;
mod error;
mod open;
pub(crate) mod pipe;
#[cfg(test)]
mod tests;

use std::{mem, sync::Arc, time::Duration};

use futures::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt,
    io::{ReadHalf, WriteHalf},
};
use tokio::{runtime::Handle, sync::mpsc, time::Instant};

use crate::{event_loop::root_cause, limits::Limits};

pub use error::CallError;

/// Bytes of a frame's length, `u32`, little endian.
const PREFIX: usize = 4;

/// How far a frame's memory runs ahead of its bytes: a length alone costs no more.
const READ_AHEAD: usize = 16 << 10;

/// What a call goes over.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// A place among the calls, free again when it is dropped.
pub(crate) type Place = Arc<dyn Send + Sync>;

/// How long the other end may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Until a frame begins: it may have much to compute.
    idle: Duration,
    /// For a frame, and then so many bytes a second.
    stall: Duration,
    bytes_per_second: u64,
}

impl Patience {
    pub(crate) fn of(limits: &Limits) -> Self {
        Self {
            idle: limits.call_idle_max,
            stall: limits.call_stall_max,
            bytes_per_second: limits.bytes_per_second_min.max(1),
        }
    }

    /// For a frame, once it has begun.
    fn frame(&self, bytes: u64) -> Duration {
        let more = bytes.saturating_mul(1000) / self.bytes_per_second;
        self.stall.saturating_add(Duration::from_millis(more))
    }
}

/// A call with one peer.
pub struct CallStream {
    sender: CallSender,
    receiver: CallReceiver,
}

/// What a peer is told in a call. Dropping it ends this direction: what was sent still arrives, and then the
/// peer reads the end.
pub struct CallSender {
    /// Nothing once a frame was not sent whole: what followed could not be told from it.
    wire: Option<WriteHalf<Box<dyn Wire>>>,
    peer: Arc<str>,
    patience: Patience,
    place: Place,
}

/// What a peer says in a call.
pub struct CallReceiver {
    wire: ReadHalf<Box<dyn Wire>>,
    peer: Arc<str>,
    patience: Patience,
    /// For the next frame to begin.
    idle: Duration,
    /// The frame that is being read, its length first, and room for more of it.
    frame: Vec<u8>,
    /// Bytes of it that are there.
    there: usize,
    /// When there has to be more.
    until: Option<Instant>,
    state: State,
    _place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Ended,
    Broken,
}

impl CallStream {
    pub(crate) fn new(wire: impl Wire + 'static, peer: &str, patience: Patience, place: Place) -> Self {
        let wire: Box<dyn Wire> = Box::new(wire);
        let (read, write) = wire.split();
        let peer: Arc<str> = peer.into();
        Self {
            sender: CallSender {
                wire: Some(write),
                peer: peer.clone(),
                patience,
                place: place.clone(),
            },
            receiver: CallReceiver {
                wire: read,
                peer,
                patience,
                idle: patience.idle,
                frame: Vec::new(),
                there: 0,
                until: None,
                state: State::Open,
                _place: place,
            },
        }
    }

    /// With less patience until the first frame begins.
    pub(crate) fn first_within(mut self, time: Duration) -> Self {
        self.receiver.idle = time;
        self
    }

    /// The other end's peer id, as it stands in endpoints.
    pub fn peer(&self) -> &str {
        &self.sender.peer
    }

    /// As [`CallSender::send`].
    ///
    /// # Errors
    /// Those of [`CallSender::send`].
    pub async fn send(&mut self, frame: &[u8]) -> Result<(), CallError> {
        self.sender.send(frame).await
    }

    /// As [`CallReceiver::recv`].
    ///
    /// # Errors
    /// Those of [`CallReceiver::recv`].
    pub async fn recv(&mut self, bytes_max: usize) -> Result<Option<Vec<u8>>, CallError> {
        self.receiver.recv(bytes_max).await
    }

    /// Both directions, for two tasks. The call keeps its place until both are dropped.
    pub fn split(self) -> (CallSender, CallReceiver) {
        (self.sender, self.receiver)
    }
}

impl CallSender {
    /// The other end's peer id, as it stands in endpoints.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// Sends a frame, and returns when it is in the transport's hands: it waits for a peer that does not
    /// read.
    ///
    /// When this is dropped half way, nothing more can be sent.
    ///
    /// # Errors
    /// When the frame is empty or too long to have a length; when the connection is lost, when the peer does
    /// not take the frame in [`Limits::call_stall_max`] and what its bytes allow, or when an earlier frame
    /// was not sent whole. After the last three nothing more can be sent.
    pub async fn send(&mut self, frame: &[u8]) -> Result<(), CallError> {
        if frame.is_empty() {
            return Err(CallError::Empty);
        }
        let bytes = frame.len() as u64;
        let length = u32::try_from(bytes).map_err(|_| CallError::TooLong {
            bytes,
            bytes_max: u32::MAX.into(),
        })?;
        let mut wire = self.wire.take().ok_or(CallError::Torn)?;
        let framed = [&length.to_le_bytes()[..], frame].concat();
        let time = self.patience.frame(bytes);
        tokio::time::timeout(time, async {
            wire.write_all(&framed).await?;
            wire.flush().await
        })
        .await
        .map_err(|_| CallError::Stalled {
            seconds: time.as_secs(),
        })?
        .map_err(|error| CallError::Lost(root_cause(&error)))?;
        self.wire = Some(wire);
        Ok(())
    }
}

impl Drop for CallSender {
    fn drop(&mut self) {
        // Without a runtime there is no connection any more.
        let (Some(mut wire), Ok(runtime)) = (self.wire.take(), Handle::try_current()) else {
            return;
        };
        let (time, place) = (self.patience.stall, self.place.clone());
        runtime.spawn(async move {
            let end = async {
                wire.write_all(&[0; PREFIX]).await?;
                wire.close().await
            };
            match tokio::time::timeout(time, end).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::trace!(%error, "the peer was gone before the call's end"),
                Err(_) => tracing::debug!("the peer did not take the call's end"),
            }
            drop(place);
        });
    }
}

impl CallReceiver {
    /// The other end's peer id, as it stands in endpoints.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// The next frame; nothing once the peer has ended its direction.
    ///
    /// It may be dropped at any time, as in a `select!`: nothing is lost, and its time goes on.
    ///
    /// # Errors
    /// When a frame is longer than `bytes_max`, of which nothing is read; when nothing comes for
    /// [`Limits::call_idle_max`], or a frame that has begun does not arrive in [`Limits::call_stall_max`] and
    /// what its bytes allow; when the connection is lost, or the peer hung up without an end. Each of them
    /// ends the call.
    pub async fn recv(&mut self, bytes_max: usize) -> Result<Option<Vec<u8>>, CallError> {
        match self.state {
            State::Open => {}
            State::Ended => return Ok(None),
            State::Broken => return Err(CallError::Lost("it broke off before".into())),
        }
        let read = self.read(bytes_max).await;
        match &read {
            Ok(Some(_)) => {
                self.idle = self.patience.idle;
                self.until = None;
            }
            Ok(None) => self.state = State::Ended,
            Err(_) => {
                self.state = State::Broken;
                self.frame = Vec::new();
            }
        }
        read
    }

    async fn read(&mut self, bytes_max: usize) -> Result<Option<Vec<u8>>, CallError> {
        let silent = CallError::Silent {
            seconds: self.idle.as_secs(),
        };
        self.fill(PREFIX, self.idle, silent).await?;
        let length = self
            .frame
            .first_chunk()
            .map_or(0, |prefix| u32::from_le_bytes(*prefix));
        let bytes = usize::try_from(length).unwrap_or(usize::MAX);
        if bytes == 0 {
            return Ok(None);
        }
        if bytes > bytes_max {
            return Err(CallError::TooLong {
                bytes: length.into(),
                bytes_max: bytes_max as u64,
            });
        }
        let time = self.patience.frame(length.into());
        let stalled = CallError::Stalled {
            seconds: time.as_secs(),
        };
        self.fill(bytes.saturating_add(PREFIX), time, stalled).await?;
        self.there = 0;
        let mut frame = mem::take(&mut self.frame);
        frame.drain(..PREFIX);
        Ok(Some(frame))
    }

    /// Reads until so many bytes of the frame are there. What was begun and dropped before is gone on with.
    async fn fill(&mut self, target: usize, time: Duration, late: CallError) -> Result<(), CallError> {
        if self.there >= target {
            return Ok(());
        }
        while self.there < target {
            let until = *self.until.get_or_insert_with(|| Instant::now() + time);
            let end = target.min(self.there.saturating_add(READ_AHEAD));
            self.frame.resize(end, 0);
            let room = self.frame.get_mut(self.there..).unwrap_or_default();
            let Ok(read) = tokio::time::timeout_at(until, self.wire.read(room)).await else {
                return Err(late);
            };
            match read {
                Ok(0) => return Err(CallError::Lost("the peer hung up, or is gone".into())),
                Ok(more) => self.there = self.there.saturating_add(more),
                Err(error) => return Err(CallError::Lost(root_cause(&error))),
            }
        }
        self.until = None;
        Ok(())
    }
}

/// Calls of others, as they come in. While it lives this node serves calls; dropping it ends that.
pub struct CallListener(mpsc::Receiver<CallStream>);

impl CallListener {
    /// As many calls may wait as there may be. Gives back where they are put, too.
    pub(crate) fn new(calls_max: usize) -> (Self, mpsc::Sender<CallStream>) {
        let (calls, receiver) = mpsc::channel(calls_max.max(1));
        (Self(receiver), calls)
    }

    /// The next call. Its first frame has to come within [`Limits::request_timeout`]: who is silent keeps no
    /// place for long. Nothing once the node has stopped.
    pub async fn next(&mut self) -> Option<CallStream> {
        self.0.recv().await
    }
}
