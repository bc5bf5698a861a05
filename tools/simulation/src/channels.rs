//! Cheats over channels: what a provider sells by receipts in batches, and what its clients pay by vouchers.
//!
//! Real are the tally, the vouchers and their checks, the trees of batches and what is opened
//! under them, the draws of points, the purse, and the standing lock with its cap. Modelled are signatures (a
//! hash that only the key's holder makes), the VRF's output, and a dispute: it convicts with the policy's
//! accuracy, by one coin for all who find something wrong.

mod cheats;
mod hours;
mod offer;
mod trade;
mod waits;

pub use cheats::{CHEATS, Cheat};
pub use hours::{
    BATCHES_ANOTHER, BATCHES_ANOTHER_AND_STALLS, BATCHES_ANOTHER_ONCE, BATCHES_BESIDE, BATCHES_NOTHING,
    BATCHES_NOTHING_OF_LATER_ONES, BATCHES_NOTHING_OF_MANY, BREAKS_OFF, FILLS_CAP_FOR_LONG,
};
pub use offer::{Bound, CHUNK, Chain, Offer, RECEIPTS, Voided, WORK_PERCENT};
pub use trade::Trade;

use std::panic::resume_unwind;

use serde_json::{Map, Value, json};
use surety_audit_economics::SURE;

use crate::{books::Role, report::CORRUPT};
use surety_dispute_game::testsuite::dice::Dice;

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

/// What came of one life.
struct One {
    profit: f64,
    batches: u64,
    is_convicted: bool,
    honest_slashes: u64,
    honest_loss_chunks: f64,
}

fn play_one(cheat: &Cheat, offer: &Offer, corrupt: u32, (seed, life): (u64, u64)) -> One {
    let of = |play: fn(&mut Trade)| {
        let mut trade = Trade::new(offer, corrupt, Dice::new(seed, life));
        play(&mut trade);
        trade.finish();
        trade
    };
    let (cheated, honest) = (of(cheat.play), of(cheat.baseline));
    let beside = |roles: &[Role]| (cheated.books.together(roles) - honest.books.together(roles)) as f64;
    let wrongly = cheated.is_convicted && !cheated.is_guilty;
    One {
        profit: beside(cheat.cheat) / SURE as f64,
        batches: cheated.batches,
        is_convicted: cheated.is_convicted,
        honest_slashes: u64::from(wrongly) + u64::from(honest.is_convicted),
        honest_loss_chunks: -beside(&[cheat.honest]) / CHUNK as f64,
    }
}

/// Plays a cheat so many times beside honest trade with the same chance, on all cores. The result is the same
/// with any number of them.
pub fn play(cheat: &Cheat, offer: &Offer, corrupt: u32, seed: u64, lives: u64) -> Found {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all: Vec<(u64, One)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let mine = (0..lives).skip(worker).step_by(threads);
                let play = move |life| (life, play_one(cheat, offer, corrupt, (seed, life)));
                scope.spawn(move || mine.map(play).collect::<Vec<_>>())
            })
            .collect();
        let lives = workers.into_iter();
        lives
            .flat_map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    // Sums of floating point numbers depend on their order.
    all.sort_by_key(|(life, _)| *life);
    let mut found = Found::default();
    let (mut sum, mut squares) = (0.0, 0.0);
    for (_, one) in &all {
        sum += one.profit;
        squares += one.profit * one.profit;
        found.lives += 1;
        found.batches += one.batches;
        found.convicted += u64::from(one.is_convicted);
        found.honest_slashes += one.honest_slashes;
        found.honest_loss_chunks = found.honest_loss_chunks.max(one.honest_loss_chunks);
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

/// How often a life with one wrong receipt among a thousand ends with a conviction: as theory has it
/// (`d (1 - exp(-a (1 - f) G))`), as it was played, and how many standard errors lie between them.
pub fn detection(offer: &Offer, corrupt: u32, found: &Found) -> (f64, f64, f64) {
    let accuracy = offer.policy.accuracy.deconstruct() as f64 / 1e18;
    let points = offer.points.into_inner() as f64 / 1e18;
    let wrong = CHUNK as f64 / SURE as f64;
    let honest = 1.0 - f64::from(corrupt) / 100.0;
    let promised = accuracy * (1.0 - (-points * honest * wrong).exp());
    let lives = found.lives.max(1) as f64;
    let seen = found.convicted as f64 / lives;
    (
        promised,
        seen,
        (seen - promised) / (promised * (1.0 - promised) / lives).sqrt(),
    )
}

/// All that is played over channels, as JSON, and the fields of it that stand on top of the report.
pub struct Report {
    /// Whether no cheat gains, nobody honest was slashed or has lost more than a chunk, and locks and draws
    /// are as theory says.
    pub holds: bool,
    /// The tables.
    pub tables: Value,
    /// What others look for.
    pub headline: Map<String, Value>,
}

/// Plays all cheats at all corrupt parts.
pub fn report(seed: u64, lives: u64) -> Report {
    let mut holds = true;
    let (mut best, mut detected, mut slashes) = (Map::new(), Vec::new(), 0);
    let (mut lost, mut all_lives) = (0f64, 0);
    let of = |cheat: &Cheat| {
        let offer = cheat.offer();
        let mut most = f64::MIN;
        let by_corrupt = CORRUPT.map(|corrupt| {
            let found = play(cheat, &offer, corrupt, seed, cheat.lives(lives));
            holds &= found.profit + 3.0 * found.error < 0.0 && found.honest_slashes == 0;
            most = most.max(found.profit);
            slashes += found.honest_slashes;
            all_lives += found.lives;
            if !cheat.answers_wrong {
                // Beside a chunk there is what a demand, or a transaction, costs.
                holds &= found.honest_loss_chunks < 1.1;
                lost = lost.max(found.honest_loss_chunks);
            }
            if cheat.is_detected {
                let (promised, seen, sigmas) = detection(&offer, corrupt, &found);
                holds &= sigmas.abs() < 3.0;
                detected.push(json!({
                    "corrupt_percent": corrupt, "promised": promised, "seen": seen, "sigmas": sigmas,
                }));
            }
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
        best.insert(cheat.name.into(), most.into());
        json!({
            "name": cheat.name,
            "answers_wrong": cheat.answers_wrong,
            "by_corrupt_percent": Map::from_iter(by_corrupt),
        })
    };
    let cheats: Vec<Value> = CHEATS.iter().map(of).collect();
    let curves = CORRUPT.map(|corrupt| {
        let offer = Offer::usual();
        let (promised, seen) = break_even(&offer, corrupt, seed, EVEN_LIVES.max(100 * lives));
        holds &= (seen / promised - 1.0).abs() < 0.03;
        json!({ "corrupt_percent": corrupt, "promised_in_sure": promised, "seen_in_sure": seen })
    });
    let what_if = what_if(seed, lives);
    let headline = json!({
        "channels_lives": all_lives,
        "channels_best_profit_in_sure": best,
        "channels_honest_slashes": slashes,
        "channels_honest_loss_in_chunks_max": lost,
        "channels_detection": detected,
        "channels_what_if": what_if,
    });
    Report {
        holds,
        tables: json!({ "cheats": cheats, "break_even": curves, "what_if": what_if, "holds": holds }),
        headline: headline.as_object().cloned().unwrap_or_default(),
    }
}

const OLD_BONDS: Chain = Chain {
    bonds_by_lock: false,
    ..Chain::AS_IT_IS
};
const OLD_HOLDS: Chain = Chain {
    holds_last: false,
    ..Chain::AS_IT_IS
};
const OLD_BONDS_AND_HOLDS: Chain = Chain {
    holds_last: false,
    ..OLD_BONDS
};
const WITH_ROOM: Chain = Chain {
    due_at_once: false,
    ..UNBOUNDED
};
const FORGOTTEN: Chain = Chain {
    record_stays: false,
    ..Chain::AS_IT_IS
};
const UNBOUNDED: Chain = Chain {
    bound: Bound::None,
    ..Chain::AS_IT_IS
};
const BY_DEPOSITS: Chain = Chain {
    bound: Bound::All,
    ..Chain::AS_IT_IS
};
const UNCOMPARED: Chain = Chain {
    compares: false,
    ..Chain::AS_IT_IS
};
const DRAWN_OF_ASKED: Chain = Chain {
    draws_of_all: false,
    ..Chain::AS_IT_IS
};
const PAID_AT_ONCE: Chain = Chain {
    pay_waits: false,
    ..Chain::AS_IT_IS
};
const PAID_AT_ONCE_AND_DRAWN_OF_ASKED: Chain = Chain {
    pay_waits: false,
    ..DRAWN_OF_ASKED
};
const SHOWN_AT_ONCE: Chain = Chain {
    shows_final: false,
    ..Chain::AS_IT_IS
};
const LONGER_IS_ENOUGH: Chain = Chain {
    goes_on: false,
    ..Chain::AS_IT_IS
};
const EACH_BOUNDED: Chain = Chain {
    bound: Bound::Each,
    ..Chain::AS_IT_IS
};

/// What cheats would win under other rules, nobody being corrupt: why these are as they are. Where it says
/// "as it is", they lose.
pub fn what_if(seed: u64, lives: u64) -> Vec<Value> {
    let with = |chain, offer: Offer| Offer { chain, ..offer };
    let (long, usual) = (Offer::by_the_hour, Offer::usual);
    let lone = |voided| Offer {
        voided,
        ..Offer::without_risk()
    };
    let sham = cheats::named("sham disputes until the payee's time is over");
    let gives_back = cheats::named("deposit given back before anybody looks");
    let splits = cheats::named("wrong, split over many batches");
    let plays: [(&str, &Cheat, Offer); 25] = [
        (
            "a conviction voids all that is open",
            splits,
            lone(Voided::AllOpen),
        ),
        ("a conviction voids the one batch", splits, lone(Voided::TheBatch)),
        (
            "bonds go by the price, holds end with the expiry",
            sham,
            with(OLD_BONDS_AND_HOLDS, usual()),
        ),
        (
            "bonds go by the lock, holds end with the expiry",
            sham,
            with(OLD_HOLDS, usual()),
        ),
        (
            "bonds go by the price, holds last",
            sham,
            with(OLD_BONDS, usual()),
        ),
        (
            "demands wait for room, and nobody bounds what is asked and not batched",
            &FILLS_CAP_FOR_LONG,
            with(WITH_ROOM, long()),
        ),
        (
            "a channel is forgotten when it is given back",
            gives_back,
            with(FORGOTTEN, long()),
        ),
        (
            "nobody bounds what is asked and not batched",
            &BATCHES_NOTHING,
            with(UNBOUNDED, long()),
        ),
        (
            "each client asks within what the lock covers, and there is one",
            &BATCHES_NOTHING,
            with(EACH_BOUNDED, long()),
        ),
        (
            "each client asks within what the lock covers, and there are ten",
            &BATCHES_NOTHING_OF_MANY,
            with(EACH_BOUNDED, long()),
        ),
        (
            "as it is: all clients together do",
            &BATCHES_NOTHING_OF_MANY,
            with(Chain::AS_IT_IS, long()),
        ),
        (
            "new deposits count as old ones do, and clients come one after the other",
            &BATCHES_NOTHING_OF_LATER_ONES,
            with(BY_DEPOSITS, long()),
        ),
        (
            "as it is: new deposits count in part, and clients come one after the other",
            &BATCHES_NOTHING_OF_LATER_ONES,
            with(Chain::AS_IT_IS, long()),
        ),
        (
            "what is counted is taken for what was signed",
            &BATCHES_ANOTHER,
            with(UNCOMPARED, long()),
        ),
        (
            "as it is: what is counted is compared with what was signed",
            &BATCHES_ANOTHER,
            with(Chain::AS_IT_IS, long()),
        ),
        (
            "what is counted is paid at once, to whoever does not care for its trade",
            &BATCHES_ANOTHER_ONCE,
            with(PAID_AT_ONCE, long()),
        ),
        (
            "as it is: it is paid a while later, and not while anything is demanded",
            &BATCHES_ANOTHER_ONCE,
            with(Chain::AS_IT_IS, long()),
        ),
        (
            "it is paid at once, what is demanded is drawn of what was asked for, and nothing of that is shown",
            &BATCHES_ANOTHER_AND_STALLS,
            with(PAID_AT_ONCE_AND_DRAWN_OF_ASKED, long()),
        ),
        (
            "it is paid later, and the same",
            &BATCHES_ANOTHER_AND_STALLS,
            with(DRAWN_OF_ASKED, long()),
        ),
        (
            "it is paid at once, what is demanded is drawn of all, and nothing is shown",
            &BATCHES_ANOTHER_AND_STALLS,
            with(PAID_AT_ONCE, long()),
        ),
        (
            "as it is: it is paid later, and drawn of all, and nothing is shown",
            &BATCHES_ANOTHER_AND_STALLS,
            with(Chain::AS_IT_IS, long()),
        ),
        (
            "what is demanded is shown out of any batch, of what was said beside what was counted",
            &BATCHES_BESIDE,
            with(SHOWN_AT_ONCE, long()),
        ),
        (
            "as it is: it is shown once it is final",
            &BATCHES_BESIDE,
            with(Chain::AS_IT_IS, long()),
        ),
        (
            "what is demanded of an answer that broke off is met by whatever is longer",
            &BREAKS_OFF,
            with(LONGER_IS_ENOUGH, long()),
        ),
        (
            "as it is: it is met by what goes on from there",
            &BREAKS_OFF,
            with(Chain::AS_IT_IS, long()),
        ),
    ];
    plays.map(|of| under(of, seed, lives)).into()
}

/// What a cheat wins under a rule.
fn under((rule, cheat, offer): (&str, &Cheat, Offer), seed: u64, lives: u64) -> Value {
    let found = play(cheat, &offer, 0, seed, cheat.lives(lives));
    json!({
        "rule": rule,
        "cheat": cheat.name,
        "profit_in_sure": found.profit,
        "error": found.error,
    })
}
