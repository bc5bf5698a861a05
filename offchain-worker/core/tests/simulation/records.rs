//! What the chain has written down of a verifier's task, as lives begin with it.

use sp_core::H256;
use surety_audit_economics::{answer_hashes, audit_seal, items_seal};
use surety_dispute_game::bisection::{Clocks, Game, Move, Side};
use surety_dispute_game::testsuite::{
    dice::Dice,
    toy::{Alteration, Computed, Toy},
};
use surety_types::{
    TaskId,
    model::Operation,
    task::{AuditDraw, MemberProgress, ResultClaim, RoundMember, RoundPhase, Task, TaskSpec, TaskState},
    trust::Party,
};
use surety_worker_core::{AccountId, BlockNumber, DisputeRecord, Effect, RoundRecord, TaskSnapshot};

/// Of which everybody computes.
const INPUT: u64 = 7;
/// The task.
pub const TASK: TaskId = 3;
/// Last block for auditors to draw themselves.
const AUDIT_UNTIL: BlockNumber = 200;
/// Enough for any streak of bad luck.
const CLOCK: u32 = 4000;

/// The verifier's.
pub fn stash() -> AccountId {
    AccountId::new([7; 32])
}

/// Whose result is audited.
pub fn provider() -> AccountId {
    AccountId::new([8; 32])
}

/// The right computation.
pub fn right() -> Computed {
    Computed::new(INPUT, None)
}

/// One with a fault somewhere, which follows from a number.
pub fn wrong(place: u64) -> Computed {
    Computed::new(INPUT, Some(Alteration::any(&mut Dice::seeded(place))))
}

/// What somebody claims who computed this.
pub fn claim(computed: &Computed) -> ResultClaim {
    ResultClaim {
        output: H256([9; 32]),
        trace_root: computed.root(),
        units: 1,
    }
}

/// A dispute between provider and verifier that has just begun.
pub fn dispute(claim: ResultClaim, root: H256, number: BlockNumber) -> DisputeRecord {
    DisputeRecord {
        task: TASK,
        defender: Party::Provider(provider()),
        challenger: Party::Auditor {
            verifier: stash(),
            provider: provider(),
        },
        claim,
        game: Game::new(root, &Toy, Clocks::equal(CLOCK)).unwrap(),
        bond: 0,
        committee_bond: 0,
        prepaid: None,
        moves: 0,
        opened_at: number,
        ticked_at: number,
        referred_at: None,
    }
}

/// A task whose provider has committed, and whose auditors will draw themselves.
pub fn auditing() -> TaskSnapshot {
    let spec = TaskSpec {
        model: H256([1; 32]),
        operation: Operation::Embed,
        input: H256([2; 32]),
        input_bytes: 10,
        units_max: 100,
        redundancy: 1,
        sources: Default::default(),
        security: Default::default(),
        requirements: Default::default(),
    };
    let member = RoundMember {
        progress: MemberProgress::Committed(H256([4; 32])),
        ..RoundMember::new(provider(), 1, 1)
    };
    let round = RoundRecord {
        members: vec![member].try_into().unwrap(),
        phase: RoundPhase::Auditing { until: AUDIT_UNTIL },
        draw: Some(AuditDraw {
            begun_at: 1,
            settled_by: 1,
            epoch_randomness: H256([6; 32]),
            verifier_stake: 1,
            seed: None,
        }),
        ..RoundRecord::new(100, 0)
    };
    TaskSnapshot {
        id: TASK,
        task: Task {
            client: AccountId::new([1; 32]),
            spec,
            cap: 1,
            audits: surety_types::task::AuditTerms::default(),
            posted_at: 1,
            state: TaskState::Running {
                assignments: Default::default(),
                reserves: Default::default(),
            },
        },
        round: Some(round),
        bid: None,
        terms: None,
        disputes: Vec::new(),
        demands: Vec::new(),
        committees: Vec::new(),
    }
}

/// The seal that an opening opens.
pub fn seal_of(opening: &Effect) -> Option<H256> {
    let (provider, stash) = (provider(), stash());
    match opening {
        Effect::SubmitAuditReveal { claim, salt, .. } => {
            Some(audit_seal(TASK, &provider, &stash, claim, salt))
        }
        Effect::SubmitItemsReveal { found, answer, .. } => {
            let answers = answer_hashes(answer);
            Some(items_seal(TASK, &provider, &stash, found, &answers))
        }
        _ => None,
    }
}

/// Plays, unless it is refused. Says whether it was played.
pub fn play(record: &mut DisputeRecord, side: Side, played: Move, number: BlockNumber) -> bool {
    record.game.tick(number - record.ticked_at);
    record.ticked_at = number;
    let done = record.game.step(side, played, &Toy, &Toy).is_ok();
    record.moves += u32::from(done);
    done
}
