//! Keeps a provider on the chain's list as what it is, and alive, so that it is given work.
//!
//! It goes on beside the loop: a provider that has no money for it, or finds no room in a pool, opens what it
//! has promised all the same.

use std::sync::Arc;

use surety_chain_client::{BlockNumber, Call, ChainError, ErrorClass, ProviderRecord, Until, When};
use surety_types::{multiaddr::Endpoints, provider::DeviceProfile};

use super::{Tools, retry::Backoff};

/// A sign of life is due within so many blocks, as far as is known where the chain cannot say it.
const WINDOW_UNKNOWN: BlockNumber = 300;

/// Blocks after which the chain's parameters are read again: a minute.
const TERMS_EVERY: BlockNumber = 30;

/// What the chain is told of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// What machine it is.
    pub device: DeviceProfile,
    /// Where it is.
    pub endpoints: Endpoints,
}

impl Registration {
    fn is(&self, record: &ProviderRecord) -> bool {
        record.device == self.device && record.endpoints == self.endpoints
    }

    /// What there is to say: `age` blocks ago anything was said last, and it may be `window`.
    fn call(&self, record: Option<&ProviderRecord>, now: BlockNumber, window: BlockNumber) -> Option<Call> {
        // Two signs of life may be lost.
        let every = (window / 3).max(1);
        match record {
            Some(record) if self.is(record) => {
                let age = now.saturating_sub(record.last_heartbeat);
                (age >= every).then_some(Call::Heartbeat)
            }
            _ => Some(Call::RegisterProvider {
                device: self.device.clone(),
                endpoints: self.endpoints.clone(),
            }),
        }
    }
}

/// Sees to it for as long as it is polled. What fails is tried again: soon where that costs nothing, and not
/// so soon where it costs a fee.
pub(super) async fn keep(tools: Arc<Tools>, registration: Registration) {
    let mut keeper = Keeper {
        tools: &tools,
        registration,
        was_listed: false,
    };
    let (mut soon, mut costly) = (Backoff::new(), Backoff::costly());
    loop {
        let Err(e) = keeper.keep_until_error(&mut soon, &mut costly).await;
        match e.class() {
            ErrorClass::Refused => {
                tracing::warn!(error = %e, "no sign of life, trying again");
                soon.wait().await;
            }
            ErrorClass::Failed | ErrorClass::Fatal => {
                tracing::error!(error = %e, "the chain refuses us as a provider: no new tasks will come");
                costly.wait().await;
            }
        }
    }
}

struct Keeper<'a> {
    tools: &'a Tools,
    registration: Registration,
    /// Whether we have been on the list for good since the start.
    was_listed: bool,
}

impl Keeper<'_> {
    /// By the best block: the window counts blocks, final or not.
    async fn keep_until_error(
        &mut self,
        soon: &mut Backoff,
        costly: &mut Backoff,
    ) -> Result<std::convert::Infallible, ChainError> {
        let chain = &self.tools.chain;
        let mut blocks = chain.best_blocks().await?;
        let mut terms: Option<(BlockNumber, BlockNumber)> = None;
        loop {
            let now = blocks.next().await?.number;
            let window = match terms {
                Some((at, window)) if now.saturating_sub(at) < TERMS_EVERY => window,
                _ => {
                    let window = match chain.provider_terms(When::Best).await {
                        Ok(terms) => terms.heartbeat_window,
                        Err(e @ ChainError::Outgrown { .. }) => {
                            tracing::warn!(error = %e, "how often to give signs of life cannot be read");
                            WINDOW_UNKNOWN
                        }
                        Err(e) => return Err(e),
                    };
                    terms = Some((now, window));
                    window
                }
            };
            let record = chain.provider(When::Best, &self.tools.stash).await?;
            if !self.was_listed || record.is_none() {
                let is_listed = chain
                    .provider(When::Finalized, &self.tools.stash)
                    .await?
                    .is_some();
                if self.was_listed && !is_listed {
                    // Somebody has taken it off the list: it stays off until it is started again.
                    tracing::warn!("this provider is no longer on the chain's list: no new tasks will come");
                    std::future::pending::<()>().await;
                }
                self.was_listed |= is_listed;
            }
            if record.is_none() && self.was_listed {
                continue;
            }
            if let Some(call) = self.registration.call(record.as_ref(), now, window) {
                let name = call.name().call;
                chain
                    .submit(&self.tools.signer, call, Until::Included.into())
                    .await?;
                tracing::debug!(block = now, name, "said to the chain");
                costly.reset();
            }
            soon.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registration(threads: usize) -> Registration {
        Registration {
            device: crate::machine::profile(threads),
            endpoints: Endpoints::default(),
        }
    }

    #[test]
    fn a_provider_registers_what_differs_and_beats_when_it_is_time() {
        let ours = registration(1);
        let said = |record: &Registration, now| {
            let record = ProviderRecord {
                device: record.device.clone(),
                endpoints: record.endpoints.clone(),
                last_heartbeat: 10,
            };
            let call = ours.call(Some(&record), now, 300);
            call.map(|call| call.name().call)
        };
        assert_eq!(said(&ours, 109), None);
        assert_eq!(said(&ours, 110), Some("heartbeat"));
        assert_eq!(said(&registration(2), 10), Some("register"));
        let none = ours.call(None, 0, 300).map(|call| call.name().call);
        assert_eq!(none, Some("register"));
    }
}
