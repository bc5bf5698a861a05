//! What becomes of calls that are handed over.

use sp_core::{H256, crypto::AccountId32};
use sp_crypto_hashing::blake2_256;

use super::{FakeChain, Inner, block_ref, faults::Kind};
use crate::{Call, ChainError, ChainEvent, Included, Signer, SubmitOptions, Until};

impl FakeChain {
    /// Every call carried out so far, with who signed it.
    pub fn calls(&self) -> Vec<(AccountId32, Call)> {
        self.lock().calls.clone()
    }

    /// Every call that was handed over so far, carried out or not, with who signed it and how.
    pub fn attempts(&self) -> Vec<(AccountId32, Call, SubmitOptions)> {
        self.lock().attempts.clone()
    }

    pub(super) async fn hand_over(
        &self,
        signer: &Signer,
        call: Call,
        options: SubmitOptions,
    ) -> Result<Included, ChainError> {
        let (events, number) = {
            let mut inner = self.lock();
            inner.check_reachable()?;
            let who = signer.account();
            inner.attempts.push((who.clone(), call.clone(), options));
            let lost = || ChainError::Unknown {
                reason: "the test has lost it".into(),
            };
            match inner.faults.take(&call) {
                Some(Kind::Refuse(error)) => return Err(error),
                Some(Kind::LoseBefore) => return Err(lost()),
                Some(Kind::LoseAfter) => {
                    inner.carry_out(who, call)?;
                    return Err(lost());
                }
                None => {}
            }
            let events = inner.carry_out(who, call)?;
            (events, inner.best.number.saturating_add(1))
        };
        if options.until == Until::Finalized {
            let mut watch = self.finalized.subscribe();
            // The sender lives as long as `self`.
            let _ = watch.wait_for(|finalized| *finalized >= number).await;
        }
        Ok(Included {
            block: block_ref(number),
            extrinsic: H256(blake2_256(&number.to_le_bytes())),
            events,
        })
    }
}

impl Inner {
    fn carry_out(&mut self, who: &AccountId32, call: Call) -> Result<Vec<ChainEvent>, ChainError> {
        self.best.charge(who, &call)?;
        let events = self.best.apply(who, &call)?;
        if !call.proves_itself() {
            let sent = self.best.sent.entry(who.clone()).or_default();
            *sent = sent.saturating_add(1);
        }
        self.calls.push((who.clone(), call));
        let block = self.best.number.saturating_add(1);
        self.events
            .extend(events.iter().map(|event| (block, event.clone())));
        Ok(events)
    }
}
