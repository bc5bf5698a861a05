//! What went wrong, and with which code the program ends.

use std::{io, path::PathBuf};

use surety_chain_client::ChainError;
use surety_chain_rpc::NodeFault;
use surety_client::ClientError;
use surety_client::{nearest::Mismatch, text::TextInputError};
use surety_demo_model::TrainError;
use surety_engine::{EmbeddingsError, EngineError};
use surety_host::HostError;
use surety_journal::JournalError;
use surety_model_fetch::FetchError;
use surety_models::convert::ConvertError;
use surety_models::tokens::{LinesFault, TextError};
use surety_network::PlaneError;
use surety_types::TaskId;
use surety_worker_core::ReplayError;

use crate::{advice, amount::Amount, config::ConfigError, keys::KeyError};

/// Everything that ends a command.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Wrong usage that the parser cannot see.
    #[error("{0}")]
    Usage(String),
    /// No configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The chain, or the way to it.
    #[error("{0}")]
    Chain(#[from] ChainError),
    /// The signer of a call has not the money for it.
    #[error("{account} has {free} free, which is not enough: {source}")]
    Unpaid {
        /// The signer, as an address.
        account: String,
        /// What it has.
        free: Amount,
        /// What the chain says.
        source: ChainError,
    },
    /// The node of this machine does not answer, or not what it is asked.
    #[error(
        "{url}: {source}; start surety-node with --validator on this machine, or name its RPC there with --rpc"
    )]
    Node {
        /// Its RPC.
        url: String,
        /// What it says.
        source: NodeFault,
    },
    /// The data plane.
    #[error("{0}{then}", then = advice::listening(.0))]
    Data(#[from] PlaneError),
    /// The blob store.
    #[error(transparent)]
    Blobs(#[from] surety_network::StoreError),
    /// A worker cannot start, or go on.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Answers over payment channels cannot be given any more.
    #[error("calls over payment channels: {0}")]
    Calls(#[from] surety_provider_calls::CallsError),
    /// Receipts cannot be audited any more.
    #[error("audits of receipts: {0}")]
    PointAudits(#[from] surety_point_audits::AuditsError),
    /// The journal.
    #[error("the journal cannot be used: {0}")]
    Journal(#[from] JournalError),
    /// The journal is another's.
    #[error("{0}")]
    Replay(#[from] ReplayError),
    /// The claims of a faucet.
    #[error("the faucet's claims cannot be kept: {0}")]
    Claims(surety_faucet::StoreError),
    /// The keys and batches of a gateway.
    #[error("the gateway's ledger cannot be used: {0}")]
    Ledger(#[from] surety_gateway::LedgerError),
    /// A model's files.
    #[error("{0}{then}", then = advice::stored(.0))]
    Models(#[from] surety_models::StoreError),
    /// A model's download.
    #[error("{0}{then}", then = advice::fetching(.0))]
    Fetch(#[from] FetchError),
    /// A model cannot be converted.
    #[error("{0}{then}", then = advice::converting(.0))]
    Convert(#[from] ConvertError),
    /// Loading or running a model.
    #[error("{0}{then}", then = advice::loading(.0))]
    Engine(#[from] EngineError),
    /// Training a model.
    #[error(transparent)]
    Train(TrainError),
    /// The task's text.
    #[error("{}: {source}", path.display())]
    Lines {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: LinesFault,
    },
    /// A text becomes no input of a task.
    #[error(transparent)]
    Text(#[from] TextInputError),
    /// What a model's text becomes ids by is not here.
    #[error(
        "the tokenizer of {model} is not here: put its tokenizer.json and config.json into {}, or have the model here \
         (surety model fetch, surety model convert): {source}",
        folder.display()
    )]
    NoTokenizer {
        /// Its name.
        model: String,
        /// Where the files are looked for.
        folder: PathBuf,
        /// What was found there.
        source: Box<TextError>,
    },
    /// The same of a known model, where nothing may be fetched.
    #[error(
        "the tokenizer of {model} is not on the machine of surety serve: get it there with surety model fetch {model}, or \
         start surety serve with --fetch-tokenizers"
    )]
    NotFetched {
        /// Its name.
        model: String,
    },
    /// The task's output is no output.
    #[error("the output cannot be read: {0}")]
    Output(#[from] EmbeddingsError),
    /// The same of a generation.
    #[error("the output cannot be read: {0}")]
    NotGenerated(String),
    /// A file.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no such model.
    #[error(
        "unknown model {0:?}: not here, not on the chain, and not one that can be fetched; see: surety model list"
    )]
    UnknownModel(String),
    /// The chain has no such model.
    #[error(
        "the chain does not know the model {0}: choose one that surety model list calls registered, or have somebody who \
         has its files register it (surety model register {0})"
    )]
    NotRegistered(String),
    /// A model's files are not here.
    #[error("the model {name} is not in {}; get it with: surety model fetch {name}", folder.display())]
    ModelNotHere {
        /// Its name.
        name: String,
        /// Where its files are looked for.
        folder: PathBuf,
    },
    /// An account has not what a task costs.
    #[error(
        "{account} has {free} free, and this task needs {needed} and what posting it costs: send it some, or say less with \
         --cap"
    )]
    NotEnough {
        /// The account, as an address.
        account: String,
        /// What it has.
        free: Amount,
        /// The cap, and what is locked beside it.
        needed: Amount,
    },
    /// This machine has no room for a model.
    #[error("{0}")]
    NoRoom(String),
    /// There is no such task.
    #[error("the chain knows no task {0}; finished tasks are kept for a while only")]
    UnknownTask(TaskId),
    /// There is no such dispute.
    #[error("the chain knows no dispute {0}, nor do the blocks that were looked through; see --blocks")]
    UnknownDispute(surety_types::trust::DisputeId),
    /// Too little money for anybody to be paid.
    #[error(
        "a cap of {cap} does not cover the fee and {redundancy} providers; raise --cap or lower --redundancy"
    )]
    CapBelowFee {
        /// What the client would pay in all.
        cap: Amount,
        /// To how many providers.
        redundancy: u32,
    },
    /// Less than the work is worth.
    #[error(
        "a cap of {cap} pays less than this work is worth, and the chain takes no less than {least}: raise --cap, or \
         ask for less work"
    )]
    CapTooLow {
        /// What the client would pay in all.
        cap: Amount,
        /// What it has to be at least.
        least: Amount,
    },
    /// There is no result yet.
    #[error("task {task} has no result yet: it is {state}; follow it with: surety task watch {task}")]
    NotDecided {
        /// Task id.
        task: TaskId,
        /// Where it is.
        state: String,
    },
    /// The task ended, and there is no result.
    #[error("task {task} ended without a result: {reason}; what was paid in has gone back")]
    NoResult {
        /// Task id.
        task: TaskId,
        /// Why.
        reason: String,
    },
    /// The task is settled, but nobody delivers its output.
    #[error("task {task} is settled, but its output could not be fetched:{attempts}")]
    Undelivered {
        /// Task id.
        task: TaskId,
        /// Who was asked, and what each did.
        attempts: String,
    },
    /// Doctor found faults.
    #[error("{0} of the checks failed")]
    Unhealthy(usize),
    /// Interrupted by the user.
    #[error("interrupted; {0}")]
    Interrupted(String),
    /// A defect.
    #[error("internal error: {0}")]
    Internal(String),
}

impl CliError {
    /// The program's exit code. Listed in the help text.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Internal(_) | Self::Interrupted(_) => 1,
            Self::Usage(_) | Self::Config(_) | Self::Text(_) | Self::Key(KeyError::NotAnAddress(_)) => 2,
            Self::Host(e) => match e {
                HostError::Internal(_) | HostError::PartDied { .. } => 1,
                HostError::Metrics { .. } => 2,
                HostError::Data(_) => 6,
                HostError::Journal(_) => 7,
            },
            Self::Chain(e) => match e {
                ChainError::Unreachable { .. }
                | ChainError::WrongChain { .. }
                | ChainError::Incompatible { .. }
                | ChainError::Outgrown { .. }
                | ChainError::Implausible { .. }
                | ChainError::Rpc { .. }
                | ChainError::Pruned { .. }
                | ChainError::Decode { .. } => 3,
                ChainError::Dispatch(_)
                | ChainError::Rejected { .. }
                | ChainError::Unknown { .. }
                | ChainError::Busy { .. } => 4,
                ChainError::Key { .. } => 7,
            },
            Self::Node { .. } => 3,
            Self::UnknownTask(_)
            | Self::UnknownDispute(_)
            | Self::UnknownModel(_)
            | Self::NotRegistered(_)
            | Self::Unpaid { .. }
            | Self::CapBelowFee { .. }
            | Self::CapTooLow { .. }
            | Self::NotEnough { .. } => 4,
            Self::NoResult { .. } | Self::NotDecided { .. } => 5,
            Self::Data(_)
            | Self::Undelivered { .. }
            | Self::Output(_)
            | Self::NotGenerated(_)
            | Self::Fetch(_) => 6,
            Self::Key(_)
            | Self::Blobs(_)
            | Self::Journal(_)
            | Self::Calls(_)
            | Self::PointAudits(_)
            | Self::Replay(_)
            | Self::Claims(_)
            | Self::Ledger(_)
            | Self::Models(_)
            | Self::NoRoom(_)
            | Self::ModelNotHere { .. }
            | Self::Convert(_)
            | Self::Engine(_)
            | Self::Train(_)
            | Self::Lines { .. }
            | Self::NoTokenizer { .. }
            | Self::NotFetched { .. }
            | Self::File { .. } => 7,
            Self::Unhealthy(_) => 8,
        }
    }

    /// For `map_err`: an error of the file system about `path`.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| Self::File { path, source }
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Chain(e) => Self::Chain(e),
            ClientError::Data(e) => Self::Data(e),
            ClientError::File { path, source } => Self::File { path, source },
            ClientError::UnknownTask(task) => Self::UnknownTask(task),
            ClientError::Undelivered { task, attempts } => Self::Undelivered { task, attempts },
            ClientError::NotGenerated(error) => Self::NotGenerated(error.to_string()),
            ClientError::Internal(reason) => Self::Internal(reason),
        }
    }
}

impl From<Mismatch> for CliError {
    fn from(error: Mismatch) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<TrainError> for CliError {
    fn from(error: TrainError) -> Self {
        match error {
            TrainError::Cancelled => Self::Interrupted("no model was written".into()),
            TrainError::OutOfRange { .. } | TrainError::Heads { .. } | TrainError::Occupied { .. } => {
                Self::Usage(error.to_string())
            }
            _ => Self::Train(error),
        }
    }
}

/// What commands return.
pub type Result<T> = std::result::Result<T, CliError>;
