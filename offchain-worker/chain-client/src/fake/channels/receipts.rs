//! Receipts that are disputed, or reported as false.

use sp_core::crypto::AccountId32;
use surety_channels::{
    BatchEvidence, BatchFault, BatchNumber, Batched, ChunkStatement, Committed, Equivocation, Request, Said,
    SignedChunkStatement, Struck, Time,
};
use surety_proofs::SegmentOpening;
use surety_types::{TaskId, trust::FaultKind};

use super::{
    super::{
        blocks::genesis,
        state::{Applied, FakeState},
    },
    convicted, event, field, refused, verify,
};
use crate::{ChainError, ChainEvent, ReceiptSource};

/// Most receipts of a provider that are disputed at once.
const DISPUTED_MAX: usize = 16;
/// The last time to dispute a batch, while all places for that are taken.
pub(super) const FROZEN: Time = Time::MAX;

impl FakeState {
    /// Opens a round, which the test ends with [`FakeState::decide_receipt`].
    pub(super) fn dispute_receipt(
        &mut self,
        source: &ReceiptSource,
        request: &Request,
        head: Option<&SegmentOpening>,
    ) -> Applied {
        let (said, batch) = match source {
            ReceiptSource::Batch(batch, batched) => {
                self.ensure_disputable(*batch, batched)?;
                (&batched.statement, Some(*batch))
            }
            ReceiptSource::Signed(signed) => {
                self.ensure_uncounted(signed)?;
                (&signed.statement, None)
            }
        };
        self.standing_to_lose(&said.payee)?;
        if self.are_places_taken(&said.payee) {
            return Err(refused("TooManyDisputed"));
        }
        self.ensure_claimed(said, request, head)?;
        self.open_receipt_round(said, batch, true)
    }

    /// Whether nobody else can dispute a receipt of a provider now.
    pub(super) fn are_places_taken(&self, provider: &AccountId32) -> bool {
        let rounds = self.channels.disputed.iter();
        let challenged = rounds.filter(|(round, (of, ..))| {
            let is_unserved = self.channels.unserved.contains(round);
            of == provider && !is_unserved
        });
        challenged.count() >= DISPUTED_MAX
    }

    /// Whether there can be a round about a receipt.
    pub(super) fn ensure_claimed(
        &self,
        said: &ChunkStatement<AccountId32>,
        request: &Request,
        head: Option<&SegmentOpening>,
    ) -> Result<(), ChainError> {
        if self.standing_to_lose(&said.payee)?.since_channel > said.channel {
            return Err(refused("TooLate"));
        }
        let is_one = said.check(request).is_ok() && !said.is_void();
        match said.claimed_output(head).filter(|_| is_one) {
            Some(_) => Ok(()),
            None => Err(refused("NotDisputable")),
        }
    }

    fn ensure_disputable(
        &self,
        batch: BatchNumber,
        batched: &Batched<AccountId32>,
    ) -> Result<(), ChainError> {
        let window = &self.batch_of(&(batched.statement.payee.clone(), batch))?.window;
        // Also while something else of it is disputed.
        if window.until < self.clock || window.is_void {
            return Err(refused("TooLate"));
        }
        let shown = batched.place_in(&genesis(), &window.root);
        let shown = shown.ok_or_else(|| refused("BadOpening"))?;
        match window.has_struck(shown.channel, shown.nonce) {
            true => Err(refused("NotDisputable")),
            false => Ok(()),
        }
    }

    fn ensure_uncounted(&self, signed: &SignedChunkStatement<AccountId32>) -> Result<(), ChainError> {
        self.ensure_signer(signed)?;
        if !signed.is_signed(&genesis(), verify) {
            return Err(refused("BadSignature"));
        }
        let said = &signed.statement;
        let channel = self.channel_of(said.channel)?;
        if channel.payee != said.payee {
            return Err(refused("NoChannel"));
        }
        match said.nonce < channel.purse.next {
            true => Err(refused("AlreadyCounted")),
            false => Ok(()),
        }
    }

    /// Opens a round: somebody says that the receipt is wrong, or was not served it.
    pub(super) fn open_receipt_round(
        &mut self,
        said: &ChunkStatement<AccountId32>,
        batch: Option<BatchNumber>,
        is_challenged: bool,
    ) -> Applied {
        let receipt = Struck {
            channel: said.channel,
            nonce: said.nonce,
            price: said.price,
        };
        let is_same = |(provider, of, known): &(AccountId32, Option<BatchNumber>, Struck)| {
            let is_same = (known.channel, known.nonce) == (said.channel, said.nonce);
            *provider == said.payee && *of == batch && is_same
        };
        if self.channels.disputed.values().any(is_same) {
            return Err(refused("AlreadyDisputed"));
        }
        let (task, round) = (
            self.tasks.keys().next_back(),
            self.channels.disputed.keys().next_back(),
        );
        let round: TaskId = task.max(round).map_or(0, |last| last.saturating_add(1));
        let disputed = (said.payee.clone(), batch, receipt);
        self.channels.disputed.insert(round, disputed);
        self.change_standing(&said.payee, |standing| {
            standing.disputes = standing.disputes.saturating_add(1);
        });
        if !is_challenged {
            self.channels.unserved.insert(round);
        } else if self.are_places_taken(&said.payee) {
            self.freeze_windows(&said.payee);
        }
        if let Some(batch) = batch {
            self.change_window(&(said.payee.clone(), batch), |window| {
                window.disputes = window.disputes.saturating_add(1);
            });
        }
        let fields = vec![
            field("round", &round),
            field("provider", &said.payee),
            field("batch", &batch),
            field("channel", &said.channel),
            field("nonce", &said.nonce),
        ];
        Ok(vec![event("Disputed", fields)])
    }

    /// Ends the round about a receipt. Where it does not stand, its provider is convicted, if that has not
    /// lost its lock before.
    pub fn decide_receipt(&mut self, round: TaskId, stands: bool) {
        let Some((provider, batch, receipt)) = self.channels.disputed.get(&round).cloned() else {
            return;
        };
        let was_challenged = !self.channels.unserved.remove(&round);
        let was_full = was_challenged && self.are_places_taken(&provider);
        self.channels.disputed.remove(&round);
        self.change_standing(&provider, |standing| {
            standing.disputes = standing.disputes.saturating_sub(1);
        });
        if let Some(batch) = batch {
            self.change_window(&(provider.clone(), batch), |window| {
                window.disputes = window.disputes.saturating_sub(1);
                if !stands {
                    window.strike(receipt);
                }
            });
        }
        if was_full {
            self.thaw_windows(&provider);
        }
        let is_covered = self.standing_to_lose(&provider).is_ok_and(|standing| {
            let is_later = batch.is_none_or(|batch| standing.since_batch <= batch);
            standing.since_channel <= receipt.channel && is_later
        });
        if !stands && is_covered {
            self.convict(&provider, FaultKind::LostDispute, None);
        }
    }

    /// While all places for disputes are taken nothing becomes final that can be disputed now.
    fn freeze_windows(&mut self, of: &AccountId32) {
        for ((provider, _), batch) in &mut self.channels.batches {
            if provider == of && self.clock <= batch.window.until {
                batch.window.until = FROZEN;
            }
        }
    }

    /// A place is free: others have time for what they were kept from.
    fn thaw_windows(&mut self, of: &AccountId32) {
        let rules = self.channels.rules;
        let until = self
            .clock
            .saturating_add(rules.dispute_window.max(rules.batch_window));
        for ((provider, _), batch) in &mut self.channels.batches {
            if provider == of && batch.window.until == FROZEN {
                batch.window.until = until;
            }
        }
    }

    pub(super) fn report_chunks(
        &mut self,
        reporter: &AccountId32,
        equivocation: &Equivocation<AccountId32>,
    ) -> Applied {
        let said = &equivocation.one.statement;
        if self.standing_to_lose(&said.payee)?.since_channel > said.channel {
            return Err(refused("TooLate"));
        }
        self.ensure_signer(&equivocation.one)?;
        self.ensure_signer(&equivocation.other)?;
        match equivocation.verify(&genesis(), verify) {
            Some(_) => Ok(self.convict(&said.payee, FaultKind::Equivocation, Some(reporter))),
            None => Err(refused("NoFault")),
        }
    }

    pub(super) fn report_batch(
        &mut self,
        reporter: &AccountId32,
        payee: &AccountId32,
        (batch, other): (BatchNumber, Option<BatchNumber>),
        evidence: &BatchEvidence<AccountId32>,
    ) -> Applied {
        let standing = self.standing_to_lose(payee)?;
        let (since_batch, since_channel) = (standing.since_batch, standing.since_channel);
        let root = |batch: BatchNumber| match since_batch <= batch {
            true => Ok(self.batch_of(&(payee.clone(), batch))?.window.root),
            false => Err(refused("TooLate")),
        };
        let committed = Committed {
            genesis: genesis(),
            payee: payee.clone(),
            batch: root(batch)?,
            other: other.map(root).transpose()?,
        };
        if let BatchEvidence::Contradiction { batched, said, .. } = evidence {
            if since_channel > batched.statement.channel {
                return Err(refused("TooLate"));
            }
            if let Said::Signed(signed) = said {
                self.ensure_signer(signed)?;
            }
        }
        let kind = match evidence.verify(&committed, verify) {
            Some(BatchFault::Contradicted(_)) => FaultKind::Equivocation,
            Some(_) => FaultKind::FalseBatch,
            None => return Err(refused("NoFault")),
        };
        Ok(self.convict(payee, kind, Some(reporter)))
    }

    pub(super) fn ensure_signer(&self, signed: &SignedChunkStatement<AccountId32>) -> Result<(), ChainError> {
        let standing = self.standing_to_lose(&signed.statement.payee)?;
        let is_known = standing.signers.contains(&signed.agent);
        is_known.then_some(()).ok_or_else(|| refused("UnknownSigner"))
    }

    /// Takes a standing lock, and what is not final.
    pub(super) fn convict(
        &mut self,
        offender: &AccountId32,
        kind: FaultKind,
        by: Option<&AccountId32>,
    ) -> Vec<ChainEvent> {
        let (now, next) = (self.clock, self.channels.next);
        for ((provider, _), batch) in &mut self.channels.batches {
            if provider == offender && !batch.window.is_final(now) {
                batch.window.void();
            }
        }
        let mut events = self.end_offers(offender);
        self.change_standing(offender, |standing| {
            standing.lock = 0;
            standing.cap = 0;
            standing.signers.clear();
            standing.since_channel = next;
            standing.since_batch = standing.next;
            standing.is_leaving = false;
        });
        events.push(convicted(offender, kind, by));
        events
    }
}
