//! Anybody may do anything at any time: the round still ends, and says what happened.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{collection::vec, prelude::*};
use surety_pallet_test_kit::{MockOutcome, MockStake};
use surety_types::{
    task::{FailureReason, MemberProgress, Verdict},
    traits::TaskTrust,
};

use surety_pallet_integration_tests::*;

/// Stashes that take part in a history: members, reserves, strangers.
const CROWD: AccountId = 12;

#[derive(Clone, Debug)]
enum Step {
    /// Commits to a result.
    Commit(AccountId, u8),
    /// Reveals a result, whether or not it is the one committed to.
    Reveal(AccountId, u8),
    /// Reveals what it committed to.
    RevealOwn(AccountId),
    /// Blocks pass.
    Pass(BlockNumber),
    /// Blocks pass, but the agenda is behind.
    PassUnattended(BlockNumber),
    /// Somebody advances the task.
    Advance,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..=CROWD, 0u8..3).prop_map(|(stash, result)| Step::Commit(stash, result)),
        6 => (1..=CROWD).prop_map(Step::RevealOwn),
        1 => (1..=CROWD, 0u8..3).prop_map(|(stash, result)| Step::Reveal(stash, result)),
        2 => (1u64..5).prop_map(Step::Pass),
        1 => (COMMIT_WINDOW..=COMMIT_WINDOW + 1).prop_map(Step::Pass),
        1 => (1u64..15).prop_map(Step::PassUnattended),
        1 => Just(Step::Advance),
    ]
}

/// What the calls that went through add up to.
#[derive(Default)]
struct Model {
    committed: BTreeMap<AccountId, u8>,
    revealed: BTreeMap<AccountId, u8>,
    /// Who revealed when the window for it was over.
    late: BTreeSet<AccountId>,
}

impl Model {
    fn take(&mut self, step: Step) {
        match step {
            Step::Commit(stash, result) => {
                if commit(stash, result).is_ok() {
                    assert_eq!(self.committed.insert(stash, result), None);
                }
            }
            Step::Reveal(stash, result) => {
                if reveal(stash, result).is_ok() {
                    assert_eq!(self.committed.get(&stash), Some(&result));
                    assert_eq!(self.revealed.insert(stash, result), None);
                    let members = round().map(|round| round.members).unwrap_or_default();
                    let mut members = members.iter().filter(|member| member.missed_reveal);
                    if members.any(|member| member.provider == stash) {
                        self.late.insert(stash);
                    }
                }
            }
            Step::RevealOwn(stash) => {
                if let Some(result) = self.committed.get(&stash).copied() {
                    self.take(Step::Reveal(stash, result));
                }
            }
            Step::Pass(blocks) => pass(blocks),
            Step::PassUnattended(blocks) => pass_unattended(blocks),
            Step::Advance => assert!(Results::advance(TASK).is_ok()),
        }
    }

    /// The verdict on a round of these members, written another way than in the pallet.
    fn verdict(&self, members: &[AccountId]) -> Verdict<AccountId> {
        let needed = members.len() / 2 + 1;
        if members
            .iter()
            .filter(|member| self.committed.contains_key(member))
            .count()
            < needed
        {
            return Verdict::Failed(FailureReason::NotEnoughResults);
        }
        let those = |wanted: &dyn Fn(Option<&u8>, bool) -> bool| -> Vec<AccountId> {
            let wanted = |member: &AccountId| wanted(self.revealed.get(member), self.late.contains(member));
            members.iter().copied().filter(wanted).collect()
        };
        for result in 0u8..3 {
            let supporters = those(&|said, _| said == Some(&result));
            let paid = those(&|said, late| said == Some(&result) && !late);
            if supporters.len() >= needed && !paid.is_empty() {
                let others = those(&|said, late| said.is_some_and(|said| *said != result) && !late);
                return agreed(
                    result,
                    &paid,
                    &others,
                    &those(&|said, late| said.is_none() || late),
                );
            }
        }
        Verdict::Failed(FailureReason::NoAgreement)
    }
}

/// Whether members say different things, so that the verdict is for disputes to find.
fn contradict(members: &[AccountId], model: &Model) -> bool {
    let mut said: Vec<_> = members
        .iter()
        .filter_map(|member| model.revealed.get(member))
        .collect();
    said.dedup();
    said.len() > 1
}

fn progress_of(stash: AccountId) -> Option<MemberProgress> {
    let round = round()?;
    round
        .members
        .iter()
        .find(|member| member.provider == stash)
        .map(|member| member.progress.clone())
}

/// Every phase that was entered, in order.
fn phases() -> Vec<PhaseName> {
    let name = |event| match event {
        RuntimeEvent::Results(ResultsEvent::PhaseChanged { phase, .. }) => Some(phase),
        _ => None,
    };
    events().into_iter().filter_map(name).collect()
}

proptest! {
    #![proptest_config(proptest::test_runner::contextualize_config(ProptestConfig::with_cases(600)))]

    #[test]
    fn any_history_ends_by_time_with_the_right_verdict_and_no_lock_left(
        redundancy in 1u32..=7, reserves in 0u64..=4, poor in vec(1..=CROWD, 0..2), steps in vec(any_step(), 0..80),
    ) {
        let seats = AccountId::from(redundancy);
        TestExt::new().round_of(redundancy).reserves(seats + 1..=seats + reserves).execute_with(|| {
            for stash in poor.into_iter().filter(|stash| *stash > seats) {
                MockStake::remove(stash);
            }
            let mut model = Model::default();
            let mut last_members = members();
            for step in steps {
                let before: Vec<_> = (1..=CROWD).map(progress_of).collect();
                model.take(step);
                check();
                // Who is on the round and committed is never replaced.
                if phase().is_some() {
                    last_members = members();
                    for (stash, progress) in (1..=CROWD).zip(before) {
                        assert!(matches!(progress, None | Some(MemberProgress::Working))
                            || last_members.contains(&stash));
                    }
                }
            }

            // Time alone: every reserve may cost one more commit window.
            let disputes = seats * (BlockNumber::from(CLOCK) + 3);
            let windows = (reserves + 1) * (COMMIT_WINDOW + 1) + AUDITING + REVEAL_WINDOW + OPENING_WINDOW;
            for _ in 0..windows + disputes + 4 {
                pass(1);
                // An unattended stretch may have left the agenda behind.
                check();
                if phase().is_some() {
                    last_members = members();
                }
            }
            assert_eq!(phase(), None);
            pass(DEFERRAL + 1);
            assert_eq!(MockStake::locked_in_all(), 0);
            if contradict(&last_members, &model) {
                assert_eq!(MockOutcome::decisions().len(), 1);
            } else {
                assert_eq!(MockOutcome::decisions(), [(TASK, model.verdict(&last_members))]);
            }

            let phases = phases();
            let order = [PhaseName::Committing, PhaseName::Auditing, PhaseName::Revealing, PhaseName::Challengeable];
            let rank = |name: &PhaseName| order.iter().position(|other| other == name);
            assert!(phases.is_sorted_by_key(rank), "{phases:?}");
            let later = phases.iter().filter(|name| **name != PhaseName::Committing);
            assert!(later.map(rank).is_sorted_by(|one, other| one < other), "{phases:?}");
        });
    }
}
