//! Where receipts are in batches: their provider is asked, for many at once, and what it shows is held
//! against the chain.

use std::collections::BTreeMap;

use codec::{DecodeAll, Encode};
use surety_chain_client::When;
use surety_channel_calls::{
    message::{self, Asked, FromHolder, InBatch, Message as _, NotShown, ToHolder},
    payer::is_counted_one,
};
use surety_channels::{
    BatchNumber, BatchRoot, Batched, ChunkStatement, End, Request, SignedChunkStatement, Time, extends,
    incompatible,
};
use surety_gateway::{NoProof, Proof, Receipt, Says};
use surety_types::{model::Operation, multiaddr::Endpoint};
use tokio::time::timeout;

use crate::{
    AccountId, Providers,
    channel::{Covered, Handle, Message},
    market::{Shared, named},
};

/// It is not shown, for a reason that is no chain's.
fn unshown(why: impl ToString) -> NoProof {
    NoProof::Unshown(why.to_string())
}

/// A receipt, under a root that a finalised block has.
pub(crate) struct Shown {
    covered: Covered,
    request: Request,
}

impl Shown {
    /// Whether that can be what was counted, since `at`.
    pub fn is_counted_one(&self, at: Time) -> bool {
        is_counted_one(self.covered.until, at)
    }

    /// What was shown is demanded no more.
    pub async fn covers(self, handle: &Handle) {
        handle.tell(Message::Covered(Box::new(self.covered))).await;
    }
}

/// What a provider answers of one receipt.
pub(crate) enum Answer {
    Shown(Box<Shown>),
    Not(NoProof),
    /// It shows others something: this one, and all after it, are to be asked for again.
    Busy,
}

impl Providers {
    /// What its provider shows of a receipt, if that is so by a finalised block.
    pub(crate) async fn proof_of(&self, receipt: &Receipt) -> Result<Proof, NoProof> {
        let signed = SignedChunkStatement::<AccountId>::decode_all(&mut &*receipt.signed);
        let signed = signed.map_err(|_| NoProof::NotKept)?;
        let asked = std::slice::from_ref(&signed.statement);
        let mut answers = self.shared.look_for(asked, &mut Roots::new()).await;
        let shown = match answers.pop() {
            Some(Answer::Shown(shown)) => shown,
            Some(Answer::Not(why)) => return Err(why),
            Some(Answer::Busy) | None => return Err(unshown(NotShown::Busy)),
        };
        let genesis = self.shared.config.chain.info().genesis;
        let proof = Proof {
            genesis: format!("{genesis:?}"),
            batch: shown.covered.batch,
            signed: receipt.signed.clone(),
            request: shown.request.encode(),
            opening: shown.covered.batched.opening.encode(),
            says: says(&signed, &shown.request),
        };
        let handle = self.shared.market().channels.get(&receipt.channel).cloned();
        if let Some(handle) = handle {
            shown.covers(&handle).await;
        }
        Ok(proof)
    }
}

/// What a provider has committed, as far as it was read, and since after when that is final, where it is.
pub(crate) type Roots = BTreeMap<BatchNumber, (BatchRoot, Option<Time>)>;

impl Shared {
    /// Asks a provider where receipts of its are, no more than a question may have, and holds what it shows
    /// against the chain. There is an answer for each, in their order; what was answered in time counts.
    pub async fn look_for(&self, held: &[ChunkStatement<AccountId>], roots: &mut Roots) -> Vec<Answer> {
        let mut answers = Vec::new();
        let asked = self.ask_where(held, roots, &mut answers);
        let why = match timeout(self.config.patience.taken, asked).await {
            Ok(Ok(())) => return answers,
            Ok(Err(why)) => why,
            Err(_) => unshown("it does not answer in time"),
        };
        let left = held.len().saturating_sub(answers.len());
        answers.extend((0..left).map(|_| Answer::Not(why.clone())));
        answers
    }

    /// One question, and an answer to each of it.
    async fn ask_where(
        &self,
        held: &[ChunkStatement<AccountId>],
        roots: &mut Roots,
        answers: &mut Vec<Answer>,
    ) -> Result<(), NoProof> {
        let Some(first) = held.first() else { return Ok(()) };
        let asked = Asked::try_from(held.to_vec());
        let asked = asked.map_err(|_| unshown("too many are asked for at once"))?;
        let endpoints = self.endpoints(&first.payee).await?;
        let mut stream = self.config.plane.open_call(&endpoints).await.map_err(unshown)?;
        let ask = FromHolder::Show(asked).encode();
        stream.send(&ask).await.map_err(unshown)?;
        let mut are_new = false;
        for held in held {
            let frame = stream.recv(ToHolder::bytes_max()).await.map_err(unshown)?;
            let frame = frame.ok_or_else(|| unshown("it has hung up"))?;
            let answer = match message::read(&frame).map_err(unshown)? {
                ToHolder::Receipt(shown) => {
                    // The chain is read once for a question, whatever is named.
                    if !are_new && !roots.contains_key(&shown.batch) {
                        *roots = self.roots(&held.payee).await?;
                        are_new = true;
                    }
                    let checked = self.check(held, shown, roots);
                    checked.map_or_else(Answer::Not, |shown| Answer::Shown(Box::new(shown)))
                }
                ToHolder::NotShown(NotShown::NoBatch) => Answer::Not(NoProof::NotBatched),
                ToHolder::NotShown(NotShown::Busy) => {
                    answers.push(Answer::Busy);
                    return Err(unshown(NotShown::Busy));
                }
                ToHolder::NotShown(why) => Answer::Not(unshown(why)),
            };
            answers.push(answer);
        }
        Ok(())
    }

    /// Whether what a provider shows is the receipt of what it has said, and there.
    fn check(
        &self,
        held: &ChunkStatement<AccountId>,
        shown: InBatch,
        roots: &Roots,
    ) -> Result<Shown, NoProof> {
        let InBatch {
            batch,
            opening,
            request,
            receipt,
            segment,
        } = shown;
        let root = roots.get(&batch).copied();
        let (root, until) = root.ok_or_else(|| unshown("it names a batch that the chain does not have"))?;
        // Of an answer that was lost on the way its provider shows the receipt that goes on from there.
        let receipt = receipt.filter(|receipt| held.end.is_none() && receipt.covers(held));
        let statement = receipt.unwrap_or_else(|| held.clone());
        // What has no end is no receipt, whatever batch has it.
        let is_it = statement.end.is_some() && incompatible(held, &statement, segment.as_ref()).is_none();
        let goes_on = extends(held, &statement, segment.as_ref()) == Some(true);
        let batched = Batched { opening, statement };
        let place = batched.place_in(&self.config.chain.info().genesis, &root);
        if !is_it || place.is_none() || request.hash() != batched.statement.request {
            return Err(unshown("what it shows is not in the batch that the chain has"));
        }
        if !goes_on {
            return Err(unshown(
                "it does not show that its receipt begins with what was heard",
            ));
        }
        let covered = Covered {
            batch,
            root,
            until,
            batched,
            segment,
        };
        Ok(Shown { covered, request })
    }

    async fn endpoints(&self, provider: &AccountId) -> Result<Vec<Endpoint>, NoProof> {
        if let Some(endpoints) = self.market().endpoints.get(provider) {
            return Ok(endpoints.clone());
        }
        let registered = self.config.chain.provider(When::Finalized, provider).await;
        let registered = registered.map_err(unshown)?;
        let registered = registered.ok_or_else(|| unshown("it is not registered any more"))?;
        Ok(registered.endpoints.to_vec())
    }

    /// What a provider has committed, by the newest finalised block.
    async fn roots(&self, provider: &AccountId) -> Result<Roots, NoProof> {
        let batches = self
            .config
            .channels
            .batches(When::Finalized, provider)
            .await
            .map_err(unshown)?;
        let now = self.market().now;
        let known = batches.into_iter().map(|view| {
            let window = view.window;
            let until = window.is_final(now).then_some(window.until);
            (view.batch, (window.root, until))
        });
        Ok(known.collect())
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
