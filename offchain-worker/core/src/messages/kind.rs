//! Kinds of effects, and which of them an event ends.

use surety_types::{
    TaskId,
    trust::{ContentPart, DisputeId},
};

#[cfg(doc)]
use super::Effect;
use super::{Event, Failure};
use crate::{AccountId, Hash};

/// The kinds of [`Effect`], with what of a task they are about: a provider or an auditor by
/// [`key_of`], a dispute, or a part of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EffectKind {
    /// [`Effect::SubmitBid`].
    Bid,
    /// [`Effect::SubmitBidReveal`].
    BidReveal,
    /// [`Effect::FetchInput`].
    Fetch,
    /// [`Effect::Compute`].
    Compute,
    /// [`Effect::SubmitCommit`].
    Commit,
    /// [`Effect::SubmitReveal`].
    Reveal,
    /// [`Effect::SubmitSupply`].
    Supply(ContentPart),
    /// [`Effect::Draw`].
    Draw(Hash),
    /// [`Effect::FetchAudit`].
    FetchAudit(Hash),
    /// [`Effect::Audit`].
    Audit(Hash),
    /// [`Effect::SubmitAnnouncement`].
    Announce(Hash),
    /// [`Effect::CompareAudit`].
    CompareAudit(Hash),
    /// [`Effect::CompareAll`].
    CompareAll(Hash),
    /// [`Effect::SubmitAuditReveal`] and [`Effect::SubmitItemsReveal`].
    AuditReveal(Hash),
    /// [`Effect::CheckData`].
    CheckData(Hash),
    /// [`Effect::SubmitDemand`].
    Demand(Hash),
    /// [`Effect::SubmitLeavesDemand`].
    DemandLeaves(Hash),
    /// [`Effect::ComputeMove`].
    ComputeMove(DisputeId),
    /// [`Effect::SubmitMove`].
    Play(DisputeId),
    /// [`Effect::SubmitAdvance`].
    Advance(DisputeId),
    /// [`Effect::DrawSeat`].
    DrawSeat(DisputeId),
    /// [`Effect::ComputeVote`].
    ComputeVote(DisputeId),
    /// [`Effect::SubmitJoin`].
    Join(DisputeId),
    /// [`Effect::SubmitVote`].
    Vote(DisputeId),
    /// [`Effect::SubmitInputDemand`], after so many others.
    DemandInput(u32),
    /// [`Effect::SubmitReport`].
    Report(Hash),
    /// [`Effect::CheckConfirmation`].
    CheckConfirmation(Hash),
    /// [`Effect::SubmitRefutation`].
    Refute(Hash),
    /// [`Effect::Cancel`].
    Cancel,
    /// [`Effect::Forget`].
    Forget,
}

impl EffectKind {
    /// Whether it takes the machine and not only the chain: few such effects are under way at once.
    pub fn is_heavy(self) -> bool {
        matches!(
            self,
            Self::Fetch
                | Self::Compute
                | Self::FetchAudit(_)
                | Self::Audit(_)
                | Self::CompareAudit(_)
                | Self::CheckConfirmation(_)
                | Self::CompareAll(_)
                | Self::ComputeMove(_)
                | Self::ComputeVote(_)
        )
    }

    /// Whether it is needed for what was promised: without it stake is lost, so that it comes before work of
    /// its sort that is not, and is never given up.
    pub fn is_owed(self) -> bool {
        matches!(
            self,
            Self::ComputeMove(_) | Self::CompareAudit(_) | Self::CompareAll(_)
        )
    }

    /// Whether it is a call to the chain.
    pub fn is_call(self) -> bool {
        let is_local = self.is_heavy()
            || matches!(
                self,
                Self::Draw(_) | Self::DrawSeat(_) | Self::CheckData(_) | Self::Cancel | Self::Forget
            );
        !is_local
    }

    /// Whether it offers what nobody has a right to: no stake of ours is lost without it, so that it is worth
    /// no tip, nor a second fee.
    pub fn is_offer(self) -> bool {
        matches!(self, Self::Bid | Self::Announce(_) | Self::Refute(_))
    }

    /// Whether it shows what was sealed or promised before. It can be sent twice without harm, so that it
    /// goes out as soon as the best block asks for it.
    pub fn is_opening(self) -> bool {
        matches!(
            self,
            Self::BidReveal | Self::Reveal | Self::Supply(_) | Self::AuditReveal(_) | Self::Vote(_)
        )
    }
}

impl Event {
    /// The effect that it ends, and how that went; nothing where it ends none.
    pub fn ends(&self) -> Option<(TaskId, EffectKind, Result<(), Failure>)> {
        let (task, kind) = match self {
            Self::EffectFailed { task, kind, failure } => return Some((*task, *kind, Err(*failure))),
            Self::InputReady { task } => (task, EffectKind::Fetch),
            Self::ResultReady { task, .. } => (task, EffectKind::Compute),
            Self::Drawn { task, provider, .. } => (task, EffectKind::Draw(key_of(provider))),
            Self::AuditInput { task, provider, .. }
            | Self::AuditFetched { task, provider, .. }
            | Self::AuditShown { task, provider, .. } => (task, EffectKind::FetchAudit(key_of(provider))),
            Self::AuditReady { task, provider, .. } => (task, EffectKind::Audit(key_of(provider))),
            Self::ConfirmationChecked { task, verifier, .. } => {
                (task, EffectKind::CheckConfirmation(key_of(verifier)))
            }
            Self::MoveReady { task, dispute, .. } => (task, EffectKind::ComputeMove(*dispute)),
            Self::SeatDrawn { task, dispute, .. } => (task, EffectKind::DrawSeat(*dispute)),
            Self::VoteReady { task, dispute, .. } => (task, EffectKind::ComputeVote(*dispute)),
            Self::AuditCompared { task, kind, .. } | Self::EffectDone { task, kind, .. } => (task, *kind),
            Self::Finalized { .. }
            | Self::Best { .. }
            | Self::Measured { .. }
            | Self::TookLonger { .. }
            | Self::Unmeasured
            | Self::Stake { .. }
            | Self::Money { .. }
            | Self::Benchmarked { .. }
            | Self::Declared { .. }
            | Self::CommitWindow { .. }
            | Self::OpeningWindow { .. }
            | Self::Barred { .. }
            | Self::Room { .. } => return None,
        };
        Some((*task, kind, Ok(())))
    }
}

/// A provider as it is named in [`EffectKind`]s.
pub fn key_of(account: &AccountId) -> Hash {
    Hash(*AsRef::<[u8; 32]>::as_ref(account))
}
