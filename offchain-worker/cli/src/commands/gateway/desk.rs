//! Where a gateway that runs is told what to do with its keys: a socket in its home, which nobody else may
//! open. A line in JSON is asked, and one is answered.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::{fs::PermissionsExt, net::UnixStream},
    path::Path,
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use surety_gateway::{Key, KeyTerms, Ledger, LedgerError};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt},
    net::UnixListener,
    time::timeout,
};

use crate::error::{CliError, Result};

/// Longest line that is asked; and that is answered, with every key that there may be.
const ASKED_BYTES_MAX: u64 = 4_096;
const TOLD_BYTES_MAX: u64 = 16 << 20;
/// For both.
const TIME: Duration = Duration::from_secs(10);

/// What is to be done.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Asked {
    Create { label: String, terms: KeyTerms },
    List,
    Revoke { id: String },
}

/// What has been done.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Told {
    Made { key: Key, secret: String },
    Keys(Vec<Key>),
    Revoked,
    NoKey,
    Failed(String),
}

/// Does it. Blocks.
///
/// # Errors
/// [`LedgerError`].
pub(super) fn act(ledger: &Ledger, asked: &Asked) -> std::result::Result<Told, LedgerError> {
    match asked {
        Asked::Create { label, terms } => {
            let (key, secret) = ledger.create_key(label, *terms)?;
            Ok(Told::Made { key, secret })
        }
        Asked::List => Ok(Told::Keys(ledger.keys()?)),
        Asked::Revoke { id } => match ledger.revoke_key(id) {
            Ok(()) => Ok(Told::Revoked),
            Err(LedgerError::NoKey) => Ok(Told::NoKey),
            Err(error) => Err(error),
        },
    }
}

/// An answer to something else, which only another version gives.
pub(super) fn nonsense() -> CliError {
    CliError::Usage("the gateway that runs here is of another version: start it again with this one".into())
}

/// Has the gateway do it that listens there. Blocks.
///
/// # Errors
/// When there is none, or it cannot.
pub(super) fn ask(path: &Path, asked: &Asked) -> Result<Told> {
    let told = exchange(path, asked).map_err(|source| CliError::File {
        path: path.to_owned(),
        source,
    })?;
    match told {
        Told::Failed(why) => Err(CliError::Usage(why)),
        told => Ok(told),
    }
}

fn exchange(path: &Path, asked: &Asked) -> io::Result<Told> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(TIME))?;
    stream.write_all(&line(asked)?)?;
    let mut told = String::new();
    BufReader::new(stream.take(TOLD_BYTES_MAX)).read_line(&mut told)?;
    parsed(&told)
}

fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

fn parsed<T: DeserializeOwned>(line: &str) -> io::Result<T> {
    Ok(serde_json::from_str(line)?)
}

/// The socket.
pub(super) struct Desk(UnixListener);

impl Desk {
    /// In the place of one that a gateway left which was killed.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let open = || {
            // It has another name until nobody else may open it.
            let fresh = path.with_extension("new");
            match fs::remove_file(&fresh) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let listener = UnixListener::bind(&fresh)?;
            fs::set_permissions(&fresh, fs::Permissions::from_mode(0o600))?;
            fs::rename(&fresh, path)?;
            Ok(listener)
        };
        open().map(Self).map_err(CliError::file(path))
    }

    /// Answers one after the other, until it is dropped.
    pub(super) async fn serve(self, ledger: Arc<Ledger>) {
        loop {
            let answered = async {
                let (stream, _) = self.0.accept().await?;
                timeout(TIME, answer(stream, ledger.clone())).await?
            };
            if let Err(error) = answered.await {
                tracing::warn!(%error, "what was asked about keys is not answered");
                // Too many open files, at worst, which a moment may mend.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn answer(stream: tokio::net::UnixStream, ledger: Arc<Ledger>) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut asked = String::new();
    let mut read = tokio::io::BufReader::new(read.take(ASKED_BYTES_MAX));
    read.read_line(&mut asked).await?;
    let told = match parsed::<Asked>(&asked) {
        Err(error) => Told::Failed(format!("the gateway does not know what is asked of it: {error}")),
        Ok(asked) => {
            let done = tokio::task::spawn_blocking(move || act(&ledger, &asked)).await?;
            done.unwrap_or_else(|error| Told::Failed(error.to_string()))
        }
    };
    write.write_all(&line(&told)?).await?;
    write.shutdown().await
}
