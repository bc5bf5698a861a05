//! The connection: made when it is needed, dropped when it breaks, to the first node that can be believed.
//!
//! A node may take ten seconds to answer, or not to. So the state is never locked meanwhile: who has a
//! connection goes on over it while an earlier node is looked for, and who has none shares what comes of the
//! one attempt that is made.

use std::{
    sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use sp_core::H256;
use tokio::sync::Mutex;

use super::{
    finality::Finality,
    link::{Rpc, Trouble},
    node::{self, Distrust},
};
use surety_chain_client::BlockNumber;

/// The nodes, and the connection to one of them.
pub(super) struct Nodes {
    urls: Vec<String>,
    /// How often it is tried whether a node that comes earlier in the list is back.
    return_after: Duration,
    /// Held for moments only: never while a node is asked anything.
    state: StdMutex<State>,
    /// Held while a connection is made: by one question at a time, for all that wait for it.
    connecting: Mutex<()>,
}

/// What is known of the nodes, and the connection to one of them.
#[derive(Default)]
struct State {
    rpc: Option<Connected>,
    /// Which node is tried next.
    next: usize,
    /// When an earlier node was last looked for.
    looked: Option<Instant>,
    /// How many connections there were: tells a broken one from its successor.
    made: u64,
    /// How often all nodes were tried in vain, and what came of it the last time.
    failures: u64,
    failure: Option<Trouble>,
    genesis: Option<H256>,
    finality: Finality,
}

impl State {
    /// Whether questions go over this connection.
    fn is_over(&self, connected: &Connected) -> bool {
        let present = self.rpc.as_ref();
        present.is_some_and(|present| present.number == connected.number)
    }
}

/// A connection to a node that was believed when it was made.
#[derive(Clone)]
pub(super) struct Connected {
    pub rpc: Rpc,
    number: u64,
    /// Which node it is.
    pub(super) node: usize,
}

impl Nodes {
    pub fn new(urls: Vec<String>, return_after: Duration) -> Self {
        Self {
            urls,
            return_after,
            state: StdMutex::default(),
            connecting: Mutex::default(),
        }
    }

    pub fn count(&self) -> usize {
        self.urls.len()
    }

    /// All nodes' addresses.
    pub fn urls(&self) -> String {
        self.urls.join(", ")
    }

    pub fn url_of(&self, node: usize) -> String {
        self.urls.get(node).cloned().unwrap_or_default()
    }

    /// The address of the node that is asked now; all of them while there is none.
    pub fn url(&self) -> String {
        let asked = self.state().rpc.as_ref().map(|connected| connected.node);
        asked.map_or_else(|| self.urls(), |node| self.url_of(node))
    }

    /// Height of the newest finalised block that any node has shown.
    pub fn finalized(&self) -> BlockNumber {
        self.state().finality.newest()
    }

    /// Takes note of a block that the node at hand calls final; the newest one known before. Nothing where it
    /// cannot be final yet.
    pub fn note_finalized(&self, number: BlockNumber) -> Option<BlockNumber> {
        self.state().finality.note(number, self.return_after)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether questions go over this connection now.
    pub fn is_current(&self, connected: &Connected) -> bool {
        self.state().is_over(connected)
    }

    /// Drops a connection that broke or told untruths, unless it has been replaced already; the next node is
    /// tried next.
    pub fn drop_connection(&self, broken: &Connected) {
        let mut state = self.state();
        if state.is_over(broken) {
            state.rpc = None;
            state.next = self.after(broken.node);
        }
    }

    fn after(&self, node: usize) -> usize {
        node.saturating_add(1)
            .checked_rem(self.urls.len())
            .unwrap_or_default()
    }

    /// The connection at hand, or one that is made now.
    pub async fn connected(self: &Arc<Self>) -> Result<Connected, Trouble> {
        let (present, failures) = {
            let state = self.state();
            (state.rpc.clone(), state.failures)
        };
        if let Some(present) = present {
            self.look_for_earlier(&present);
            return Ok(present);
        }
        let _connecting = self.connecting.lock().await;
        {
            // Another question may have found out meanwhile what there is to find out.
            let state = self.state();
            if let Some(connected) = state.rpc.clone() {
                return Ok(connected);
            }
            if let Some(trouble) = state.failure.clone().filter(|_| state.failures > failures) {
                return Err(trouble);
            }
        }
        let tried = self.try_nodes().await;
        if let Err(trouble) = &tried {
            let mut state = self.state();
            state.failures = state.failures.saturating_add(1);
            state.failure = Some(trouble.clone());
        }
        tried
    }

    async fn try_nodes(&self) -> Result<Connected, Trouble> {
        let (nodes, first) = (self.urls.len(), self.state().next);
        let (mut troubles, mut foreign) = (Vec::new(), None);
        for step in 0..nodes {
            let node = first.saturating_add(step);
            let node = node.checked_rem(nodes).unwrap_or_default();
            match self.try_node(node, node::connect_patience(nodes > 1)).await {
                Ok(connected) => return Ok(connected),
                Err(Distrust::OtherChain(error)) => foreign = Some(error),
                Err(Distrust::For(reason)) if nodes == 1 => troubles.push(reason),
                Err(Distrust::For(reason)) => troubles.push(format!("{}: {reason}", self.url_of(node))),
            }
        }
        match foreign {
            Some(error) if troubles.is_empty() => Err(Trouble::Final(error)),
            _ => Err(Trouble::Link(troubles.join("; "))),
        }
    }

    /// Looks whether a node that comes before the present one is back, if it is time to. No question waits
    /// for that: they go over the present connection meanwhile.
    fn look_for_earlier(self: &Arc<Self>, present: &Connected) {
        let is_time = |looked: Instant| looked.elapsed() >= self.return_after;
        let before = present.node;
        {
            let mut state = self.state();
            if before == 0 || !state.looked.is_none_or(is_time) {
                return;
            }
            state.looked = Some(Instant::now());
        }
        let nodes = self.clone();
        tokio::spawn(async move { nodes.return_to_earlier(before).await });
    }

    async fn return_to_earlier(&self, before: usize) {
        let Ok(_connecting) = self.connecting.try_lock() else {
            return;
        };
        for node in 0..before {
            match self.try_node(node, node::RETURN_PATIENCE).await {
                Ok(_) => {
                    tracing::info!(url = self.url_of(node), "back to an earlier node");
                    return;
                }
                Err(distrust) => tracing::debug!(url = self.url_of(node), %distrust, "not back yet"),
            }
        }
    }

    /// Only for who holds `connecting`.
    async fn try_node(&self, node: usize, patience: Duration) -> Result<Connected, Distrust> {
        let (url, genesis) = (self.url_of(node), self.state().genesis);
        let (is_one_of_several, finalized) = (self.count() > 1, self.finalized());
        let (rpc, genesis) = node::connect(&url, patience, is_one_of_several, genesis, finalized).await?;
        let mut state = self.state();
        state.genesis = Some(genesis);
        state.made = state.made.saturating_add(1);
        state.next = node;
        state.looked = Some(Instant::now());
        let connected = Connected {
            rpc,
            number: state.made,
            node,
        };
        state.rpc = Some(connected.clone());
        Ok(connected)
    }
}
