//! What calls are about, and when one that has failed is tried again.

use std::time::Duration;

use surety_chain_client::{Call, ChainError};
use surety_channels::{ChannelId, Nonce};

use crate::{AccountId, funds::channel_of};

/// Until the same is tried again that the chain, or the way to it, did not take.
const AGAIN: Duration = Duration::from_secs(20);

/// The same where its payee has to do something first, which may be leaving: each try costs a fee.
const MENDED: Duration = Duration::from_secs(3_600);

/// What one call is about: no two are on their way about the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum About {
    Channel(ChannelId),
    /// More money or time for a channel: only what is paused.
    More(ChannelId),
    Opening(AccountId),
    Demand(ChannelId, Nonce),
    Ending(AccountId),
    Report(ChannelId),
}

impl About {
    pub(crate) fn of(call: &Call) -> Option<Self> {
        match call {
            Call::Open { payee, .. } => Some(Self::Opening(payee.clone())),
            Call::DemandReceipt { held } => {
                let said = &held.statement;
                Some(Self::Demand(said.channel, said.nonce))
            }
            Call::EndDemand { provider, .. } => Some(Self::Ending(provider.clone())),
            Call::ReportChunkEquivocation { equivocation } => {
                Some(Self::Report(equivocation.one.statement.channel))
            }
            _ => channel_of(call).map(Self::Channel),
        }
    }

    /// What waits after a call about this has failed: a channel is closed and ended whatever its payee does
    /// not take.
    pub(crate) fn paused(&self, call: &Call) -> Self {
        match (call, self) {
            (Call::TopUp { .. } | Call::Extend { .. }, Self::Channel(channel)) => Self::More(*channel),
            _ => self.clone(),
        }
    }

    /// How long it waits after that.
    pub(crate) fn again_after(&self, error: &ChainError) -> Duration {
        match self {
            Self::More(_) if is_of_payee(error) => MENDED,
            _ => AGAIN,
        }
    }
}

/// Whether a payee has to do something before it can be paid more.
fn is_of_payee(error: &ChainError) -> bool {
    let names = ["Leaving", "OldTerms", "NotCovered", "NotStanding"];
    names.iter().any(|name| error.is_fault("Channels", name))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use surety_chain_client::DispatchFault;

    use super::*;

    fn fault(name: &str) -> ChainError {
        ChainError::Dispatch(DispatchFault {
            pallet: Some("Channels".into()),
            name: name.into(),
            docs: String::new(),
        })
    }

    #[test]
    fn more_money_for_whoever_takes_none_waits_long_and_its_channel_is_closed_meanwhile() {
        let channel = 3;
        let [more, close] = [Call::TopUp { channel, amount: 1 }, Call::Close { channel }];
        let paused = |call: &Call| About::of(call).unwrap().paused(call);
        assert_eq!(paused(&more).again_after(&fault("Leaving")), MENDED);
        assert_eq!(paused(&more).again_after(&fault("TooManyChannels")), AGAIN);
        assert_eq!(paused(&close).again_after(&fault("Leaving")), AGAIN);
        assert_ne!(paused(&more), paused(&close));
        // No two of them are on their way at once.
        assert_eq!(About::of(&more), About::of(&close));
    }
}
