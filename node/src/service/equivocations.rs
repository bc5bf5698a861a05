//! Reports validators that make two blocks of a slot.
//!
//! `sc-consensus-babe` does so, too, and its reports are void: it makes them of headers whose seals are off
//! for the import, since polkadot-sdk's pull request 9147, and without seals there is no proof of who signed.
//! The runtime leaves those out ([`BabeApi::submit_report_equivocation_unsigned_extrinsic`]). When the SDK's
//! are whole again, this can go.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use sc_consensus::{BlockCheckParams, BlockImport, BlockImportParams, ImportResult};
use sc_transaction_pool_api::OffchainTransactionPoolFactory;
use sp_api::{ApiError, ApiExt, ProvideRuntimeApi};
use sp_blockchain::HeaderBackend;
use sp_consensus_babe::{BabeApi, EquivocationProof, check_equivocation_proof};
use sp_runtime::traits::Header as _;
use surety_runtime::{Header, opaque::Block};

use super::Client;

/// Claims whose headers are kept: of half an hour, where every slot has an author. One more and the oldest
/// goes.
const HEADERS_MAX: usize = 1_000;

/// Different headers that are kept of a claim: on two forks its place may be that of two validators.
const ALIKE_MAX: usize = 4;

/// A slot, and the place of its author in the set.
type Claim = (u64, u32);

/// The first headers of each claim that was seen lately.
#[derive(Default)]
struct Headers(BTreeMap<Claim, Vec<Header>>);

impl Headers {
    /// Takes a header down. Returns others of its claim where it is new.
    fn note(&mut self, claim: Claim, header: &Header) -> Vec<Header> {
        let kept = self.0.entry(claim).or_default();
        if kept.iter().any(|one| one.hash() == header.hash()) {
            return Vec::new();
        }
        let others = kept.clone();
        if kept.len() < ALIKE_MAX {
            kept.push(header.clone());
        }
        if self.0.len() > HEADERS_MAX {
            self.0.pop_first();
        }
        others
    }
}

/// Imports blocks, and reports those who made two of a slot.
pub(super) struct ReportingImport<Inner> {
    inner: Inner,
    headers: Mutex<Headers>,
    client: Arc<Client>,
    pool: OffchainTransactionPoolFactory<Block>,
}

impl<Inner> ReportingImport<Inner> {
    pub fn new(inner: Inner, client: Arc<Client>, pool: OffchainTransactionPoolFactory<Block>) -> Self {
        Self {
            inner,
            headers: Mutex::default(),
            client,
            pool,
        }
    }

    /// Looks whether the author of a block, whose signature was checked, made another one of its slot.
    fn look(&self, block: &BlockImportParams<Block>) -> Result<(), ApiError> {
        // Blocks that come with their state are not looked into by anybody.
        if block.post_digests.is_empty() {
            return Ok(());
        }
        let header = block.post_header();
        let Ok(pre_digest) = sc_consensus_babe::find_pre_digest::<Block>(&header) else {
            return Ok(());
        };
        let claim = (*pre_digest.slot(), pre_digest.authority_index());
        let mut headers = self.headers.lock().unwrap_or_else(PoisonError::into_inner);
        let others = headers.note(claim, &header);
        drop(headers);
        for first in others {
            self.report(claim, first, header.clone())?;
        }
        Ok(())
    }

    fn report(&self, (slot, place): Claim, first: Header, second: Header) -> Result<(), ApiError> {
        let (parent, best) = (*second.parent_hash(), self.client.info().best_hash);
        // One of these is for one block.
        let (api, mut of_best) = (self.client.runtime_api(), self.client.runtime_api());
        let epoch = api.current_epoch(parent)?;
        let ends = u64::from(epoch.start_slot).saturating_add(epoch.duration);
        let authorities = match slot < ends {
            true => epoch.authorities,
            false => api.next_epoch(parent)?.authorities,
        };
        let author = usize::try_from(place)
            .ok()
            .and_then(|place| authorities.get(place));
        let Some((offender, _)) = author.cloned() else {
            return Ok(());
        };
        let proof = EquivocationProof {
            offender: offender.clone(),
            slot: slot.into(),
            first_header: first,
            second_header: second,
        };
        // Of two validators' blocks neither is one too many.
        if !check_equivocation_proof(proof.clone()) {
            return Ok(());
        }
        // The parent of a session's first block may not know who owned the key.
        let owner = match api.generate_key_ownership_proof(parent, slot.into(), offender.clone())? {
            Some(owner) => owner,
            None => match of_best.generate_key_ownership_proof(best, slot.into(), offender.clone())? {
                Some(owner) => owner,
                None => return Ok(()),
            },
        };
        of_best.register_extension(self.pool.offchain_transaction_pool(best));
        of_best.submit_report_equivocation_unsigned_extrinsic(best, proof, owner)?;
        tracing::info!(target: "babe", "Reported that {offender:?} made two blocks of slot {slot}");
        Ok(())
    }
}

#[async_trait]
impl<Inner> BlockImport<Block> for ReportingImport<Inner>
where
    Inner: BlockImport<Block> + Send + Sync,
{
    type Error = Inner::Error;

    async fn check_block(&self, block: BlockCheckParams<Block>) -> Result<ImportResult, Self::Error> {
        self.inner.check_block(block).await
    }

    async fn import_block(&self, block: BlockImportParams<Block>) -> Result<ImportResult, Self::Error> {
        // A block is imported all the same: which one stays is for others to say.
        if let Err(error) = self.look(&block) {
            tracing::warn!(target: "babe", "Two blocks of a slot cannot be reported: {error}");
        }
        self.inner.import_block(block).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(number: u32) -> Header {
        Header::new(
            number,
            Default::default(),
            Default::default(),
            Default::default(),
            Default::default(),
        )
    }

    #[test]
    fn another_header_of_the_same_author_and_slot_is_shown_with_those_before_it() {
        let mut headers = Headers::default();
        assert!(headers.note((7, 1), &header(1)).is_empty());
        assert!(headers.note((7, 1), &header(1)).is_empty(), "the same once more");
        assert!(headers.note((7, 2), &header(2)).is_empty(), "of another author");
        assert!(headers.note((8, 1), &header(2)).is_empty(), "of another slot");
        assert_eq!(headers.note((7, 1), &header(2)), [header(1)]);
        assert!(headers.note((7, 1), &header(2)).is_empty(), "it was shown");
        assert_eq!(headers.note((7, 1), &header(3)), [header(1), header(2)]);
        for number in 4..20 {
            assert!(headers.note((7, 1), &header(number)).len() <= ALIKE_MAX);
        }
    }

    #[test]
    fn old_headers_make_room_for_new_ones_and_not_the_other_way_round() {
        let mut headers = Headers::default();
        for slot in 0..HEADERS_MAX as u64 {
            assert!(headers.note((10 + slot, 0), &header(1)).is_empty());
        }
        assert!(headers.note((9, 0), &header(1)).is_empty());
        assert_eq!(headers.note((10, 0), &header(2)), [header(1)]);
        assert!(headers.note((10_000, 0), &header(1)).is_empty());
        assert_eq!(headers.0.len(), HEADERS_MAX);
        assert!(headers.note((10, 0), &header(3)).is_empty(), "it was the oldest");
    }
}
