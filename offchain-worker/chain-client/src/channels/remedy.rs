//! What a refusal by the pallets `Channels` and `GpuProofs` means for the call that was refused.

use crate::{ChainError, DispatchFault};

/// What helps a call that the pallet `Channels` or `GpuProofs` has refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Time: the same call may be taken in a later block, without anybody doing anything.
    Wait,
    /// Less at once. The same call may be taken when parameters have changed.
    Split,
    /// That somebody does something else first: lock or send money, name an agent, end a channel.
    Mend,
    /// A look at the chain: what it is about is done, over, or not due yet.
    Look,
    /// None: the chain never takes this call.
    Never,
}

impl ChainError {
    /// What helps a call that the pallet `Channels` or `GpuProofs` has refused; nothing for every other
    /// error, and for refusals that this program does not know.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Dispatch(DispatchFault { pallet, name, .. }) => match pallet.as_deref() {
                Some("Channels") => of_error(name),
                Some("GpuProofs") => crate::gpu_proofs::remedy(name),
                _ => None,
            },
            _ => None,
        }
    }
}

/// By the names of the pallet's errors.
fn of_error(name: &str) -> Option<Remedy> {
    Some(match name {
        // Earlier batches become final, the clock goes on, others make room.
        "BeyondCap" | "TooManyBatches" | "OneABlock" | "NotCounted" | "NotOver" | "InUse" | "InJail"
        | "TooManyDisputed" | "AlreadyDemanded" | "TooManyDemands" | "PoolFull" | "OfferInUse"
        | "ReportedAlready" | "NotSettled" | "PayeeFull" | "PotLacksPay" | "NobodyAudits" => Remedy::Wait,
        "TooDear" => Remedy::Split,
        "NotStanding" | "NotAgent" | "NotPayee" | "NotVerifierAgent" | "TooManyChannels" | "LockTooSmall"
        | "NotInsurable" | "CannotPayLevy" | "PayeeCannotTake" | "TooManySigners" | "PlacesNotCovered"
        | "TooManyOffers" | "NoOffer" | "OldTerms" | "NotCovered" | "Leaving" => Remedy::Mend,
        "NoChannel" | "Closing" | "NoBatch" | "NotHeld" | "TooLate" | "AlreadyDisputed"
        | "AlreadyCounted" | "NotDemanded" | "WrongTime" | "AlreadyAnnounced" | "TooManyAnnounced"
        | "NothingAnnounced" | "AlreadyOpened" => Remedy::Look,
        "ImpossibleBatch" | "NotPayer" | "OwnChannel" | "DepositTooSmall" | "BadExpiry" | "BadOpening"
        | "BadVoucher" | "BadSignature" | "NoFault" | "UnknownSigner" | "NotDisputable" | "MayNotDemand"
        | "Unsettled" | "NotDrawn" | "SealMismatch" | "NothingRefuted" | "PriceTooLow" | "TooManyPlaces"
        | "TooBusy" | "BeginningNotShown" => Remedy::Never,
        _ => return None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn refused(pallet: &str, name: &str) -> ChainError {
        ChainError::Dispatch(DispatchFault {
            pallet: Some(pallet.into()),
            name: name.into(),
            docs: String::new(),
        })
    }

    /// By the pallet's source.
    fn errors_of_the_pallet() -> BTreeSet<String> {
        let manifest = std::path::PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap());
        let source = std::fs::read_to_string(manifest.join("../../pallets/channels/src/lib.rs")).unwrap();
        let (_, errors) = source.split_once("pub enum Error<T> {").unwrap();
        let (errors, _) = errors.split_once('}').unwrap();
        let lines = errors.lines().map(str::trim);
        let names = lines.filter_map(|line| line.strip_suffix(','));
        names
            .filter(|name| !name.starts_with("///"))
            .map(str::to_string)
            .collect()
    }

    #[test]
    fn every_error_of_the_pallet_is_known_and_no_other() {
        let (_, table) = include_str!("remedy.rs").split_once("fn of_error").unwrap();
        let (table, _) = table.split_once("_ => return None").unwrap();
        let known: BTreeSet<_> = table.split('"').skip(1).step_by(2).map(str::to_string).collect();
        assert!(known.len() > 40, "{known:?}");
        assert_eq!(known, errors_of_the_pallet());
    }

    #[test]
    fn a_refused_batch_waits_is_split_or_is_given_up() {
        let of_batch = |name| refused("Channels", name).remedy();
        for later in ["BeyondCap", "TooManyBatches", "OneABlock"] {
            assert_eq!(of_batch(later), Some(Remedy::Wait));
        }
        assert_eq!(of_batch("TooDear"), Some(Remedy::Split));
        assert_eq!(of_batch("CannotPayLevy"), Some(Remedy::Mend));
        assert_eq!(of_batch("ImpossibleBatch"), Some(Remedy::Never));
    }

    #[test]
    fn other_refusals_have_no_remedy_here() {
        assert_eq!(refused("Staking", "NotAgent").remedy(), None);
        assert_eq!(refused("Channels", "NobodyKnows").remedy(), None);
        assert_eq!(ChainError::from(crate::Refusal::PoolFull).remedy(), None);
    }
}
