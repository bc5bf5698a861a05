//! What things on the chain are called, for people.

use surety_chain_client::{AccountId, Balance, BlockNumber, short};
use surety_dispute_game::bisection::Side;
use surety_types::{
    BLOCK_SECONDS,
    speed::Requirements,
    task::{FailureReason, TaskState},
    trust::FaultKind,
};

/// A state's name.
pub fn state_name(state: &TaskState<AccountId, Balance, BlockNumber>) -> String {
    match state {
        TaskState::Bidding { .. } => "Bidding",
        TaskState::Revealing { .. } => "Revealing",
        TaskState::Drawing { .. } => "Drawing",
        TaskState::Running { .. } => "Running",
        TaskState::Settled { .. } => "Settled",
        TaskState::Failed { .. } => "Failed",
        TaskState::Cancelled { .. } => "Cancelled",
    }
    .into()
}

/// Why nobody was paid, for people.
pub fn reason_text(reason: FailureReason) -> &'static str {
    match reason {
        FailureReason::NotEnoughBids => "fewer providers bid than were asked for, within the cap",
        FailureReason::NotEnoughResults => "too few providers delivered in time",
        FailureReason::NoAgreement => "no result was shared by a majority of the providers",
        FailureReason::InputWithheld => {
            "a piece of the input was demanded on the chain and not shown: the client's lock is lost"
        }
    }
}

/// What a task asks of its providers, for people; nothing where it asks for nothing.
pub fn asked_of(asked: &Requirements) -> Option<String> {
    let tier = asked
        .tier
        .map(|tier| format!("of tier {} or faster", tier.letter()));
    let memory = (asked.memory_mib > 0).then(|| format!("measured over {} MiB or more", asked.memory_mib));
    let region = asked
        .region
        .map(|region| format!("in {region} by their own word"));
    let all: Vec<String> = tier.into_iter().chain(memory).chain(region).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// A list of accounts, for people.
pub fn accounts<'a>(accounts: impl IntoIterator<Item = &'a AccountId>) -> String {
    let texts: Vec<String> = accounts.into_iter().map(short).collect();
    if texts.is_empty() {
        "nobody".into()
    } else {
        texts.join(", ")
    }
}

/// A side in words.
pub fn side_text(side: Side) -> &'static str {
    match side {
        Side::Defender => "the defender",
        Side::Challenger => "the challenger",
    }
}

/// A fault in words.
pub fn fault_text(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::WrongResult => "its result was proven wrong",
        FaultKind::LostDispute => "it lost a dispute",
        FaultKind::WithheldData => "it did not show its output when asked to",
        FaultKind::NoReveal => "it committed and did not reveal",
        FaultKind::Undecided => "nobody could decide its dispute",
        FaultKind::FalseAudit => "it challenged a result that holds",
        FaultKind::ConfirmedWrong => {
            "it had confirmed a result, and lost the dispute in which it defended it"
        }
        FaultKind::AuditNoShow => "it announced an audit and did not reveal it",
        FaultKind::Equivocation => "it signed two different results",
        FaultKind::FalseBatch => "it committed a batch over what is none of its receipts",
    }
}

/// What the chain's clock shows when something is told. Nothing: the words are only to be known again.
pub type Now = Option<BlockNumber>;

/// How long there is until a time on the chain's clock.
pub fn left(until: BlockNumber, now: Now) -> String {
    match now.map(|now| until.saturating_sub(now)) {
        None => format!("until {until}"),
        Some(0) => "for a moment yet".into(),
        Some(blocks) => format!("for about {}", duration(blocks.saturating_mul(BLOCK_SECONDS))),
    }
}

/// Seconds in the unit that people count them in.
pub fn duration(seconds: u32) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}
