//! 0 -> 1: deposits and the prices of demands are in a pot. Until then they were on hold on their payers'
//! accounts, and voted. A demand of a receipt says what that has to say, also where a final batch was counted
//! with its number, and holds back what its channel pays. Those of before that do not say it: they are given
//! back, and can be made again. What was counted and deposited until then is taken for old.

use alloc::vec::Vec;
use codec::{Decode, Encode};
use core::marker::PhantomData;
use frame_support::{
    BoundedVec, defensive,
    migrations::VersionedMigration,
    traits::{ConstU32, Get, UncheckedOnRuntimeUpgrade},
    weights::Weight,
};
use surety_channels::{BatchNumber, ChannelId, Counted, Nonce, Purse, Seasoned, Time};

use crate::{
    Channel, Channels, Config, DEMANDS_MAX, Demand, Demands, HoldReason, Pallet, Standings, Wanted, asset,
};

/// Moves all of them into the pot, in one block: no chain that was released has channels.
pub type DepositsIntoPot<T> =
    VersionedMigration<0, 1, Unchecked<T>, Pallet<T>, <T as frame_system::Config>::DbWeight>;

/// A channel as it was stored.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct OldChannel<AccountId> {
    /// As now, like all that follows.
    pub payer: AccountId,
    /// Whom it pays.
    pub payee: AccountId,
    /// The key that signs its vouchers.
    pub key: AccountId,
    /// Last time at which vouchers are redeemed.
    pub expiry: Time,
    /// What was not counted yet is in this batch, or in later ones.
    pub batch: BatchNumber,
    /// Its money.
    pub purse: OldPurse,
}

/// The money of a channel as it was stored.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct OldPurse {
    /// Channel id.
    pub channel: ChannelId,
    /// All that was ever deposited, in plancks; without what the payee has given back.
    pub deposit: u128,
    /// What final batches have of it, in plancks.
    pub counted: u128,
    /// The first request that they do not have.
    pub next: Nonce,
    /// What the payee has got, in plancks.
    pub paid: u128,
    /// Last time for the payee, where the payer wants to close.
    pub closing: Option<Time>,
    /// Last time for the payee, where a batch is late.
    pub held_until: Time,
}

/// A demand as it was stored.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct OldDemand<AccountId> {
    /// What is to be shown.
    pub wanted: OldWanted,
    /// Whose money was on hold for it.
    pub by: AccountId,
    /// How much, in plancks.
    pub price: u128,
    /// Last time for the provider.
    pub until: Time,
}

/// What a provider had to show.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum OldWanted {
    /// A batch with a receipt of this request that says at least so many bytes.
    Receipt {
        /// Channel id.
        channel: ChannelId,
        /// Number of the request.
        nonce: Nonce,
        /// So many bytes were signed for.
        bytes: u32,
    },
    /// The receipt that a point is in.
    Point {
        /// The batch.
        batch: BatchNumber,
        /// Where on the line of its price, in plancks.
        point: u128,
    },
}

impl<AccountId> From<OldChannel<AccountId>> for Channel<AccountId> {
    fn from(old: OldChannel<AccountId>) -> Self {
        let OldPurse {
            channel,
            deposit,
            counted,
            next,
            paid,
            closing,
            held_until,
        } = old.purse;
        Self {
            payer: old.payer,
            payee: old.payee,
            key: old.key,
            expiry: old.expiry,
            batch: old.batch,
            // In which batch a request was that was counted nobody has noted: it is not demanded.
            counted: Counted::since(next, old.batch),
            purse: Purse {
                channel,
                deposit,
                deposits: Seasoned::since(deposit, 0),
                returned: 0,
                counted,
                counts: Seasoned::since(counted, 0),
                old_counts: Seasoned::since(counted, 0),
                next,
                signed: paid,
                paid,
                demands: 0,
                closing,
                held_until,
            },
        }
    }
}

impl OldWanted {
    /// The same as now; nothing of a receipt, as nobody has noted what was signed of it.
    const fn kept(&self) -> Option<Wanted> {
        match *self {
            Self::Receipt { .. } => None,
            Self::Point { batch, point } => Some(Wanted::Point { batch, point }),
        }
    }
}

impl<AccountId> OldDemand<AccountId> {
    /// Likewise.
    fn kept(self) -> Option<Demand<AccountId>> {
        Some(Demand {
            wanted: self.wanted.kept()?,
            by: self.by,
            price: self.price,
            until: self.until,
        })
    }
}

/// Without a look at the version: [`DepositsIntoPot`] has it.
pub struct Unchecked<T>(PhantomData<T>);

impl<T: Config> UncheckedOnRuntimeUpgrade for Unchecked<T> {
    fn on_runtime_upgrade() -> Weight {
        type OldDemands<AccountId> = BoundedVec<OldDemand<AccountId>, ConstU32<DEMANDS_MAX>>;

        let (mut records, mut given_back) = (0u64, Vec::new());
        Channels::<T>::translate::<OldChannel<T::AccountId>, _>(|id, old| {
            records = records.saturating_add(1);
            let channel = Channel::from(old);
            if !asset::move_hold::<T>(HoldReason::Channel, &channel.payer, channel.held()) {
                defensive!("a channel's deposit was not on hold", id);
            }
            Some(channel)
        });
        Demands::<T>::translate::<OldDemands<T::AccountId>, _>(|provider, _, old| {
            let demands = old.into_iter().filter_map(|old| {
                records = records.saturating_add(1);
                if !asset::move_hold::<T>(HoldReason::Demand, &old.by, old.price) {
                    defensive!("the price of a demand was not on hold", provider);
                }
                let (by, price) = (old.by.clone(), old.price);
                let kept = old.kept();
                if kept.is_none() {
                    given_back.push((provider.clone(), by, price));
                }
                kept
            });
            let demands: Vec<_> = demands.collect();
            (!demands.is_empty()).then(|| BoundedVec::truncate_from(demands))
        });
        for (provider, by, price) in given_back {
            asset::pay_out_price::<T>(&provider, 0, &by, price);
            Standings::<T>::mutate_extant(&provider, |provider| {
                provider.demands = provider.demands.saturating_sub(1);
            });
        }
        // The pot; each record with its payer's account and holds, and its provider.
        T::DbWeight::get().reads_writes(
            records.saturating_mul(4).saturating_add(3),
            records.saturating_mul(4).saturating_add(1),
        )
    }

    #[cfg(feature = "try-runtime")]
    fn post_upgrade(_: Vec<u8>) -> Result<(), sp_runtime::TryRuntimeError> {
        Pallet::<T>::do_try_state()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use codec::DecodeAll;
    use sp_runtime::AccountId32;

    use super::*;

    /// A channel and demands as version 0 of the pallet stored them, with the runtime's accounts: a line
    /// each.
    fn stored(line: usize) -> Vec<u8> {
        let hex = include_str!("deposits_0.hex").lines().nth(line).unwrap();
        let byte = |digits: &[u8]| u8::from_str_radix(core::str::from_utf8(digits).unwrap(), 16).unwrap();
        hex.as_bytes().chunks(2).map(byte).collect()
    }

    fn account(byte: u8) -> AccountId32 {
        AccountId32::new([byte; 32])
    }

    #[test]
    fn a_channel_of_version_0_keeps_all_that_it_says() {
        let old = OldChannel::<AccountId32>::decode_all(&mut &stored(0)[..]).unwrap();
        assert_eq!(old.encode(), stored(0));
        let channel = Channel {
            payer: account(0x11),
            payee: account(0x12),
            key: account(0x13),
            expiry: 5_000,
            batch: 3,
            counted: Counted::since(8, 3),
            purse: Purse {
                channel: 7,
                deposit: 25_000_000_000_000,
                deposits: Seasoned::since(25_000_000_000_000, 0),
                returned: 0,
                counted: 6_000_000_000_000,
                counts: Seasoned::since(6_000_000_000_000, 0),
                old_counts: Seasoned::since(6_000_000_000_000, 0),
                next: 8,
                signed: 4_000_000_000_000,
                paid: 4_000_000_000_000,
                demands: 0,
                closing: Some(4_200),
                held_until: 4_100,
            },
        };
        assert_eq!(Channel::from(old), channel);
        // What was counted is in no batch that anybody knows.
        assert_eq!(
            (channel.counted.oldest(7), channel.counted.oldest(8)),
            (None, Some(3))
        );
        assert!(Channel::<AccountId32>::decode_all(&mut &stored(0)[..]).is_err());
    }

    #[test]
    fn of_demands_of_version_0_those_of_points_are_kept_as_they_were() {
        let old = Vec::<OldDemand<AccountId32>>::decode_all(&mut &stored(1)[..]).unwrap();
        assert_eq!(old.encode(), stored(1));
        let (by, until) = (old[0].by.clone(), old[0].until);
        assert_eq!((by, until), (account(0x21), 900));
        let demands: Vec<_> = old.into_iter().map(OldDemand::kept).collect();
        // What was signed of a receipt they do not say.
        assert_eq!(demands[0], None);
        let point = demands[1].as_ref().unwrap();
        let wanted = Wanted::Point { batch: 5, point: 6 };
        assert_eq!((&point.wanted, point.price), (&wanted, 1_000_000));
    }
}
