//! The bytes of extrinsics.

use sp_core::H256;
use subxt::{
    OfflineClient, OfflineClientAtBlock, SubstrateConfig,
    config::substrate::{SpecVersionForRange, SubstrateExtrinsicParamsBuilder},
    utils::{AccountId32, MultiSignature},
};

use super::{payload::RawCall, runtime::Runtime};
use surety_chain_client::{Balance, BlockNumber, BlockRef, Call, ChainError, Signer};

/// Blocks for which a signed call is good at most, from its anchor on: a power of two, as eras are. Long
/// enough for any wait in a full pool that [`crate::RpcConfig::inclusion_patience`] allows; short enough that
/// a call that nobody follows any more is dead before its task's windows end.
const PERIOD_MAX: u32 = 256;
/// The shortest period that eras have.
const PERIOD_MIN: u32 = 4;
/// Blocks below the best one at which a signature is anchored when less is final: so deep no reorganisation
/// goes while validators are awake, and no stall of finality, however long, makes it matter.
pub(super) const ANCHOR_DEPTH: u32 = 16;

/// After how many attempts the bytes of a reveal come again: nine hours of blocks, and no number of two bytes
/// is larger.
const ATTEMPT_CYCLE: u32 = 16_384;

fn unfit(runtime: &Runtime, error: &dyn std::fmt::Display) -> ChainError {
    ChainError::Outgrown {
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

impl Runtime {
    /// For how many blocks calls are signed: for no more than half of those whose hashes the chain keeps, as
    /// it has to know the anchor's.
    pub fn period(&self) -> u32 {
        let kept = self.constant("System", "BlockHashCount").unwrap_or(PERIOD_MAX);
        let half = kept.checked_div(2).unwrap_or_default().max(PERIOD_MIN);
        half.checked_ilog2()
            .map_or(PERIOD_MIN, |power| 1u32 << power)
            .min(PERIOD_MAX)
    }
}

/// What a signature goes over besides the call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub genesis: H256,
    /// From which block on the signature is good.
    pub anchor: BlockRef,
    /// For how many blocks.
    pub period: u32,
    pub nonce: u64,
    pub tip: Balance,
}

impl Terms {
    /// The last block in which the signature is good.
    pub fn last_block(&self) -> BlockNumber {
        self.anchor.number.saturating_add(self.period).saturating_sub(1)
    }
}

/// Builds the bytes of a signed extrinsic.
pub(super) fn sign(
    runtime: &Runtime,
    terms: Terms,
    signer: &Signer,
    payload: &RawCall,
) -> Result<Vec<u8>, ChainError> {
    let Terms {
        genesis,
        anchor,
        period,
        nonce,
        tip,
    } = terms;
    let client = builder(runtime, genesis, anchor.number)?;
    let params = SubstrateExtrinsicParamsBuilder::new()
        .mortal_from_unchecked(period.into(), anchor.number.into(), anchor.hash)
        .nonce(nonce)
        .tip(tip)
        .build();
    let mut signable = client
        .transactions()
        .create_signable_offline(payload, params)
        .map_err(|error| unfit(runtime, &error))?;
    let payload = signable
        .signer_payload()
        .map_err(|error| unfit(runtime, &error))?;
    let account = AccountId32(*signer.account().as_ref());
    let signature = MultiSignature::Sr25519(signer.sign_extrinsic(&payload));
    let signed = signable.sign_with_account_and_signature(&account, &signature);
    Ok(signed.map_err(|error| unfit(runtime, &error))?.into_encoded())
}

/// Builds the bytes of a general transaction: the extensions without anybody's signature. It is good in every
/// block in which the call is, of which the call alone decides.
///
/// Nobody counts its nonce. It is `attempt`, the best block's height and one more for each attempt, and tells
/// one attempt from the next: pools turn away for half an hour what they have refused once, and know it by
/// its bytes.
pub(super) fn unsigned(
    runtime: &Runtime,
    genesis: H256,
    attempt: BlockNumber,
    call: &Call,
) -> Result<Vec<u8>, ChainError> {
    let client = builder(runtime, genesis, attempt)?;
    let params = SubstrateExtrinsicParamsBuilder::new()
        .immortal()
        .nonce(u64::from(attempt % ATTEMPT_CYCLE))
        .build();
    let payload = runtime.payload(call)?;
    let mut general = client
        .transactions()
        .create_v5_signable_offline(&payload, params)
        .map_err(|error| unfit(runtime, &error))?;
    // They would go into an extension that this chain does not have.
    let (nobody, nothing) = (AccountId32([0; 32]), MultiSignature::Sr25519([0; 64]));
    let written = general.sign_with_account_and_signature(&nobody, &nothing);
    Ok(written.map_err(|error| unfit(runtime, &error))?.into_encoded())
}
