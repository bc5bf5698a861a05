//! What a block's extrinsics have opened: the chain's state keeps only that it was.

use codec::Decode;
use scale_info::TypeInfo;
use sp_core::crypto::AccountId32;
use subxt::ext::frame_decode::extrinsics::decode_extrinsic;
use surety_types::TaskId;

use super::{Inner, runtime::Runtime};
use surety_chain_client::{BlockNumber, ChainError, ItemsOpening, When};

impl Inner {
    /// What a block says that a verifier opened of its items of a provider's result.
    pub(super) async fn items_opened(
        &self,
        block: BlockNumber,
        audit: (TaskId, &AccountId32, &AccountId32),
    ) -> Result<Vec<ItemsOpening>, ChainError> {
        let asked = async {
            // Blocks are kept for longer than their states, which would tell their runtime: the present one
            // has to do.
            let head = self.head(When::Finalized).await?;
            let runtime = self.runtime_of(head.hash).await?;
            let hash = self.link.block_hash(Some(block)).await?;
            let extrinsics = self.link.extrinsics(hash).await?;
            let opened = extrinsics.iter().filter_map(|bytes| runtime.opens(bytes, audit));
            opened.collect()
        };
        self.judged(asked).await
    }
}

impl Runtime {
    /// What an extrinsic opens of an audit, if it does.
    fn opens(
        &self,
        extrinsic: &[u8],
        (task, provider, verifier): (TaskId, &AccountId32, &AccountId32),
    ) -> Option<Result<ItemsOpening, ChainError>> {
        let metadata = self.metadata();
        // One that cannot be read is another one: the chain has read this.
        let call = decode_extrinsic(&mut &*extrinsic, &**metadata, metadata.types()).ok()?;
        if (call.pallet_name(), call.call_name()) != ("Results", "reveal_items") {
            return None;
        }
        let arguments = Arguments {
            runtime: self,
            of: call
                .call_data()
                .filter_map(|argument| {
                    let bytes = extrinsic.get(argument.range())?;
                    Some((argument.name(), *argument.ty(), bytes))
                })
                .collect(),
        };
        let read = || {
            let about: (TaskId, AccountId32, AccountId32) = (
                arguments.get("task")?,
                arguments.get("provider")?,
                arguments.get("verifier")?,
            );
            let is_this = about == (task, provider.clone(), verifier.clone());
            let opening = || Ok((arguments.get("found")?, arguments.get("answer")?));
            is_this.then(opening).transpose()
        };
        read().transpose()
    }
}

/// The arguments of a call: names, types and bytes.
struct Arguments<'a> {
    runtime: &'a Runtime,
    of: Vec<(&'a str, u32, &'a [u8])>,
}

impl Arguments<'_> {
    fn get<T: Decode + TypeInfo + 'static>(&self, name: &str) -> Result<T, ChainError> {
        let what = format!("{name} of Results.reveal_items");
        let argument = self.of.iter().find(|(of, ..)| *of == name);
        let (_, ty, bytes) = argument.ok_or_else(|| ChainError::Decode {
            what: what.clone(),
            reason: "there is no such argument".into(),
        })?;
        self.runtime.reader_of(*ty, &what).read(bytes)
    }
}
