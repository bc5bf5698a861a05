//! Why an effect failed, and what that means for the next attempt.

use surety_chain_client::{ChainError, ErrorClass};
use surety_dispute_game::bisection::Missing;
use surety_engine::EngineError;
use surety_network::PlaneError;
use surety_types::ContentHash;
use surety_worker_core::Failure;

use super::compute::ComputeError;

/// Why there is no outcome. Its text goes to the log, its class to core.
#[derive(Debug, thiserror::Error)]
pub(super) enum EffectError {
    /// The chain could not be asked, or refused a call.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// A blob could not be had or kept.
    #[error(transparent)]
    Data(#[from] PlaneError),
    /// There is no such model here, or its engine failed.
    #[error(transparent)]
    Compute(#[from] ComputeError),
    /// The engine could not answer from a trace that it had made.
    #[error(transparent)]
    Answer(EngineError),
    /// The engine could not make the trace of a claim in dispute.
    #[error(transparent)]
    Trace(EngineError),
    /// A committee is asked for a number of a dispute that needs none.
    #[error("the dispute can be played")]
    StillPlayable,
    /// The provider does not sign what it hands over.
    #[error("it does not sign that this is what it has committed to")]
    Unsigned,
    /// Nobody serves what a view of a claim needs.
    #[error("nobody serves what the claim is about: {0:?}")]
    NotServed(Missing),
    /// The chain knows no address of the provider.
    #[error("the provider has no endpoints")]
    NoEndpoints,
    /// The block that is to have an auditor's opening has none that opens its seal.
    #[error("the chain's block does not have what the auditor has opened")]
    NoOpening,
    /// A provider serves nothing of its trace.
    #[error("it has no leaves of its trace to show")]
    NoLeaves,
    /// What is demanded of us has no parts.
    #[error("there is nothing of it to show")]
    NothingToShow,
    /// A provider serves another output than it has revealed.
    #[error("it serves {0:?} instead")]
    OtherOutput(ContentHash),
}

impl EffectError {
    /// What core makes of it: whether another attempt may help, and whether this one cost something.
    pub(super) fn class(&self) -> Failure {
        match self {
            Self::Chain(e) => chain_class(e),
            Self::Data(e) => data_class(e),
            Self::Compute(e) => e.failure(),
            // Whatever it is: silence would lose the dispute.
            Self::Answer(_) => Failure::Failed,
            Self::NoEndpoints
            | Self::NoLeaves
            | Self::NoOpening
            | Self::Unsigned
            | Self::NotServed(_)
            | Self::NothingToShow
            | Self::OtherOutput(_) => Failure::Failed,
            Self::Trace(_) | Self::StillPlayable => Failure::Permanent,
        }
    }
}

/// The class of an error of the chain. None ends a task for good: a node may be set right, or another one
/// asked, while it is open.
pub(super) fn chain_class(error: &ChainError) -> Failure {
    // It came before the block that decides: the fee is lost, the place is not.
    if error.is_fault("TaskAuction", "PlacesUndecided") {
        return Failure::Refused;
    }
    // Other tasks have locked the stake since it was last looked at.
    if error.is_fault("TaskAuction", "NotBacked") {
        return Failure::Unbacked;
    }
    match error.class() {
        ErrorClass::Refused => Failure::Refused,
        ErrorClass::Failed | ErrorClass::Fatal => Failure::Failed,
    }
}

fn data_class(error: &PlaneError) -> Failure {
    match error {
        PlaneError::TooLarge { .. } => Failure::Permanent,
        // A place is taken up for long: the next attempt may wait.
        PlaneError::OutOfTime { .. } => Failure::Failed,
        PlaneError::AllFailed { attempts, .. }
            if !attempts.iter().all(|attempt| attempt.fault.may_pass()) =>
        {
            Failure::Failed
        }
        _ => Failure::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_node_says_ends_a_task_for_good() {
        let wrong = ChainError::WrongChain {
            url: String::new(),
            expected: String::new(),
            found: String::new(),
        };
        let unfit = ChainError::Incompatible {
            spec_version: 1,
            what: String::new(),
        };
        for error in [wrong, unfit] {
            assert_eq!(EffectError::from(error).class(), Failure::Failed);
        }
    }
}
