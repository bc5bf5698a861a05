//! Getting calls into blocks, and finding out what became of them.
//!
//! A signed call is one *intention*, however often it is signed. As long as one of its signatures may still
//! get into a block, the next uses the same nonce, so that at most one is carried out. A new nonce is taken
//! only when the old one is used by somebody else, or its signatures are dead. Whether one was carried out,
//! blocks say, not the node's pool: see [`super::search`].

use std::time::{Duration, Instant};

use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use subxt::rpcs::{Error as RpcError, client::RpcSubscription, methods::legacy::TransactionStatus};
use tokio::time::timeout;

use super::{
    Inner,
    attempts::{Attempt, Place},
    connections::Connected,
    node,
    nonces::Basis,
    sign::{Terms, sign},
    words::failure,
};
use surety_chain_client::{
    Balance, BlockRef, Call, ChainError, Included, Refusal, Signer, SubmitOptions, Until,
};

/// How often the chain is looked at while a call is on its way, whatever the node tells.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Pause before a refused call is sent again: half a block.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a call may wait for calls of its signer that come before it, until they are taken to be lost.
const FUTURE_PATIENCE: Duration = Duration::from_secs(6);
/// How long the node may be silent about a call before the chain itself is looked at.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// How long blocks are looked through when the time of a call is over: what was not looked at before are a
/// few.
const LAST_LOOK: Duration = Duration::from_secs(5);

type Statuses = RpcSubscription<TransactionStatus<H256>>;

/// A call that the node's pool has taken in.
pub(super) struct Pooled {
    statuses: Statuses,
    connected: Connected,
}

/// What came of handing a call over.
enum Sent {
    /// It is in the pool, and the node tells more.
    Watched(Pooled),
    /// It is in the pool, and only blocks tell more.
    Unwatched,
    /// One of its signatures is in a block.
    InBlock(BlockRef, H256),
}

/// Where following a call led.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is in this block.
    InBlock(H256),
    /// It is not in the pool any more.
    Out(Refusal),
    /// Nothing new for a while, or the node stopped telling.
    Quiet,
    /// It has been waiting for the calls before it for too long.
    Stuck,
}

impl Inner {
    pub async fn submit(
        &self,
        signer: &Signer,
        call: Call,
        options: SubmitOptions,
    ) -> Result<Included, ChainError> {
        if call.proves_itself() {
            return self.reveal(&call, options.until).await;
        }
        let until = self.deadline();
        let place = self.queues.enter(signer.account(), &call)?;
        loop {
            match self.carry_out(&place, signer, &call, options, until).await {
                Err(error) if may_pass(&error) && Instant::now() < until => {
                    self.pause_after(&call, &error).await;
                }
                told => {
                    if is_told(&told, place.has_landed()) {
                        place.settle();
                    }
                    return told;
                }
            }
        }
    }

    async fn carry_out(
        &self,
        place: &Place,
        signer: &Signer,
        call: &Call,
        options: SubmitOptions,
        until: Instant,
    ) -> Result<Included, ChainError> {
        loop {
            let (block, extrinsic) = self.land(place, signer, call, options.tip, until).await?;
            if self.stands(options.until, block).await? {
                return self.outcome(extrinsic, block).await;
            }
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        let now = Instant::now();
        now.checked_add(self.inclusion_patience).unwrap_or(now)
    }

    /// Gets a signed call into a block.
    async fn land(
        &self,
        place: &Place,
        signer: &Signer,
        call: &Call,
        tip: Balance,
        until: Instant,
    ) -> Result<(BlockRef, H256), ChainError> {
        let mut last = Refusal::NodeBusy;
        let mut unwatched_since = None;
        loop {
            let sent = self.send(place, signer, call, tip, until);
            let sent = self.judged(sent).await;
            if !matches!(sent, Ok(Sent::Unwatched)) {
                unwatched_since = None;
            }
            let step = match sent {
                Ok(Sent::InBlock(block, extrinsic)) => return Ok((block, extrinsic)),
                Ok(Sent::Watched(mut pooled)) => self.follow(&mut pooled, until).await,
                Ok(Sent::Unwatched) => wait_unwatched(&mut unwatched_since).await,
                Err(ChainError::Rejected(refusal)) if refusal.is_curable() => Step::Out(refusal),
                Err(error) => return Err(error),
            };
            match step {
                Step::InBlock(hash) => self.note_block(place, hash).await,
                Step::Out(refusal) => {
                    if refusal.spoils() {
                        place.spoil();
                    }
                    last = refusal;
                    self.pause_after(call, &last.clone().into()).await;
                }
                Step::Stuck => {
                    if let Err(error) = self.fill_gap(place, signer).await {
                        tracing::debug!(%error, "calls before this one are still missing");
                    }
                }
                Step::Quiet => {}
            }
            if Instant::now() >= until {
                return self.given_up(place, last).await;
            }
        }
    }

    /// Waits a moment before a call is sent again.
    pub(super) async fn pause_after(&self, call: &Call, error: &ChainError) {
        tracing::debug!(call = call.name().call, %error, "not in a block yet");
        tokio::time::sleep(PAUSE).await;
    }

    /// One look more: what got into a block meanwhile is no failure.
    async fn given_up(&self, place: &Place, last: Refusal) -> Result<(BlockRef, H256), ChainError> {
        let until = Instant::now().checked_add(LAST_LOOK);
        match self.found(place, until.unwrap_or_else(Instant::now)).await? {
            Some(found) => Ok(found),
            None if place.attempt().is_some() => Err(lost(&format!(
                "it got nowhere within {} seconds; the last word was: {last}",
                self.inclusion_patience.as_secs()
            ))),
            None => Err(last.into()),
        }
    }

    /// Sees that a signature of the call is in a block, or in the pool.
    async fn send(
        &self,
        place: &Place,
        signer: &Signer,
        call: &Call,
        tip: Balance,
        until: Instant,
    ) -> Result<Sent, ChainError> {
        // Before its turn: while blocks are looked through, other calls are signed.
        if let Some((block, extrinsic)) = self.found(place, until).await? {
            return Ok(Sent::InBlock(block, extrinsic));
        }
        let basis = self.basis(signer).await?;
        let _turn = place.turn().await;
        self.sign_and_send(place, signer, call, tip, &basis).await
    }

    /// Signs, unless a good signature is on its way, and hands over to the pool.
    async fn sign_and_send(
        &self,
        place: &Place,
        signer: &Signer,
        call: &Call,
        tip: Balance,
        basis: &Basis,
    ) -> Result<Sent, ChainError> {
        let runtime = &basis.runtime;
        let old = place.attempt();
        let (nonce, least_tip) = match &old {
            Some(old) if old.is_good(tip, runtime.spec_version(), basis.best.number) => {
                return unless_there(self.hand_over(&old.bytes).await);
            }
            // It may still be carried out: what comes after it has to replace it.
            Some(old) => (old.nonce, old.tip.saturating_add(1)),
            None => (self.next_nonce(place, signer, basis).await?, 0),
        };
        let terms = Terms {
            genesis: self.info.genesis,
            anchor: basis.anchor,
            period: runtime.period(),
            nonce,
            tip: tip.max(least_tip),
        };
        let bytes = sign(runtime, terms, signer, &runtime.payload(call)?)?;
        let attempt = Attempt::new(terms, runtime.spec_version(), bytes);
        // Before it is sent: a caller that gives up in the middle of it may have it in the pool, and asks
        // again.
        place.remember(attempt.clone());
        let sent = self.hand_over(&attempt.bytes).await;
        tracing::debug!(
            call = call.name().call,
            nonce,
            tip = terms.tip,
            "call signed and sent"
        );
        // What the pool refused cannot get into a block; what got lost on the way may.
        if matches!(sent, Err(ChainError::Rejected(_))) {
            place.recall(old.clone());
        }
        match old {
            Some(_) => unless_there(sent),
            None => Ok(Sent::Watched(sent?)),
        }
    }

    pub(super) async fn hand_over(&self, extrinsic: &[u8]) -> Result<Pooled, ChainError> {
        // Asked once only: if the answer got lost, the call may be in the pool all the same.
        let connected = self.link.connect().await?;
        let answer = connected.rpc.author_submit_and_watch_extrinsic(extrinsic).await;
        match answer {
            Ok(statuses) => Ok(Pooled { statuses, connected }),
            Err(RpcError::User(error)) => Err(node::refusal(&error).into()),
            Err(RpcError::Client(error)) => {
                self.link.drop_connection(&connected);
                Err(lost(&error.to_string()))
            }
            Err(other) => Err(lost(&other.to_string())),
        }
    }

    /// Follows a call until something is to be done about it.
    pub(super) async fn follow(&self, pooled: &mut Pooled, until: Instant) -> Step {
        let mut future_since = None;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let patience = match future_since {
                None => left.min(SILENCE_MAX),
                Some(_) => left.min(FUTURE_PATIENCE),
            };
            let told = timeout(patience, pooled.statuses.next()).await;
            let status = match told {
                Ok(Some(Ok(status))) => status,
                Ok(Some(Err(_)) | None) => {
                    self.link.drop_connection(&pooled.connected);
                    return Step::Quiet;
                }
                // At the end of its own time, nothing is gained by what may be cured behind it.
                Err(_) if future_since.is_some() && Instant::now() < until => return Step::Stuck,
                Err(_) => return Step::Quiet,
            };
            match status {
                TransactionStatus::Future => future_since = Some(Instant::now()),
                status => {
                    future_since = None;
                    if let Some(step) = judge(&status) {
                        return step;
                    }
                }
            }
        }
    }

    /// Whether a block stays, as far as is asked: waits until it is final, or another is in its place.
    pub(super) async fn stands(&self, asked: Until, block: BlockRef) -> Result<bool, ChainError> {
        if asked == Until::Included {
            return Ok(true);
        }
        let until = self.deadline();
        loop {
            match self.judged(self.is_final(block)).await {
                Ok(Some(stands)) => return Ok(stands),
                Ok(None) => {}
                Err(error) if may_pass(&error) => {
                    tracing::debug!(?block, %error, "whether it is final cannot be told now");
                }
                Err(error) => return Err(error),
            }
            if Instant::now() >= until {
                return Err(lost("its block was not finalised for a long time"));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Whether a block is final, or another in its place; nothing as long as that is open.
    async fn is_final(&self, block: BlockRef) -> Result<Option<bool>, ChainError> {
        let finalized = self.link.finalized().await?;
        let is_there = self.link.block_hash(Some(block.number)).await? == block.hash;
        Ok((!is_there || finalized.number >= block.number).then_some(is_there))
    }

    /// What an extrinsic did in its block.
    pub(super) async fn outcome(&self, extrinsic: H256, block: BlockRef) -> Result<Included, ChainError> {
        let extrinsics = self.link.extrinsics(block.hash).await?;
        let index = extrinsics
            .iter()
            .position(|bytes| H256(blake2_256(bytes)) == extrinsic)
            .ok_or_else(|| lost("it is not in the block that the node named"))?;
        let mut events = self.events(block).await?;
        events.retain(|event| event.extrinsic.is_some_and(|at| at as usize == index));
        let runtime = self.runtime_of(block.hash).await?;
        if let Some(error) = failure(&events) {
            return Err(ChainError::Dispatch(runtime.fault(error)));
        }
        Ok(Included {
            block,
            extrinsic,
            events,
        })
    }
}

/// A signature that the pool has already is on its way.
fn unless_there(sent: Result<Pooled, ChainError>) -> Result<Sent, ChainError> {
    match sent {
        Err(ChainError::Rejected(Refusal::AlreadyImported | Refusal::PriorityTooLow)) => Ok(Sent::Unwatched),
        sent => Ok(Sent::Watched(sent?)),
    }
}

/// Waits for blocks to tell of a call that the pool has and that the node tells nothing of. After a while it
/// may be the calls before it that are missing.
async fn wait_unwatched(since: &mut Option<Instant>) -> Step {
    let started = *since.get_or_insert_with(Instant::now);
    tokio::time::sleep(LOOK_EVERY).await;
    if started.elapsed() < FUTURE_PATIENCE {
        return Step::Quiet;
    }
    *since = None;
    Step::Stuck
}

/// Whether an error may be another node's or another moment's answer's.
pub(super) fn may_pass(error: &ChainError) -> bool {
    matches!(
        error,
        ChainError::Unreachable { .. }
            | ChainError::Unknown { .. }
            | ChainError::Pruned { .. }
            | ChainError::Rpc { .. }
            | ChainError::Implausible { .. }
    )
}

/// Whether it was told for good what became of a call.
fn is_told(told: &Result<Included, ChainError>, has_landed: bool) -> bool {
    match told {
        Ok(_) | Err(ChainError::Dispatch(_)) => true,
        // What a block did whose state is gone, or that this program cannot read, nobody will tell. Of a call
        // that is in no block they say nothing: its signature may still be carried out.
        Err(ChainError::Pruned { .. }) => has_landed,
        Err(error) => has_landed && !may_pass(error),
    }
}

/// What a pool's word means for whoever waits.
fn judge(status: &TransactionStatus<H256>) -> Option<Step> {
    match status {
        TransactionStatus::InBlock(block) | TransactionStatus::Finalized(block) => {
            Some(Step::InBlock(*block))
        }
        // Retracted: it goes back into the pool, and from there into another block.
        TransactionStatus::Future
        | TransactionStatus::Ready
        | TransactionStatus::Broadcast(_)
        | TransactionStatus::Retracted(_) => None,
        // The pool has stopped watching for finality; the call is in a block.
        TransactionStatus::FinalityTimeout(block) => Some(Step::InBlock(*block)),
        TransactionStatus::Usurped(_) => Some(Step::Out(Refusal::Usurped)),
        TransactionStatus::Dropped => Some(Step::Out(Refusal::Dropped)),
        TransactionStatus::Invalid => Some(Step::Out(Refusal::Invalidated)),
    }
}

pub(super) fn lost(reason: &str) -> ChainError {
    ChainError::Unknown {
        reason: reason.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_a_pool_has_its_own_answer() {
        let block = H256([1; 32]);
        assert_eq!(
            judge(&TransactionStatus::InBlock(block)),
            Some(Step::InBlock(block))
        );
        assert_eq!(
            judge(&TransactionStatus::Finalized(block)),
            Some(Step::InBlock(block))
        );
        assert_eq!(
            judge(&TransactionStatus::FinalityTimeout(block)),
            Some(Step::InBlock(block))
        );
        assert_eq!(judge(&TransactionStatus::Retracted(block)), None);
        assert_eq!(judge(&TransactionStatus::Ready), None);
        let out = [
            (TransactionStatus::Usurped(block), Refusal::Usurped),
            (TransactionStatus::Dropped, Refusal::Dropped),
            (TransactionStatus::Invalid, Refusal::Invalidated),
        ];
        for (status, refusal) in out {
            assert_eq!(judge(&status), Some(Step::Out(refusal)));
        }
    }
}
