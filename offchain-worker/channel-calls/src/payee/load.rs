//! Starting, and starting again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use surety_channels::{ChannelId, End};

use super::{
    Channel, Payee, PayeeConfig, PayeeEffect, Start,
    account::Account,
    batches::{BatchRow, Made},
    call::{Call, CallRow, Live},
};
use crate::{LoadError, Row, Step, Table};

impl Payee {
    /// Takes up where its journal ends: `rows` are all of the tables that are loaded
    /// ([`Table::is_loaded`]), in any order. What was being answered ends as it was last said.
    ///
    /// Channels below `channels` are there by the newest block, or were. A journal that begins now may be the
    /// second of this stash: over those channels nothing is taken any more, since nobody knows what was
    /// signed.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn open(
        config: PayeeConfig,
        rows: impl IntoIterator<Item = Row>,
        channels: ChannelId,
    ) -> Result<(Self, Step<PayeeEffect>), LoadError> {
        let mut payee = Self::new(config, channels);
        let (mut calls, mut batches) = (Vec::new(), Vec::new());
        let (mut start, mut is_new) = (None, true);
        for row in rows {
            match row.table {
                Table::Start => start = Some(row.read::<Start>()?),
                Table::Accounts => {
                    let entry = Channel {
                        account: row.read::<Account>()?,
                        calls: BTreeMap::new(),
                        open: 0,
                        voids: 0,
                        unpaid_from: None,
                    };
                    payee.channels.insert(row.channel()?, entry);
                }
                Table::Calls => calls.push((row.call()?, row.read::<CallRow>()?)),
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
            Some(start) => payee.start = start,
            None if is_new => step.put(Row::new(Table::Start, Vec::new(), &payee.start)),
            None => return Err(LoadError::NoStart),
        }
        for ((channel, nonce), row) in calls {
            let missing = LoadError::Missing { channel, nonce };
            let entry = payee.channels.get_mut(&channel).ok_or(missing)?;
            let live = row.receipt().is_none().then(Live::new);
            if live.is_some() {
                entry.open = entry.open.saturating_add(1);
                payee.open.insert((channel, nonce));
            }
            entry.voids = entry.voids.saturating_add(usize::from(row.is_void()));
            entry.calls.insert(nonce, Call { row, live });
            payee.calls = payee.calls.saturating_add(1);
        }
        for (channel, entry) in &payee.channels {
            let mut owed = entry.account.unbatched..entry.account.next;
            if let Some(nonce) = owed.find(|nonce| !entry.calls.contains_key(nonce)) {
                let channel = *channel;
                return Err(LoadError::Missing { channel, nonce });
            }
        }
        for (id, row) in batches {
            let entries = payee.entries(&row.parts);
            let entries = entries.map_err(|(channel, nonce)| LoadError::Missing { channel, nonce })?;
            let made = Made::new(row, &entries).ok_or(LoadError::OtherRoot { batch: id })?;
            payee.batches.insert(id, made);
        }
        payee.end_all(&mut step);
        Ok((payee, step))
    }

    fn new(config: PayeeConfig, channels: ChannelId) -> Self {
        Self {
            offers: config.offers.clone(),
            receipt_price_max: u128::MAX,
            start: Start {
                first: channels,
                batches: 0,
                salts: config.salts.clone(),
            },
            config: Arc::new(config),
            channels: BTreeMap::new(),
            open: BTreeSet::new(),
            calls: 0,
            batches: BTreeMap::new(),
            turn: 0,
        }
    }

    /// What was being answered is not gone on with.
    fn end_all(&mut self, step: &mut Step<PayeeEffect>) {
        let open: Vec<_> = self.open.iter().copied().collect();
        for (channel, nonce) in open {
            let call = self.call(channel, nonce);
            let is_cancelled = call.is_some_and(|(_, call)| call.row.cancel.is_some());
            let how = if is_cancelled { End::Cancelled } else { End::Cut };
            self.end_early(channel, nonce, how, step);
        }
    }
}

fn batch_id(row: &Row) -> Result<u32, LoadError> {
    let id = row.key.first_chunk::<4>().ok_or_else(|| row.bad_key())?;
    Ok(u32::from_be_bytes(*id))
}
