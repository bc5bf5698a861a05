//! A provider whose client serves no input. `simulation` has whole lives of it.

#![allow(clippy::unwrap_used)]

use sp_core::H256;
use surety_types::{
    model::Operation,
    task::{Assignment, MemberProgress, RoundMember, Task, TaskSpec, TaskState},
    trust::InputDemand,
};
use surety_worker_core::{
    AccountId, Config, Effect, EffectKind, Event, Failure, PriceList, Provider, Record, RoundRecord,
    SecretSalts, Step, TaskSnapshot,
};

/// Last block for commitments.
const UNTIL: u32 = 100;

fn stash() -> AccountId {
    AccountId::new([1; 32])
}

fn provider(records: Vec<Record>) -> Provider {
    let config = Config::new(stash(), PriceList::default(), SecretSalts::new([9; 32]));
    Provider::new(config, records).unwrap()
}

fn spec() -> TaskSpec {
    TaskSpec {
        model: H256([2; 32]),
        operation: Operation::Embed,
        input: H256([3; 32]),
        input_bytes: 100 * 1024,
        units_max: 50,
        redundancy: 2,
        sources: Default::default(),
        security: Default::default(),
        requirements: Default::default(),
    }
}

/// A task on which we are to work.
fn working() -> TaskSnapshot {
    let assignment = Assignment {
        provider: stash(),
        price: 500,
    };
    let state = TaskState::Running {
        assignments: vec![assignment].try_into().unwrap(),
        reserves: Default::default(),
    };
    let round = RoundRecord {
        members: vec![RoundMember::new(stash(), 500, 1)].try_into().unwrap(),
        ..RoundRecord::new(50, UNTIL)
    };
    TaskSnapshot {
        id: 1,
        task: Task {
            client: AccountId::new([4; 32]),
            spec: spec(),
            cap: 2000,
            audits: surety_types::task::AuditTerms::default(),
            posted_at: 1,
            state,
        },
        round: Some(round),
        bid: None,
        terms: None,
        disputes: Vec::new(),
        demands: Vec::new(),
        committees: Vec::new(),
    }
}

fn see(worker: &mut Provider, block: u32, tasks: Vec<TaskSnapshot>) -> Step {
    let clock = block;
    worker.step(
        block,
        Event::Finalized {
            block,
            clock,
            tasks,
            unread: Vec::new(),
        },
    )
}

fn effects(step: &Step) -> Vec<Effect> {
    step.effects.iter().map(|due| due.effect.clone()).collect()
}

fn kinds(step: &Step) -> Vec<EffectKind> {
    effects(step).iter().map(Effect::kind).collect()
}

/// That task, after the chain has taken as many demands of ours, with one open or not.
fn missing(demands: u32, is_open: bool) -> TaskSnapshot {
    let mut snapshot = working();
    let round = snapshot.round.as_mut().unwrap();
    round.members[0].input_demands = demands;
    round.input_demand = is_open.then(|| InputDemand {
        provider: stash(),
        by: stash(),
        segment: 0,
        price: 1,
        until: 90,
    });
    snapshot
}

/// Has the input not be had up to and including this block.
fn miss(worker: &mut Provider, blocks: std::ops::RangeInclusive<u32>, seen: &TaskSnapshot) -> Vec<Step> {
    let mut steps = Vec::new();
    for block in blocks {
        steps.push(see(worker, block, vec![seen.clone()]));
        let failed = Event::EffectFailed {
            task: 1,
            kind: EffectKind::Fetch,
            failure: Failure::Failed,
        };
        steps.push(worker.step(block, failed));
    }
    steps
}

fn demanded(steps: &[Step]) -> Vec<(u32, u32)> {
    let all = steps.iter().flat_map(effects);
    let demand = |effect: Effect| match effect {
        Effect::SubmitInputDemand { number, segment, .. } => Some((number, segment)),
        _ => None,
    };
    all.filter_map(demand).collect()
}

#[test]
fn an_input_that_cannot_be_had_for_half_of_the_time_is_demanded_and_that_is_journalled() {
    let mut worker = provider(Vec::new());
    // Until block 100: half of the time is over in block 55.
    let steps = miss(&mut worker, 10..=54, &missing(0, false));
    assert_eq!(demanded(&steps), []);
    let mut journal: Vec<_> = steps.into_iter().flat_map(|step| step.records).collect();
    assert_eq!(
        journal,
        [Record::InputMissed {
            task: 1,
            at: 10,
            since: 10,
            demands: 0
        }]
    );
    let steps = miss(&mut worker, 55..=56, &missing(0, false));
    let [(0, piece)] = demanded(&steps)[..] else {
        panic!("{steps:?}");
    };
    assert!(piece < 100);
    let made = steps.iter().find(|step| !step.records.is_empty()).unwrap();
    assert_eq!(
        made.records,
        [Record::InputDemandMade {
            task: 1,
            at: 55,
            number: 0,
            segment: piece
        }]
    );
    assert!(kinds(made).contains(&EffectKind::DemandInput(0)));
    journal.extend(made.records.clone());

    // Killed before the chain heard of it: the same piece again, and nothing new to promise.
    let mut restarted = provider(journal);
    let steps = miss(&mut restarted, 60..=61, &missing(0, false));
    assert_eq!(demanded(&steps), [(0, piece)]);
    assert!(steps.iter().all(|step| step.records.is_empty()));
}

#[test]
fn after_a_piece_was_shown_the_input_is_fetched_again_and_demanded_once_more_at_most() {
    let mut worker = provider(Vec::new());
    assert_eq!(demanded(&miss(&mut worker, 10..=56, &missing(0, false))).len(), 1);
    // Nothing further while it is open.
    assert_eq!(demanded(&miss(&mut worker, 57..=70, &missing(1, true))), []);
    let shown = see(&mut worker, 71, vec![missing(1, false)]);
    assert_eq!(kinds(&shown), [EffectKind::Fetch]);
    // Half of the 29 blocks that are left.
    assert_eq!(demanded(&miss(&mut worker, 72..=84, &missing(1, false))), []);
    assert_eq!(demanded(&miss(&mut worker, 85..=86, &missing(1, false))).len(), 1);
    assert_eq!(demanded(&miss(&mut worker, 87..=88, &missing(2, true))), []);
    assert_eq!(demanded(&miss(&mut worker, 89..=99, &missing(2, false))), []);
}

#[test]
fn nothing_is_demanded_once_a_majority_has_committed() {
    let mut worker = provider(Vec::new());
    let mut seen = missing(0, false);
    let round = seen.round.as_mut().unwrap();
    for other in 2..=3 {
        let member = RoundMember {
            progress: MemberProgress::Committed(H256::zero()),
            ..RoundMember::new(AccountId::new([other; 32]), 500, 1)
        };
        round.members.try_push(member).unwrap();
    }
    assert_eq!(demanded(&miss(&mut worker, 10..=99, &seen)), []);
}
