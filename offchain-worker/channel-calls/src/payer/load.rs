//! Starting, and starting again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use surety_channels::{ChannelId, ChannelTerms, Nonce, SignedChunkStatement, Time};

use super::{Call, Held, HeldState, Payer, PayerConfig, PayerEffect, Wallet, watch::end_rows};
use crate::{AccountId, LoadError, Row, Step, Table};

impl Payer {
    /// Takes up where the journal ends: `rows` are those of this channel in the tables that are loaded
    /// ([`Table::is_loaded`]); others are not looked at. What was being answered counts as spent.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn open(
        config: PayerConfig,
        terms: ChannelTerms<AccountId>,
        signers: Vec<AccountId>,
        now: Time,
        rows: impl IntoIterator<Item = Row>,
    ) -> Result<(Self, Step<PayerEffect>), LoadError> {
        let mut wallet = None;
        let mut calls = BTreeMap::new();
        for row in rows {
            let is_known = matches!(row.table, Table::Wallets | Table::Held);
            if !is_known || row.channel()? != terms.channel {
                continue;
            }
            if row.table == Table::Wallets {
                wallet = Some(row.read::<Wallet>()?);
            } else {
                let (_, nonce) = row.call()?;
                let row = row.read::<Held>()?;
                calls.insert(nonce, Call { row, live: None });
            }
        }
        if wallet.is_none() && !calls.is_empty() {
            return Err(LoadError::NoStart);
        }
        let wallet = wallet.unwrap_or(Wallet {
            signed: 0,
            settled: 0,
            next: 0,
            is_distrusted: false,
        });
        let mut payer = Self {
            config: Arc::new(config),
            terms,
            signers,
            now,
            granted: wallet.signed,
            wallet,
            calls,
            open: BTreeSet::new(),
            asking: None,
            missed: 0,
            uncounted_from: 0,
        };
        let open = payer
            .calls
            .iter()
            .filter(|(_, call)| call.row.state == HeldState::Open);
        let open: Vec<Nonce> = open.map(|(nonce, _)| *nonce).collect();
        payer.open.extend(&open);
        let mut step = Step::default();
        for nonce in open {
            step.join(payer.lost(nonce));
        }
        Ok((payer, step))
    }
}

/// What was signed for a request that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedFor {
    /// The channel.
    pub channel: ChannelId,
    /// The request's number in it.
    pub nonce: Nonce,
    /// What it has cost, or may have where it was still being answered, in plancks.
    pub paid: u128,
    /// The last that its payee has signed of it, where that was something.
    pub statement: Option<SignedChunkStatement<AccountId>>,
}

/// What was signed for the requests that are kept, by what [`super::Wanted::call`] said, in the order of
/// channels and requests. Rows of [`Table::Held`] and [`Table::Asked`] say so; others are not looked at.
///
/// # Errors
/// [`LoadError`].
pub fn signed_for(rows: &[Row]) -> Result<BTreeMap<u64, Vec<SignedFor>>, LoadError> {
    let of = |table: Table| rows.iter().filter(move |row| row.table == table);
    let held: BTreeMap<&[u8], &Row> = of(Table::Held).map(|row| (row.key.as_slice(), row)).collect();
    let mut signed = BTreeMap::<u64, Vec<SignedFor>>::new();
    for asked in of(Table::Asked) {
        let Some(row) = held.get(asked.key.as_slice()) else {
            continue;
        };
        let ((channel, nonce), held) = (row.call()?, row.read::<Held>()?);
        signed.entry(asked.read()?).or_default().push(SignedFor {
            channel,
            nonce,
            paid: held.spent(),
            statement: held.says_something().then_some(held.statement).flatten(),
        });
    }
    Ok(signed)
}

/// Rows of channels that have ended while nobody looked, as [`Payer::end`] leaves them: of `rows`, and by a
/// block at `now` that has the channels which are `there`. A channel over which something was said later than
/// that is only too new for it.
///
/// # Errors
/// [`LoadError`].
pub fn end_unseen(
    rows: &[Row],
    there: &BTreeSet<ChannelId>,
    now: Time,
) -> Result<Step<PayerEffect>, LoadError> {
    let mut ended = BTreeMap::<ChannelId, Vec<(Nonce, Held)>>::new();
    for row in rows.iter().filter(|row| row.table == Table::Held) {
        let (channel, nonce) = row.call()?;
        if !there.contains(&channel) {
            ended.entry(channel).or_default().push((nonce, row.read()?));
        }
    }
    ended.retain(|_, calls| calls.iter().all(|(_, held)| held.at <= now));
    let mut step = Step::default();
    for (channel, calls) in ended {
        for (nonce, held) in calls {
            end_rows((channel, nonce), held.says_something(), &mut step);
        }
    }
    Ok(step)
}

/// The highest sum that was ever signed over each channel, in plancks, by a payer's rows: what all of them
/// together can have cost.
///
/// # Errors
/// [`LoadError`].
pub fn signed_sums(rows: &[Row]) -> Result<BTreeMap<ChannelId, u128>, LoadError> {
    let wallets = rows.iter().filter(|row| row.table == Table::Wallets);
    let sum = |row: &Row| Ok((row.channel()?, row.read::<Wallet>()?.signed));
    wallets.map(sum).collect()
}
