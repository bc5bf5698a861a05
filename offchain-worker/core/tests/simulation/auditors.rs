//! An auditor of some items of our result, which confirms it: one that has computed them, or one that has
//! guessed.

use std::collections::BTreeSet;

use sp_core::H256;
use surety_types::{
    TaskId,
    task::RoundPhase,
    trust::{Audit, AuditAnswer, AuditState, ItemLeaves, ItemsFound, ItemsOpened, Refutation},
};
use surety_worker_core::{AccountId, BlockNumber, Confirmation, Event, RoundRecord};

use crate::{chain::stash, random::Random};

const COMPUTED: H256 = H256([8; 32]);
const GUESSED: H256 = H256([9; 32]);

/// Who audits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Auditor {
    #[default]
    Nobody,
    Honest,
    Guesses,
}

/// Confirmations of our results.
#[derive(Default)]
pub struct Confirmations {
    pub auditor: Auditor,
    /// Tasks of which ours was confirmed.
    pub made: BTreeSet<TaskId>,
    /// Those of which that was refuted.
    pub refuted: BTreeSet<TaskId>,
}

impl Confirmations {
    /// A block passes: sooner or later after we have revealed, the auditor confirms that, and everybody has
    /// the whole window for challenges again.
    pub fn pass(
        &mut self,
        task: TaskId,
        round: &mut RoundRecord,
        (block, clock): (BlockNumber, BlockNumber),
        window: BlockNumber,
        random: &mut Random,
    ) {
        let seal = match self.auditor {
            Auditor::Nobody => return,
            Auditor::Honest => COMPUTED,
            Auditor::Guesses => GUESSED,
        };
        let ours = &round.members[0];
        let is_revealed = ours.provider == stash() && ours.claim().is_some();
        let is_late = matches!(round.phase, RoundPhase::Challengeable { .. });
        if !is_revealed || !round.audits.is_empty() || !(is_late || random.happens(200)) {
            return;
        }
        let audit = Audit {
            verifier: AccountId::new([5; 32]),
            provider: stash(),
            bond: 1,
            draw: H256([3; 32]),
            items: Some(ItemsOpened { seal, block }),
            state: AuditState::Confirmed,
        };
        round.audits.try_push(audit).unwrap();
        self.made.insert(task);
        if let RoundPhase::Challengeable { until, .. } = &mut round.phase {
            *until = clock + window;
        }
    }

    /// Takes a refutation, as the chain does. Says whether it did.
    pub fn refute(&mut self, task: TaskId, round: &mut RoundRecord) -> bool {
        assert_eq!(
            self.auditor,
            Auditor::Guesses,
            "the auditor of task {task} is honest"
        );
        let mut audits = round.audits.iter_mut();
        let audit = audits.find(|audit| audit.state == AuditState::Confirmed);
        if let Some(audit) = audit {
            audit.state = AuditState::Over;
            return self.refuted.insert(task);
        }
        false
    }
}

/// What comes of holding a confirmation against our leaves.
pub fn checked(task: TaskId, confirmation: Confirmation) -> Event {
    let Confirmation { verifier, opened, .. } = confirmation;
    let refutation = Refutation {
        found: ItemsFound::default(),
        answer: AuditAnswer {
            agrees: true,
            salt: opened.seal,
            other: H256::zero(),
        },
        place: opened.block,
        shown: ItemLeaves {
            leaves: Default::default(),
            siblings: Default::default(),
        },
    };
    Event::ConfirmationChecked {
        task,
        verifier,
        refutation: (opened.seal == GUESSED).then(|| Box::new(refutation)),
    }
}
