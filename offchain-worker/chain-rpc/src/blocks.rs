//! Blocks as they come, over broken connections and slow readers.

use std::time::Duration;

use async_trait::async_trait;
use codec::Encode;
use futures::FutureExt;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use subxt::{
    config::substrate::SubstrateHeader,
    rpcs::{Error as RpcError, client::RpcSubscription},
};

use super::{
    RpcChain,
    connections::Connected,
    link::{Rpc, narrow},
};
use surety_chain_client::{BlockNumber, BlockRef, BlockStream, Chain, ChainError, When};

/// After this long without a block, the subscription is made anew: it may be dead without a sign.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// The same for best blocks where there are other nodes to follow: they come every few seconds. Whether
/// another node is asked by now is looked at as often.
const SILENCE_MAX_OF_SEVERAL: Duration = Duration::from_secs(8);
/// The running clock is no further ahead of its finalised state than this while finality stands still: what
/// it counts is what becomes final. Half a minute.
const CLOCK_AHEAD_MAX: BlockNumber = 15;

type Header = SubstrateHeader<H256>;

pub(super) struct Blocks {
    chain: RpcChain,
    subscription: Option<(RpcSubscription<Header>, Connected)>,
    /// Finalised or best ones.
    when: When,
    last: Option<BlockRef>,
    /// How long no block may come before the subscription is made anew.
    pub(super) silence_max: Duration,
}

impl Blocks {
    pub fn new(chain: RpcChain, when: When) -> Self {
        Self {
            subscription: None,
            when,
            last: None,
            silence_max: match chain.0.link.nodes() {
                0 | 1 => SILENCE_MAX,
                _ if when == When::Finalized => SILENCE_MAX,
                _ => SILENCE_MAX_OF_SEVERAL,
            },
            chain,
        }
    }

    fn is_news(&mut self, block: BlockRef) -> Option<BlockRef> {
        let is_old = |last: BlockRef| match self.when {
            When::Finalized => block.number <= last.number,
            When::Best | When::At(_) => block.hash == last.hash,
        };
        if self.last.is_some_and(is_old) {
            return None;
        }
        self.last = Some(block);
        Some(block)
    }

    async fn subscribe(&mut self) -> Result<(), ChainError> {
        let link = &self.chain.0.link;
        let when = self.when;
        let ask = |rpc: Rpc| async move {
            match when {
                When::Finalized => rpc.chain_subscribe_finalized_heads().await,
                When::Best | When::At(_) => rpc.chain_subscribe_new_heads().await,
            }
        };
        self.subscription = Some(link.ask_of_one("following blocks", ask).await?);
        Ok(())
    }

    /// The block of a header that has arrived, if it is news.
    fn hear(&mut self, header: &Header) -> Result<Option<BlockRef>, ChainError> {
        let block = block_of(header)?;
        if self.when == When::Finalized {
            self.chain.0.link.note_finalized(block.number)?;
        }
        Ok(self.is_news(block))
    }

    /// What the node says cannot be true: the next one is turned to.
    fn distrust(&mut self, error: &ChainError) {
        if let Some((_, connected)) = self.subscription.take() {
            self.chain.0.link.distrust(&connected, error);
        }
    }

    /// The node is not followed any more: the next one is turned to.
    fn leave(&mut self, reason: &str) {
        if let Some((_, connected)) = self.subscription.take() {
            tracing::debug!(url = self.chain.0.link.url(), reason, "blocks stopped coming");
            self.chain.0.link.drop_connection(&connected);
        }
    }

    /// No block came for too long. Finality may stand still on all nodes: that is no reason to leave one, nor
    /// to break the connection that everything else goes over.
    async fn fall_silent(&mut self) {
        match self.when {
            When::Finalized if is_left_behind(self.chain.clone()).await => {
                self.leave("the chain finalises and it does not")
            }
            When::Finalized => self.subscription = None,
            When::Best | When::At(_) => self.leave("no block came for a while"),
        }
    }
}

/// Whether blocks become final that the node, one of several, does not take for final: the clock says so.
async fn is_left_behind(chain: RpcChain) -> bool {
    if chain.0.link.nodes() < 2 {
        return false;
    }
    let clocks = tokio::try_join!(chain.clock(When::Best), chain.clock(When::Finalized));
    clocks.is_ok_and(|(best, finalized)| best.saturating_sub(finalized) > CLOCK_AHEAD_MAX)
}

fn block_of(header: &Header) -> Result<BlockRef, ChainError> {
    Ok(BlockRef {
        number: narrow(header.number)?,
        hash: H256(blake2_256(&header.encode())),
    })
}

/// The newest header that has arrived: a slow reader skips the rest.
fn newest(first: Header, subscription: &mut RpcSubscription<Header>) -> Header {
    let mut newest = first;
    while let Some(Some(Ok(header))) = subscription.next().now_or_never() {
        newest = header;
    }
    newest
}

#[async_trait]
impl BlockStream for Blocks {
    async fn next(&mut self) -> Result<BlockRef, ChainError> {
        let patience = self.silence_max.min(SILENCE_MAX_OF_SEVERAL);
        let mut silent = Duration::ZERO;
        loop {
            let Some((subscription, connected)) = &mut self.subscription else {
                self.subscribe().await?;
                silent = Duration::ZERO;
                // What was finalised meanwhile is not announced again.
                let head = self.chain.block(self.when).await?;
                if let Some(block) = self.is_news(head) {
                    return Ok(block);
                }
                continue;
            };
            let arrived: Option<Option<Result<Header, RpcError>>> =
                tokio::time::timeout(patience, subscription.next()).await.ok();
            // Questions about a block go to the node that named it.
            let is_current = self.chain.0.link.is_current(connected);
            match arrived {
                _ if !is_current => self.leave("questions go to another node now"),
                Some(Some(Ok(header))) => {
                    silent = Duration::ZERO;
                    let header = newest(header, subscription);
                    match self.hear(&header) {
                        Ok(Some(block)) => return Ok(block),
                        Ok(None) => {}
                        // Whoever asks again does so after a pause: the next node may say the same.
                        Err(error) => {
                            self.distrust(&error);
                            return Err(error);
                        }
                    }
                }
                Some(Some(Err(error))) => self.leave(&error.to_string()),
                Some(None) => self.leave("the subscription ended"),
                None => {
                    silent = silent.saturating_add(patience);
                    if silent >= self.silence_max {
                        self.fall_silent().await;
                    }
                }
            }
        }
    }
}
