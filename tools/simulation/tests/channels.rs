//! Cheats over channels: none gains, the honest side's loss is bounded, and the lock is what theory says.

#![allow(clippy::unwrap_used)]

use surety_simulation::{
    channels::{CHEATS, Found, Offer, Voided, break_even, play},
    report::CORRUPT,
};

const LIVES: u64 = 40;

fn played(name: &str, offer: &Offer, corrupt: u32, lives: u64) -> Found {
    let cheat = CHEATS.iter().find(|cheat| cheat.name == name).unwrap();
    play(cheat, offer, corrupt, 7, lives)
}

#[test]
fn no_cheat_over_channels_gains_and_nobody_honest_is_slashed() {
    for cheat in CHEATS {
        for corrupt in CORRUPT {
            // The rest is for a test of its own.
            let lives = if cheat.is_rare { 10 * LIVES } else { LIVES };
            let found = played(cheat.name, &Offer::usual(), corrupt, lives);
            assert!(
                found.profit < 0.0,
                "{}, {corrupt} % corrupt: {} +- {}",
                cheat.name,
                found.profit,
                found.error
            );
            assert_eq!(found.honest_slashes, 0, "{}", cheat.name);
        }
    }
}

#[test]
fn one_wrong_receipt_in_a_thousand_loses_in_the_mean() {
    for corrupt in [0, 33] {
        let found = played("one wrong in a thousand", &Offer::usual(), corrupt, 400);
        assert!(
            found.profit + 3.0 * found.error < 0.0,
            "{corrupt}: {} +- {}",
            found.profit,
            found.error
        );
        // Few are met: it is the lock that makes it a loss.
        assert!(found.convicted > 0 && found.convicted < found.lives / 10);
    }
}

#[test]
fn who_stops_signing_costs_the_other_a_chunk_at_most() {
    for name in ["last voucher never signed", "bills a chunk that was never said"] {
        let found = played(name, &Offer::usual(), 33, LIVES);
        assert!(
            found.honest_loss_chunks <= 1.0,
            "{name}: {}",
            found.honest_loss_chunks
        );
    }
    let closed = played("channel closed early", &Offer::usual(), 0, 3);
    assert!(closed.honest_loss_chunks <= 0.0);
}

#[test]
fn the_standing_lock_breaks_even_where_theory_says() {
    for corrupt in [0, 33] {
        let (promised, seen) = break_even(&Offer::usual(), corrupt, 7, 4_000);
        assert!(
            (seen / promised - 1.0).abs() < 0.1,
            "{corrupt}: {promised}, {seen}"
        );
    }
}

#[test]
fn a_conviction_has_to_void_all_open_batches_or_splitting_pays() {
    let with = |voided| {
        let offer = Offer {
            voided,
            ..Offer::without_risk()
        };
        played("wrong, split over many batches", &offer, 0, LIVES).profit
    };
    assert!(with(Voided::TheBatch) > 1.0, "{}", with(Voided::TheBatch));
    assert!(with(Voided::AllOpen) < 0.0, "{}", with(Voided::AllOpen));
}
