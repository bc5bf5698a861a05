//! `surety gateway keys`.

use serde::Serialize;
use surety_gateway::{Key, KeyTerms, LedgerError};

use super::{
    Context,
    desk::{self, Asked, Told},
    desk_path, ledger,
};
use crate::{
    amount::{Amount, Plancks},
    args::{KeyArgs, KeysCommand},
    error::{CliError, Result},
    output::table,
};

/// A key, as it is listed. Amounts are in plancks, as text.
#[derive(Serialize)]
struct Listed {
    id: String,
    label: String,
    cap: Plancks,
    spent: Plancks,
    reserved: Plancks,
    requests_per_minute: u32,
    tokens_per_minute: u32,
    revoked: bool,
    /// When it was made, alone: it is not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

impl Listed {
    fn new(key: &Key, secret: Option<String>) -> Self {
        Self {
            id: key.id.clone(),
            label: key.label.clone(),
            cap: Plancks(key.terms.cap),
            spent: Plancks(key.spent),
            reserved: Plancks(key.reserved),
            requests_per_minute: key.terms.requests_per_minute,
            tokens_per_minute: key.terms.tokens_per_minute,
            revoked: key.revoked,
            key: secret,
        }
    }
}

pub(super) fn run(context: &Context, command: KeysCommand) -> Result<()> {
    match command {
        KeysCommand::Create(args) => create(context, &args),
        KeysCommand::List => list(context),
        KeysCommand::Revoke { id } => revoke(context, id),
    }
}

/// Has something done here, or by the gateway that has the ledger open.
fn done(context: &Context, asked: &Asked) -> Result<Told> {
    match ledger(context) {
        Ok(ledger) => Ok(desk::act(&ledger, asked)?),
        Err(CliError::Ledger(LedgerError::InUse)) => desk::ask(&desk_path(context)?, asked),
        Err(error) => Err(error),
    }
}

fn create(context: &Context, args: &KeyArgs) -> Result<()> {
    let asked = Asked::Create {
        label: args.label.clone(),
        terms: KeyTerms {
            cap: args.cap.0,
            requests_per_minute: args.requests_per_minute,
            tokens_per_minute: args.tokens_per_minute,
        },
    };
    let Told::Made { key, secret } = done(context, &asked)? else {
        return Err(desk::nonsense());
    };
    context.out.step(&format!(
        "the key {} may spend {}; it is shown this once, and only its hash is kept",
        key.id, args.cap
    ));
    let made = Listed::new(&key, Some(secret.clone()));
    context.out.result(&made, || secret)
}

fn list(context: &Context) -> Result<()> {
    let Told::Keys(keys) = done(context, &Asked::List)? else {
        return Err(desk::nonsense());
    };
    let listed: Vec<Listed> = keys.iter().map(|key| Listed::new(key, None)).collect();
    context.out.result(&listed, || {
        let mut table = table(["id", "label", "cap", "spent", "reserved", ""]);
        for key in &listed {
            table.add_row([
                key.id.clone(),
                key.label.clone(),
                Amount(key.cap.0).to_string(),
                Amount(key.spent.0).to_string(),
                Amount(key.reserved.0).to_string(),
                if key.revoked { "revoked" } else { "" }.into(),
            ]);
        }
        table.to_string()
    })
}

fn revoke(context: &Context, id: String) -> Result<()> {
    match done(context, &Asked::Revoke { id: id.clone() })? {
        Told::Revoked => context.out.result(&serde_json::json!({ "revoked": id }), || {
            format!("{id} opens nothing any more; batches that it has begun go on")
        }),
        Told::NoKey => Err(CliError::Usage(format!(
            "there is no key of the id {id:?}: see surety gateway keys list"
        ))),
        Told::Made { .. } | Told::Keys(_) | Told::Failed(_) => Err(desk::nonsense()),
    }
}
