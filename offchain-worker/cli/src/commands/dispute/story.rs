//! What happened in a dispute, from the chain's blocks.

use serde::Serialize;
use surety_chain_client::{
    AccountId, Balance, BlockNumber, BlockRef, Chain, ChainError, ChainEvent, DisputeRecord, When, address,
    short,
};
use surety_client::words::{fault_text, side_text};
use surety_dispute_game::bisection::{Cell, Outcome, Reason, Side, State};
use surety_model_trace::Layout;
use surety_types::{
    TaskId,
    task::ResultClaim,
    trust::{DisputeId, FaultKind, SlashId},
};

use super::{
    PartyRecord, committee, party_text,
    place::{NamedCell, game_text, layout, leaves},
};
use crate::{
    amount::{Amount, Plancks},
    error::{CliError, Result},
};

/// A dispute from its beginning, as far as it has come. Amounts are in plancks, as text.
#[derive(Debug, Serialize)]
pub(super) struct Story {
    dispute: DisputeId,
    task: TaskId,
    defender: String,
    challenger: String,
    /// `open`, `with a committee`, `the defender won`, `the challenger won` or `moot`.
    state: String,
    reason: Option<&'static str>,
    moves: u32,
    opened_block: Option<BlockNumber>,
    ended_block: Option<BlockNumber>,
    /// The one number that it came to.
    cell: Option<NamedCell>,
    slashes: Vec<Slashed>,
    steps: Vec<Told>,
}

#[derive(Debug, Serialize)]
struct Slashed {
    slash: SlashId,
    offender: String,
    kind: String,
    taken: Option<Plancks>,
}

#[derive(Debug, Serialize)]
struct Told {
    block: BlockNumber,
    text: String,
}

/// A block in which something happened.
struct Happened {
    block: BlockRef,
    events: Vec<ChainEvent>,
}

/// Looks back for the dispute, and tells it.
///
/// # Errors
/// When the chain cannot be asked, or does not know it within so many blocks.
pub(super) async fn tell(chain: &dyn Chain, dispute: DisputeId, blocks: u32) -> Result<Story> {
    let now = chain.dispute(When::Finalized, dispute).await?;
    let happened = look_back(chain, dispute, blocks).await?;
    let mut story = Story::new(dispute);
    let mut teller = Teller { chain, layout: None };
    for Happened { block, events } in happened.iter().rev() {
        for event in events {
            teller.take(&mut story, *block, event).await?;
        }
    }
    if let Some(record) = now {
        teller.describe(&mut story, &record).await?;
    } else if story.steps.is_empty() {
        return Err(CliError::UnknownDispute(dispute));
    }
    Ok(story)
}

/// Blocks with anything about the dispute or its slashes, newest first.
async fn look_back(chain: &dyn Chain, dispute: DisputeId, blocks: u32) -> Result<Vec<Happened>> {
    let last = chain.block(When::Finalized).await?;
    let mut happened = Vec::new();
    for number in (last.number.saturating_sub(blocks)..=last.number).rev() {
        let block = chain.block_at(number).await?;
        let events = match chain.events(block.hash).await {
            Ok(events) => events,
            // Older blocks are not kept.
            Err(ChainError::Pruned { .. }) => break,
            Err(e) => return Err(e.into()),
        };
        let begins = events
            .iter()
            .any(|event| event.is("Disputes", "DisputeOpened") && event.field("dispute") == Some(dispute));
        let mut events = events;
        events.retain(|event| concerns(event, dispute));
        if !events.is_empty() {
            happened.push(Happened { block, events });
        }
        if begins {
            break;
        }
    }
    Ok(happened)
}

fn concerns(event: &ChainEvent, dispute: DisputeId) -> bool {
    match event.field::<DisputeId>("dispute") {
        Some(of) => event.pallet == "Disputes" && of == dispute,
        None => matches!(
            (event.pallet.as_str(), event.name.as_str()),
            ("Results", "FaultFound")
                | (
                    "TrustLock",
                    "SlashDeferred" | "SlashCarriedOut" | "SlashCancelled" | "Jailed" | "InsurancePaid"
                )
        ),
    }
}

struct Teller<'a> {
    chain: &'a dyn Chain,
    layout: Option<Layout>,
}

impl Teller<'_> {
    async fn take(&mut self, story: &mut Story, block: BlockRef, event: &ChainEvent) -> Result<()> {
        let mut say = |text: String| {
            story.steps.push(Told {
                block: block.number,
                text,
            });
        };
        match event.name.as_str() {
            "DisputeOpened" => self.opened(story, block, event).await?,
            "MovePlayed" => self.moved(story, block, event).await?,
            "CellReached" => self.reached(story, block, event),
            "DisputeEnded" => story.ended(block.number, event),
            "BondForfeited" => {
                let (awarded, burned) = (event.field("awarded"), event.field("burned"));
                if let (Some(awarded), Some(burned)) = (awarded, burned) {
                    say(format!(
                        "of the challenger's bond {} go to the defender, {} are burned",
                        Amount(awarded),
                        Amount(burned)
                    ));
                }
            }
            "BondReturned" => {
                if let Some(amount) = event.field("amount") {
                    say(format!("the challenger has {} of its bond back", Amount(amount)));
                }
            }
            _ => match committee::event_text(event) {
                Some(text) => say(text),
                None => story.punished(block.number, event),
            },
        }
        Ok(())
    }

    async fn opened(&mut self, story: &mut Story, block: BlockRef, event: &ChainEvent) -> Result<()> {
        let parties = (event.field::<PartyRecord>("defender"), event.field("challenger"));
        let (Some(task), Some(claim), (Some(defender), Some(challenger))) =
            (event.task(), event.field::<ResultClaim>("claim"), parties)
        else {
            return Ok(());
        };
        self.layout = layout(self.chain, task, &claim).await?;
        story.begin(task, &defender, &challenger, Some(block.number));
        let size = leaves(self.layout.as_ref()).map(|leaves| format!(", {leaves} leaves"));
        let said = match &defender {
            PartyRecord::Auditor { provider, .. } => {
                format!(
                    "what {} has confirmed of provider {}",
                    party_text(&defender),
                    short(provider)
                )
            }
            _ => format!("the result of {}", party_text(&defender)),
        };
        story.steps.push(Told {
            block: block.number,
            text: format!(
                "{} says that {said} for task {task} is wrong: output {:?}, trace {:?}{}",
                party_text(&challenger),
                claim.output,
                claim.trace_root,
                size.unwrap_or_default()
            ),
        });
        Ok(())
    }

    async fn moved(&mut self, story: &mut Story, block: BlockRef, event: &ChainEvent) -> Result<()> {
        let (Some(side), Some(number)) = (event.field::<Side>("side"), event.field::<u32>("number")) else {
            return Ok(());
        };
        story.moves = story.moves.max(number);
        let after = self.chain.dispute(When::At(block.hash), story.dispute).await?;
        let what = match &after {
            Some(record) => self.move_text(record),
            None => "the last move".into(),
        };
        story.steps.push(Told {
            block: block.number,
            text: format!("move {number}, {}: {what}", side_text(side)),
        });
        Ok(())
    }

    /// What a move did, by how things are after it.
    fn move_text(&self, record: &DisputeRecord) -> String {
        let place = game_text(self.layout.as_ref(), &record.game);
        if record.game.asked().is_some_and(|asked| asked.is_owed()) {
            return "what the challenger has not got is to be shown on the chain".into();
        }
        match record.game.state() {
            State::Naming { children } => format!("shows the digests of {} parts; {place}", children.len()),
            State::Posting => format!("goes on: {place}"),
            State::Entering => format!("names the first part that differs: {place}"),
            State::Showing => format!("comes to one piece; {place}"),
            State::Picking { bytes } => format!("shows {} bytes; {place}", bytes.len()),
            State::Opening { .. } => "points at the first number that differs".into(),
            State::Evidence { .. } => {
                "no block can compute the number again, and what a committee needs for it is to be shown"
                    .into()
            }
            State::NeedsCommittee { .. } => "points at a number that no block can compute again".into(),
            State::Over(_) => "ends it".into(),
        }
    }

    fn reached(&mut self, story: &mut Story, block: BlockRef, event: &ChainEvent) {
        let Some(cell) = event.field::<Cell>("cell") else {
            return;
        };
        let named = NamedCell::new(self.layout.as_ref(), &cell);
        story.steps.push(Told {
            block: block.number,
            text: format!(
                "in dispute is one number: {}, said to be {}",
                named.name, named.value
            ),
        });
        story.cell = Some(named);
    }

    /// Of one that is still open: what is known without its beginning, and whose turn it is.
    async fn describe(&mut self, story: &mut Story, record: &DisputeRecord) -> Result<()> {
        if self.layout.is_none() {
            self.layout = layout(self.chain, record.task, &record.claim).await?;
        }
        if story.opened_block.is_none() {
            story.begin(
                record.task,
                &record.defender,
                &record.challenger,
                Some(record.opened_at),
            );
        }
        story.moves = record.moves;
        story.state = match record.game.to_move() {
            Some(side) => format!(
                "open: {} to move, with {} blocks left; {}",
                side_text(side),
                record.game.clocks().left(side),
                game_text(self.layout.as_ref(), &record.game)
            ),
            None => {
                let sitting = self.chain.committee(When::Finalized, story.dispute).await?;
                format!("with a committee: {}", committee::state_text(sitting.as_ref()))
            }
        };
        Ok(())
    }
}

impl Story {
    fn new(dispute: DisputeId) -> Self {
        Self {
            dispute,
            task: 0,
            defender: String::new(),
            challenger: String::new(),
            state: "open".into(),
            reason: None,
            moves: 0,
            opened_block: None,
            ended_block: None,
            cell: None,
            slashes: Vec::new(),
            steps: Vec::new(),
        }
    }

    fn begin(
        &mut self,
        task: TaskId,
        defender: &PartyRecord,
        challenger: &PartyRecord,
        block: Option<BlockNumber>,
    ) {
        self.task = task;
        self.defender = address(defender.account());
        self.challenger = address(challenger.account());
        self.opened_block = block;
    }

    fn ended(&mut self, block: BlockNumber, event: &ChainEvent) {
        self.ended_block = Some(block);
        let outcome: Option<Outcome> = event.field("outcome").unwrap_or_default();
        let text = match outcome {
            None => {
                self.state = "moot".into();
                "it ends without a winner".into()
            }
            Some(Outcome { winner, reason }) => {
                self.state = format!("{} won", side_text(winner));
                self.reason = Some(reason_text(reason));
                format!("{} wins: {}", side_text(winner), reason_text(reason))
            }
        };
        self.steps.push(Told { block, text });
    }

    /// Faults and slashes of the same task.
    fn punished(&mut self, block: BlockNumber, event: &ChainEvent) {
        match event.task() {
            Some(task) if task != self.task => return,
            // Of something else than a task. Others say no cause, and are told by the slash's number.
            None if event.name == "SlashDeferred" => return,
            _ => {}
        }
        let offender = event.field::<AccountId>("offender");
        let text = match (event.name.as_str(), &offender) {
            ("FaultFound", Some(offender)) => {
                let kind: Option<FaultKind> = event.field("kind");
                kind.map(|kind| format!("{} is at fault: {}", short(offender), fault_text(kind)))
            }
            ("SlashDeferred", Some(offender)) => self.deferred(event, offender),
            ("SlashCarriedOut", Some(offender)) => self.carried_out(event, offender),
            ("InsurancePaid", _) => event
                .field("amount")
                .map(|amount| format!("the client is paid {} by the insurance pool", Amount(amount))),
            _ => None,
        };
        if let Some(text) = text {
            self.steps.push(Told { block, text });
        }
    }

    fn deferred(&mut self, event: &ChainEvent, offender: &AccountId) -> Option<String> {
        let kind: FaultKind = event.field("kind")?;
        self.slashes.push(Slashed {
            slash: event.field("slash")?,
            offender: address(offender),
            kind: format!("{kind:?}"),
            taken: None,
        });
        let (lock, until) = (event.field("lock")?, event.field::<BlockNumber>("until")?);
        Some(format!(
            "{} will lose at least {}; it can be vetoed until the chain's clock shows {until}",
            short(offender),
            Amount(lock)
        ))
    }

    fn carried_out(&mut self, event: &ChainEvent, offender: &AccountId) -> Option<String> {
        let (id, taken): (SlashId, Balance) = (event.field("slash")?, event.field("taken")?);
        let known = self.slashes.iter_mut().find(|slashed| slashed.slash == id)?;
        known.taken = Some(Plancks(taken));
        let (finder, client) = (event.field("finder")?, event.field("client")?);
        Some(format!(
            "{} loses {}: {} to whoever found it, {} to the client, the rest burned",
            short(offender),
            Amount(taken),
            Amount(finder),
            Amount(client)
        ))
    }

    pub(super) fn text(&self) -> String {
        let mut lines = vec![
            format!(
                "dispute {} about task {}: {}",
                self.dispute, self.task, self.state
            ),
            format!("  defender    {}", self.defender),
            format!("  challenger  {}", self.challenger),
        ];
        if let Some(cell) = &self.cell {
            lines.push(format!("  number      {}, said to be {}", cell.name, cell.value));
        }
        let steps = self
            .steps
            .iter()
            .map(|told| format!("  block {:>6}  {}", told.block, told.text));
        lines.extend(steps);
        lines.join("\n")
    }
}

fn reason_text(reason: Reason) -> &'static str {
    match reason {
        Reason::Judged => "the chain computed the number again",
        Reason::Decided => "it was decided by others, because no block can compute the number",
        Reason::TimeOut => "the other side ran out of time",
        Reason::Conceded => "the other side gave up",
    }
}
