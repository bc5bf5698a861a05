//! Providers' signed statements: checked when an output arrives that nobody has revealed yet, and kept.
//!
//! A provider that hands over its output signs which commitment on the chain is to open to it. Should it say
//! anything else later, whoever holds the statement can have it slashed: `surety dispute report`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use codec::{DecodeAll, Encode};
use serde::{Deserialize, Serialize};
use surety_chain_client::{
    AccountId, Call, Chain, ChainError, Hash, RoundRecord, When, address, is_signed, short,
};
use surety_network::{OutputLocation, Statement};
use surety_types::{ContentHash, TaskId, task::MemberProgress};

use crate::error::{ClientError, Result};

/// Longest file that is read as a statement. One takes less than 1 KiB.
const FILE_BYTES_MAX: u64 = 4096;

/// Why an output is not taken on a provider's word. Once the chain has decided it is taken by its hash,
/// whoever sends it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It gives no word.
    #[error("signs nothing for its output; it can be had without that once the chain has decided")]
    Unsigned,
    /// A word on something else.
    #[error(
        "signed for another task, provider or output than it was asked for; wait until the chain has decided"
    )]
    SomethingElse,
    /// Another key than the one that has committed for it.
    #[error("has {0} sign, which is not the agent that has committed; wait until the chain has decided")]
    NotItsAgent(String),
    /// No signature.
    #[error("sent a signature that is not its agent's; wait until the chain has decided")]
    BadSignature,
    /// It is not on the chain yet.
    #[error("has no commitment in the best block yet; it is asked again")]
    NotCommitted,
    /// It said something else on the chain. That is an offence.
    #[error("signed another result than it has on the chain, for which it can be slashed; {0}")]
    Contradicts(Report),
    /// It signed something else before. That is an offence.
    #[error("signed another result before, for which it can be slashed; {0}")]
    TwoStatements(Report),
    /// The chain cannot be asked.
    #[error("cannot be checked: {0}")]
    Chain(#[from] ChainError),
    /// The statement cannot be kept.
    #[error("cannot be held to its word: {0}")]
    Unkept(String),
}

/// How an offence is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    statement: PathBuf,
    other: Option<PathBuf>,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "report it with: surety dispute report {}",
            self.statement.display()
        )?;
        match &self.other {
            Some(other) => write!(f, " --other {}", other.display()),
            None => Ok(()),
        }
    }
}

/// Checks what a provider says of its output of `task`, and keeps its word in `home`.
///
/// # Errors
/// [`Refused`]. What can be reported is kept all the same.
pub async fn accept(
    chain: &dyn Chain,
    home: &Path,
    task: TaskId,
    provider: &AccountId,
    found: &OutputLocation,
) -> std::result::Result<(), Refused> {
    let signed = found.statement.as_ref().ok_or(Refused::Unsigned)?;
    let said = &signed.statement;
    if (said.task, &said.provider, said.output) != (task, provider, found.hash) {
        return Err(Refused::SomethingElse);
    }
    let Some(note) = chain.commit_note(When::Best, task, provider).await? else {
        return Err(Refused::NotCommitted);
    };
    // The word of a key that acts for it now and not then is worth nothing once that has changed again.
    if note.agent != signed.agent {
        return Err(Refused::NotItsAgent(address(&signed.agent)));
    }
    let genesis = chain.info().genesis;
    if !is_signed(signed, &genesis) {
        return Err(Refused::BadSignature);
    }
    let info = chain.task(When::Best, task).await?;
    let members = info.and_then(|info| info.round).map(|round| round.members);
    let member = members
        .iter()
        .flatten()
        .find(|member| member.provider == *provider);
    let holds = match member.map(|member| &member.progress) {
        None | Some(MemberProgress::Working) => return Err(Refused::NotCommitted),
        Some(MemberProgress::Committed(commitment)) => *commitment == said.commitment,
        // The chain has held the claim against the commitment.
        Some(MemberProgress::Revealed(claim)) => claim.output == said.output,
    };
    let kept = keep(home, &genesis, signed).map_err(|e| Refused::Unkept(e.to_string()))?;
    match kept {
        Kept {
            path,
            differs: Some(other),
        } => Err(Refused::TwoStatements(Report {
            statement: path,
            other: Some(other),
        })),
        Kept { path, .. } if !holds => Err(Refused::Contradicts(Report {
            statement: path,
            other: None,
        })),
        Kept { .. } => Ok(()),
    }
}

/// What to say of providers that have revealed another output than they signed for when they handed it over.
pub fn contradictions(home: &Path, genesis: &Hash, task: TaskId, round: &RoundRecord) -> Vec<String> {
    let revealed = round
        .members
        .iter()
        .filter_map(|member| Some((&member.provider, member.claim()?)));
    let texts = revealed.filter_map(|(provider, claim)| {
        let statement = path_of(home, genesis, task, provider, FIRST);
        // There is none of those that were not asked.
        let signed = load(&statement).ok()?;
        let report = Report {
            statement,
            other: None,
        };
        (signed.statement.output != claim.output).then(|| {
            let who = short(provider);
            format!("{who} revealed another output than it signed for, for which it can be slashed; {report}")
        })
    });
    texts.collect()
}

/// Names of the files of a provider's statements.
const FIRST: &str = "statement";
const SECOND: &str = "other-statement";

/// A statement as it lies on disk: what it says, to be read, and all of it in SCALE, to be sent.
#[derive(Serialize, Deserialize)]
struct File {
    task: TaskId,
    provider: String,
    commitment: Hash,
    output: ContentHash,
    agent: String,
    statement: String,
}

struct Kept {
    path: PathBuf,
    /// Another one of the same provider about the same task.
    differs: Option<PathBuf>,
}

/// Keeps a statement: `HOME/tasks/GENESIS-TASK-PROVIDER.statement.json`. Of one provider and task at most two
/// are kept that differ, which is as many as it takes.
fn keep(home: &Path, genesis: &Hash, signed: &Statement) -> Result<Kept> {
    let said = &signed.statement;
    let [first, second] = [FIRST, SECOND].map(|name| path_of(home, genesis, said.task, &said.provider, name));
    if !first.exists() {
        write(&first, signed)?;
    }
    if load(&first)?.statement == *said {
        return Ok(Kept {
            path: first,
            differs: None,
        });
    }
    if !second.exists() {
        write(&second, signed)?;
    }
    Ok(Kept {
        path: first,
        differs: Some(second),
    })
}

fn path_of(home: &Path, genesis: &Hash, task: TaskId, provider: &AccountId, name: &str) -> PathBuf {
    let chain = hex::encode(genesis.as_bytes().get(..4).unwrap_or_default());
    let bytes: &[u8] = provider.as_ref();
    let provider = hex::encode(bytes);
    home.join("tasks")
        .join(format!("{chain}-{task}-{provider}.{name}.json"))
}

fn write(path: &Path, signed: &Statement) -> Result<()> {
    let said = &signed.statement;
    let file = File {
        task: said.task,
        provider: address(&said.provider),
        commitment: said.commitment,
        output: said.output,
        agent: address(&signed.agent),
        statement: hex::encode(signed.encode()),
    };
    let json = serde_json::to_vec_pretty(&file).map_err(|e| ClientError::Internal(e.to_string()))?;
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(ClientError::file(parent))?;
    }
    crate::files::write_atomically(path, &json)
}

/// A statement that was kept.
///
/// # Errors
/// When the file cannot be read, or is none.
pub fn load(path: &Path) -> Result<Statement> {
    let none = |reason: &str| ClientError::file(path)(io::Error::new(io::ErrorKind::InvalidData, reason));
    let bytes = fs::metadata(path).map_err(ClientError::file(path))?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(none("it is too long for a provider's statement"));
    }
    let text = fs::read(path).map_err(ClientError::file(path))?;
    let file: File = serde_json::from_slice(&text).map_err(|_| none("it is not a provider's statement"))?;
    let bytes = hex::decode(file.statement).map_err(|_| none("its statement is not hexadecimal"))?;
    Statement::decode_all(&mut bytes.as_slice()).map_err(|_| none("its statement is not SCALE"))
}

/// The call that has a provider slashed for what it signed: against the chain, or against another statement
/// of its own.
///
/// # Errors
/// Those of [`load`].
pub fn report(statement: &Path, other: Option<&Path>) -> Result<Call> {
    let statement = Box::new(load(statement)?);
    let other = other.map(load).transpose()?;
    Ok(Call::ReportEquivocation {
        statement,
        other: other.map(Box::new),
    })
}

#[cfg(test)]
#[path = "statement_tests.rs"]
mod tests;
