//! Asks a provider for the receipts at a verifier's points, and computes them again.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use codec::Encode;
use surety_chain_client::{AccountId, ChainError, When};
use surety_channel_calls::message::{
    self, AtPoint, FromVerifier, Message, NotShown, PointAsk, ToVerifier, Unreadable,
};
use surety_engine::{EngineError, Priority};
use surety_network::CallError;
use surety_types::ModelId;
use tokio::time::timeout;

use crate::{
    Parts,
    book::{Outcome, Unserved, Work},
    compute::{Computed, compute, inside},
    shown::{Receipt, Shown, Unshown, look},
};

/// For so long a provider looks for a receipt and hands it over.
const ASK_TIME: Duration = Duration::from_secs(30);

/// Why a receipt could not be looked at.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("the provider is not on the chain's list")]
    NotListed,
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("the provider does not answer in time")]
    Late,
    #[error("the provider has closed the connection without an answer")]
    Closed,
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error(transparent)]
    NotShown(#[from] NotShown),
    #[error(transparent)]
    Unshown(#[from] Unshown),
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error("model {0:?} is not loaded here")]
    NoModel(ModelId),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Whose fault it is.
#[derive(Debug, PartialEq, Eq)]
enum Blame {
    /// The provider has answered, and does not show this receipt.
    Provider,
    /// The provider does not answer.
    Absent,
    /// The provider shows others something.
    Busy,
    /// It can be tried again.
    Nobody,
    /// The machine has failed, and may not the next time.
    Fault,
    /// It will not be computed here.
    Machine,
}

impl Failed {
    fn blame(&self) -> Blame {
        match self {
            Self::Chain(_) | Self::Call(CallError::OwnFull | CallError::Stopped) => Blame::Nobody,
            Self::Engine(EngineError::Cancelled | EngineError::QueueFull { .. } | EngineError::Closed) => {
                Blame::Nobody
            }
            Self::Engine(
                EngineError::Device { .. } | EngineError::DeviceDiffers { .. } | EngineError::Store(_),
            ) => Blame::Fault,
            Self::NoModel(_) | Self::Engine(_) => Blame::Machine,
            Self::NotShown(NotShown::Busy) => Blame::Busy,
            Self::NotListed | Self::Call(_) | Self::Late | Self::Closed => Blame::Absent,
            Self::NotShown(_) | Self::Unshown(_) | Self::Unreadable(_) => Blame::Provider,
        }
    }
}

/// Does it as far as it goes.
pub(crate) async fn run(parts: &Arc<Parts>, work: &Work) -> Outcome {
    let mut outcome = Outcome::default();
    let (provider, batch) = (&work.view.provider, work.view.batch);
    for (place, point) in &work.open {
        let is_seen = outcome.unable.contains(point) || outcome.failed.contains(point);
        if is_seen || outcome.found.contains_key(point) {
            continue;
        }
        match at_point(parts, work, *place, *point).await {
            Ok(Looked::Receipt(receipt, computed)) => {
                outcome.found.extend(computed.found);
                if !computed.is_right {
                    let (channel, nonce) =
                        (receipt.batched.statement.channel, receipt.batched.statement.nonce);
                    tracing::warn!(
                        ?provider,
                        batch,
                        channel,
                        nonce,
                        "a receipt is wrong: it is disputed"
                    );
                    outcome.wrong.push(*receipt);
                }
            }
            Ok(Looked::Faulty(evidence)) => {
                tracing::warn!(?provider, batch, "a batch is none: it is reported");
                outcome.faulty = Some(evidence);
                break;
            }
            Ok(Looked::Unable(points, failed)) if failed.blame() == Blame::Fault => {
                tracing::warn!(
                    ?provider,
                    batch,
                    place,
                    error = %failed,
                    "this machine has failed at a receipt: it is tried again, a few times"
                );
                outcome.failed.extend(points);
            }
            // Who commits one such receipt may hope that nobody looks at the others.
            Ok(Looked::Unable(points, failed)) => {
                if outcome.unable.is_empty() {
                    tracing::warn!(
                        ?provider,
                        batch,
                        place,
                        error = %failed,
                        "a receipt cannot be computed here: its points are announced as that, and not paid"
                    );
                }
                outcome.unable.extend(points);
            }
            Err(failed) => {
                tracing::warn!(?provider, batch, place, error = %failed, "a receipt cannot be audited");
                let blame = failed.blame();
                if blame != Blame::Nobody {
                    let (place, is_busy) = (*place, blame == Blame::Busy);
                    outcome.unserved.get_or_insert(Unserved { place, is_busy });
                }
                // Others may be shown.
                if blame != Blame::Provider {
                    break;
                }
            }
        }
    }
    outcome
}

enum Looked {
    Receipt(Box<Receipt>, Computed),
    Faulty(Box<surety_channels::BatchEvidence<AccountId>>),
    /// None of these points can be looked at here.
    Unable(BTreeSet<u128>, Failed),
}

async fn at_point(parts: &Arc<Parts>, work: &Work, place: u32, point: u128) -> Result<Looked, Failed> {
    let at = timeout(ASK_TIME, ask(parts, work, place)).await;
    let at = at.unwrap_or(Err(Failed::Late))?;
    let genesis = parts.chain.info().genesis;
    let (receipt, start) = match look(&genesis, &work.view, point, at)? {
        Shown::Receipt(receipt, start) => (receipt, start),
        Shown::Faulty(evidence) => return Ok(Looked::Faulty(evidence)),
    };
    let within = inside(&receipt, start, &work.points)
        .map(|(point, _)| point)
        .collect();
    match audit(parts, work, (receipt, start)).await {
        Err(failed) if matches!(failed.blame(), Blame::Fault | Blame::Machine) => {
            Ok(Looked::Unable(within, failed))
        }
        looked => looked,
    }
}

async fn audit(parts: &Parts, work: &Work, (receipt, start): (Box<Receipt>, u128)) -> Result<Looked, Failed> {
    let model = receipt.request.model;
    let engine = parts.engines.get(&model).ok_or(Failed::NoModel(model))?.clone();
    let points = work.points.clone();
    let ticket = parts.pool.work(Priority::Audit, move |sink| {
        let computed = compute(&*engine, &receipt, (start, &points), sink)?;
        Ok((receipt, computed))
    })?;
    let (receipt, computed) = ticket.await?;
    Ok(Looked::Receipt(receipt, computed))
}

/// One question, one answer.
async fn ask(parts: &Parts, work: &Work, place: u32) -> Result<AtPoint, Failed> {
    let listed = parts.chain.provider(When::Finalized, &work.view.provider).await?;
    let listed = listed.ok_or(Failed::NotListed)?;
    let mut call = parts.plane.open_call(&listed.endpoints).await?;
    let ask = PointAsk {
        batch: work.view.batch,
        place,
        agent: parts.signer.account().clone(),
        proof: work.proof,
    };
    call.send(&FromVerifier::Show(ask).encode()).await?;
    let frame = call.recv(ToVerifier::bytes_max()).await?.ok_or(Failed::Closed)?;
    match message::read::<ToVerifier>(&frame)? {
        ToVerifier::Point(at) => Ok(at),
        ToVerifier::NotShown(why) => Err(why.into()),
    }
}
