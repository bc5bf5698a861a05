//! What a verifier's agent needs for a dispute over a receipt: its bond is the agent's own money, and the
//! stash pays none of it.

use std::{sync::Arc, time::Duration};

use surety_chain_client::{AccountId, Chain, ChainError, ChannelChain, When, address};
use surety_chain_rpc::RpcChain;
use tokio::{sync::watch, time::sleep};

use crate::amount::Amount;

/// Locks change as providers do: an hour is soon enough for a person.
const LOOK: Duration = Duration::from_secs(3_600);

/// What disputing a receipt takes at least where the most is locked, and what there is for it, in plancks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bond {
    needed: u128,
    free: u128,
}

impl Bond {
    /// As it is now; nothing where nothing can be disputed.
    pub(super) async fn read<C: Chain + ChannelChain>(
        chain: &C,
        agent: &AccountId,
    ) -> Result<Option<Self>, ChainError> {
        let needed = match chain.dispute_bond(When::Finalized).await {
            // There are no channels on this chain.
            Ok(0) | Err(ChainError::Outgrown { .. }) => return Ok(None),
            needed => needed?,
        };
        let free = chain.funds(When::Finalized, agent).await?.free;
        Ok(Some(Self { needed, free }))
    }

    pub(super) const fn is_enough(self) -> bool {
        // With nothing left the account would be closed.
        self.free > self.needed
    }

    /// What to do about it.
    pub(super) fn advice(self, agent: &AccountId) -> String {
        let (needed, free) = (Amount(self.needed), Amount(self.free));
        match self.is_enough() {
            true => format!("{free}, and a dispute over a receipt takes {needed} or more"),
            false => format!(
                "{free}, and to dispute a receipt of whoever has the largest lock takes {needed} or more, of the agent's own \
                 money: without it a provider's lie goes unpunished, and may cost the bond of an audit. Send more to {}",
                address(agent)
            ),
        }
    }
}

/// Warns at once, and every hour, while it is too little.
pub(super) async fn warn(chain: Arc<RpcChain>, agent: AccountId, mut stop: watch::Receiver<bool>) {
    loop {
        match Bond::read(&*chain, &agent).await {
            Ok(Some(bond)) if !bond.is_enough() => tracing::warn!("the agent has {}", bond.advice(&agent)),
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "what a dispute would take"),
        }
        tokio::select! {
            () = sleep(LOOK) => {}
            // Whoever would stop it is gone, too.
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use surety_chain_client::{FakeChain, Funds, Signer, StandingView, sample};

    use super::*;

    #[tokio::test]
    async fn an_agent_learns_what_it_lacks_for_a_dispute_with_whoever_has_the_most_locked() {
        let chain = FakeChain::new();
        let agent = Signer::from_uri("//Agent").unwrap().account().clone();
        assert_eq!(Bond::read(&chain, &agent).await, Ok(None));
        for (name, lock) in [(1, 800), (2, 80)] {
            let provider = AccountId::new([name; 32]);
            let standing = StandingView {
                provider: provider.clone(),
                lock,
                ..sample::channels::standing()
            };
            chain.change(|state| state.channels.standings.insert(provider, standing));
        }
        for (free, is_enough) in [(0, false), (100, false), (101, true)] {
            let funds = Funds { free, held: 0 };
            chain.change(|state| state.funds.insert(agent.clone(), funds));
            chain.finalize();
            let bond = Bond::read(&chain, &agent).await.unwrap().unwrap();
            assert_eq!((bond.needed, bond.is_enough()), (100, is_enough));
            assert_eq!(bond.advice(&agent).contains("Send more"), !is_enough);
        }
    }
}
