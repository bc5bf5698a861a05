//! Calls on their way to the chain: one at a time for each purpose, until no call of this agent that was sent
//! by then can be carried out any more. So the chain's next word on the purpose is the last one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use surety_chain_client::{AccountId, BlockNumber, Call, ChainError, ErrorClass, SubmitOptions, Until, When};
use surety_channels::{BatchNumber, ChannelId};
use surety_types::{
    ModelId, TaskId,
    trust::{ContentPart, DisputeId},
};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};

use crate::{
    CallsError, Parts,
    compute::Owned,
    defense::{Demanded, supply},
    desk::Event,
    front::CallId,
    read,
};

/// How many are on their way at once. Batches and what is demanded do not wait for that, nor take a place.
const AT_ONCE: usize = 16;

/// How many receipts are on their way at once that are demanded, those first that have least time.
const SHOWN_AT_ONCE: usize = 64;

/// For so long a call is tried to be brought into a block.
const SUBMIT_TIME: Duration = Duration::from_secs(300);

/// After so many blocks no signature is good any more, whatever a node has lost of it.
const MORTAL: BlockNumber = 300;

/// What a call is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// The batch that was promised.
    Commit,
    /// A receipt that a client demands.
    Show(AccountId, CallId),
    /// The receipt that points of a verifier are in.
    ShowPoint(AccountId, BatchNumber, CallId),
    /// Money that a late batch will be paid with.
    Hold(ChannelId),
    /// What was earned over a channel.
    Redeem(ChannelId),
    /// What is left of a deposit over which nothing is asked.
    GiveBack(ChannelId),
    /// That this agent's statements count.
    Signer,
    /// How much there is to do: by model, and the operation's name.
    Busy(ModelId, &'static str),
    /// A move in a game about a receipt.
    Play(DisputeId),
    /// The end of a game whose other side has no time left.
    Advance(DisputeId),
    /// What is demanded in a round about a receipt.
    Supply(TaskId, ContentPart),
}

impl Purpose {
    fn is_urgent(&self) -> bool {
        matches!(
            self,
            Self::Commit | Self::Show(..) | Self::ShowPoint(..) | Self::Play(_) | Self::Supply(..)
        )
    }
}

/// A call that is due.
#[derive(Debug)]
pub(crate) struct Errand {
    pub(crate) purpose: Purpose,
    /// Nothing where only what was sent before is waited for.
    pub(crate) call: Option<Call>,
    /// Of this request this segment of what was said is shown with it, which is read when it is sent.
    pub(crate) segment_of: Option<(CallId, u32)>,
    /// The call shows this, which is read when it is sent.
    pub(crate) part: Option<Box<Demanded>>,
    /// It is worth a tip.
    pub(crate) is_pressing: bool,
}

impl Errand {
    pub(crate) const fn new(purpose: Purpose, call: Call) -> Self {
        Self {
            purpose,
            call: Some(call),
            segment_of: None,
            part: None,
            is_pressing: false,
        }
    }
}

/// How an errand went.
#[derive(Debug)]
pub(crate) struct Back {
    pub(crate) purpose: Purpose,
    pub(crate) outcome: Result<(), NotDone>,
    /// What was sent up to then is in finalised blocks up to this one, or nowhere.
    pub(crate) settled: BlockNumber,
}

/// Why a call is in no block, or has failed there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotDone {
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error(transparent)]
    Journal(#[from] CallsError),
}

#[derive(Clone, Copy, Debug)]
struct Pause {
    until: BlockNumber,
    failures: u32,
}

/// What is on its way, and what waits after a failure.
#[derive(Default)]
pub(crate) struct Errands {
    away: BTreeMap<Purpose, Owned>,
    pauses: BTreeMap<Purpose, Pause>,
}

impl Errands {
    /// Whether a call for this purpose may be sent now, by a block of this number.
    pub(crate) fn may(&self, purpose: &Purpose, block: BlockNumber) -> bool {
        let away = |is_one: fn(&Purpose) -> bool| self.away.keys().filter(|away| is_one(away)).count();
        let is_free = match purpose {
            Purpose::Show(..) => away(|away| matches!(away, Purpose::Show(..))) < SHOWN_AT_ONCE,
            purpose => purpose.is_urgent() || away(|away| !away.is_urgent()) < AT_ONCE,
        };
        let is_over = |pause: &Pause| pause.until <= block;
        is_free && !self.away.contains_key(purpose) && self.pauses.get(purpose).is_none_or(is_over)
    }

    pub(crate) fn is_away(&self, purpose: &Purpose) -> bool {
        self.away.contains_key(purpose)
    }

    /// What is on its way.
    pub(crate) fn away(&self) -> impl Iterator<Item = &Purpose> {
        self.away.keys()
    }

    pub(crate) fn send(
        &mut self,
        parts: &Arc<Parts>,
        errand: Errand,
        newest: &watch::Receiver<BlockNumber>,
        events: &mpsc::Sender<Event>,
    ) {
        let purpose = errand.purpose.clone();
        let (parts, newest, events) = (parts.clone(), newest.clone(), events.clone());
        let task = Owned::spawn(async move {
            let back = carry(&parts, errand, newest).await;
            events.send(Event::Back(Box::new(back))).await.ok();
        });
        self.away.insert(purpose, task);
    }

    /// One is back. The next for its purpose is for a block in which all that was sent shows, and after a
    /// failure some time after it.
    pub(crate) fn back(&mut self, back: &Back) {
        self.away.remove(&back.purpose);
        let before = self.pauses.get(&back.purpose).map_or(0, |pause| pause.failures);
        let doublings_max = match (&back.purpose, &back.outcome) {
            // Its last time comes.
            (Purpose::Show(..) | Purpose::ShowPoint(..) | Purpose::Play(_) | Purpose::Supply(..), _) => 3,
            // It has cost nothing: a pool that is full, a node that is down.
            (_, Err(NotDone::Chain(error))) if error.class() == ErrorClass::Refused => 4,
            _ => 8,
        };
        let (failures, wait) = match back.outcome {
            Ok(()) => (0, 0),
            Err(_) => (before.saturating_add(1), 1u32 << before.min(doublings_max)),
        };
        let until = back.settled.saturating_add(wait);
        self.pauses
            .insert(back.purpose.clone(), Pause { until, failures });
    }

    /// Forgets the pauses of what is not due any more.
    pub(crate) fn keep(&mut self, due: &BTreeSet<Purpose>, block: BlockNumber) {
        self.pauses
            .retain(|purpose, pause| due.contains(purpose) || pause.until > block);
    }
}

/// Submits a call, and waits until nothing that was sent before can come any more.
async fn carry(parts: &Parts, errand: Errand, mut newest: watch::Receiver<BlockNumber>) -> Back {
    let Errand {
        purpose,
        call,
        segment_of,
        part,
        is_pressing,
    } = errand;
    let call = match whole(parts, call, segment_of, part).await {
        Ok(call) => call,
        Err(error) => {
            let settled = *newest.borrow();
            return Back {
                purpose,
                outcome: Err(error.into()),
                settled,
            };
        }
    };
    let outcome = match call {
        Some(call) => submit(parts, call, is_pressing).await,
        None => Ok(()),
    };
    let settled = settle(parts, &mut newest).await;
    Back {
        purpose,
        outcome,
        settled,
    }
}

/// A call with what the journal has of it.
async fn whole(
    parts: &Parts,
    mut call: Option<Call>,
    segment_of: Option<(CallId, u32)>,
    part: Option<Box<Demanded>>,
) -> Result<Option<Call>, CallsError> {
    if let Some((of, segment)) = segment_of {
        let found = read::segment(parts, of, segment).await?;
        match &mut call {
            Some(Call::ShowReceipt { receipt, .. })
                if found.row_digest(receipt.statement.bytes) != Some(receipt.statement.output) =>
            {
                // It would be refused for its fee.
                return Err(CallsError::Journal(
                    "an answer that has to be shown is not all there".into(),
                ));
            }
            Some(Call::ShowPoint { head: shown, .. } | Call::ShowReceipt { shown, .. }) => {
                *shown = Some(found);
            }
            _ => {}
        }
    }
    match part {
        Some(demanded) => Ok(Some(supply(parts, *demanded).await?)),
        None => Ok(call),
    }
}

async fn submit(parts: &Parts, call: Call, is_pressing: bool) -> Result<(), NotDone> {
    let options = SubmitOptions {
        until: Until::Included,
        tip: if is_pressing { parts.config.tip_max } else { 0 },
    };
    let submitted = parts.chain.submit(&parts.signer, call, options);
    match timeout(SUBMIT_TIME, submitted).await {
        Ok(submitted) => Ok(submitted.map(drop)?),
        Err(_) => Err(NotDone::Chain(ChainError::Unknown {
            reason: "it is in no block after five minutes".into(),
        })),
    }
}

/// The finalised block by which all that this agent has sent so far is carried out, or can never be.
async fn settle(parts: &Parts, newest: &mut watch::Receiver<BlockNumber>) -> BlockNumber {
    let agent = parts.signer.account();
    let mut since = Since::default();
    since.passed(*newest.borrow_and_update());
    let mut all = None;
    loop {
        if let Ok(sent) = parts.chain.sent(agent).await {
            let all = *all.get_or_insert(sent.all);
            if sent.finalized >= all {
                // What this says is of a block that may be newer than the newest that was read.
                let block = parts.chain.block(When::Finalized).await;
                if let Ok(block) = block {
                    return block.number;
                }
            }
        }
        // Everything ends when nobody tells blocks any more.
        if newest.changed().await.is_err() {
            return std::future::pending().await;
        }
        let block = *newest.borrow_and_update();
        if since.passed(block) > MORTAL {
            return block;
        }
    }
}

/// Since the first block that was seen.
#[derive(Default)]
struct Since(Option<BlockNumber>);

impl Since {
    /// How many blocks that is ago. Before the first there is none.
    fn passed(&mut self, block: BlockNumber) -> BlockNumber {
        match (self.0, block) {
            (None, 0) => 0,
            (first, _) => block.saturating_sub(*self.0.insert(first.unwrap_or(block))),
        }
    }
}

#[cfg(test)]
mod tests {
    use surety_chain_client::{DispatchFault, Refusal};

    use super::*;

    /// Blocks after which a call is sent again that has failed so often with this.
    fn wait_after(failures: u32, error: ChainError) -> BlockNumber {
        let (mut errands, purpose) = (Errands::default(), Purpose::Redeem(7));
        let back = Back {
            purpose: purpose.clone(),
            outcome: Err(error.into()),
            settled: 1_000,
        };
        (0..failures).for_each(|_| errands.back(&back));
        let free = (0..).find(|wait| errands.may(&purpose, back.settled.saturating_add(*wait)));
        free.unwrap_or_default()
    }

    #[test]
    fn what_has_cost_nothing_is_tried_again_before_its_last_time() {
        let full = || ChainError::from(Refusal::PoolFull);
        let failed = || {
            ChainError::Dispatch(DispatchFault {
                pallet: Some("Channels".into()),
                name: "NotCounted".into(),
                docs: String::new(),
            })
        };
        assert_eq!([1, 3, 20].map(|times| wait_after(times, full())), [1, 4, 16]);
        assert_eq!([1, 3, 20].map(|times| wait_after(times, failed())), [1, 4, 256]);
    }

    #[tokio::test]
    async fn what_is_demanded_keeps_nothing_else_waiting_however_much_that_is() {
        let mut errands = Errands::default();
        let send = |errands: &mut Errands, purpose: Purpose| {
            let is_sent = errands.may(&purpose, 1);
            if is_sent {
                errands.away.insert(purpose, Owned::spawn(std::future::pending()));
            }
            is_sent
        };
        let shown = (0..100).filter(|nonce| {
            let purpose = Purpose::Show(AccountId::new([1; 32]), (7, *nonce));
            send(&mut errands, purpose)
        });
        assert_eq!(shown.count(), SHOWN_AT_ONCE);
        let redeemed = (0..100).filter(|channel| send(&mut errands, Purpose::Redeem(*channel)));
        assert_eq!(redeemed.count(), AT_ONCE);
        assert!(send(&mut errands, Purpose::Commit));
    }

    #[test]
    fn blocks_from_before_the_first_that_was_seen_do_not_pass() {
        let mut since = Since::default();
        let passed: Vec<_> = [0, 9_000, 9_001, 9_301].map(|block| since.passed(block)).into();
        assert_eq!(passed, [0, 0, 1, 301]);
    }
}
