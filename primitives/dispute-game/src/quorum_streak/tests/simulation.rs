//! Committees drawn from 100 verifiers of which some are corrupt, computed and played.

use super::*;
use crate::testsuite::dice::Dice;

const VERIFIERS: u32 = 100;
const RIGHT: H256 = H256::repeat_byte(1);
const WRONG: H256 = H256::repeat_byte(2);

fn binomial(n: u32, k: u32) -> f64 {
    (0..k).map(|i| f64::from(n - i) / f64::from(k - i)).product()
}

/// Probability that at least `least` of a round's members are among `some` of all verifiers.
fn at_least(least: u32, some: u32) -> f64 {
    let ways = |count| binomial(some, count) * binomial(VERIFIERS - some, SEATS - count);
    (least..=SEATS).map(ways).sum::<f64>() / binomial(VERIFIERS, SEATS)
}

/// How a committee ends when the corrupt all give the same wrong answer.
#[derive(Debug, Default)]
struct Chances {
    right_round: f64,
    wrong_round: f64,
    wrong: f64,
    escalated: f64,
}

fn chances(corrupt: u32) -> Chances {
    let mut chances = Chances {
        right_round: at_least(QUORUM, VERIFIERS - corrupt),
        wrong_round: at_least(QUORUM, corrupt),
        ..Chances::default()
    };
    let quorums = [chances.right_round, chances.wrong_round];
    let neither = 1.0 - quorums[0] - quorums[1];
    // No leader so far, and a leader (right, wrong) with a streak of 0, 1, 2.
    let (mut none, mut led) = (1.0, [[0.0; 3]; 2]);
    for _ in 0..ROUNDS_MAX {
        let mut next = [[0.0; 3]; 2];
        for leader in 0..2 {
            let sum: f64 = led[leader].iter().sum();
            next[leader][0] = sum * neither;
            next[leader][1] = none * quorums[leader] + led[leader][0] * quorums[leader];
            next[leader][2] = led[leader][1] * quorums[leader];
            chances.escalated += sum * quorums[1 - leader];
        }
        chances.wrong += led[1][2] * quorums[1];
        none *= neither;
        led = next;
    }
    chances.escalated += none + led.iter().flatten().sum::<f64>();
    chances
}

/// What the corrupt do.
#[derive(Clone, Copy)]
enum Strategy {
    /// All give the same wrong answer.
    Lie,
    /// All keep silent.
    Silence,
    /// Each time a coin says whether to lie or to tell the truth.
    Waver,
}

fn draw(dice: &mut Dice) -> Vec<u32> {
    let mut all: Vec<u32> = (0..VERIFIERS).collect();
    for i in 0..SEATS as usize {
        let other = i + (dice.number() % (all.len() - i) as u64) as usize;
        all.swap(i, other);
    }
    all.truncate(SEATS as usize);
    all
}

/// Verifiers below `corrupt` are.
fn play(corrupt: u32, strategy: Strategy, dice: &mut Dice) -> Panel {
    let mut panel = panel();
    while panel.decision().is_none() {
        match panel.stage() {
            Stage::Drawing => panel.draw(draw(dice)).unwrap(),
            _ => panel.summon(0..VERIFIERS).unwrap(),
        }
        let coins = u128::from(dice.number()) << 64 | u128::from(dice.number());
        answer(&mut panel, |member| match strategy {
            _ if member >= corrupt => Some(RIGHT),
            Strategy::Lie => Some(WRONG),
            Strategy::Silence => None,
            Strategy::Waver => Some(if coins >> member & 1 == 0 { WRONG } else { RIGHT }),
        });
    }
    panel
}

#[test]
fn chances_are_those_of_the_table() {
    // Per thousand, and powers of ten: as in the module's documentation.
    for (corrupt, right_round, escalated, wrong_round, wrong) in [
        (20, 827, 65, -9.15, -27.36),
        (25, 624, 354, -6.96, -20.67),
        (33, 284, 896, -4.69, -13.58),
    ] {
        let chances = chances(corrupt);
        assert_eq!((chances.right_round * 1000.0).round() as u32, right_round);
        assert_eq!((chances.escalated * 1000.0).round() as u32, escalated);
        assert!(
            (chances.wrong_round.log10() - wrong_round).abs() < 0.01,
            "{chances:?}"
        );
        assert!((chances.wrong.log10() - wrong).abs() < 0.01, "{chances:?}");
    }
}

#[test]
fn played_committees_escalate_as_computed_and_never_decide_wrongly() {
    const GAMES: u32 = 600;
    let mut dice = Dice::seeded(20);
    for corrupt in [20, 25, 33] {
        let expected = chances(corrupt);
        // The analytic bound: not one error is to be seen.
        assert!(expected.wrong * f64::from(GAMES) < 1e-9);
        for strategy in [Strategy::Lie, Strategy::Silence, Strategy::Waver] {
            let mut escalated = 0;
            for _ in 0..GAMES {
                let panel = play(corrupt, strategy, &mut dice);
                assert_eq!(panel.decision().unwrap().value(), Some(RIGHT));
                assert!(panel.absent().iter().all(|member| *member < corrupt));
                escalated += u32::from(matches!(panel.decision(), Some(Decision::Voters(_))));
            }
            let share = f64::from(escalated) / f64::from(GAMES);
            let deviation = (expected.escalated * (1.0 - expected.escalated) / f64::from(GAMES)).sqrt();
            match strategy {
                // Silence takes as many answers from a quorum as a lie does.
                Strategy::Lie | Strategy::Silence => {
                    assert!(
                        (share - expected.escalated).abs() < 4.0 * deviation,
                        "{corrupt}: {share}"
                    )
                }
                Strategy::Waver => assert!(share < expected.escalated, "{corrupt}: {share}"),
            }
        }
    }
}

#[test]
fn more_than_a_third_corrupt_can_block_a_decision_but_not_turn_it() {
    let mut dice = Dice::seeded(34);
    for _ in 0..50 {
        let decision = play(34, Strategy::Lie, &mut dice).decision().unwrap();
        assert_ne!(decision.value(), Some(WRONG));
    }
    let mut all = Panel::of_all(QUESTION, WINDOWS);
    all.summon(0..VERIFIERS).unwrap();
    answer(&mut all, |member| Some(if member < 34 { WRONG } else { RIGHT }));
    assert_eq!(all.decision(), Some(Decision::Undecided));
}
