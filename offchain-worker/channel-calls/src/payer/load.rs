//! Starting, and starting again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use surety_channels::{ChannelId, ChannelTerms, Nonce, Time};

use super::{Call, Held, HeldState, Payer, PayerConfig, PayerEffect, Wallet};
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
            unpaid: 0,
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
