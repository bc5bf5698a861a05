//! Tells what has changed from one look at a task to the next.

use std::collections::BTreeSet;

use surety_chain_client::{AccountId, Balance, BlockNumber, ChainEvent, RoundRecord, TaskInfo, TaskRecord};
use surety_types::{
    task::{MemberProgress, RoundPhase, TaskState, Verdict},
    trust::{DisputeId, Party},
    TaskId,
};
use surety_verification::bisection::Outcome;

use super::report::{accounts, reason_text};
use crate::{
    amount::Amount,
    commands::dispute::{fault_text, side_text},
    keys::short,
};

/// Remembers what has been told. The best chain may change its mind; nothing is told twice.
#[derive(Default)]
pub(super) struct Steps {
    told: BTreeSet<String>,
}

impl Steps {
    /// What is new in the events of a block.
    pub(super) fn events(&mut self, task: TaskId, events: &[ChainEvent]) -> Vec<String> {
        let texts = events
            .iter()
            .filter(|event| event.task() == Some(task))
            .filter_map(|event| bid_text(event).or_else(|| trust_text(event)));
        self.new_ones(texts.collect())
    }

    /// What is new in the task's state.
    pub(super) fn state(&mut self, info: &TaskInfo) -> Vec<String> {
        let mut texts = vec![state_text(&info.task)];
        if let Some(round) = &info.round {
            round_texts(round, &mut texts);
        }
        self.new_ones(texts)
    }

    /// Those of `texts` that were not told before.
    pub(super) fn new_ones(&mut self, texts: Vec<String>) -> Vec<String> {
        texts
            .into_iter()
            .filter(|text| self.told.insert(text.clone()))
            .collect()
    }
}

fn bid_text(event: &ChainEvent) -> Option<String> {
    let provider: AccountId = event.field("provider")?;
    let who = short(&provider);
    match event.name.as_str() {
        "BidPlaced" => Some(format!("bid from {who}, sealed")),
        "BidOpened" => {
            let price = event.field("price").map(Amount)?;
            Some(format!("bid from {who} opened: {price}"))
        }
        "BidForfeited" => {
            let amount = event.field("amount").map(Amount)?;
            Some(format!(
                "bid from {who} was not opened: its deposit of {amount} is lost"
            ))
        }
        _ => None,
    }
}

/// What auditors and disputes do about a task.
fn trust_text(event: &ChainEvent) -> Option<String> {
    let party = |name| {
        event
            .field::<Party<AccountId>>(name)
            .map(|party| short(party.account()))
    };
    let account = |name| event.field::<AccountId>(name).map(|account| short(&account));
    match event.name.as_str() {
        "AuditAnnounced" => Some(format!(
            "{} audits {}, with its own result sealed",
            account("verifier")?,
            account("provider")?
        )),
        "AuditRevealed" => Some(format!(
            "auditor {} {} {}",
            account("verifier")?,
            match event.field::<bool>("agrees")? {
                true => "confirms",
                false => "contradicts",
            },
            account("provider")?
        )),
        "AuditorsDrawnAgain" => Some("auditors did not show: others are drawn".into()),
        "DisputeOpened" => Some(format!(
            "dispute {}: {} says that the result of {} is wrong; follow it with: surety dispute show {}",
            event.field::<DisputeId>("dispute")?,
            party("challenger")?,
            party("defender")?,
            event.field::<DisputeId>("dispute")?
        )),
        "DisputeEnded" => {
            let outcome = event.field::<Option<Outcome>>("outcome")?;
            let winner = outcome.map_or("nobody", |outcome| side_text(outcome.winner));
            Some(format!(
                "dispute {} is over: {winner} wins",
                event.field::<DisputeId>("dispute")?
            ))
        }
        "DataDemanded" => Some(format!(
            "{} has to show piece {} of its output on the chain",
            account("provider")?,
            event.field::<u32>("segment")?
        )),
        "DataSupplied" => Some(format!(
            "{} has shown a piece of its output",
            account("provider")?
        )),
        "InputDemanded" => Some(format!(
            "{} cannot get the input: piece {} of it has to be shown on the chain by block {}",
            account("provider")?,
            event.field::<u32>("segment")?,
            event.field::<BlockNumber>("until")?
        )),
        "InputSupplied" => Some(format!(
            "piece {} of the input was shown on the chain",
            event.field::<u32>("segment")?
        )),
        "InputDemandLifted" => Some("what was demanded of the input is needed no more".into()),
        "InputWithheld" => {
            Some("a piece of the input was not shown in time: the client's lock is lost".into())
        }
        "FaultFound" => Some(format!(
            "{} is at fault: {}",
            account("offender")?,
            fault_text(event.field("kind")?)
        )),
        "SlashDeferred" => Some(format!(
            "{} will lose at least {}, unless that is vetoed by block {}",
            account("offender")?,
            Amount(event.field("lock")?),
            event.field::<BlockNumber>("until")?
        )),
        "InsurancePaid" => Some(format!(
            "the insurance pool pays the client {}",
            Amount(event.field("amount")?)
        )),
        _ => None,
    }
}

fn state_text(task: &TaskRecord) -> String {
    match &task.state {
        TaskState::Bidding { until } => format!("sealed bids are taken until block {until}"),
        TaskState::Revealing { until } => format!("bids are opened until block {until}"),
        TaskState::Running { assignments, .. } => {
            let lines = assignments
                .iter()
                .map(|a| format!("\n  {} for up to {}", short(&a.provider), Amount(a.price)));
            format!("assigned to{}", lines.collect::<String>())
        }
        TaskState::Settled { at, .. } => format!("settled in block {at}"),
        TaskState::Failed { at, reason } => format!("failed in block {at}: {}", reason_text(*reason)),
        TaskState::Cancelled { at } => format!("cancelled in block {at}"),
    }
}

fn round_texts(round: &RoundRecord, texts: &mut Vec<String>) {
    for dropped in &round.dropped {
        texts.push(format!(
            "{} delivered nothing in time and was replaced",
            short(dropped)
        ));
    }
    for member in &round.members {
        let who = short(&member.provider);
        match &member.progress {
            MemberProgress::Working => texts.push(format!("{who} is at work")),
            MemberProgress::Committed(_) => texts.push(format!("{who} has committed to a result")),
            MemberProgress::Revealed(claim) => {
                texts.push(format!(
                    "{who} revealed {:?}, {} units",
                    claim.output, claim.units
                ));
            }
        }
    }
    texts.push(phase_text(&round.phase));
}

fn phase_text(phase: &RoundPhase<AccountId, BlockNumber>) -> String {
    match phase {
        RoundPhase::Committing { until } => format!("results are due by block {until}"),
        RoundPhase::Auditing { until } => format!("auditors may work until block {until}"),
        RoundPhase::Revealing { until } => format!("results are revealed until block {until}"),
        RoundPhase::Challengeable { until, verdict } => {
            format!(
                "{}; it can be challenged until block {until}",
                verdict_text(verdict)
            )
        }
    }
}

fn verdict_text(verdict: &Verdict<AccountId>) -> String {
    match verdict {
        Verdict::Agreed {
            majority,
            minority,
            absent,
            ..
        } => {
            let mut text = format!("verdict: {} agree", accounts(majority));
            for (names, what) in [(minority, "differ"), (absent, "are absent")] {
                if !names.is_empty() {
                    text.push_str(&format!(", {} {what} and are not paid", accounts(names)));
                }
            }
            text
        }
        Verdict::Failed(reason) => format!("verdict: {}", reason_text(*reason)),
    }
}

/// What the most that is paid comes to, for the first line.
pub(super) fn posted_text(task: TaskId, cap: Balance, redundancy: u32, units_max: u32, block: u32) -> String {
    format!(
        "task {task} posted in block {block}: up to {units_max} units, {redundancy} providers, at most {}",
        Amount(cap)
    )
}
