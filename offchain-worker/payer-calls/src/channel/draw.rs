//! What is looked at first: drawn by price.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher, RandomState},
};

use surety_channel_calls::Payer;
use surety_channels::{Nonce, SignedChunkStatement, Time};

use super::DUE_MAX;
use crate::AccountId;

type Held = SignedChunkStatement<AccountId>;

/// A receipt, and where it stands in a draw by price, whatever else was drawn: less comes first.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    pub rank: f64,
    pub held: Held,
    /// Since when its number is counted, where that is so.
    pub counted: Option<Time>,
}

/// Statements of a channel that its provider is to show.
#[derive(Default)]
pub(super) struct Draws {
    /// It has no more time for these.
    pub due: Vec<Drawn>,
    /// It has for these.
    pub others: Vec<Drawn>,
    /// All.
    pub unshown: Vec<Drawn>,
}

/// As many of these as may be. Each comes before all others as likely as its part of their price, however
/// many they are, so that nothing hides behind what is cheap.
fn draw<'a>(
    all: impl Iterator<Item = &'a Held>,
    counted_since: impl Fn(Nonce) -> Option<Time>,
) -> Vec<Drawn> {
    let random = RandomState::new();
    let rank = |held: &Held| {
        let even = random.hash_one(held.statement.nonce) as f64 / u64::MAX as f64;
        -even.ln() / held.statement.price.max(1) as f64
    };
    let mut ranked: Vec<(f64, &Held)> = all.map(|held| (rank(held), held)).collect();
    ranked.sort_unstable_by(|(one, _), (other, _)| one.total_cmp(other));
    ranked.truncate(DUE_MAX);
    let drawn = ranked.into_iter();
    drawn
        .map(|(rank, held)| Drawn {
            rank,
            held: held.clone(),
            counted: counted_since(held.statement.nonce),
        })
        .collect()
}

/// What of a channel is late, what else is asked for (a batch that was `committed` then may have it, where
/// its number is not counted), and all that was shown in no batch.
pub(super) fn draw_all(
    payer: &Payer,
    (waits, latest): ((Time, Time), Time),
    committed: Option<Time>,
) -> Draws {
    let due: BTreeSet<Nonce> = payer
        .demands(waits, latest)
        .map(|held| held.statement.nonce)
        .collect();
    let is_other = |held: &&Held| !due.contains(&held.statement.nonce);
    let batched = committed.into_iter().flat_map(|time| payer.over_by(time));
    let others = payer.uncompared().chain(batched).filter(is_other);
    let since = |nonce| payer.counted_since(nonce);
    let mut unshown = Vec::new();
    for is_counted in [true, false] {
        let of = payer
            .unshown()
            .filter(|held| since(held.statement.nonce).is_some() == is_counted);
        unshown.extend(draw(of, since));
    }
    Draws {
        due: draw(payer.demands(waits, latest), since),
        others: draw(others, since),
        unshown,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects)]

    use super::*;
    use sp_core::H256;
    use surety_channels::{ChannelId, ChunkStatement};

    fn held(channel: ChannelId, nonce: u32, price: u128) -> Held {
        let account = AccountId::new([1; 32]);
        SignedChunkStatement {
            statement: ChunkStatement {
                channel,
                payee: account.clone(),
                nonce,
                request: H256::zero(),
                bytes: 4,
                output: H256::zero(),
                units: 1,
                price,
                end: None,
            },
            agent: account,
            signature: [0; 64],
        }
    }

    #[test]
    fn what_is_dear_is_found_by_its_part_of_the_price_behind_whatever_is_cheap() {
        const DRAWS: usize = 2_000;
        // A fifth of all that is kept, over two channels.
        let cheap: Vec<Held> = (0..1_600).map(|nonce| held(0, nonce, 1)).collect();
        let others = [held(1, 0, 400), held(1, 1, 2_400)];
        let wrong = held(1, 2, 1_100);
        let first = || {
            let one = draw(cheap.iter(), |_| None);
            let two = draw(others.iter().chain([&wrong]), |_| None);
            let all = one.into_iter().chain(two);
            all.min_by(|one, other| one.rank.total_cmp(&other.rank))
        };
        let found = (0..DRAWS).filter(|_| first().is_some_and(|drawn| drawn.held == wrong));
        let part = found.count() as f64 / DRAWS as f64;
        assert!((part - 0.2).abs() < 0.05, "{part}");
    }
}
