//! Where a receipt is in a batch: its provider is asked, and what it shows is held against the chain.

use std::collections::BTreeMap;

use codec::{DecodeAll, Encode};
use surety_chain_client::When;
use surety_channel_calls::message::{self, FromHolder, InBatch, Message as _, NotShown, ToHolder};
use surety_channels::{
    BatchNumber, BatchRoot, Batched, ChunkStatement, End, Request, SignedChunkStatement, incompatible,
};
use surety_gateway::{NoProof, Proof, Receipt, Says};
use surety_types::model::Operation;
use tokio::time::timeout;

use crate::{
    AccountId, Providers,
    channel::{Handle, Message},
    market::{Shared, named},
};

/// It is not shown, for a reason that is no chain's.
fn unshown(why: impl ToString) -> NoProof {
    NoProof::Unshown(why.to_string())
}

/// A receipt, under a root that a finalised block has.
pub(crate) struct Shown {
    batch: BatchNumber,
    root: BatchRoot,
    batched: Batched<AccountId>,
    request: Request,
}

impl Shown {
    /// What was shown is demanded no more.
    pub async fn covers(&self, handle: &Handle) {
        let shown = (self.batch, self.root, self.batched.clone());
        handle.tell(Message::Covered(Box::new(shown))).await;
    }
}

impl Providers {
    /// What its provider shows of a receipt, if that is so by a finalised block.
    pub(crate) async fn proof_of(&self, receipt: &Receipt) -> Result<Proof, NoProof> {
        let signed = SignedChunkStatement::<AccountId>::decode_all(&mut &*receipt.signed);
        let signed = signed.map_err(|_| NoProof::NotKept)?;
        let shown = self.shared.look_for(&signed.statement, &mut Roots::new()).await?;
        let genesis = self.shared.config.chain.info().genesis;
        let proof = Proof {
            genesis: format!("{genesis:?}"),
            batch: shown.batch,
            signed: receipt.signed.clone(),
            request: shown.request.encode(),
            opening: shown.batched.opening.encode(),
            says: says(&signed, &shown.request),
        };
        let handle = self.shared.market().channels.get(&receipt.channel).cloned();
        if let Some(handle) = handle {
            shown.covers(&handle).await;
        }
        Ok(proof)
    }
}

/// What a provider has committed, as far as it was read. Nothing of that ever changes.
pub(crate) type Roots = BTreeMap<BatchNumber, BatchRoot>;

impl Shared {
    /// Asks a provider where a receipt of its is, and holds what it shows against the chain.
    pub async fn look_for(
        &self,
        held: &ChunkStatement<AccountId>,
        roots: &mut Roots,
    ) -> Result<Shown, NoProof> {
        let asked = timeout(self.config.patience.taken, self.ask_where(held)).await;
        let InBatch {
            batch,
            opening,
            request,
            receipt,
        } = asked.map_err(|_| unshown("it does not answer in time"))??;
        if !roots.contains_key(&batch) {
            *roots = self.roots(&held.payee).await?;
        }
        let root = roots.get(&batch).copied();
        let root = root.ok_or_else(|| unshown("it names a batch that the chain does not have"))?;
        // Of an answer that was lost on the way its provider shows the receipt that goes on from there.
        let receipt = receipt.filter(|receipt| held.end.is_none() && receipt.covers(held));
        let statement = receipt.unwrap_or_else(|| held.clone());
        // What has no end is no receipt, whatever batch has it.
        let is_it = statement.end.is_some() && incompatible(held, &statement, None).is_none();
        let batched = Batched { opening, statement };
        let place = batched.place_in(&self.config.chain.info().genesis, &root);
        if !is_it || place.is_none() || request.hash() != batched.statement.request {
            return Err(unshown("what it shows is not in the batch that the chain has"));
        }
        Ok(Shown {
            batch,
            root,
            batched,
            request,
        })
    }

    /// One question, one answer.
    async fn ask_where(&self, held: &ChunkStatement<AccountId>) -> Result<InBatch, NoProof> {
        let (config, market) = (&self.config, self.market());
        let endpoints = match market.endpoints.get(&held.payee) {
            Some(endpoints) => endpoints.clone(),
            None => {
                let registered = config.chain.provider(When::Finalized, &held.payee).await;
                let registered = registered.map_err(unshown)?;
                registered
                    .ok_or_else(|| unshown("it is not registered any more"))?
                    .endpoints
                    .to_vec()
            }
        };
        let mut stream = config.plane.open_call(&endpoints).await.map_err(unshown)?;
        let ask = FromHolder::Show(held.clone()).encode();
        stream.send(&ask).await.map_err(unshown)?;
        let frame = stream.recv(ToHolder::bytes_max()).await.map_err(unshown)?;
        let frame = frame.ok_or_else(|| unshown("it has hung up"))?;
        match message::read(&frame).map_err(unshown)? {
            ToHolder::Receipt(shown) => Ok(shown),
            ToHolder::NotShown(NotShown::NoBatch) => Err(NoProof::NotBatched),
            ToHolder::NotShown(why) => Err(unshown(why)),
        }
    }

    /// What a provider has committed, by the newest finalised block.
    async fn roots(&self, provider: &AccountId) -> Result<Roots, NoProof> {
        let batches = self
            .config
            .channels
            .batches(When::Finalized, provider)
            .await
            .map_err(unshown)?;
        Ok(batches
            .into_iter()
            .map(|view| (view.batch, view.window.root))
            .collect())
    }
}

fn says(signed: &SignedChunkStatement<AccountId>, request: &Request) -> Says {
    let said = &signed.statement;
    let end = match said.end.map(|end| end.how) {
        Some(End::Stop) => "stop",
        Some(End::Length) => "length",
        Some(End::Cancelled) => "cancelled",
        Some(End::Cut) | None => "cut",
    };
    let operation = match request.operation {
        Operation::Embed => "embed",
        Operation::Generate => "generate",
    };
    Says {
        provider: named(&said.payee),
        agent: named(&signed.agent),
        channel: said.channel,
        nonce: said.nonce,
        model: format!("{:?}", request.model),
        operation: operation.into(),
        input: format!("{:?}", request.input),
        output: format!("{:?}", said.output),
        bytes: said.bytes,
        units: said.units,
        unit_price: request.unit_price,
        price: said.price,
        end: end.into(),
    }
}
