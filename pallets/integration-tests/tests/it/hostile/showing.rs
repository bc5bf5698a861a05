//! Asking for outputs, and showing them or not.

use proptest::prelude::*;
use surety_dispute_game::bisection::{Missing, Move, Side};
use surety_proofs::PartOpening;

use super::{World, any_dispute, any_result, tried};
use surety_pallet_integration_tests::*;

/// What a hostile side does in a dispute that is its turn. It keeps silent whenever no such step comes.
#[derive(Clone, Debug)]
pub enum ShowingStep {
    /// Asks for what it has or has not.
    Ask(u32, Missing),
    /// Shows a part of the output that somebody with this result would have.
    Supply(u32, u8, u32),
}

pub fn any_showing_step() -> impl Strategy<Value = ShowingStep> {
    let missing = prop_oneof![
        4 => Just(Missing::Output),
        1 => Just(Missing::Input),
        1 => Just(Missing::Both),
    ];
    prop_oneof![
        (any_dispute(), missing).prop_map(|(id, missing)| ShowingStep::Ask(id, missing)),
        (any_dispute(), any_result(), 0u32..2)
            .prop_map(|(id, result, part)| ShowingStep::Supply(id, result, part)),
    ]
}

impl World {
    pub fn show(&self, step: ShowingStep) {
        match step {
            ShowingStep::Ask(place, missing) => self.play_hostile(place, |_| Move::Ask(missing)),
            ShowingStep::Supply(place, result, part) => {
                if let Some(part) = PartOpening::new(&output(result), part) {
                    self.play_hostile(place, |_| Move::Supply(part));
                }
            }
        }
    }

    /// Whoever is honest and contradicts somebody asks for the output, once in each dispute.
    pub fn ask_honestly(&self) {
        for (id, dispute) in disputes() {
            let challenges = dispute.game.to_move() == Some(Side::Challenger);
            let is_honest = self.is_honest(*dispute.challenger.account());
            if challenges && is_honest && dispute.game.asked().is_none() {
                tried(play(
                    player_of(&dispute.challenger),
                    id,
                    Move::Ask(Missing::Output),
                ));
            }
        }
    }

    /// They win their disputes, so that what they asked for costs them nothing; but where a dispute is over
    /// before anybody has won, each side bears half of what was shown.
    pub fn showing_cost_the_honest_no_more_than_half(&self, told: &[RuntimeEvent]) {
        let is_honest = |by| {
            let mut honest = self.honest.iter().chain([&super::HONEST_VERIFIER]);
            honest.any(|stash| agent_of(*stash) == by)
        };
        for event in told {
            if let RuntimeEvent::Disputes(DisputesEvent::ShowingSettled {
                by, paid, returned, ..
            }) = event
            {
                assert!(!is_honest(*by) || paid <= returned, "{by} paid {paid}");
            }
        }
        let paid_at_most = |stash: AccountId| {
            let settled = told.iter().filter_map(|event| match event {
                RuntimeEvent::Disputes(DisputesEvent::ShowingSettled { by, paid, .. }) => {
                    (*by == agent_of(stash)).then_some(*paid)
                }
                _ => None,
            });
            settled.sum::<Balance>()
        };
        for stash in self.honest.iter().chain([&super::HONEST_VERIFIER]) {
            // It has put nothing else on hold.
            assert!(money(agent_of(*stash)) + paid_at_most(*stash) >= MONEY, "{stash}");
        }
    }
}
