//! A third of the stake may vote, stay away, seal, and open as it likes, in any order: the value that the
//! others compute is decided or nothing is, who is honest is not slashed, and it ends by time alone.

use proptest::{collection::vec, prelude::*};
use sp_core::H256;
use surety_pallet_test_kit::MockStake;
use surety_types::trust::{AuditProof, FaultKind};

use super::after;
use surety_pallet_integration_tests::*;

const WRONG: u8 = TOO_LARGE + 1;

#[derive(Clone, Debug)]
enum Step {
    Join(u64, u8, u8),
    Reveal(u64, u8),
    JoinJunk(u64, u32, bool),
    Advance,
    Pass(u64),
}

fn any_step() -> impl Strategy<Value = Step> {
    let who = || 0u64..16;
    prop_oneof![
        6 => (who(), 0u8..3, any::<u8>()).prop_map(|(who, value, draw)| Step::Join(who, value, draw)),
        6 => (who(), 0u8..3).prop_map(|(who, value)| Step::Reveal(who, value)),
        1 => (who(), 0u32..4, any::<bool>()).prop_map(|(who, ballot, proof)| Step::JoinJunk(who, ballot, proof)),
        1 => Just(Step::Advance),
        4 => (1u64..4).prop_map(Step::Pass),
    ]
}

/// Verifiers up to here are honest, the rest of them hostile.
struct World {
    honest: u64,
    all: u64,
    claimed: H256,
    /// Which of the honest are awake.
    awake: Vec<bool>,
}

impl World {
    fn hostile(&self, who: u64) -> Option<AccountId> {
        let hostile = self.all - self.honest;
        (hostile > 0).then(|| FIRST_VERIFIER + self.honest + who % hostile)
    }

    fn value(&self, value: u8) -> H256 {
        match value {
            0 => self.claimed,
            1 => other_value(),
            _ => H256::repeat_byte(value),
        }
    }

    fn take(&self, step: Step) {
        match step {
            Step::Join(who, value, draw) => {
                if let (Some(who), true) = (self.hostile(who), committee().is_some()) {
                    let _ = send(who, joining(who, self.value(value), draw));
                }
            }
            Step::Reveal(who, value) => {
                if let Some(who) = self.hostile(who) {
                    let _ = reveal_vote(who, self.value(value));
                }
            }
            Step::JoinJunk(who, ballot, proof) => {
                let proof = proof.then_some(AuditProof {
                    pre_output: [1; 32],
                    proof: [0; 64],
                });
                if let Some(who) = self.hostile(who) {
                    let _ = send(
                        who,
                        DisputesCall::join_committee {
                            dispute: DISPUTE,
                            ballot,
                            proof,
                            seal: H256::zero(),
                        },
                    );
                }
            }
            Step::Advance => {
                let _ = send_as(
                    FIRST_STRANGER,
                    DisputesCall::advance_committee { dispute: DISPUTE },
                );
            }
            Step::Pass(blocks) => {
                for _ in 0..blocks {
                    self.be_honest();
                    pass(1);
                }
            }
        }
    }

    /// Honest verifiers draw evenly, and say what they computed whenever they can.
    fn be_honest(&self) {
        for (place, awake) in (0..self.honest).zip(&self.awake) {
            let who = FIRST_VERIFIER + place;
            if *awake && committee().is_some() {
                let draw = (place * 37 % 256) as u8;
                let _ = send(who, joining(who, self.claimed, draw));
            }
            let _ = reveal_vote(who, self.claimed);
        }
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::contextualize_config(ProptestConfig::with_cases(100)))]

    #[test]
    fn honest_verifiers_are_never_slashed_and_never_overruled(
        // As many as 32 percent of the stake are hostile; with few verifiers and with many.
        (all, hostile) in prop_oneof![(3u64..20), (40u64..60)].prop_flat_map(|all| (Just(all), 0..=(all - 1) / 3)),
        awake in vec(prop::bool::weighted(0.9), 60),
        steps in vec(any_step(), 0..150),
    ) {
        after(&[9, WRONG], || {
            for stash in verifiers().skip(all.min(VERIFIERS) as usize) {
                MockStake::remove(stash);
            }
            bond_verifiers(all);
            play_out(&[(1, 9), (2, WRONG)]);
            let issued = Balances::total_issuance();
            let world = World { honest: all - hostile, all, claimed: claimed(), awake };
            for step in steps {
                world.take(step);
                check();
            }
            let mut blocks = 0;
            while Rounds::<Test>::contains_key(TASK) || Slashes::<Test>::iter().next().is_some() {
                world.be_honest();
                pass(1);
                check();
                blocks += 1;
                assert!(blocks < 500, "a committee that does not end");
            }
            assert_eq!(Committees::<Test>::iter().count(), 0);
            assert_eq!(MockStake::slashed(1), 0, "the defender is right");
            for place in 0..world.honest {
                assert_eq!(MockStake::slashed(FIRST_VERIFIER + place), 0, "{place} was honest");
            }
            // Whoever loses pays for what was computed, and only that is paid.
            assert_eq!(Balances::total_issuance(), issued);
            let paid: Balance = (0..world.all).map(|place| MockStake::awarded(FIRST_VERIFIER + place)).sum();
            assert!(paid <= COMMITTEE_POT, "{paid}");
            let late = faults().iter().any(|(_, kind)| *kind == FaultKind::WrongResult);
            assert!(!late);
        });
    }
}
