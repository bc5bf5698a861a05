//! What can go wrong between us and the chain, in words for the person who has to fix it.

use std::fmt;

use crate::Refusal;

/// What an error means for whoever wanted something done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// It cost nothing, never got into a block or its fate is unknown, or no node answers: try again soon.
    Refused,
    /// It was carried out and failed, and cost its fee: look at the chain's state before trying again.
    Failed,
    /// This program or its key cannot do it: somebody has to change something.
    Fatal,
}

/// Why the chain did not do or answer what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// No node answers.
    #[error("no node answers at {url}: {hint}")]
    Unreachable {
        /// Where it was looked for.
        url: String,
        /// What happened, and what to do.
        hint: String,
    },
    /// The node belongs to another kind of chain.
    #[error("the node at {url} runs \"{found}\", not \"{expected}\": name one of this network")]
    WrongChain {
        /// Where the node is.
        url: String,
        /// The specification wanted.
        expected: String,
        /// The specification found.
        found: String,
    },
    /// The runtime lacks something this program relies on, or has it in another shape. Found when connecting.
    #[error("this program does not fit the chain's runtime (version {spec_version}): {what}; update it")]
    Incompatible {
        /// Version of the runtime.
        spec_version: u32,
        /// What does not fit.
        what: String,
    },
    /// The chain's runtime was upgraded to one that this program cannot use for what was asked. Other
    /// questions and calls may still work, and the next runtime may fit again.
    #[error(
        "the chain was upgraded to a runtime (version {spec_version}) that this program does not fit: {what}; update it"
    )]
    Outgrown {
        /// Version of the runtime.
        spec_version: u32,
        /// What does not fit.
        what: String,
    },
    /// The call got into a block and failed.
    #[error("{0}")]
    Dispatch(DispatchFault),
    /// The call did not get into a block.
    #[error("the node refused the call: {0}")]
    Rejected(#[from] Refusal),
    /// We lost sight of a submitted call: it may or may not be carried out.
    #[error("the call was sent, but its fate is unknown: {reason}")]
    Unknown {
        /// What happened.
        reason: String,
    },
    /// The node answered with an error.
    #[error("{what} failed: {reason}")]
    Rpc {
        /// What was asked.
        what: String,
        /// The node's answer.
        reason: String,
    },
    /// The node's answer cannot be true: it lacks what was there before, or contradicts itself.
    #[error("the node at {url} is not believed: {reason}")]
    Implausible {
        /// Where the node is.
        url: String,
        /// What cannot be true.
        reason: String,
    },
    /// The node does not keep the state of this block.
    #[error("the node does not keep the state of block {block}; ask one that archives it")]
    Pruned {
        /// The block.
        block: String,
    },
    /// A value is not what its name promises.
    #[error("{what} cannot be read: {reason}; this program may be older than the chain's runtime")]
    Decode {
        /// Which value.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A secret key could not be used. Says nothing of the key itself.
    #[error("the signing key cannot be used: {reason}")]
    Key {
        /// Why.
        reason: String,
    },
    /// More calls wait to be submitted than are allowed to.
    #[error("{waiting} calls of this signer already wait to be submitted")]
    Busy {
        /// How many.
        waiting: usize,
    },
}

impl ChainError {
    /// What it means for whoever wanted something done.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Unreachable { .. }
            | Self::Outgrown { .. }
            | Self::Rejected(_)
            | Self::Unknown { .. }
            | Self::Rpc { .. }
            | Self::Implausible { .. }
            | Self::Pruned { .. }
            | Self::Decode { .. }
            | Self::Busy { .. } => ErrorClass::Refused,
            Self::Dispatch(_) => ErrorClass::Failed,
            Self::WrongChain { .. } | Self::Incompatible { .. } | Self::Key { .. } => ErrorClass::Fatal,
        }
    }

    /// Whether the same question or call may succeed later without anybody changing anything.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Outgrown { .. }
            | Self::Unknown { .. }
            | Self::Rpc { .. }
            | Self::Implausible { .. }
            | Self::Busy { .. } => true,
            Self::Rejected(refusal) => refusal.is_retryable(),
            Self::WrongChain { .. }
            | Self::Incompatible { .. }
            | Self::Dispatch(_)
            | Self::Pruned { .. }
            | Self::Decode { .. }
            | Self::Key { .. } => false,
        }
    }

    /// Whether this is the named error of the named pallet.
    pub fn is_fault(&self, pallet: &str, name: &str) -> bool {
        matches!(self, Self::Dispatch(fault) if fault.pallet.as_deref() == Some(pallet) && fault.name == name)
    }
}

/// A call that failed in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DispatchFault {
    /// The pallet that refused; none when the runtime itself did.
    pub pallet: Option<String>,
    /// Name of the error.
    pub name: String,
    /// The error's documentation in the runtime.
    pub docs: String,
}

impl fmt::Display for DispatchFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(pallet) = &self.pallet {
            write!(f, "{pallet}.")?;
        }
        f.write_str(&self.name)?;
        if !self.docs.is_empty() {
            write!(f, ": {}", self.docs)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dispatch_fault_reads_as_pallet_name_and_documentation() {
        let fault = DispatchFault {
            pallet: Some("TaskAuction".into()),
            name: "CapBelowFee".into(),
            docs: "The cap does not cover the fee.".into(),
        };
        let error = ChainError::Dispatch(fault);
        assert_eq!(
            error.to_string(),
            "TaskAuction.CapBelowFee: The cap does not cover the fee."
        );
        assert!(error.is_fault("TaskAuction", "CapBelowFee"));
        assert!(!error.is_fault("Staking", "CapBelowFee"));
        assert!(!error.is_retryable());
    }
}
