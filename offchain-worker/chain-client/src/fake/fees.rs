//! Who pays for calls.

use sp_core::crypto::AccountId32;

use super::{DEPOSIT, state::FakeState};
use crate::{Call, ChainError, Refusal};

impl FakeState {
    /// Takes a call's fee from its signer or, where that has too little, from the stash that it works for; of
    /// neither the last. A pool takes no call that nobody can pay for.
    pub(super) fn charge(&mut self, who: &AccountId32, call: &Call) -> Result<(), ChainError> {
        let Some(fee) = self.fees.get(call.name().call).copied() else {
            return Ok(());
        };
        let payers = [Some(who), self.agents.get(who)];
        let can_pay = |payer: &&AccountId32| {
            let funds = self.funds.get(*payer);
            funds.is_some_and(|funds| funds.for_fees(DEPOSIT) >= fee)
        };
        let payer = payers.into_iter().flatten().find(can_pay).cloned();
        let payer = payer.ok_or_else(|| ChainError::from(Refusal::Payment))?;
        if let Some(funds) = self.funds.get_mut(&payer) {
            funds.free = funds.free.saturating_sub(fee);
        }
        Ok(())
    }
}
