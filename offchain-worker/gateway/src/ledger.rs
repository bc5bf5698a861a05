//! Keys, what they have spent, and the receipts of their calls, on disk; files and batches beside them.
//!
//! A call is opened with the most that it may cost before a provider is asked, and closed with what it did
//! cost. Both are synced. One that is open when a gateway starts was interrupted: what was signed for it
//! counts as spent, which stands in the journal of channels under an id of the call's own, and its whole
//! reservation where that journal is not there. Tasks of batches go on instead: the chain says what became of
//! them.

pub(crate) mod amount;
mod batches;
mod error;
mod files;
mod key;

use std::{collections::BTreeMap, path::Path};

use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, ReadableTableMetadata, Table, TableDefinition,
    WriteTransaction,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    proof::Proof,
    upstream::{Receipt, SignedFor},
};
pub(crate) use batches::{Begun, TaskEnd};
pub use error::LedgerError;
pub(crate) use files::{FileRecord, NewFile, Page, Purpose};
pub use key::{Key, KeyTerms};
use key::{hash, id_of, new_key};

const KEYS: TableDefinition<&str, &[u8]> = TableDefinition::new("keys");
const CALLS: TableDefinition<u64, &[u8]> = TableDefinition::new("calls");
const OPEN: TableDefinition<u64, ()> = TableDefinition::new("open");
const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
const NEXT: &str = "next_call";
/// Most keys, revoked ones included.
const KEYS_MAX: u64 = 10_000;
/// Most calls that are remembered.
const CALLS_MAX: u64 = 1_000_000;
/// What whoever needs no key spends by.
const LOCAL: &str = "local";
const PREFIX: &str = "sk-surety-";
const CACHE_BYTES: usize = 16 << 20;

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// It is being answered.
    Open,
    /// It has ended. It has cost what its receipts say, and what was signed for answers that broke off
    /// without one.
    Closed,
    /// The gateway died meanwhile. It has cost what was signed for it by then.
    Interrupted,
}

/// A request and what it cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The key's id.
    pub key: String,
    /// The model.
    pub model: String,
    /// How far it is.
    pub state: CallState,
    /// What is signed for it stands in the journal of channels under this id, which is random: a ledger that
    /// was restored or replaced gives numbers of calls a second time. Calls of earlier versions have none.
    #[serde(default)]
    pub journal_id: Option<u64>,
    /// Most that it may cost.
    #[serde(with = "amount")]
    pub reserved: u128,
    /// What it did cost.
    #[serde(with = "amount")]
    pub spent: u128,
    /// Of every provider that has signed one, in their order.
    pub receipts: Vec<Receipt>,
    /// What was shown of them, by their places.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub proofs: BTreeMap<usize, Proof>,
}

/// A call that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// Its number in this ledger.
    pub number: u64,
    /// [`Call::journal_id`].
    pub journal_id: u64,
}

/// The ledger. Its functions block for a write to the disk.
pub struct Ledger {
    database: Database,
}

impl Ledger {
    /// Opens it. Calls that are open there were interrupted, and stay open until they are
    /// [settled](Self::settle_interrupted).
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        let opened = Database::builder().set_cache_size(CACHE_BYTES).create(path);
        let database = opened.map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => LedgerError::InUse,
            error => error.into(),
        })?;
        let ledger = Self { database };
        ledger.transact(|write, _| {
            files::make(write)?;
            batches::make(write)
        })?;
        Ok(ledger)
    }

    /// Closes all calls that are open, before any is opened: what was signed for each of them, by
    /// [`Call::journal_id`]. Nothing was for one that is not among them, but in a
    /// restored copy for those that the journal has forgotten since. Without that, and of a call of an
    /// earlier version, all that was reserved counts as spent. Returns how many there were.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn settle_interrupted(
        &self,
        mut signed: Option<BTreeMap<u64, SignedFor>>,
    ) -> Result<usize, LedgerError> {
        self.write(|all| {
            let open = all.open.iter()?.map(|row| row.map(|(call, _)| call.value()));
            let open: Vec<u64> = open.collect::<Result<_, _>>()?;
            for number in &open {
                let call = all.call(*number)?;
                let SignedFor { receipts, spent } = match (&mut signed, call.journal_id) {
                    (Some(signed), Some(id)) => signed.remove(&id).unwrap_or_default(),
                    _ => SignedFor {
                        receipts: Vec::new(),
                        spent: call.reserved,
                    },
                };
                all.close(*number, CallState::Interrupted, spent, receipts)?;
            }
            Ok(open.len())
        })
    }

    /// A new key, and its secret, which is not kept.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn create_key(&self, label: &str, terms: KeyTerms) -> Result<(Key, String), LedgerError> {
        let secret = format!("{PREFIX}{}", hex::encode(random::<32>()?));
        let hash = hash(&secret);
        let key = new_key(id_of(&hash), hash, label, terms);
        self.write(|all| {
            if all.keys.len()? >= KEYS_MAX {
                return Err(LedgerError::TooMany);
            }
            all.set_key(&key)
        })?;
        Ok((key, secret))
    }

    /// All keys.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn keys(&self) -> Result<Vec<Key>, LedgerError> {
        let read = self.database.begin_read()?;
        let keys = read.open_table(KEYS)?;
        keys.iter()?
            .map(|row| Ok(serde_json::from_slice(row?.1.value())?))
            .collect()
    }

    /// Ends a key. Calls that are open go on.
    ///
    /// # Errors
    /// [`LedgerError::NoKey`], and others.
    pub fn revoke_key(&self, id: &str) -> Result<(), LedgerError> {
        self.write(|all| {
            let key = all.key(id)?;
            all.set_key(&Key { revoked: true, ..key })
        })
    }

    /// The key of a secret.
    ///
    /// # Errors
    /// [`LedgerError::NoKey`], and others.
    pub fn authenticate(&self, secret: &str) -> Result<Key, LedgerError> {
        let hash = hash(secret);
        let key = self.key(&id_of(&hash))?;
        // Whoever finds a secret by timing of this has found a preimage.
        (key.hash == hash && !key.revoked)
            .then_some(key)
            .ok_or(LedgerError::NoKey)
    }

    fn key(&self, id: &str) -> Result<Key, LedgerError> {
        let read = self.database.begin_read()?;
        let keys = read.open_table(KEYS)?;
        let row = keys.get(id)?.ok_or(LedgerError::NoKey)?;
        Ok(serde_json::from_slice(row.value())?)
    }

    /// What is spent by without a key.
    pub(crate) fn local_key(&self, terms: KeyTerms) -> Result<Key, LedgerError> {
        match self.key(LOCAL) {
            Ok(key) if key.terms == terms => return Ok(key),
            Ok(_) | Err(LedgerError::NoKey) => {}
            Err(error) => return Err(error),
        }
        self.write(|all| {
            let key = match all.key(LOCAL) {
                Ok(key) => Key { terms, ..key },
                Err(LedgerError::NoKey) => new_key(LOCAL.into(), String::new(), LOCAL, terms),
                Err(error) => return Err(error),
            };
            all.set_key(&key)?;
            Ok(key)
        })
    }

    /// Opens a call that costs `most` at most.
    ///
    /// # Errors
    /// [`LedgerError::OverCap`], [`LedgerError::NoKey`] and others.
    pub fn open_call(&self, key: &str, model: &str, most: u128) -> Result<OpenCall, LedgerError> {
        let journal_id = u64::from_le_bytes(random()?);
        self.write(|all| {
            all.reserve(key, most)?;
            let number = all.numbers(1)?;
            let call = Call {
                key: key.into(),
                model: model.into(),
                state: CallState::Open,
                journal_id: Some(journal_id),
                reserved: most,
                spent: 0,
                receipts: Vec::new(),
                proofs: BTreeMap::new(),
            };
            all.set_call(number, &call)?;
            all.open.insert(number, ())?;
            all.prune()?;
            Ok(OpenCall { number, journal_id })
        })
    }

    /// Reserves more for a call, which another provider is asked for.
    ///
    /// # Errors
    /// As those of [`open_call`](Self::open_call).
    pub fn reserve_more(&self, number: u64, more: u128) -> Result<(), LedgerError> {
        self.write(|all| {
            let mut call = all.call(number)?;
            all.reserve(&call.key, more)?;
            call.reserved = call.reserved.checked_add(more).ok_or(LedgerError::Overflow)?;
            all.set_call(number, &call)
        })
    }

    /// Ends a call: what it did cost, of what was reserved for it.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn close_call(&self, number: u64, spent: u128, receipts: Vec<Receipt>) -> Result<(), LedgerError> {
        self.write(|all| all.close(number, CallState::Closed, spent, receipts))
    }

    /// Keeps what was shown of a call's receipt.
    ///
    /// # Errors
    /// [`LedgerError::NoCall`], and others.
    pub fn keep_proof(&self, number: u64, place: usize, proof: Proof) -> Result<(), LedgerError> {
        self.write(|all| {
            let mut call = all.call(number)?;
            call.proofs.insert(place, proof);
            all.set_call(number, &call)
        })
    }

    /// A call.
    ///
    /// # Errors
    /// [`LedgerError::NoCall`], and others.
    pub fn call(&self, number: u64) -> Result<Call, LedgerError> {
        let read = self.database.begin_read()?;
        let calls = read.open_table(CALLS)?;
        let row = calls.get(number)?.ok_or(LedgerError::NoCall)?;
        Ok(serde_json::from_slice(row.value())?)
    }

    fn write<T>(
        &self,
        act: impl FnOnce(&mut Tables<'_>) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        self.transact(|_, all| act(all))
    }

    /// The same, for what has tables of its own beside those of keys and calls.
    fn transact<T>(
        &self,
        act: impl FnOnce(&WriteTransaction, &mut Tables<'_>) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let write = self.database.begin_write()?;
        let done = act(&write, &mut Tables::new(&write)?)?;
        write.commit()?;
        Ok(done)
    }
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES], LedgerError> {
    let mut random = [0; BYTES];
    getrandom::fill(&mut random).map_err(|e| LedgerError::Random(e.to_string()))?;
    Ok(random)
}

struct Tables<'a> {
    keys: Table<'a, &'static str, &'static [u8]>,
    calls: Table<'a, u64, &'static [u8]>,
    open: Table<'a, u64, ()>,
    meta: Table<'a, &'static str, u64>,
}

impl<'a> Tables<'a> {
    fn new(write: &'a WriteTransaction) -> Result<Self, LedgerError> {
        Ok(Self {
            keys: write.open_table(KEYS)?,
            calls: write.open_table(CALLS)?,
            open: write.open_table(OPEN)?,
            meta: write.open_table(META)?,
        })
    }

    fn key(&self, id: &str) -> Result<Key, LedgerError> {
        let row = self.keys.get(id)?.ok_or(LedgerError::NoKey)?;
        Ok(serde_json::from_slice(row.value())?)
    }

    fn set_key(&mut self, key: &Key) -> Result<(), LedgerError> {
        self.keys
            .insert(key.id.as_str(), serde_json::to_vec(key)?.as_slice())?;
        Ok(())
    }

    fn call(&self, number: u64) -> Result<Call, LedgerError> {
        let row = self.calls.get(number)?.ok_or(LedgerError::NoCall)?;
        Ok(serde_json::from_slice(row.value())?)
    }

    /// The first of so many new numbers of calls, files, batches or their tasks.
    fn numbers(&mut self, count: u64) -> Result<u64, LedgerError> {
        let first = self.meta.get(NEXT)?.map_or(0, |next| next.value());
        self.meta.insert(NEXT, first.saturating_add(count))?;
        Ok(first)
    }

    fn set_call(&mut self, number: u64, call: &Call) -> Result<(), LedgerError> {
        self.calls.insert(number, serde_json::to_vec(call)?.as_slice())?;
        Ok(())
    }

    fn reserve(&mut self, id: &str, most: u128) -> Result<(), LedgerError> {
        let mut key = self.key(id)?;
        if key.revoked {
            return Err(LedgerError::NoKey);
        }
        let taken = key.spent.checked_add(key.reserved).ok_or(LedgerError::Overflow)?;
        let left = key.terms.cap.saturating_sub(taken);
        if most > left {
            return Err(LedgerError::OverCap { asked: most, left });
        }
        key.reserved = key.reserved.checked_add(most).ok_or(LedgerError::Overflow)?;
        self.set_key(&key)
    }

    fn close(
        &mut self,
        number: u64,
        state: CallState,
        spent: u128,
        receipts: Vec<Receipt>,
    ) -> Result<(), LedgerError> {
        if self.open.remove(number)?.is_none() {
            return Err(LedgerError::NoCall);
        }
        let call = self.call(number)?;
        let spent = self.settle(&call.key, call.reserved, spent)?;
        let closed = Call {
            state,
            spent,
            receipts,
            ..call
        };
        self.set_call(number, &closed)
    }

    /// What is spent of what was reserved: no more than that, whatever a provider claims.
    fn settle(&mut self, id: &str, reserved: u128, claimed: u128) -> Result<u128, LedgerError> {
        let mut key = self.key(id)?;
        if claimed > reserved {
            tracing::error!(
                key = id,
                reserved,
                claimed,
                "more is said to be spent than was reserved"
            );
        }
        let spent = claimed.min(reserved);
        key.reserved = key.reserved.checked_sub(reserved).ok_or(LedgerError::Overflow)?;
        key.spent = key.spent.checked_add(spent).ok_or(LedgerError::Overflow)?;
        self.set_key(&key)?;
        Ok(spent)
    }

    /// Forgets the oldest call beyond the bound, unless it is still open.
    fn prune(&mut self) -> Result<(), LedgerError> {
        if self.calls.len()? <= CALLS_MAX {
            return Ok(());
        }
        let oldest = self.calls.first()?.map(|(number, _)| number.value());
        if let Some(number) = oldest
            && self.open.get(number)?.is_none()
        {
            self.calls.remove(number)?;
        }
        Ok(())
    }
}
