//! Cheats that take all places for bids with names of their own, before anybody else bids.

use surety_audit_economics::PlaceRank;
use surety_types::limits::BIDS_MAX;

use super::providers::{SHORTLISTED, lies_on, seats};
use crate::{books::Role, life::Life};

/// Places that the cheat keeps once everybody has bid. Its names have equal parts of its stake: that of one
/// provider where it has none to speak of.
fn kept(life: &mut Life) -> u32 {
    if !life.rules.places_by_stake {
        return BIDS_MAX;
    }
    let (task, entropy) = (life.task, life.dice.hash());
    let market = life.market;
    let own = (market.providers * market.corrupt / 100).max(1);
    let part = market.stake * u128::from(own) / u128::from(BIDS_MAX);
    let rank = |name: (bool, u32), stake| (PlaceRank::new(task, &name, &entropy, stake), name.0);
    let names = (0..BIDS_MAX).map(|name| rank((true, name), part));
    let others = (own..market.providers).map(|name| rank((false, name), market.stake));
    let mut ranked: Vec<_> = names.chain(others).collect();
    ranked.sort_unstable();
    let places = ranked.into_iter().take(BIDS_MAX as usize);
    places.map(|(_, is_own)| u32::from(is_own)).sum()
}

/// Bids with a name for each place, and opens those that it keeps. It asks least, so that its names are
/// shortlisted before others. The places that it keeps, and its seats.
fn crowd(life: &mut Life) -> (u32, u128) {
    let kept = kept(life);
    for _ in 0..BIDS_MAX + kept {
        life.transact(Role::Provider);
    }
    (kept, seats(life, kept.min(SHORTLISTED)))
}

/// So that as many seats as possible are its own, and say the same.
pub fn lies(life: &mut Life) {
    let (_, seats) = crowd(life);
    lies_on(life, seats);
}

/// So that nobody else has a price: who is drawn is paid what the first asks that is not shortlisted.
pub fn corners(life: &mut Life) {
    let (kept, seats) = crowd(life);
    let more = match kept {
        BIDS_MAX => life.market.room,
        _ => 0,
    };
    for _ in 0..seats {
        life.work(Role::Provider);
        life.settle(Role::Provider, true);
        life.books.pay(Role::Client, Role::Provider, more);
        let fee = life.rules.fee.mul_floor(more);
        life.books.pay(Role::Client, Role::Fees, fee);
    }
}

/// The same seats with honest work at the usual price, and a bid for each.
pub fn honest(life: &mut Life) {
    let kept = kept(life);
    for _ in 0..seats(life, kept.min(SHORTLISTED)) {
        life.work(Role::Provider);
        life.settle(Role::Provider, true);
    }
}
