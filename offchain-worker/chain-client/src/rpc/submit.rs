//! Signing and submitting calls, and finding out what became of them.

use std::{
    collections::HashMap,
    sync::{
        atomic::{AtomicUsize, Ordering},
        Arc, Mutex as StdMutex, PoisonError,
    },
};

use sp_core::{crypto, H256};
use sp_crypto_hashing::blake2_256;
use sp_runtime::DispatchError;
use subxt::{
    config::substrate::{SpecVersionForRange, SubstrateExtrinsicParamsBuilder},
    rpcs::{client::RpcSubscription, methods::legacy::TransactionStatus, Error as RpcError},
    utils::{AccountId32, MultiSignature},
    OfflineClient, OfflineClientAtBlock, SubstrateConfig,
};
use tokio::{sync::Mutex, time::timeout};

use super::{link::Connected, runtime::Runtime, Inner};
use crate::{BlockNumber, BlockRef, Call, ChainError, ChainEvent, Included, Signer, Until};

/// Blocks for which a signed call is good, from the finalised block on.
const MORTALITY_BLOCKS: u64 = 64;
/// Most calls of one signer that wait for their turn.
const WAITING_MAX: usize = 64;
/// Most signers whose queues are kept.
const QUEUES_MAX: usize = 256;

type Statuses = RpcSubscription<TransactionStatus<H256>>;

/// One queue for each signer: its nonces are given out one after the other.
#[derive(Default)]
pub(super) struct Queues(StdMutex<HashMap<crypto::AccountId32, Arc<Queue>>>);

#[derive(Default)]
struct Queue {
    turn: Mutex<()>,
    waiting: AtomicUsize,
}

/// A place in a queue; leaving it makes room.
struct Place(Arc<Queue>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Queues {
    fn enter(&self, account: &crypto::AccountId32) -> Result<Place, ChainError> {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if queues.len() >= QUEUES_MAX {
            queues.retain(|_, queue| queue.waiting.load(Ordering::Relaxed) > 0);
        }
        let queue = queues.entry(account.clone()).or_default().clone();
        let waiting = queue.waiting.fetch_add(1, Ordering::Relaxed);
        let place = Place(queue);
        if waiting >= WAITING_MAX {
            return Err(ChainError::Busy { waiting });
        }
        Ok(place)
    }
}

/// A call that the node's pool has taken in.
struct Pooled {
    hash: H256,
    statuses: Statuses,
    connected: Connected,
}

impl Inner {
    pub async fn submit(&self, signer: &Signer, call: Call, until: Until) -> Result<Included, ChainError> {
        let mut pooled = if call.proves_itself() {
            self.send_unsigned(&call).await?
        } else {
            let place = self.queues.enter(signer.account())?;
            let _turn = place.0.turn.lock().await;
            self.send(signer, &call).await?
        };
        tracing::debug!(hash = ?pooled.hash, call = call.name().call, "call submitted");
        let block = self.follow(&mut pooled, until).await?;
        self.outcome(pooled.hash, block).await
    }

    /// Signs with the next nonce and hands over to the pool, which counts from there.
    async fn send(&self, signer: &Signer, call: &Call) -> Result<Pooled, ChainError> {
        let anchor = self.link.finalised_head().await?;
        let number = self.link.number(anchor).await?;
        let best = self.link.block_hash(None).await?;
        let runtime = self.runtime_at(best).await?;
        let account = AccountId32((*signer.account()).clone().into());
        let nonce = self
            .link
            .ask("reading the account's nonce", |rpc| async move {
                rpc.system_account_next_index(&account).await
            })
            .await?;
        let anchor = BlockRef { number, hash: anchor };
        let extrinsic = sign(&runtime, self.info.genesis, anchor, nonce, signer, call)?;
        self.hand_over(extrinsic).await
    }

    /// Hands over a call that proves itself.
    async fn send_unsigned(&self, call: &Call) -> Result<Pooled, ChainError> {
        let best = self.link.block_hash(None).await?;
        let runtime = self.runtime_at(best).await?;
        let number = self.link.number(best).await?;
        self.hand_over(unsigned(&runtime, self.info.genesis, number, call)?)
            .await
    }

    async fn hand_over(&self, extrinsic: Vec<u8>) -> Result<Pooled, ChainError> {
        // Asked once only: if the answer got lost, the call may be in the pool all the same.
        let connected = self.link.connect().await?;
        let answer = connected.rpc.author_submit_and_watch_extrinsic(&extrinsic).await;
        match answer {
            Ok(statuses) => Ok(Pooled {
                hash: H256(blake2_256(&extrinsic)),
                statuses,
                connected,
            }),
            Err(RpcError::User(error)) => Err(ChainError::Rejected {
                reason: refusal(
                    error.code,
                    &error.message,
                    error.data.as_ref().map(|data| data.get()),
                ),
            }),
            Err(RpcError::Client(error)) => {
                self.link.drop_connection(&connected).await;
                Err(lost(&error.to_string()))
            }
            Err(other) => Err(lost(&other.to_string())),
        }
    }

    /// Waits until the call is where `until` says; returns its block.
    async fn follow(&self, pooled: &mut Pooled, until: Until) -> Result<H256, ChainError> {
        let rounds = match until {
            Until::Included => 1,
            Until::Finalised => 2,
        };
        let patience = self.inclusion_patience.saturating_mul(rounds);
        let statuses = &mut pooled.statuses;
        let reached = async {
            loop {
                let Some(status) = statuses.next().await else {
                    return Err(lost("the node stopped telling"));
                };
                let status = status.map_err(|error| lost(&error.to_string()))?;
                if let Some(block) = judge(status, until)? {
                    return Ok(block);
                }
            }
        };
        match timeout(patience, reached).await {
            Ok(Err(error)) => {
                if matches!(error, ChainError::Unknown { .. }) {
                    self.link.drop_connection(&pooled.connected).await;
                }
                Err(error)
            }
            Ok(reached) => reached,
            Err(_) => Err(lost(&format!(
                "it got nowhere within {} seconds",
                patience.as_secs()
            ))),
        }
    }

    /// What an extrinsic did in its block.
    async fn outcome(&self, extrinsic: H256, block: H256) -> Result<Included, ChainError> {
        let extrinsics = self.link.extrinsics(block).await?;
        let index = extrinsics
            .iter()
            .position(|bytes| H256(blake2_256(bytes)) == extrinsic)
            .ok_or_else(|| lost("it is not in the block that the node named"))?;
        let mut events = self.events(block).await?;
        events.retain(|event| event.extrinsic.is_some_and(|at| at as usize == index));
        let runtime = self.runtime_at(block).await?;
        if let Some(error) = failure(&events) {
            return Err(ChainError::Dispatch(runtime.fault(error)));
        }
        let number = self.link.number(block).await?;
        Ok(Included {
            block: BlockRef { number, hash: block },
            extrinsic,
            events,
        })
    }
}

fn unfit(runtime: &Runtime, error: &dyn std::fmt::Display) -> ChainError {
    ChainError::Incompatible {
        spec_version: runtime.spec_version(),
        what: format!("a call cannot be written for it: {error}"),
    }
}

/// What builds extrinsics for this runtime on top of a block.
fn builder(
    runtime: &Runtime,
    genesis: H256,
    number: BlockNumber,
) -> Result<OfflineClientAtBlock<SubstrateConfig>, ChainError> {
    let versions = SpecVersionForRange {
        block_range: 0..u64::MAX,
        spec_version: runtime.spec_version(),
        transaction_version: runtime.transaction_version(),
    };
    let config = SubstrateConfig::builder()
        .set_genesis_hash(genesis)
        .set_spec_version_for_block_ranges([versions])
        .set_metadata_for_spec_versions([(runtime.spec_version(), runtime.metadata().clone())])
        .build();
    OfflineClient::new_with_config(config)
        .at_block(number)
        .map_err(|error| unfit(runtime, &error))
}

/// Builds the bytes of a signed extrinsic.
pub(super) fn sign(
    runtime: &Runtime,
    genesis: H256,
    anchor: BlockRef,
    nonce: u64,
    signer: &Signer,
    call: &Call,
) -> Result<Vec<u8>, ChainError> {
    let client = builder(runtime, genesis, anchor.number)?;
    let params = SubstrateExtrinsicParamsBuilder::new()
        .mortal_from_unchecked(MORTALITY_BLOCKS, anchor.number.into(), anchor.hash)
        .nonce(nonce)
        .build();
    let payload = runtime.payload(call);
    let mut signable = client
        .transactions()
        .create_signable_offline(&payload, params)
        .map_err(|error| unfit(runtime, &error))?;
    let signed = signable
        .sign(signer.keypair())
        .map_err(|error| unfit(runtime, &error))?;
    Ok(signed.into_encoded())
}

/// Builds the bytes of a general transaction: the extensions without anybody's signature. It is good in every block in
/// which the call is, of which the call alone decides.
///
/// Nobody counts its nonce. It tells one attempt from the next: pools turn away for half an hour what they have refused
/// once, and know it by its bytes. It stays below 64 and so takes one byte.
pub(super) fn unsigned(
    runtime: &Runtime,
    genesis: H256,
    best: BlockNumber,
    call: &Call,
) -> Result<Vec<u8>, ChainError> {
    let client = builder(runtime, genesis, best)?;
    let params = SubstrateExtrinsicParamsBuilder::new()
        .immortal()
        .nonce(u64::from(best % 64))
        .build();
    let payload = runtime.payload(call);
    let mut general = client
        .transactions()
        .create_v5_signable_offline(&payload, params)
        .map_err(|error| unfit(runtime, &error))?;
    // They would go into an extension that this chain does not have.
    let (nobody, nothing) = (AccountId32([0; 32]), MultiSignature::Sr25519([0; 64]));
    let written = general.sign_with_account_and_signature(&nobody, &nothing);
    Ok(written.map_err(|error| unfit(runtime, &error))?.into_encoded())
}

/// Where a call is, if that is where we want it.
fn judge(status: TransactionStatus<H256>, until: Until) -> Result<Option<H256>, ChainError> {
    let rejected = |reason: &str| ChainError::Rejected {
        reason: reason.into(),
    };
    match status {
        TransactionStatus::InBlock(block) if until == Until::Included => Ok(Some(block)),
        TransactionStatus::Finalized(block) => Ok(Some(block)),
        TransactionStatus::Future
        | TransactionStatus::Ready
        | TransactionStatus::Broadcast(_)
        | TransactionStatus::InBlock(_)
        | TransactionStatus::Retracted(_) => Ok(None),
        TransactionStatus::FinalityTimeout(_) => Err(lost("its block was not finalised for a long time")),
        TransactionStatus::Usurped(_) => Err(rejected("another call of this signer took its place")),
        TransactionStatus::Dropped => Err(rejected("the node's pool is full; try again later")),
        TransactionStatus::Invalid => Err(rejected("it became invalid before it got into a block")),
    }
}

/// The error with which an extrinsic ended, if it did.
fn failure(events: &[ChainEvent]) -> Option<DispatchError> {
    let failed = events
        .iter()
        .find(|event| event.is("System", "ExtrinsicFailed"))?;
    let error = failed.field("dispatch_error");
    Some(error.unwrap_or(DispatchError::Other("an error that this program does not know")))
}

fn lost(reason: &str) -> ChainError {
    ChainError::Unknown {
        reason: reason.into(),
    }
}

/// The pool's refusal in words. The codes are those of Substrate's `author` RPC.
fn refusal(code: i32, message: &str, data: Option<&str>) -> String {
    const POOL_INVALID: i32 = 1010;
    const POOL_BANNED: i32 = 1012;
    const POOL_ALREADY_IN: i32 = 1013;
    const POOL_PRIORITY: i32 = 1014;
    const POOL_FULL: i32 = 1016;
    let detail = data.map(|data| data.trim_matches('"')).unwrap_or_default();
    match code {
        POOL_INVALID if detail.contains("pay some fees") => {
            "the signing account cannot pay the fee; send it some SURE".into()
        }
        POOL_BANNED => "the same call was refused a moment ago; try again later".into(),
        POOL_ALREADY_IN => "the same call is already on its way".into(),
        POOL_PRIORITY => "another call of this signer is on its way; try again later".into(),
        POOL_FULL => "the node's pool is full; try again later".into(),
        _ if detail.is_empty() => format!("{message} ({code})"),
        _ => format!("{detail} ({code})"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use codec::Encode;

    #[test]
    fn a_queue_takes_so_many_and_no_more_and_leaving_makes_room() {
        let queues = Queues::default();
        let account = crypto::AccountId32::new([1; 32]);
        let mut places: Vec<_> = (0..WAITING_MAX)
            .map(|_| queues.enter(&account).unwrap())
            .collect();
        assert!(matches!(queues.enter(&account), Err(ChainError::Busy { .. })));
        queues.enter(&crypto::AccountId32::new([2; 32])).unwrap();
        places.pop();
        queues.enter(&account).unwrap();
    }

    #[test]
    fn refusals_say_what_to_do() {
        let unpaid = refusal(
            1010,
            "Invalid Transaction",
            Some("\"Inability to pay some fees (e.g. account balance too low)\""),
        );
        assert!(unpaid.contains("send it some SURE"), "{unpaid}");
        assert_eq!(
            refusal(1010, "Invalid Transaction", Some("\"Stale\"")),
            "Stale (1010)"
        );
        assert_eq!(refusal(7, "What", None), "What (7)");
    }

    #[test]
    fn a_call_is_followed_as_far_as_asked() {
        let block = H256([1; 32]);
        let in_block = || TransactionStatus::InBlock(block);
        assert_eq!(judge(in_block(), Until::Included), Ok(Some(block)));
        assert_eq!(judge(in_block(), Until::Finalised), Ok(None));
        assert_eq!(
            judge(TransactionStatus::Retracted(block), Until::Included),
            Ok(None)
        );
        let finalised = TransactionStatus::Finalized(block);
        assert_eq!(judge(finalised, Until::Finalised), Ok(Some(block)));
        assert!(matches!(
            judge(TransactionStatus::Invalid, Until::Included),
            Err(ChainError::Rejected { .. })
        ));
    }

    #[test]
    fn a_failed_extrinsic_is_told_by_its_event() {
        let mut event = ChainEvent {
            pallet: "System".into(),
            name: "ExtrinsicSuccess".into(),
            extrinsic: Some(1),
            fields: Vec::new(),
        };
        assert_eq!(failure(std::slice::from_ref(&event)), None);
        event.name = "ExtrinsicFailed".into();
        event.fields = vec![crate::EventField {
            name: "dispatch_error".into(),
            text: String::new(),
            bytes: DispatchError::BadOrigin.encode(),
        }];
        assert_eq!(failure(&[event]), Some(DispatchError::BadOrigin));
    }
}
