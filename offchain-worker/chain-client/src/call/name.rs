//! Where calls are found in a runtime's metadata.

use super::Call;

/// Where a call is found in the runtime's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallName {
    /// The pallet.
    pub pallet: &'static str,
    /// The call.
    pub call: &'static str,
    /// Its arguments, in order.
    pub arguments: &'static [&'static str],
}

/// The calls of the pallet `Channels`, as a pattern.
macro_rules! of_channels {
    () => {
        $crate::Call::Open { .. }
            | $crate::Call::TopUp { .. }
            | $crate::Call::Extend { .. }
            | $crate::Call::Stand { .. }
            | $crate::Call::CommitBatch { .. }
            | $crate::Call::Redeem { .. }
            | $crate::Call::Hold { .. }
            | $crate::Call::Close { .. }
            | $crate::Call::CloseAgreed { .. }
            | $crate::Call::End { .. }
            | $crate::Call::AddSigner
            | $crate::Call::ReportChunkEquivocation { .. }
            | $crate::Call::ReportBatch { .. }
            | $crate::Call::AnnouncePoints { .. }
            | $crate::Call::OpenPoints { .. }
            | $crate::Call::RefutePoints { .. }
            | $crate::Call::EndPoints { .. }
            | $crate::Call::Dispute { .. }
            | $crate::Call::DemandReceipt { .. }
            | $crate::Call::DemandPoint { .. }
            | $crate::Call::ShowReceipt { .. }
            | $crate::Call::ShowPoint { .. }
            | $crate::Call::EndDemand { .. }
            | $crate::Call::Offer { .. }
            | $crate::Call::WithdrawOffer { .. }
            | $crate::Call::ReportBusy { .. }
    };
}
pub(crate) use of_channels;

impl Call {
    /// Whether it opens something that stands on the chain, and so needs neither signature nor fee.
    pub fn proves_itself(&self) -> bool {
        matches!(
            self,
            Self::RevealBid { .. }
                | Self::Reveal { .. }
                | Self::RevealAudit { .. }
                | Self::RevealItems { .. }
                | Self::RevealVote { .. }
                | Self::OpenPoints { .. }
        )
    }

    /// Pallet, call and arguments by name.
    pub fn name(&self) -> CallName {
        let (pallet, call, arguments): (_, _, &'static [&'static str]) = match self {
            Self::Bond { .. } => ("Staking", "bond", &["role", "amount"]),
            Self::Unbond { .. } => ("Staking", "unbond", &["amount"]),
            Self::WithdrawUnbonded => ("Staking", "withdraw_unbonded", &[]),
            Self::Rebond { .. } => ("Staking", "rebond", &["amount"]),
            Self::SetAgent { .. } => ("Staking", "set_agent", &["agent"]),
            Self::ConfirmAgent { .. } => ("Staking", "confirm_agent", &["stash"]),
            Self::RemoveAgent => ("Staking", "remove_agent", &[]),
            Self::RegisterProvider { .. } => ("ProviderRegistry", "register", &["device", "endpoints"]),
            Self::Heartbeat => ("ProviderRegistry", "heartbeat", &[]),
            Self::DeregisterProvider => ("ProviderRegistry", "deregister", &[]),
            Self::RegisterModel { .. } => ("ModelRegistry", "register", &["manifest"]),
            Self::RetireModel { .. } => ("ModelRegistry", "retire", &["model"]),
            Self::OfferAudits { .. } => ("ModelRegistry", "offer_audits", &["model", "offered"]),
            Self::PostTask { .. } => ("TaskAuction", "post", &["spec", "cap"]),
            Self::Bid { .. } => ("TaskAuction", "bid", &["task", "seal"]),
            Self::RevealBid { .. } => ("TaskAuction", "reveal_bid", &["task", "provider", "bid"]),
            Self::CancelTask { .. } => ("TaskAuction", "cancel", &["task"]),
            Self::AdvanceTask { .. } => ("TaskAuction", "advance", &["task"]),
            Self::Commit { .. } => ("Results", "commit", &["task", "commitment"]),
            Self::Reveal { .. } => ("Results", "reveal", &["task", "provider", "claim", "salt"]),
            Self::AnnounceAudit { .. } => (
                "Results",
                "announce_audit",
                &["task", "provider", "proof", "seal"],
            ),
            Self::RevealAudit { .. } => (
                "Results",
                "reveal_audit",
                &["task", "provider", "verifier", "claim", "salt"],
            ),
            Self::RevealItems { .. } => (
                "Results",
                "reveal_items",
                &["task", "provider", "verifier", "found", "answer"],
            ),
            Self::RefuteAudit { .. } => (
                "Results",
                "refute_audit",
                &["task", "provider", "verifier", "opened", "place", "shown"],
            ),
            Self::Challenge { .. } => ("Disputes", "challenge", &["task", "provider"]),
            Self::Demand { .. } => ("Results", "demand", &["task", "provider", "parts", "proof"]),
            Self::Supply { .. } => ("Results", "supply", &["task", "content", "bytes", "opening"]),
            Self::DemandInput { .. } => ("Results", "demand_input", &["task", "segment"]),
            Self::SupplyInput { .. } => ("Results", "supply_input", &["task", "opening"]),
            Self::Play { .. } => ("Disputes", "play", &["dispute", "number", "played"]),
            Self::AdvanceDispute { .. } => ("Disputes", "advance_dispute", &["dispute"]),
            Self::JoinCommittee { .. } => (
                "Disputes",
                "join_committee",
                &["dispute", "ballot", "proof", "seal"],
            ),
            Self::RevealVote { .. } => (
                "Disputes",
                "reveal_vote",
                &["dispute", "verifier", "value", "salt"],
            ),
            Self::ReportEquivocation { .. } => ("Results", "report_equivocation", &["statement", "other"]),
            Self::CarryOutSlash { .. } => ("TrustLock", "carry_out_slash", &["slash"]),
            Self::CommitRun { .. } => ("GpuProofs", "commit_run", &["entropy", "plan", "root"]),
            Self::OpenRun { .. } => ("GpuProofs", "open_run", &["openings"]),
            Self::Transfer { .. } => ("Balances", "transfer_keep_alive", &["dest", "value"]),
            Self::Batch(_) => ("Utility", "batch_all", &["calls"]),
            Self::Stake(call) => return call.name(),
            of_channels!() => return self.name_in_channels(),
        };
        CallName {
            pallet,
            call,
            arguments,
        }
    }

    /// Those of calls about channels.
    fn name_in_channels(&self) -> CallName {
        let (call, arguments): (_, &'static [&'static str]) = match self {
            Self::Open { .. } => ("open", &["payee", "key", "deposit", "expiry"]),
            Self::TopUp { .. } => ("top_up", &["channel", "amount"]),
            Self::Extend { .. } => ("extend", &["channel", "expiry"]),
            Self::Stand { .. } => ("stand", &["lock", "cap"]),
            Self::CommitBatch { .. } => ("commit_batch", &["root"]),
            Self::Redeem { .. } => ("redeem", &["voucher", "batches"]),
            Self::Hold { .. } => ("hold", &["channel", "batch", "opening"]),
            Self::Close { .. } => ("close", &["channel"]),
            Self::CloseAgreed { .. } => ("close_agreed", &["channel"]),
            Self::End { .. } => ("end", &["channel"]),
            Self::AddSigner => ("add_signer", &[]),
            // `Results` has a call of that name, too.
            Self::ReportChunkEquivocation { .. } => ("report_equivocation", &["equivocation"]),
            Self::ReportBatch { .. } => ("report_batch", &["provider", "batch", "other", "evidence"]),
            Self::AnnouncePoints { .. } => ("announce_points", &["provider", "batch", "proof", "seal"]),
            Self::OpenPoints { .. } => ("open_points", &["provider", "batch", "verifier", "found", "salt"]),
            Self::RefutePoints { .. } => (
                "refute_points",
                &["provider", "batch", "verifier", "place", "receipt"],
            ),
            Self::EndPoints { .. } => ("end_points", &["provider", "batch", "verifier"]),
            Self::Dispute { .. } => ("dispute", &["receipt", "request", "head"]),
            Self::DemandReceipt { .. } => ("demand_receipt", &["held"]),
            Self::DemandPoint { .. } => ("demand_point", &["provider", "batch", "place", "proof"]),
            Self::ShowReceipt { .. } => ("show_receipt", &["demander", "batch", "receipt", "shown"]),
            Self::ShowPoint { .. } => ("show_point", &["demander", "batch", "receipt", "request", "head"]),
            Self::EndDemand { .. } => ("end_demand", &["provider", "demander"]),
            Self::Offer { .. } => ("offer", &["model", "operation", "unit_price", "places", "region"]),
            Self::WithdrawOffer { .. } => ("withdraw_offer", &["model", "operation"]),
            Self::ReportBusy { .. } => ("report_busy", &["model", "operation", "busy"]),
            // Of other pallets.
            _ => ("", &[]),
        };
        CallName {
            pallet: "Channels",
            call,
            arguments,
        }
    }
}

#[cfg(test)]
mod tests;
