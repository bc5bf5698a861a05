//! Tells what has changed from one look at a task to the next.

use std::collections::BTreeSet;

use surety_chain_client::{
    AccountId, Balance, BlockNumber, ChainEvent, RoundRecord, TaskInfo, TaskRecord, short,
};
use surety_dispute_game::bisection::Outcome;
use surety_types::{
    TaskId,
    task::{MemberProgress, RoundPhase, TaskState, Verdict},
    trust::{Content, DemandedParts, DisputeId, Party},
};

use crate::{
    amount::Amount,
    words::{Now, accounts, asked_of, fault_text, left, reason_text, side_text},
};

/// Remembers what has been told. The best chain may change its mind; nothing is told twice.
#[derive(Default)]
pub(super) struct Steps {
    told: BTreeSet<String>,
}

impl Steps {
    /// What is new in the events of a block, when the chain's clock shows so much.
    pub(super) fn events(&mut self, task: TaskId, events: &[ChainEvent], clock: BlockNumber) -> Vec<String> {
        let texts = |now: Now| -> Vec<String> {
            let ours = events.iter().filter(|event| event.task() == Some(task));
            ours.filter_map(|event| {
                let text = bid_text(event).or_else(|| trust_text(event, now));
                text.or_else(|| data_text(event, now))
                    .or_else(|| money_text(event))
            })
            .collect()
        };
        self.new_by(texts(None), texts(Some(clock)))
    }

    /// What is new in the task's state, when the chain's clock shows so much.
    pub(super) fn state(&mut self, info: &TaskInfo, clock: BlockNumber) -> Vec<String> {
        let texts = |now: Now| {
            let mut texts = vec![state_text(&info.task, now)];
            if let Some(round) = &info.round {
                round_texts(round, now, &mut texts);
            }
            texts
        };
        self.new_by(texts(None), texts(Some(clock)))
    }

    /// Those of `texts` whose words without the time of day were not told before.
    fn new_by(&mut self, known_by: Vec<String>, texts: Vec<String>) -> Vec<String> {
        let told = known_by.into_iter().zip(texts);
        told.filter(|(known_by, _)| self.told.insert(known_by.clone()))
            .map(|(_, text)| text)
            .collect()
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
        "BidDisplaced" => {
            let by: AccountId = event.field("by")?;
            Some(format!(
                "bid from {who} gave way to that of {}: all places for bids are taken, and {who} has its deposit back",
                short(&by)
            ))
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
fn trust_text(event: &ChainEvent, now: Now) -> Option<String> {
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
        "AuditRevealed" | "ItemsRevealed" => Some(format!(
            "auditor {} {} {}",
            account("verifier")?,
            if event.field::<bool>("agrees")? {
                "confirms"
            } else {
                "contradicts"
            },
            account("provider")?
        )),
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
        "FaultFound" => Some(format!(
            "{} is at fault: {}",
            account("offender")?,
            fault_text(event.field("kind")?)
        )),
        "SlashDeferred" => Some(format!(
            "{} will lose at least {}; it can be vetoed {}",
            account("offender")?,
            Amount(event.field("lock")?),
            left(event.field("until")?, now)
        )),
        "InsurancePaid" => Some(format!(
            "the insurance pool pays the client {}",
            Amount(event.field("amount")?)
        )),
        _ => None,
    }
}

/// What has to be shown on the chain because it could not be had elsewhere.
fn data_text(event: &ChainEvent, now: Now) -> Option<String> {
    let provider = || {
        event
            .field::<AccountId>("provider")
            .map(|account| short(&account))
    };
    match event.name.as_str() {
        "DataDemanded" => Some(format!(
            "{} has to show on the chain {}; there is time {}",
            provider()?,
            demanded_text(event),
            left(event.field("until")?, now)
        )),
        "DataSupplied" => Some(format!("{} has shown a part of what it has", provider()?)),
        "InputDemanded" => Some(format!(
            "{} cannot get the input: piece {} of it has to be shown on the chain; there is time {}",
            provider()?,
            event.field::<u32>("segment")?,
            left(event.field("until")?, now)
        )),
        "InputSupplied" => Some(format!(
            "piece {} of the input was shown on the chain",
            event.field::<u32>("segment")?
        )),
        "InputDemandLifted" => Some("what was demanded of the input is needed no more".into()),
        "InputWithheld" => {
            Some("a piece of the input was not shown in time: the client's lock is lost".into())
        }
        _ => None,
    }
}

/// What is demanded of a provider.
fn demanded_text(event: &ChainEvent) -> &'static str {
    let parts = event.field::<DemandedParts>("parts").unwrap_or_default();
    match parts.iter().any(|part| part.content == Content::Leaves) {
        true => "what auditors hold their own items against, which it does not serve",
        false => "what it does not serve",
    }
}

/// Who got what, once the task is settled.
fn money_text(event: &ChainEvent) -> Option<String> {
    let account = |name| event.field::<AccountId>(name).map(|account| short(&account));
    let amount = || event.field("amount").map(Amount);
    match event.name.as_str() {
        "AuditorPaid" => Some(format!(
            "auditor {} gets {} of what {} has earned",
            account("verifier")?,
            amount()?,
            account("provider")?
        )),
        "ProviderPaid" => Some(format!("{} gets {}", account("provider")?, amount()?)),
        _ => None,
    }
}

fn state_text(task: &TaskRecord, now: Now) -> String {
    match &task.state {
        TaskState::Bidding { until } => match asked_of(&task.spec.requirements) {
            Some(asked) => format!("sealed bids of providers {asked} are taken {}", left(*until, now)),
            None => format!("sealed bids are taken {}", left(*until, now)),
        },
        TaskState::Revealing { until } => format!("bids are opened {}", left(*until, now)),
        TaskState::Drawing { .. } => {
            "providers are drawn among the bids, as soon as the chain has its randomness".into()
        }
        TaskState::Running { assignments, .. } => {
            let lines = assignments
                .iter()
                .map(|a| format!("\n  {} for up to {}", short(&a.provider), Amount(a.price)));
            format!("assigned to{}", lines.collect::<String>())
        }
        TaskState::Settled { at, .. } => format!("settled in block {at}"),
        TaskState::Failed { at, reason } => format!("failed in block {at}: {}", reason_text(*reason)),
        TaskState::Cancelled { at, .. } => format!("cancelled in block {at}"),
    }
}

fn round_texts(round: &RoundRecord, now: Now, texts: &mut Vec<String>) {
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
            MemberProgress::Committed(_) if member.missed_reveal => {
                texts.push(format!("{who} did not open its result in time and is not paid"));
            }
            MemberProgress::Committed(_) => texts.push(format!("{who} has committed to a result")),
            MemberProgress::Revealed(claim) => {
                texts.push(format!(
                    "{who} revealed {:?}, {} units",
                    claim.output, claim.units
                ));
            }
        }
    }
    texts.push(match round.awaits_seed() {
        true => "auditors are drawn, as soon as the chain has its randomness".into(),
        false => phase_text(&round.phase, now),
    });
    if let Some(until) = round.openings_until {
        texts.push(format!(
            "what is still sealed has to be opened; there is time {}",
            left(until, now)
        ));
    }
}

fn phase_text(phase: &RoundPhase<AccountId, BlockNumber>, now: Now) -> String {
    match phase {
        RoundPhase::Committing { until } => format!("results are taken {}", left(*until, now)),
        RoundPhase::Auditing { until } => format!("auditors may work {}", left(*until, now)),
        RoundPhase::Revealing { until } => format!("results are revealed {}", left(*until, now)),
        RoundPhase::Challengeable { until, verdict } => {
            format!(
                "{}; it can be challenged {}",
                verdict_text(verdict),
                left(*until, now)
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
pub fn posted_text(task: TaskId, cap: Balance, redundancy: u32, units_max: u32, block: u32) -> String {
    format!(
        "task {task} posted in block {block}: up to {units_max} units, {redundancy} providers, at most {}",
        Amount(cap)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_got_what_is_told_once_the_task_is_settled() {
        use codec::Encode;
        use surety_chain_client::EventField;

        let account = |byte: u8| AccountId::new([byte; 32]);
        let field = |name: &str, bytes| EventField {
            name: name.into(),
            text: String::new(),
            bytes,
        };
        let paid = |name: &str, amount: Balance| ChainEvent {
            pallet: "Billing".into(),
            name: name.into(),
            extrinsic: None,
            fields: vec![
                field("task", 5_u64.encode()),
                field("verifier", account(2).encode()),
                field("provider", account(1).encode()),
                field("amount", amount.encode()),
            ],
        };
        let events = [
            paid("AuditorPaid", 10_u128.pow(12)),
            paid("ProviderPaid", 3 * 10_u128.pow(12)),
        ];
        let (provider, auditor) = (short(&account(1)), short(&account(2)));
        assert_eq!(
            Steps::default().events(5, &events, 7),
            [
                format!("auditor {auditor} gets 1 SURE of what {provider} has earned"),
                format!("{provider} gets 3 SURE"),
            ]
        );
    }

    #[test]
    fn time_that_is_left_is_told_in_seconds_and_not_again_because_it_gets_less() {
        let phase = RoundPhase::Committing { until: 345 };
        assert_eq!(phase_text(&phase, Some(300)), "results are taken for about 90 s");
        assert_eq!(
            phase_text(&phase, Some(345)),
            "results are taken for a moment yet"
        );
        assert_eq!(left(400, Some(300)), "for about 3 min");
        assert_eq!(left(20_000, Some(0)), "for about 11 h");
        let mut steps = Steps::default();
        for (now, told) in [(300, 1), (301, 0)] {
            let texts = |now| vec![phase_text(&phase, now)];
            assert_eq!(steps.new_by(texts(None), texts(Some(now))).len(), told, "{now}");
        }
    }
}
