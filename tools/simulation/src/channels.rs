//! Cheats over channels: what a provider sells by receipts in batches, and what its clients pay by vouchers.
//!
//! Real are the tally, the vouchers and their checks, the trees of batches and what is opened
//! under them, the draws of points, the purse, and the standing lock with its cap. Modelled are signatures (a
//! hash that only the key's holder makes), the VRF's output, and a dispute: it convicts with the policy's
//! accuracy, by one coin for all who find something wrong.

mod cheats;
mod offer;
mod trade;

pub use cheats::{CHEATS, Cheat};
pub use offer::{CHUNK, Offer, RECEIPTS, Voided, WORK_PERCENT};
pub use trade::Trade;

use serde_json::{Value, json};
use surety_audit_economics::SURE;

use crate::{books::Role, report::CORRUPT};
use surety_dispute_game::testsuite::dice::Dice;

/// Least lives of what is seldom met.
const RARE_LIVES: u64 = 1_000;

/// Least lives for a break-even.
const EVEN_LIVES: u64 = 20_000;

/// What came of many lives of an offer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// Lives played.
    pub lives: u64,
    /// Batches committed in them.
    pub batches: u64,
    /// Lives in which the provider lost its standing lock.
    pub convicted: u64,
    /// Of those, such as had done nothing wrong.
    pub honest_slashes: u64,
    /// Mean profit beside honest trade, in SURE.
    pub profit: f64,
    /// Its standard error.
    pub error: f64,
    /// The most that an honest side lost in a life beside honest trade, in chunks of an answer. Of what was
    /// paid for a wrong answer that nobody found there is no bound but the cap.
    pub honest_loss_chunks: f64,
}

/// Plays a cheat so many times beside honest trade with the same chance.
pub fn play(cheat: &Cheat, offer: &Offer, corrupt: u32, seed: u64, lives: u64) -> Found {
    let mut found = Found::default();
    let (mut sum, mut squares) = (0.0, 0.0);
    for life in 0..lives {
        let of = |play: fn(&mut Trade)| {
            let mut trade = Trade::new(offer, corrupt, Dice::new(seed, life));
            play(&mut trade);
            trade
        };
        let (cheated, honest) = (of(cheat.play), of(cheat.baseline));
        let beside = |roles: &[Role]| (cheated.books.together(roles) - honest.books.together(roles)) as f64;
        let profit = beside(cheat.cheat) / SURE as f64;
        sum += profit;
        squares += profit * profit;
        found.lives += 1;
        found.batches += cheated.batches;
        found.convicted += u64::from(cheated.is_convicted);
        found.honest_slashes += u64::from(cheated.is_convicted && !cheated.is_guilty);
        found.honest_slashes += u64::from(honest.is_convicted);
        let lost = -beside(&[cheat.honest]) / CHUNK as f64;
        found.honest_loss_chunks = found.honest_loss_chunks.max(lost);
    }
    let count = found.lives.max(2) as f64;
    found.profit = sum / count;
    let variance = (squares - count * found.profit.powi(2)) / (count - 1.0);
    found.error = (variance.max(0.0) / count).sqrt();
    found
}

/// The lock's really lost part with which wrong receipts of a whole batch break even, in SURE: as theory has
/// it, and as it was played.
pub fn break_even(offer: &Offer, corrupt: u32, seed: u64, lives: u64) -> (f64, f64) {
    let accuracy = offer.policy.accuracy.deconstruct() as f64 / 1e18;
    let points = offer.points.into_inner() as f64 / 1e18;
    let at_risk = offer.at_risk.into_inner() as f64 / 1e18;
    let wrong = CHUNK as f64 * f64::from(cheats::ALL_OF_A_SMALL_BATCH) / SURE as f64;
    // One coin of accuracy for all who find something.
    let share = f64::from(corrupt) / 100.0;
    let caught = accuracy * (1.0 - (-points * (1.0 - share) * wrong).exp());
    let even = |caught: f64| ((1.0 - caught) * wrong + at_risk * wrong) / caught;
    let found = play(&cheats::SMALL_BATCH, offer, corrupt, seed, lives);
    (
        even(caught),
        even(found.convicted as f64 / found.lives.max(1) as f64),
    )
}

/// All cheats at all corrupt parts, as JSON. The second is whether none gains, nobody honest was slashed, and
/// locks break even where theory says, within 3 %.
pub fn report(seed: u64, lives: u64) -> (Value, bool) {
    let offer = Offer::usual();
    let mut holds = true;
    let of = |cheat: &Cheat| {
        let by_corrupt = CORRUPT.map(|corrupt| {
            let lives = if cheat.is_rare {
                RARE_LIVES.max(20 * lives)
            } else {
                lives
            };
            let found = play(cheat, &offer, corrupt, seed, lives);
            holds &= found.profit + 3.0 * found.error < 0.0 && found.honest_slashes == 0;
            let value = json!({
                "profit_in_sure": found.profit,
                "error": found.error,
                "lives": found.lives,
                "batches": found.batches,
                "convicted": found.convicted,
                "honest_slashes": found.honest_slashes,
                "honest_loss_in_chunks_max": found.honest_loss_chunks,
            });
            (corrupt.to_string(), value)
        });
        json!({
            "name": cheat.name,
            "by_corrupt_percent": serde_json::Map::from_iter(by_corrupt),
        })
    };
    let cheats: Vec<Value> = CHEATS.iter().map(of).collect();
    let curves = CORRUPT.map(|corrupt| {
        let (promised, seen) = break_even(&offer, corrupt, seed, EVEN_LIVES.max(100 * lives));
        holds &= (seen / promised - 1.0).abs() < 0.03;
        json!({ "corrupt_percent": corrupt, "promised_in_sure": promised, "seen_in_sure": seen })
    });
    let lone = Offer {
        voided: Voided::TheBatch,
        ..Offer::without_risk()
    };
    let split = cheats::named("wrong, split over many batches");
    let what_if = [
        ("all that are open", Voided::AllOpen),
        ("the one it was found in", Voided::TheBatch),
    ]
    .map(|(what, voided)| {
        let offer = Offer {
            voided,
            ..lone.clone()
        };
        let found = play(split, &offer, 0, seed, lives);
        json!({ "void_with_a_conviction": what, "profit_in_sure": found.profit, "error": found.error })
    });
    let value = json!({ "cheats": cheats, "break_even": curves, "what_if": what_if, "holds": holds });
    (value, holds)
}
