//! `surety dispute`.

mod committee;
mod place;
mod story;

use serde::Serialize;
use surety_chain_client::{DisputeRecord, When, address, short};
use surety_client::{statement, words::side_text};
use surety_types::trust::{DisputeId, Party};

use super::Context;
use crate::{
    args::{DisputeCommand, DisputeReportArgs, DisputeShowArgs},
    error::Result,
    output::table,
};

type PartyRecord = Party<surety_chain_client::AccountId>;

pub(super) async fn run(context: &Context, command: DisputeCommand) -> Result<()> {
    match command {
        DisputeCommand::List => list(context).await,
        DisputeCommand::Show(args) => show(context, &args).await,
        DisputeCommand::Report(args) => report(context, &args).await,
    }
}

/// One dispute in a list.
#[derive(Serialize)]
struct Listed {
    dispute: DisputeId,
    task: u64,
    defender: String,
    challenger: String,
    moves: u32,
    to_move: Option<String>,
    opened_block: u32,
}

impl Listed {
    fn new(dispute: DisputeId, record: &DisputeRecord) -> Self {
        Self {
            dispute,
            task: record.task,
            defender: address(record.defender.account()),
            challenger: address(record.challenger.account()),
            moves: record.moves,
            to_move: record.game.to_move().map(|side| side_text(side).into()),
            opened_block: record.opened_at,
        }
    }
}

async fn list(context: &Context) -> Result<()> {
    let chain = context.chain().await?;
    let mut disputes = chain.disputes(When::Finalized).await?;
    disputes.sort_unstable_by_key(|(id, _)| *id);
    let listed: Vec<Listed> = disputes
        .iter()
        .map(|(id, record)| Listed::new(*id, record))
        .collect();
    context.out.result(&listed, || {
        let mut table = table([
            "dispute",
            "task",
            "defender",
            "challenger",
            "moves",
            "to move",
            "opened in",
        ]);
        for (row, (_, record)) in listed.iter().zip(&disputes) {
            table.add_row([
                row.dispute.to_string(),
                row.task.to_string(),
                short(record.defender.account()),
                short(record.challenger.account()),
                row.moves.to_string(),
                row.to_move.clone().unwrap_or_else(|| "nobody".into()),
                row.opened_block.to_string(),
            ]);
        }
        table.to_string()
    })
}

async fn show(context: &Context, args: &DisputeShowArgs) -> Result<()> {
    let chain = context.chain().await?;
    let story = story::tell(&*chain, args.dispute, args.blocks).await?;
    context.out.result(&story, || story.text())
}

async fn report(context: &Context, args: &DisputeReportArgs) -> Result<()> {
    super::account::submit(
        context,
        statement::report(&args.statement, args.other.as_deref())?,
    )
    .await
}

/// Who somebody is in a dispute.
pub(super) fn party_text(party: &PartyRecord) -> String {
    match party {
        Party::Provider(stash) => format!("provider {}", short(stash)),
        Party::Auditor { verifier, .. } => format!("auditor {}", short(verifier)),
        Party::Account(account) => format!("account {}", short(account)),
    }
}
