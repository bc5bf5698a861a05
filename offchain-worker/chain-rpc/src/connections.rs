//! The connection: made when it is needed, dropped when it breaks, to the first node that can be believed.
//!
//! A node may take ten seconds to answer, or not to. So the state is never locked meanwhile: who has a
//! connection goes on over it while an earlier node is looked for, and who has none shares what comes of the
//! one attempt that is made.

use std::{
    sync::{MutexGuard, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use sp_core::H256;

use super::{
    link::{Link, Rpc, Trouble},
    node::{self, Distrust},
};

/// What is known of the nodes, and the connection to one of them.
#[derive(Default)]
pub(super) struct State {
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

impl Link {
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
    pub(super) async fn connected(&self) -> Result<Connected, Trouble> {
        let (present, failures) = {
            let state = self.state();
            (state.rpc.clone(), state.failures)
        };
        if let Some(present) = present {
            return Ok(self.earlier(&present).await.unwrap_or(present));
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
            match self.try_node(node, node::CONNECT_PATIENCE).await {
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

    /// A connection to a node that comes before the present one, if it is time to look for one and one is
    /// back. One question looks; the others go over the present connection meanwhile.
    async fn earlier(&self, present: &Connected) -> Option<Connected> {
        let is_time = |looked: Instant| looked.elapsed() >= self.return_after;
        if present.node == 0 || !self.state().looked.is_none_or(is_time) {
            return None;
        }
        let _connecting = self.connecting.try_lock().ok()?;
        self.state().looked = Some(Instant::now());
        for node in 0..present.node {
            match self.try_node(node, node::RETURN_PATIENCE).await {
                Ok(connected) => {
                    tracing::info!(url = self.url_of(node), "back to an earlier node");
                    return Some(connected);
                }
                Err(distrust) => tracing::debug!(url = self.url_of(node), %distrust, "not back yet"),
            }
        }
        None
    }

    /// Only for who holds `connecting`.
    async fn try_node(&self, node: usize, patience: Duration) -> Result<Connected, Distrust> {
        let (url, genesis) = (self.url_of(node), self.state().genesis);
        let finalized = self.finalized.load(Ordering::Relaxed);
        let (rpc, genesis) = node::connect(&url, patience, self.nodes() > 1, genesis, finalized).await?;
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
