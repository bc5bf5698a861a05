//! Which nodes are asked, and with how much patience.

use std::time::Duration;

/// How to reach a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcConfig {
    /// WebSocket addresses, for example `ws://127.0.0.1:9944`. The first that answers, belongs to the chain
    /// and is not behind it is used; an earlier one again as soon as it is back.
    pub urls: Vec<String>,
    /// How long to keep trying when none answers.
    pub patience: Duration,
    /// How long to try to get a submitted call into a block, and how long to wait for that block to be
    /// finalised.
    pub inclusion_patience: Duration,
    /// How often it is tried whether an earlier node is back.
    pub return_after: Duration,
}

impl RpcConfig {
    /// The usual patience, for the node at `url`.
    pub fn new(url: impl Into<String>) -> Self {
        Self::of_several([url.into()])
    }

    /// The usual patience, for the nodes at `urls`, the preferred ones first.
    pub fn of_several(urls: impl IntoIterator<Item = String>) -> Self {
        Self {
            urls: urls.into_iter().collect(),
            patience: Duration::from_secs(30),
            // Longer than the pause that any single trouble of a node or its pool takes, shorter than any
            // window.
            inclusion_patience: Duration::from_secs(150),
            return_after: Duration::from_secs(60),
        }
    }
}
