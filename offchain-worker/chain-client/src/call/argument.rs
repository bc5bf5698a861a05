//! What a call is given.

use codec::{Compact, Encode};
use scale_info::{MetaType, TypeInfo, meta_type};
use sp_core::crypto::AccountId32;
use sp_runtime::MultiAddress;

use super::{Call, name::of_channels};

/// An argument of a call, as this program knows it.
pub struct Argument {
    /// Its value in SCALE.
    pub bytes: Vec<u8>,
    /// Its type.
    pub ty: MetaType,
}

impl Argument {
    pub(super) fn of<T: Encode + TypeInfo + 'static>(value: &T) -> Self {
        Self {
            bytes: value.encode(),
            ty: meta_type::<T>(),
        }
    }
}

macro_rules! args {
    ($($value:expr),*) => { vec![$(Argument::of($value)),*] };
}
pub(super) use args;

impl Call {
    /// The arguments, each with its type. A batch has none that could be written without a runtime: how calls
    /// look within it only that knows.
    pub fn arguments(&self) -> Vec<Argument> {
        match self {
            Self::Bond { role, amount } => args![role, amount],
            Self::Unbond { amount } | Self::Rebond { amount } => args![amount],
            Self::WithdrawUnbonded
            | Self::RemoveAgent
            | Self::Heartbeat
            | Self::DeregisterProvider
            | Self::Batch(_) => Vec::new(),
            Self::SetAgent { agent } => args![agent],
            Self::ConfirmAgent { stash } => args![stash],
            Self::RegisterProvider { device, endpoints } => args![device, endpoints],
            Self::RegisterModel { manifest } => args![manifest],
            Self::RetireModel { model } => args![model],
            Self::OfferAudits { model, offered } => args![model, offered],
            Self::PostTask { spec, cap } => args![spec, cap],
            Self::Bid { task, seal } => args![task, seal],
            Self::RevealBid { task, provider, bid } => args![task, provider, bid],
            Self::CancelTask { task } | Self::AdvanceTask { task } => args![task],
            Self::CarryOutSlash { slash } => args![slash],
            Self::Transfer { to, amount } => {
                let to = MultiAddress::<AccountId32, ()>::Id(to.clone());
                vec![Argument::of(&to), Argument::of(&Compact(*amount))]
            }
            Self::CommitRun { entropy, plan, root } => args![entropy, plan, root],
            Self::OpenRun { openings } => args![openings],
            Self::Commit { .. }
            | Self::Reveal { .. }
            | Self::AnnounceAudit { .. }
            | Self::RevealAudit { .. }
            | Self::RevealItems { .. }
            | Self::RefuteAudit { .. }
            | Self::Challenge { .. }
            | Self::Demand { .. }
            | Self::Supply { .. }
            | Self::DemandInput { .. }
            | Self::SupplyInput { .. }
            | Self::ReportEquivocation { .. } => self.arguments_in_round(),
            Self::Play { .. }
            | Self::AdvanceDispute { .. }
            | Self::JoinCommittee { .. }
            | Self::RevealVote { .. } => self.arguments_in_dispute(),
            Self::Stake(call) => call.arguments(),
            of_channels!() => self.arguments_in_channels(),
        }
    }

    /// The arguments in SCALE, one after the other, as this program knows the call. Calls of a batch have
    /// their names here in place of the indices that only a runtime knows.
    pub fn encode_arguments(&self) -> Vec<u8> {
        if let Self::Batch(calls) = self {
            let named = |call: &Self| (call.name().pallet, call.name().call, call.encode_arguments());
            return calls.iter().map(named).collect::<Vec<_>>().encode();
        }
        let arguments = self.arguments().into_iter();
        arguments.flat_map(|argument| argument.bytes).collect()
    }

    /// Those of calls about a task's results.
    fn arguments_in_round(&self) -> Vec<Argument> {
        match self {
            Self::Commit { task, commitment } => args![task, commitment],
            Self::Reveal {
                task,
                provider,
                claim,
                salt,
            } => args![task, provider, claim, salt],
            Self::AnnounceAudit {
                task,
                provider,
                proof,
                seal,
            } => args![task, provider, proof, seal],
            Self::RevealAudit {
                task,
                provider,
                verifier,
                claim,
                salt,
            } => args![task, provider, verifier, claim, salt],
            Self::RevealItems {
                task,
                provider,
                verifier,
                found,
                answer,
            } => args![task, provider, verifier, found, answer],
            Self::RefuteAudit {
                task,
                provider,
                verifier,
                refutation,
            } => {
                let opened = (refutation.found.clone(), refutation.answer);
                args![
                    task,
                    provider,
                    verifier,
                    &opened,
                    &refutation.place,
                    &refutation.shown
                ]
            }
            Self::Challenge { task, provider } => args![task, provider],
            Self::Demand {
                task,
                provider,
                parts,
                proof,
            } => args![task, provider, parts, proof],
            Self::Supply {
                task,
                content,
                bytes,
                opening,
            } => args![task, content, bytes, opening],
            Self::DemandInput { task, segment } => args![task, segment],
            Self::SupplyInput { task, opening } => args![task, opening],
            Self::ReportEquivocation { statement, other } => args![statement, other],
            _ => Vec::new(),
        }
    }

    /// Those of calls about a dispute.
    fn arguments_in_dispute(&self) -> Vec<Argument> {
        match self {
            Self::Play {
                dispute,
                number,
                played,
            } => args![dispute, number, played],
            Self::AdvanceDispute { dispute } => args![dispute],
            Self::JoinCommittee {
                dispute,
                ballot,
                proof,
                seal,
            } => args![dispute, ballot, proof, seal],
            Self::RevealVote {
                dispute,
                verifier,
                value,
                salt,
            } => args![dispute, verifier, value, salt],
            _ => Vec::new(),
        }
    }

    /// Those of calls about channels.
    fn arguments_in_channels(&self) -> Vec<Argument> {
        match self {
            Self::Open {
                payee,
                key,
                deposit,
                expiry,
            } => args![payee, key, deposit, expiry],
            Self::TopUp { channel, amount } => args![channel, amount],
            Self::Extend { channel, expiry } => args![channel, expiry],
            Self::Stand { lock, cap } => args![lock, cap],
            Self::CommitBatch { root } => args![root],
            Self::Redeem { voucher, batches } => args![voucher, batches],
            Self::Hold {
                channel,
                batch,
                opening,
            } => args![channel, batch, opening],
            Self::Close { channel } | Self::CloseAgreed { channel } | Self::End { channel } => {
                args![channel]
            }
            Self::Offer {
                model,
                operation,
                unit_price,
                places,
                region,
            } => args![model, operation, unit_price, places, region],
            Self::WithdrawOffer { model, operation } => args![model, operation],
            Self::ReportBusy {
                model,
                operation,
                busy,
            } => args![model, operation, busy],
            _ => self.arguments_about_receipts(),
        }
    }

    /// Those of calls about receipts that are audited, disputed or demanded.
    fn arguments_about_receipts(&self) -> Vec<Argument> {
        match self {
            Self::ReportChunkEquivocation { equivocation } => args![equivocation],
            Self::ReportBatch {
                provider,
                batch,
                other,
                evidence,
            } => args![provider, batch, other, evidence],
            Self::AnnouncePoints {
                provider,
                batch,
                proof,
                seal,
            } => args![provider, batch, proof, seal],
            Self::OpenPoints {
                provider,
                batch,
                verifier,
                found,
                salt,
            } => args![provider, batch, verifier, found, salt],
            Self::RefutePoints {
                provider,
                batch,
                verifier,
                place,
                receipt,
            } => args![provider, batch, verifier, place, receipt],
            Self::EndPoints {
                provider,
                batch,
                verifier,
            } => args![provider, batch, verifier],
            Self::Dispute {
                receipt,
                request,
                head,
            } => args![receipt, request, head],
            Self::DemandReceipt { held } => args![held],
            Self::DemandPoint {
                provider,
                batch,
                place,
                proof,
            } => args![provider, batch, place, proof],
            Self::ShowReceipt {
                demander,
                batch,
                receipt,
                shown,
            } => args![demander, batch, receipt, shown],
            Self::ShowPoint {
                demander,
                batch,
                receipt,
                request,
                head,
            } => args![demander, batch, receipt, request, head],
            Self::EndDemand { provider, demander } => args![provider, demander],
            // `AddSigner`, and those of other pallets.
            _ => Vec::new(),
        }
    }
}
