//! Finalised blocks as they come, over broken connections and slow readers.

use std::time::Duration;

use async_trait::async_trait;
use codec::Encode;
use futures::FutureExt;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use subxt::{
    config::substrate::SubstrateHeader,
    rpcs::{client::RpcSubscription, Error as RpcError},
};

use super::{
    link::{narrow, Connected, Rpc},
    RpcChain,
};
use crate::{BlockNumber, BlockRef, Chain, ChainError, FinalisedBlocks, When};

/// After this long without a finalised block, the subscription is made anew: it may be dead without a sign.
const SILENCE_MAX: Duration = Duration::from_secs(60);

type Header = SubstrateHeader<H256>;

pub(super) struct Blocks {
    chain: RpcChain,
    subscription: Option<(RpcSubscription<Header>, Connected)>,
    last: Option<BlockNumber>,
}

impl Blocks {
    pub fn new(chain: RpcChain) -> Self {
        Self {
            chain,
            subscription: None,
            last: None,
        }
    }

    fn is_news(&mut self, block: BlockRef) -> Option<BlockRef> {
        if self.last.is_some_and(|last| block.number <= last) {
            return None;
        }
        self.last = Some(block.number);
        Some(block)
    }

    async fn subscribe(&mut self) -> Result<(), ChainError> {
        let link = &self.chain.0.link;
        // Asking goes through the link's retries; by then there is a connection to subscribe on.
        let ask = |rpc: Rpc| async move { rpc.chain_subscribe_finalized_heads().await };
        let subscription = link.ask("following finalised blocks", ask).await?;
        let connected = link.connect().await?;
        self.subscription = Some((subscription, connected));
        Ok(())
    }

    async fn drop_subscription(&mut self, reason: &str) {
        if let Some((_, connected)) = self.subscription.take() {
            tracing::debug!(
                url = self.chain.0.link.url(),
                reason,
                "finalised blocks stopped coming"
            );
            self.chain.0.link.drop_connection(&connected).await;
        }
    }
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
impl FinalisedBlocks for Blocks {
    async fn next(&mut self) -> Result<BlockRef, ChainError> {
        loop {
            let Some((subscription, _)) = &mut self.subscription else {
                self.subscribe().await?;
                // What was finalised meanwhile is not announced again.
                let head = self.chain.block(When::Finalised).await?;
                if let Some(block) = self.is_news(head) {
                    return Ok(block);
                }
                continue;
            };
            let arrived: Option<Option<Result<Header, RpcError>>> =
                tokio::time::timeout(SILENCE_MAX, subscription.next()).await.ok();
            let reason = match arrived {
                Some(Some(Ok(header))) => {
                    let block = block_of(&newest(header, subscription))?;
                    if let Some(block) = self.is_news(block) {
                        return Ok(block);
                    }
                    continue;
                }
                Some(Some(Err(error))) => error.to_string(),
                Some(None) => "the subscription ended".into(),
                None => "nothing was finalised for a while".into(),
            };
            self.drop_subscription(&reason).await;
        }
    }
}
