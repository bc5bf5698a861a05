//! Why there is no call, or no more of it.

use crate::plane::PeerError;

/// Why there is no call, or no more of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The peer has no address that could be dialled.
    #[error("the provider has no endpoint: it has to register one")]
    NoEndpoint,
    /// There is no connection to the peer.
    #[error("the provider cannot be reached: {0}: try again, or choose another one")]
    Unreachable(PeerError),
    /// The peer does not know the protocol, or nobody behind it listens.
    #[error("the provider does not serve calls: choose another one")]
    NotServed,
    /// The peer works for another chain.
    #[error("the provider is of another chain: look which chain this node follows")]
    OtherChain,
    /// The peer has no place left, or none for those that the chain does not name.
    #[error("the provider has as many calls as it takes: try again in a moment, or choose another one")]
    Full,
    /// The peer has as many calls of this node, or of its address, as it takes.
    #[error("the provider has as many calls of this node as it takes: wait until one of them has ended")]
    TooMany,
    /// This node has as many calls of its own as it makes.
    #[error("this node has as many calls as it makes at once: wait until one of them has ended")]
    OwnFull,
    /// A frame is over the limit. Nothing of it was read, and the call is over.
    #[error("a frame of {bytes} bytes is over the limit of {bytes_max}: the call is over")]
    TooLong {
        /// As many as there are.
        bytes: u64,
        /// As many as there may be.
        bytes_max: u64,
    },
    /// Nothing was to be sent, which would say that there is no more.
    #[error("an empty frame cannot be sent")]
    Empty,
    /// The peer has said nothing for too long.
    #[error("the peer has said nothing for {seconds} s: the call is over")]
    Silent {
        /// For so long.
        seconds: u64,
    },
    /// A frame has begun and did not get through in time.
    #[error("a frame did not get through in {seconds} s: the call is over")]
    Stalled {
        /// In this time.
        seconds: u64,
    },
    /// An earlier frame was not sent whole.
    #[error("an earlier frame was not sent whole: the call is over")]
    Torn,
    /// The connection is gone, or the peer has broken the call off.
    #[error("the call broke off: {0}")]
    Lost(String),
    /// The peer answers something else than it may.
    #[error("the peer broke the protocol: {0}")]
    Protocol(String),
    /// The node has stopped.
    #[error("the data plane has stopped")]
    Stopped,
}
