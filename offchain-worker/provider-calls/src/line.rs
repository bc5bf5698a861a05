//! Connections, one for each call.

use async_trait::async_trait;
use surety_network::{CallListener, CallReceiver, CallSender};

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Broken(pub String);

/// What a peer says.
#[async_trait]
pub trait Hear: Send {
    /// Its next frame, of no more than so many bytes; nothing once it has said all.
    async fn hear(&mut self, bytes_max: usize) -> Result<Option<Vec<u8>>, Broken>;
}

/// What is said to a peer.
#[async_trait]
pub trait Tell: Send {
    /// Sends a frame.
    async fn tell(&mut self, frame: &[u8]) -> Result<(), Broken>;
}

/// A connection. Dropping both halves closes it.
pub struct Line {
    /// From the peer.
    pub from: Box<dyn Hear>,
    /// To it.
    pub to: Box<dyn Tell>,
}

/// Where connections come from.
#[async_trait]
pub trait Listen: Send {
    /// The next; nothing when there are no more.
    async fn next(&mut self) -> Option<Line>;
}

#[async_trait]
impl Hear for CallReceiver {
    async fn hear(&mut self, bytes_max: usize) -> Result<Option<Vec<u8>>, Broken> {
        let heard = self.recv(bytes_max).await;
        heard.map_err(|error| Broken(error.to_string()))
    }
}

#[async_trait]
impl Tell for CallSender {
    async fn tell(&mut self, frame: &[u8]) -> Result<(), Broken> {
        let told = self.send(frame).await;
        told.map_err(|error| Broken(error.to_string()))
    }
}

#[async_trait]
impl Listen for CallListener {
    async fn next(&mut self) -> Option<Line> {
        let (to, from) = CallListener::next(self).await?.split();
        let (from, to) = (Box::new(from), Box::new(to));
        Some(Line { from, to })
    }
}
