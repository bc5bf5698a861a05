//! Snowflake committees against their error table.

use serde_json::{Value, json};
use sp_core::H256;
use surety_audit_economics::{AuditPay, CommitteePay};
use surety_dispute_game::committee::CANDIDATES_EXPECTED;
use surety_dispute_game::quorum_streak::{
    Committee, Decision, Electorate, QUORUM, ROUNDS_MAX, SEATS, STREAK, Stage, Windows, seal,
};

use surety_dispute_game::testsuite::dice::Dice;

const VERIFIERS: u32 = 100;
/// What honest members compute.
pub const RIGHT: H256 = H256::repeat_byte(1);
/// What the liar has said.
pub const WRONG: H256 = H256::repeat_byte(2);
const QUESTION: H256 = H256::repeat_byte(7);

/// One row of the table.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Corrupt verifiers of 100, who all give the same wrong answer.
    pub corrupt: u32,
    /// Committees played.
    pub played: u32,
    /// Probability that one decides wrongly.
    pub wrong_promised: f64,
    /// How many did.
    pub wrong_seen: u32,
    /// Probability that all have to vote.
    pub escalated_promised: f64,
    /// Part of those played in which all had to.
    pub escalated_seen: f64,
    /// The difference in standard deviations.
    pub sigmas: f64,
    /// Mean rounds.
    pub rounds: f64,
}

impl Row {
    /// As JSON.
    pub fn json(&self) -> Value {
        json!({
            "verifiers": VERIFIERS,
            "corrupt": self.corrupt,
            "played": self.played,
            "wrong_promised": self.wrong_promised,
            "wrong_seen": self.wrong_seen,
            "escalated_promised": self.escalated_promised,
            "escalated_seen": self.escalated_seen,
            "sigmas": self.sigmas,
            "rounds_mean": self.rounds,
        })
    }
}

fn binomial(n: u32, k: u32) -> f64 {
    (0..k).map(|i| f64::from(n - i) / f64::from(k - i)).product()
}

/// Probability that a quorum of a round's members are among `some` of all verifiers.
fn quorum_of(some: u32) -> f64 {
    let ways = |count| binomial(some, count) * binomial(VERIFIERS - some, SEATS - count);
    (QUORUM..=SEATS).map(ways).sum::<f64>() / binomial(VERIFIERS, SEATS)
}

/// Probabilities that a committee decides wrongly, and that all have to vote.
fn promised(corrupt: u32) -> (f64, f64) {
    let quorums = [quorum_of(VERIFIERS - corrupt), quorum_of(corrupt)];
    let neither = 1.0 - quorums[0] - quorums[1];
    let (mut wrong, mut escalated) = (0.0, 0.0);
    // No leader so far; and a leader, right or wrong, with a streak of 0, 1, 2.
    let (mut none, mut led) = (1.0, [[0.0; 3]; 2]);
    for _ in 0..ROUNDS_MAX {
        let mut next = [[0.0; 3]; 2];
        for leader in 0..2 {
            let sum: f64 = led[leader].iter().sum();
            next[leader][0] = sum * neither;
            next[leader][1] = (none + led[leader][0]) * quorums[leader];
            next[leader][2] = led[leader][1] * quorums[leader];
            escalated += sum * quorums[1 - leader];
        }
        wrong += led[1][2] * quorums[1];
        none *= neither;
        led = next;
    }
    (wrong, escalated + none + led.iter().flatten().sum::<f64>())
}

/// Plays `count` committees.
pub fn row(corrupt: u32, seed: u64, count: u32) -> Row {
    let (wrong_promised, escalated_promised) = promised(corrupt);
    let mut row = Row {
        corrupt,
        played: count,
        wrong_promised,
        escalated_promised,
        ..Row::default()
    };
    let (mut escalated, mut rounds) = (0u32, 0u32);
    for number in 0..count {
        let mut dice = Dice::new(seed ^ u64::from(corrupt) << 32, number.into());
        let panel = play(corrupt, &mut dice);
        let decision = panel.decision();
        row.wrong_seen += u32::from(decision.and_then(|decision| decision.value()) != Some(RIGHT));
        escalated += u32::from(matches!(decision, Some(Decision::Voters(_))));
        rounds += panel.rounds();
    }
    let played = f64::from(count.max(1));
    row.escalated_seen = f64::from(escalated) / played;
    row.rounds = f64::from(rounds) / played;
    let sigma = (escalated_promised * (1.0 - escalated_promised) / played).sqrt();
    row.sigmas = (row.escalated_seen - escalated_promised) / sigma;
    row
}

type Panel = Committee<u32, VERIFIERS>;

/// Members below `corrupt` lie. Should anything be refused, the panel is as far as it came.
fn play(corrupt: u32, dice: &mut Dice) -> Panel {
    let windows = Windows {
        draw: 5,
        commit: 10,
        reveal: 10,
    };
    let mut panel = Panel::new(QUESTION, windows);
    while panel.decision().is_none() {
        let seated = match panel.stage() {
            Stage::Drawing => panel.draw(drawn(dice)),
            _ => panel.summon(0..VERIFIERS),
        };
        if seated.and_then(|()| answer(&mut panel, corrupt, dice)).is_err() {
            break;
        }
    }
    panel
}

fn drawn(dice: &mut Dice) -> Vec<u32> {
    let mut all: Vec<u32> = (0..VERIFIERS).collect();
    for at in 0..SEATS {
        let other = at + dice.below(VERIFIERS - at);
        all.swap(at as usize, other as usize);
    }
    all.truncate(SEATS as usize);
    all
}

fn answer(
    panel: &mut Panel,
    corrupt: u32,
    dice: &mut Dice,
) -> Result<(), surety_dispute_game::quorum_streak::CommitteeError> {
    let (number, members): (u32, Vec<u32>) = match panel.stage() {
        Stage::Round(ballot) => (
            ballot.number(),
            ballot.seats().iter().map(|seat| seat.member).collect(),
        ),
        Stage::Voting(ballot) => (
            ballot.number(),
            ballot.seats().iter().map(|seat| seat.member).collect(),
        ),
        _ => return Ok(()),
    };
    let salt = dice.hash();
    let value = |member: u32| if member < corrupt { WRONG } else { RIGHT };
    for member in &members {
        panel.commit(member, seal(QUESTION, number, member, value(*member), salt))?;
    }
    for member in &members {
        panel.reveal(member, value(*member), salt)?;
    }
    Ok(())
}

/// What corrupt members of a committee do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Members {
    /// They give the liar's answer.
    Lie,
    /// They come, and seal nothing.
    Abstain,
    /// They seal, and never open.
    SealOnly,
    /// They give the liar's answer; the liar concedes before it is decided.
    Dissolved,
}

/// What a committee has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Its value; nothing where it could not decide.
    pub value: Option<H256>,
    /// Honest members that gave the right answer.
    pub right: u32,
}

/// Most phases that a committee has, with a vote of all.
const PHASES_MAX: u32 = 4 * ROUNDS_MAX;

/// Plays a committee of which `corrupt` verifiers of 100 are the liar's. `come` says whether honest ones do.
pub fn verdict(corrupt: u32, how: Members, come: bool, dice: &mut Dice) -> Verdict {
    let windows = Windows {
        draw: 5,
        commit: 10,
        reveal: 10,
    };
    let mut panel = Panel::new(QUESTION, windows);
    for _ in 0..PHASES_MAX {
        if panel.decision().is_some() {
            break;
        }
        // What is refused changes nothing, and each phase ends by its time.
        let _ = match panel.stage() {
            Stage::Drawing => panel.draw(drawn(dice)),
            Stage::Round(_) | Stage::Voting(_) => Ok(()),
            _ => panel.summon(0..VERIFIERS),
        };
        let (number, members): (u32, Vec<u32>) = match panel.stage() {
            Stage::Round(ballot) => (
                ballot.number(),
                ballot.seats().iter().map(|seat| seat.member).collect(),
            ),
            Stage::Voting(ballot) => (
                ballot.number(),
                ballot.seats().iter().map(|seat| seat.member).collect(),
            ),
            _ => continue,
        };
        let salt = dice.hash();
        let value = |member: u32| if member < corrupt { WRONG } else { RIGHT };
        let seals = |member: &u32| {
            if *member < corrupt {
                how != Members::Abstain
            } else {
                come
            }
        };
        let opens = |member: &u32| seals(member) && (*member >= corrupt || how != Members::SealOnly);
        for member in members.iter().filter(|member| seals(member)) {
            let _ = panel.commit(member, seal(QUESTION, number, member, value(*member), salt));
        }
        if !panel.is_revealing() {
            panel.tick(windows.commit);
        }
        for member in members.iter().filter(|member| opens(member)) {
            let _ = panel.reveal(member, value(*member), salt);
        }
        let is_open = match panel.stage() {
            Stage::Round(ballot) => ballot.number() == number,
            Stage::Voting(ballot) => ballot.number() == number,
            _ => false,
        };
        if is_open {
            panel.tick(windows.reveal);
        }
    }
    let decided = panel.decision().and_then(|decision| decision.value());
    let right = panel.gave(&RIGHT).len();
    Verdict {
        value: decided,
        right: u32::try_from(right).unwrap_or(u32::MAX),
    }
}

/// When it is fixed what verifiers count in a vote of all, and what two thirds are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// When the committee is called together: as it is. Who bonds later has no vote.
    WhenCalled,
    /// When voting begins, as it was once.
    WhenVoting,
}

/// Whether a vote of all decides for the wrong value, to which one of the `corrupt` verifiers brings `late`
/// times the stake of each after it has heard the question. The honest all come.
pub fn is_carried_by_late_stake(corrupt: u32, late: u128, counted: Counted) -> bool {
    let windows = Windows {
        draw: 5,
        commit: 10,
        reveal: 10,
    };
    let mut panel = Panel::of_all(QUESTION, windows);
    let late = match counted {
        Counted::WhenCalled => 0,
        Counted::WhenVoting => late,
    };
    let weight = |voter| 1 + if voter == 0 { late } else { 0 };
    let voters = (0..VERIFIERS).map(|voter| (voter, weight(voter)));
    let electorate = Electorate {
        all: u128::from(VERIFIERS) + late,
        corrupt: 0,
    };
    let mut dice = Dice::new(1, corrupt.into());
    let summoned = panel.summon_weighed(voters, electorate);
    let voted = summoned.and_then(|()| answer(&mut panel, corrupt, &mut dice));
    let decided = panel.decision().and_then(|decision| decision.value());
    voted.is_ok() && decided == Some(WRONG)
}

/// What is left of what an honest member of a committee is paid when it has paid its work, in parts of that,
/// where `computing` verifiers have computed and `right` of them opened the right answer. The liar concedes
/// before they decide; `dissolved` says whether that sends them home.
pub fn member_gain(computing: u32, right: u32, dissolved: bool) -> f64 {
    const COST: u128 = 1_000_000;
    let pay = CommitteePay {
        premium: AuditPay::default().premium,
        computing: CANDIDATES_EXPECTED * STREAK,
        seats: SEATS * STREAK,
    };
    let each = if dissolved {
        0
    } else {
        pay.each(pay.pot(COST), right)
    };
    // Not all who compute have a seat.
    let seated = f64::from(right) / f64::from(computing.max(1));
    each as f64 / COST as f64 * seated - 1.0
}
