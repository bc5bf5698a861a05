//! What can be asked of the chain's rounds of the benchmark.

use async_trait::async_trait;
use sp_core::crypto::AccountId32;
use surety_gpu_proofs::{GpuRoundView, MeasuredView, RunView};

use crate::{BlockNumber, ChainError, Remedy, When};

/// A round with this chain's types.
pub type GpuRound = GpuRoundView<BlockNumber>;

/// The chain's rounds of the benchmark.
///
/// A chain whose runtime has none answers [`ChainError::Outgrown`].
#[async_trait]
pub trait GpuProofsChain: Send + Sync {
    /// The round that there is now.
    async fn gpu_round(&self, when: When) -> Result<Option<GpuRound>, ChainError>;

    /// The run of that round that a provider, by its stash, has committed to and shown nothing of.
    async fn gpu_run(&self, when: When, provider: &AccountId32) -> Result<Option<RunView>, ChainError>;

    /// How fast a provider was measured to be, where that counts.
    async fn measured(&self, when: When, provider: &AccountId32) -> Result<Option<MeasuredView>, ChainError>;
}

/// What helps a call that the pallet has refused, by the names of its errors.
pub(crate) fn remedy(name: &str) -> Option<Remedy> {
    Some(match name {
        // Another fork, a round that is over, or what has been done already.
        "NotRunning" | "OtherEntropy" | "TooLate" | "AlreadyCommitted" | "NotOpening" | "NothingToOpen" => {
            Remedy::Look
        }
        "NotAgent" => Remedy::Mend,
        "UnsoundPlan" | "WrongCount" | "WrongRow" | "WrongCell" => Remedy::Never,
        _ => return None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    /// By the pallet's source.
    #[test]
    fn every_error_of_the_pallet_has_a_remedy() {
        let source = include_str!("../../../pallets/gpu-proofs/src/lib.rs");
        let (_, errors) = source.split_once("pub enum Error<T> {").unwrap();
        let (errors, _) = errors.split_once('}').unwrap();
        let names = errors.lines().filter_map(|line| line.trim().strip_suffix(','));
        let names: BTreeSet<_> = names.filter(|name| !name.starts_with("///")).collect();
        assert!(names.len() > 10, "{names:?}");
        for name in names {
            assert!(super::remedy(name).is_some(), "{name}");
        }
    }
}
