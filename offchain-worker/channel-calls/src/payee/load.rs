//! Starting, and starting again.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use surety_channels::{ChannelId, Nonce};

use super::{
    Channel, Payee, PayeeConfig, PayeeEffect, Start,
    account::Account,
    batches::{BatchRow, Made, requests},
    call::{Call, CallRow, Kept, Live},
};
use crate::{LoadError, ReadRow, Row, Step, Table};

/// Rows of requests, that are read one after the other: all of them at once would take twice as much.
type CallRows = BTreeMap<(ChannelId, Nonce), Row>;

impl Payee {
    /// Takes up where its journal ends: `rows` are all of the tables that are loaded
    /// ([`Table::is_loaded`]), in any order. What was being answered ends as it was last said.
    ///
    /// Channels below `channels` are there by the newest block, or were. A journal that begins now may be the
    /// second of this stash: over those channels nothing is taken any more, since nobody knows what was
    /// signed.
    ///
    /// It keeps all of its requests in memory until they are forgotten, for whoever has no journal that can
    /// be read meanwhile.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn open(
        config: PayeeConfig,
        rows: impl IntoIterator<Item = Row>,
        channels: ChannelId,
    ) -> Result<(Self, Step<PayeeEffect>), LoadError> {
        Self::new(config, None, channels).load(rows)
    }

    /// The same, with a journal that can be read: of a request whose receipt a final block has, memory keeps
    /// no more than what it takes to forget it.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn open_over(
        config: PayeeConfig,
        read: ReadRow,
        rows: impl IntoIterator<Item = Row>,
        channels: ChannelId,
    ) -> Result<(Self, Step<PayeeEffect>), LoadError> {
        Self::new(config, Some(read), channels).load(rows)
    }

    fn load(mut self, rows: impl IntoIterator<Item = Row>) -> Result<(Self, Step<PayeeEffect>), LoadError> {
        let (mut calls, mut batches) = (CallRows::new(), Vec::new());
        let (mut start, mut is_new) = (None, true);
        for row in rows {
            match row.table {
                Table::Start => start = Some(row.read::<Start>()?),
                Table::Accounts => {
                    let entry = Channel::new(row.read::<Account>()?);
                    self.channels.insert(row.channel()?, entry);
                }
                Table::Gone => {
                    self.gone.insert(row.channel()?);
                }
                Table::Calls => {
                    calls.insert(row.call()?, row);
                }
                Table::Batches => batches.push((batch_id(&row)?, row.read::<BatchRow>()?)),
                Table::Inputs
                | Table::Outputs
                | Table::Wallets
                | Table::Held
                | Table::Asked
                | Table::Unproven
                | Table::Evidence
                | Table::Points => continue,
            }
            is_new = false;
        }
        let mut step = Step::default();
        match start {
            Some(start) => self.start = start,
            None if is_new => step.put(Row::new(Table::Start, Vec::new(), &self.start)),
            None => return Err(LoadError::NoStart),
        }
        for (id, row) in batches {
            let made = self.load_batch(row, &mut calls)?;
            let made = made.ok_or(LoadError::OtherRoot { batch: id })?;
            self.batches.insert(id, made);
        }
        for (of, row) in calls {
            let entry = self.channels.get(&of.0);
            // Its batch is forgotten, and its channel is there.
            let was_batched = entry.is_some_and(|entry| of.1 < entry.account.unbatched);
            self.load_call(of, row.read()?, was_batched)?;
        }
        for (channel, entry) in &self.channels {
            let mut owed = entry.account.unbatched..entry.account.next;
            if let Some(nonce) = owed.find(|nonce| !self.knows(*channel, *nonce)) {
                let channel = *channel;
                return Err(LoadError::Missing { channel, nonce });
            }
        }
        self.end_all(&mut step);
        Ok((self, step))
    }

    fn new(config: PayeeConfig, read: Option<ReadRow>, channels: ChannelId) -> Self {
        Self {
            read,
            offers: config.offers.clone(),
            receipt_price_max: u128::MAX,
            start: Start {
                first: channels,
                batches: 0,
                salts: config.salts.clone(),
            },
            config: Arc::new(config),
            doubted: 0,
            channels: BTreeMap::new(),
            gone: BTreeSet::new(),
            open: BTreeSet::new(),
            calls: 0,
            kept: 0,
            read_lately: RefCell::default(),
            batches: BTreeMap::new(),
            turn: 0,
        }
    }

    /// A batch, with its requests out of these rows; nothing where they do not make its root.
    fn load_batch(&mut self, row: BatchRow, rows: &mut CallRows) -> Result<Option<Made>, LoadError> {
        let mut entries = Vec::new();
        for of in requests(&row.parts) {
            let (channel, nonce) = of;
            let missing = LoadError::Missing { channel, nonce };
            let call = rows.remove(&of).ok_or(missing.clone())?;
            let call = call.read::<CallRow>()?;
            entries.push(self.entry(of, call.receipt().ok_or(missing)?));
            self.load_call(of, call, row.number.is_some())?;
        }
        Ok(Made::new(row, &entries))
    }

    /// A request, whose receipt a final block has or had where `is_final`.
    fn load_call(
        &mut self,
        (channel, nonce): (ChannelId, Nonce),
        row: CallRow,
        is_final: bool,
    ) -> Result<(), LoadError> {
        let missing = LoadError::Missing { channel, nonce };
        let entry = self.channels.get_mut(&channel).ok_or(missing)?;
        entry.voids = entry.voids.saturating_add(usize::from(row.is_void()));
        let is_over = row.receipt().is_some();
        if !is_over {
            entry.open = entry.open.saturating_add(1);
            self.open.insert((channel, nonce));
        }
        if self.read.is_some() && is_over && is_final {
            entry.kept.insert(nonce, Kept::from(&row));
            self.kept = self.kept.saturating_add(1);
        } else {
            let live = (!is_over).then(Live::new);
            entry.calls.insert(nonce, Call { row, live });
            self.calls = self.calls.saturating_add(1);
        }
        Ok(())
    }

    /// What was being answered is not gone on with.
    fn end_all(&mut self, step: &mut Step<PayeeEffect>) {
        let open: Vec<_> = self.open.iter().copied().collect();
        for (channel, nonce) in open {
            if let Some((_, call)) = self.call(channel, nonce) {
                let how = call.row.early_end();
                self.end_early(channel, nonce, how, step);
            }
        }
    }
}

fn batch_id(row: &Row) -> Result<u32, LoadError> {
    let id = row.key.first_chunk::<4>().ok_or_else(|| row.bad_key())?;
    Ok(u32::from_be_bytes(*id))
}
