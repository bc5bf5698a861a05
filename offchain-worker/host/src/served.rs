//! Outputs that providers serve to those who audit them, with their signed word on what they are.

use surety_chain_client::{AccountId, ChainError, When, is_signed};
use surety_network::{Bytes, OutputLocation, PlaneError, Statement, Ticket};
use surety_proofs::{PART_BYTES, PARTS_MAX};
use surety_types::{ContentHash, model::Operation, multiaddr::Endpoint, task::TaskSpec};

use super::{
    Tools,
    audits::ticket,
    effect_error::EffectError,
    jobs::Task,
    sources::{self, endpoints},
    work::{BYTES_MAX, fetch_at_most},
};

/// What comes before the numbers of embeddings: their names, types and shape, in some hundred bytes.
const HEADER_BYTES: u64 = 1024;

/// Whom to ask for what an audit takes, and what to show them.
pub(super) struct Source<'a> {
    pub(super) provider: &'a AccountId,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) ticket: Option<Ticket>,
}

impl<'a> Source<'a> {
    pub(super) async fn of(tools: &Tools, task: Task, provider: &'a AccountId) -> Result<Self, ChainError> {
        Ok(Self {
            provider,
            endpoints: endpoints(tools, provider).await?,
            ticket: ticket(tools, task.id, provider),
        })
    }
}

/// The most that an output of a task can have, in bytes.
pub(super) fn output_bytes_max(tools: &Tools, spec: &TaskSpec) -> u64 {
    let units = u64::from(spec.units_max);
    match spec.operation {
        // A word for each token and one for why it ends. The chain takes none that no game could show.
        Operation::Generate => {
            let words = units.saturating_add(1);
            words.saturating_mul(4).min((PART_BYTES * PARTS_MAX).into())
        }
        Operation::Embed => {
            let engine = tools.engines.get(&spec.model).ok();
            let exact = engine.and_then(|engine| engine.manifest().exact.clone());
            exact.map_or(BYTES_MAX, |exact| {
                let numbers = units.saturating_mul(exact.architecture.width.into());
                numbers.saturating_mul(4).saturating_add(HEADER_BYTES)
            })
        }
    }
}

/// The output with this hash.
pub(super) async fn output(
    tools: &Tools,
    of: Task,
    (spec, hash): (&TaskSpec, ContentHash),
    from: &Source<'_>,
) -> Result<Bytes, EffectError> {
    let wanted = (hash, output_bytes_max(tools, spec));
    let from_peers = fetch_at_most(tools, of, wanted, &from.endpoints, from.ticket.clone());
    sources::found(tools, of.id, hash, from_peers).await
}

/// Has the output here that the provider has signed before, or that it signs now. Returns it with its hash,
/// and the provider's word where that is news: it may be another than it gave before, and then its output is
/// not fetched.
pub(super) async fn signed_output(
    tools: &Tools,
    of: Task,
    (spec, known): (&TaskSpec, Option<ContentHash>),
    from: &Source<'_>,
) -> Result<(Option<(ContentHash, Bytes)>, Option<Statement>), EffectError> {
    let withheld = match known {
        None => None,
        Some(hash) => match output(tools, of, (spec, hash), from).await {
            Ok(blob) => return Ok((Some((hash, blob)), None)),
            Err(e) => Some((hash, e)),
        },
    };
    let (found, statement) = match (ask(tools, of, from).await, withheld) {
        (Ok((found, statement)), None) => (found, statement),
        (Ok((found, statement)), Some((hash, _))) if found.hash != hash => {
            return Ok((None, Some(statement)));
        }
        (_, Some((_, e))) => return Err(e),
        (Err(e), None) => return Err(e),
    };
    // Its own word on the size is none to go by.
    let blob = output(tools, of, (spec, found.hash), from).await?;
    Ok((Some((found.hash, blob)), Some(statement)))
}

/// What a provider says that its output is, and its word on that. What nobody answers for is not served: it
/// could be revealed as anything.
async fn ask(tools: &Tools, of: Task, from: &Source<'_>) -> Result<(OutputLocation, Statement), EffectError> {
    let mut last = EffectError::NoEndpoints;
    for endpoint in &from.endpoints {
        match locate(tools, of, endpoint, from.ticket.as_ref()).await {
            Ok(found) => match vouched(tools, of, from.provider, &found).await? {
                None => last = EffectError::Unsigned,
                Some(statement) => return Ok((found, statement)),
            },
            Err(e) => last = e.into(),
        }
    }
    Err(last)
}

/// Asks a provider for its output, at one of its addresses, for half of the time that is left: there may be
/// other addresses, and the output has to be fetched.
async fn locate(
    tools: &Tools,
    of: Task,
    endpoint: &Endpoint,
    ticket: Option<&Ticket>,
) -> Result<OutputLocation, PlaneError> {
    let time = of.time_left() / 2;
    let answer = tools.plane.locate_output(of.id, endpoint, ticket);
    match tokio::time::timeout(time, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(PlaneError::OutOfTime {
            what: format!("where the output of task {} is", of.id),
            seconds: time.as_secs(),
            attempts: Vec::new(),
        }),
    }
}

/// The provider's word that this is what its commitment opens to, if that is a word that it can be convicted
/// by for as long as the round lasts: that of the key that has committed. One that acts for it now may have
/// done neither then nor when it is reported.
async fn vouched(
    tools: &Tools,
    of: Task,
    provider: &AccountId,
    found: &OutputLocation,
) -> Result<Option<Statement>, ChainError> {
    let Some(signed) = &found.statement else {
        return Ok(None);
    };
    // Audits are of what is committed to in finalised state.
    let Some(note) = tools.chain.commit_note(When::Finalized, of.id, provider).await? else {
        return Ok(None);
    };
    let said = &signed.statement;
    let is_this = said.task == of.id && said.provider == *provider && said.output == found.hash;
    let is_committed = said.commitment == note.commitment && signed.agent == note.agent;
    let is_word = is_this && is_committed && is_signed(signed, &tools.chain.info().genesis);
    Ok(is_word.then(|| signed.clone()))
}

/// Where a provider says that the leaves of its result's trace are.
pub(super) async fn leaves(tools: &Tools, of: Task, from: &Source<'_>) -> Result<ContentHash, EffectError> {
    let mut said = Err(EffectError::NoEndpoints);
    for endpoint in &from.endpoints {
        said = match locate(tools, of, endpoint, from.ticket.as_ref()).await {
            Ok(found) => found.leaves.ok_or(EffectError::NoLeaves),
            Err(error) => Err(error.into()),
        };
        if said.is_ok() {
            break;
        }
    }
    said
}

/// Whether a provider serves what it has revealed: it says so itself, and delivers.
pub(super) async fn check(
    tools: &Tools,
    of: Task,
    provider: &AccountId,
    (spec, revealed): (&TaskSpec, ContentHash),
) -> Result<(), EffectError> {
    let from = Source::of(tools, of, provider).await?;
    let mut said = Err(EffectError::NoEndpoints);
    for endpoint in &from.endpoints {
        said = match locate(tools, of, endpoint, from.ticket.as_ref()).await {
            Ok(found) if found.hash == revealed => Ok(()),
            Ok(found) => Err(EffectError::OtherOutput(found.hash)),
            Err(e) => Err(e.into()),
        };
        if said.is_ok() {
            break;
        }
    }
    said?;
    output(tools, of, (spec, revealed), &from).await?;
    Ok(())
}
