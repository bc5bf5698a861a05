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
}

/// As many of these as may be. Each comes before all others as likely as its part of their price, however
/// many they are, so that nothing hides behind what is cheap.
fn draw<'a>(all: impl Iterator<Item = &'a Held>, most: usize) -> Vec<Drawn> {
    let random = RandomState::new();
    let rank = |held: &Held| {
        let even = random.hash_one(held.statement.nonce) as f64 / u64::MAX as f64;
        -even.ln() / held.statement.price.max(1) as f64
    };
    let mut ranked: Vec<(f64, &Held)> = all.map(|held| (rank(held), held)).collect();
    ranked.sort_unstable_by(|(one, _), (other, _)| one.total_cmp(other));
    ranked.truncate(most);
    let drawn = ranked.into_iter();
    drawn
        .map(|(rank, held)| Drawn {
            rank,
            held: held.clone(),
        })
        .collect()
}

/// What of a channel is late, what else is asked for, and all that was shown in no batch.
pub(super) fn draw_all(
    payer: &Payer,
    waits: (Time, Time),
    latest: Time,
) -> (Vec<Drawn>, Vec<Held>, Vec<Drawn>) {
    let due = draw(payer.demands(waits, latest), DUE_MAX);
    let are_due: BTreeSet<Nonce> = due.iter().map(|drawn| drawn.held.statement.nonce).collect();
    let others = payer.uncompared();
    let others = others.filter(|held| !are_due.contains(&held.statement.nonce));
    let others = others.take(DUE_MAX).cloned().collect();
    (due, others, draw(payer.unshown(), DUE_MAX))
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
            let one = draw(cheap.iter(), 64);
            let two = draw(others.iter().chain([&wrong]), 64);
            let all = one.into_iter().chain(two);
            all.min_by(|one, other| one.rank.total_cmp(&other.rank))
        };
        let found = (0..DRAWS).filter(|_| first().is_some_and(|drawn| drawn.held == wrong));
        let part = found.count() as f64 / DRAWS as f64;
        assert!((part - 0.2).abs() < 0.05, "{part}");
    }
}
