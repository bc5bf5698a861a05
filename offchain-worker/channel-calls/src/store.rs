//! What has to be on disk before it is said.
//!
//! A state machine returns a [`Step`]: rows, and effects that nobody can get at before the rows are durable
//! ([`Step::commit`]). Rows of many streams can be written together ([`Step::join`]), with one sync.

use std::{fmt, sync::Arc};

use codec::{Decode, DecodeAll, Encode};
use surety_channels::{ChannelId, Nonce};

/// Where a row stands. A payee and a payer may share a store: they have no table in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// A payee's: since when it has this journal, and the secret of its salts. One row.
    Start,
    /// A payee's channels, by channel.
    Accounts,
    /// What it was asked, and what it has said last, by channel and request.
    Calls,
    /// Its batches, by a number of its own.
    Batches,
    /// Inputs that it was given, by channel and request. Only those who show them read them.
    Inputs,
    /// What it said, by channel, request and chunk; all chunks of a request are its output. Likewise.
    Outputs,
    /// Channels that it has forgotten, by channel: none of them is begun anew.
    Gone,
    /// A payer's channels: how much was signed.
    Wallets,
    /// What its payees have signed for it, by channel and request.
    Held,
    /// Whose its requests are, by channel and request, for as long as what was signed for them is kept.
    Asked,
    /// Receipts of channels that have ended of which nobody has shown a final batch that has them, by channel
    /// and request.
    Unproven,
    /// What shows that they have lied, by channel and request.
    Evidence,
    /// What a verifier has found of batches, by provider and batch: what it announces is there before.
    Points,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Start,
        Self::Accounts,
        Self::Calls,
        Self::Batches,
        Self::Inputs,
        Self::Outputs,
        Self::Gone,
        Self::Wallets,
        Self::Held,
        Self::Asked,
        Self::Unproven,
        Self::Evidence,
        Self::Points,
    ];

    /// A name for it in a database. It stays.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "payee_start",
            Self::Accounts => "payee_accounts",
            Self::Calls => "payee_calls",
            Self::Batches => "payee_batches",
            Self::Inputs => "payee_inputs",
            Self::Outputs => "payee_outputs",
            Self::Gone => "payee_gone",
            Self::Wallets => "payer_wallets",
            Self::Held => "payer_held",
            Self::Asked => "payer_asked",
            Self::Unproven => "payer_unproven",
            Self::Evidence => "payer_evidence",
            Self::Points => "verifier_points",
        }
    }

    /// Whether a state machine reads it when it is loaded. The others are large, or looked up.
    pub const fn is_loaded(self) -> bool {
        use Table::{Accounts, Batches, Calls, Gone, Held, Start, Wallets};
        matches!(self, Start | Accounts | Calls | Batches | Gone | Wallets | Held)
    }
}

/// A row of a table. It takes the place of the row with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Where it stands.
    pub table: Table,
    /// Its key: channel and request, big-endian, so that rows of one channel stand together in their order.
    pub key: Vec<u8>,
    /// What it holds; nothing where the row goes.
    pub value: Option<Vec<u8>>,
}

impl Row {
    pub(crate) fn new(table: Table, key: Vec<u8>, value: &impl Encode) -> Self {
        Self {
            table,
            key,
            value: Some(value.encode()),
        }
    }

    pub(crate) const fn gone(table: Table, key: Vec<u8>) -> Self {
        Self {
            table,
            key,
            value: None,
        }
    }

    /// What it holds.
    pub(crate) fn read<T: Decode>(&self) -> Result<T, LoadError> {
        let value = self.value.as_deref().unwrap_or_default();
        T::decode_all(&mut &*value).map_err(|error| LoadError::Unreadable {
            table: self.table.name(),
            what: error.to_string(),
        })
    }

    /// The channel and the request of its key.
    pub(crate) fn call(&self) -> Result<(ChannelId, Nonce), LoadError> {
        let parts = self.key.split_first_chunk::<8>();
        let parts = parts.and_then(|(channel, rest)| Some((channel, rest.first_chunk::<4>()?)));
        let (channel, nonce) = parts.ok_or_else(|| self.bad_key())?;
        Ok((u64::from_be_bytes(*channel), u32::from_be_bytes(*nonce)))
    }

    /// The channel of its key, of a table whose rows are channels' or requests'.
    ///
    /// # Errors
    /// [`LoadError::Unreadable`].
    pub fn channel(&self) -> Result<ChannelId, LoadError> {
        let channel = self.key.first_chunk::<8>().ok_or_else(|| self.bad_key())?;
        Ok(u64::from_be_bytes(*channel))
    }

    pub(crate) fn bad_key(&self) -> LoadError {
        LoadError::Unreadable {
            table: self.table.name(),
            what: "a key is cut off".into(),
        }
    }
}

pub(crate) fn channel_key(channel: ChannelId) -> Vec<u8> {
    channel.to_be_bytes().to_vec()
}

/// The key of a request's rows; of its chunks it is what their keys begin with.
pub fn call_key(channel: ChannelId, nonce: Nonce) -> Vec<u8> {
    [&channel.to_be_bytes()[..], &nonce.to_be_bytes()].concat()
}

pub(crate) fn chunk_key(channel: ChannelId, nonce: Nonce, chunk: u32) -> Vec<u8> {
    [&call_key(channel, nonce)[..], &chunk.to_be_bytes()].concat()
}

/// The row of a table with this key, as it was made durable last; nothing where there is none, or where it
/// cannot be read. It may block for as long as a disk does.
pub type ReadRow = Arc<dyn Fn(Table, &[u8]) -> Option<Row> + Send + Sync>;

/// Where rows are made durable.
pub trait Store {
    /// Why they cannot be.
    type Error;

    /// Writes rows in their order, all of them or none, and returns when they are durable. Later rows of one
    /// key take the place of earlier ones.
    ///
    /// # Errors
    /// When they may not be durable. Writing them again does no harm.
    fn put(&self, rows: &[Row]) -> Result<(), Self::Error>;
}

/// What follows from an event: rows, and what may be done once they are durable.
#[derive(Debug)]
#[must_use = "what was decided is neither written nor done before it is committed"]
pub struct Step<E> {
    rows: Vec<Row>,
    effects: Vec<E>,
}

impl<E> Default for Step<E> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            effects: Vec::new(),
        }
    }
}

/// A step whose rows may not be durable. Nothing that it decided was done.
#[derive(Debug)]
pub struct Uncommitted<E, X> {
    /// It, to be tried again: alone or joined by later ones, but never after them.
    pub step: Step<E>,
    /// Why.
    pub error: X,
}

impl<E> Step<E> {
    pub(crate) fn put(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub(crate) fn then(&mut self, effect: E) {
        self.effects.push(effect);
    }

    /// Whether it changes and does nothing.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.effects.is_empty()
    }

    /// Both, to be written with one sync. `later` has to come from the same state machine after this one.
    pub fn join(&mut self, later: Self) {
        self.rows.extend(later.rows);
        self.effects.extend(later.effects);
    }

    /// Makes its rows durable, and only then hands out its effects.
    ///
    /// # Errors
    /// [`Uncommitted`]. Steps are committed in their order: this one comes before all later ones.
    pub fn commit<S: Store + ?Sized>(self, store: &S) -> Result<Vec<E>, Uncommitted<E, S::Error>> {
        if !self.rows.is_empty()
            && let Err(error) = store.put(&self.rows)
        {
            return Err(Uncommitted { step: self, error });
        }
        Ok(self.effects)
    }
}

/// What to do about a journal that is not whole.
const NO_OLD_COPY: &str = "check the disk, and put no older copy in its place while channels are open: with \
    an old one something else may be signed, without the file nothing more is taken over them";

/// Why a journal cannot be gone on with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// A row is not as it was written.
    #[error("a row of {table} cannot be read ({what}): {HINT}", HINT = NO_OLD_COPY)]
    Unreadable {
        /// Its table.
        table: &'static str,
        /// What is wrong.
        what: String,
    },
    /// There are rows, but not the first that is ever written.
    #[error("the journal does not say since when it is kept: {HINT}", HINT = NO_OLD_COPY)]
    NoStart,
    /// A row that others need is missing.
    #[error(
        "request {nonce} of channel {channel} is missing in the journal: {HINT}",
        HINT = NO_OLD_COPY
    )]
    Missing {
        /// Channel id.
        channel: ChannelId,
        /// Number of the request.
        nonce: Nonce,
    },
    /// A batch comes out with another root than was promised.
    #[error(
        "batch {batch} comes out otherwise than it was promised: rows of the journal are missing or changed"
    )]
    OtherRoot {
        /// Its number in the journal.
        batch: u32,
    },
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
