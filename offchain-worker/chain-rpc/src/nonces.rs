//! Which nonce a call gets, from which block on its signature is good, and places that lost calls leave.

use std::sync::Arc;

use sp_core::crypto;
use subxt::utils::AccountId32;

use super::{
    Inner,
    attempts::Place,
    entries::{AccountInfo, Entry},
    link::{Rpc, narrow},
    runtime::Runtime,
    sign::{ANCHOR_DEPTH, Terms, sign},
};
use surety_chain_client::{BlockRef, ChainError, Sent, Signer, When};

/// Most missing nonces that are filled at once.
const GAP_MAX: u64 = 16;
/// Calls of one signer that a pool may hold: far more than one sends. A call signed with a nonce beyond could
/// not be carried out.
const POOLED_MAX: u64 = 1_000;

/// What signatures are made with besides the call and its nonce.
pub(super) struct Basis {
    pub best: BlockRef,
    /// The one that makes the block after the best one.
    pub runtime: Arc<Runtime>,
    pub anchor: BlockRef,
    /// The signer's next nonce by the best block.
    pub used: u64,
}

impl Inner {
    pub(super) async fn account(
        &self,
        at: BlockRef,
        account: &crypto::AccountId32,
    ) -> Result<AccountInfo, ChainError> {
        let found = self.read_at(at, Entry::Account, &[account.as_ref()]).await;
        Ok(self.of_new(at, found).await?.unwrap_or_default())
    }

    /// What calls of a signer are signed with, read before it is their turn: a node that is slow to answer
    /// keeps none of its other calls waiting.
    pub(super) async fn basis(&self, signer: &Signer) -> Result<Basis, ChainError> {
        let best = self.head(When::Best).await?;
        let runtime = self.of_new(best, self.runtime_after(best.hash).await).await?;
        let (anchor, account) = tokio::try_join!(self.anchor(best), self.account(best, signer.account()))?;
        Ok(Basis {
            best,
            runtime,
            anchor,
            used: account.nonce.into(),
        })
    }

    /// The next nonce that neither the chain, nor the pool, nor a call of ours that is on its way uses.
    pub(super) async fn next_nonce(
        &self,
        place: &Place,
        signer: &Signer,
        basis: &Basis,
    ) -> Result<u64, ChainError> {
        let (used, pooled) = (basis.used, self.pool_nonce(signer.account()).await?);
        if pooled > used.saturating_add(POOLED_MAX) {
            let reason = format!("it has {pooled} for the next nonce of an account that has used {used}");
            return Err(self.link.implausible(reason));
        }
        Ok(place.free_nonce(basis.runtime.spec_version(), basis.best.number, pooled.max(used)))
    }

    /// The nonce after those that the chain and the pool have seen without a gap.
    async fn pool_nonce(&self, account: &crypto::AccountId32) -> Result<u64, ChainError> {
        let account = AccountId32(account.clone().into());
        let ask = |rpc: Rpc| async move { rpc.system_account_next_index(&account).await };
        self.link.ask("reading the account's nonce", ask).await
    }

    pub(super) async fn sent(&self, account: &crypto::AccountId32) -> Result<Sent, ChainError> {
        // What becomes final between the two questions is counted by both.
        let all = narrow(self.pool_nonce(account).await?)?;
        let known: Option<AccountInfo> = self
            .read(When::Finalized, Entry::Account, &[account.as_ref()])
            .await?;
        let finalized = known.unwrap_or_default().nonce;
        Ok(Sent {
            finalized,
            all: all.max(finalized),
        })
    }

    /// The block that signatures count from. Its hash is all that is needed of it, not its state.
    async fn anchor(&self, best: BlockRef) -> Result<BlockRef, ChainError> {
        let finalized = self.link.finalized().await?;
        let deep = best.number.saturating_sub(ANCHOR_DEPTH);
        if finalized.number >= deep {
            return Ok(finalized);
        }
        let hash = self.link.block_hash(Some(deep)).await?;
        Ok(BlockRef { number: deep, hash })
    }

    /// Fills nonces before a call's, which were given out to calls that got lost: by those calls as long as
    /// they may be carried out, by nothing otherwise.
    pub(super) async fn fill_gap(&self, place: &Place, signer: &Signer) -> Result<(), ChainError> {
        let Some(attempt) = place.attempt() else {
            return Ok(());
        };
        let basis = self.basis(signer).await?;
        let _turn = place.turn().await;
        let first = self.pool_nonce(signer.account()).await?;
        let last = attempt.nonce.min(first.saturating_add(GAP_MAX));
        for nonce in first..last {
            tracing::warn!(
                nonce,
                "a call of this signer got lost before others: its place is filled"
            );
            if let Err(error) = self.fill(place, signer, &basis, nonce).await {
                tracing::debug!(nonce, %error, "not filled");
                // A node that does not answer shall not keep other calls of the signer waiting.
                if !matches!(error, ChainError::Rejected(_)) {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn fill(
        &self,
        place: &Place,
        signer: &Signer,
        basis: &Basis,
        nonce: u64,
    ) -> Result<(), ChainError> {
        let runtime = &basis.runtime;
        if let Some(lost) = place.bytes_at(nonce, runtime.spec_version(), basis.best.number) {
            match self.hand_over(&lost).await {
                // Handed over again, they would be refused again, and the calls behind them would wait on.
                Err(ChainError::Rejected(refusal)) if refusal.spoils() || !refusal.is_curable() => {
                    tracing::debug!(nonce, %refusal, "the lost call cannot be carried out any more");
                    place.spoil_bytes(&lost);
                }
                sent => return sent.map(drop),
            }
        }
        let terms = Terms {
            genesis: self.info.genesis,
            anchor: basis.anchor,
            period: runtime.period(),
            nonce,
            tip: 0,
        };
        let nothing = sign(runtime, terms, signer, &runtime.nothing())?;
        self.hand_over(&nothing).await.map(drop)
    }
}
