//! Verifiers draw themselves for every task, and what is not theirs takes no place from what is.

#![allow(clippy::unwrap_used)]

mod leaves;
mod served;
mod unserved;
mod wholes;

use sp_core::H256;
use surety_types::{
    model::Operation,
    task::{
        AuditDraw, FailureReason, MemberProgress, ResultClaim, RoundMember, RoundPhase, Task, TaskSpec,
        TaskState, Verdict,
    },
    trust::{Audit, AuditProof, AuditState},
};
use surety_worker_core::{
    AccountId, Config, Drawn, Effect, EffectKind, Event, Failure, Found, NoBids, RoundRecord, SecretSalts,
    Step, TaskSnapshot, Verifier,
};

const OURS: u64 = 4_321;

fn stash() -> AccountId {
    AccountId::new([1; 32])
}

fn provider() -> AccountId {
    AccountId::new([2; 32])
}

fn config() -> Config {
    Config::new(stash(), NoBids, SecretSalts::new([9; 32]))
}

fn auditing(id: u64, until: u32) -> TaskSnapshot {
    let spec = TaskSpec {
        model: H256([2; 32]),
        operation: Operation::Embed,
        input: H256([3; 32]),
        input_bytes: 100,
        units_max: 50,
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
        phase: RoundPhase::Auditing { until },
        draw: Some(AuditDraw {
            begun_at: 1,
            settled_by: 1,
            epoch_randomness: H256([8; 32]),
            verifier_stake: 1,
            seed: Some(H256([5; 32])),
        }),
        ..RoundRecord::new(50, 0)
    };
    TaskSnapshot {
        id,
        task: Task {
            client: AccountId::new([id as u8; 32]),
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

fn effects(step: &Step) -> Vec<Effect> {
    step.effects.iter().map(|due| due.effect.clone()).collect()
}

fn see(verifier: &mut Verifier, block: u32, tasks: Vec<TaskSnapshot>) -> Vec<Effect> {
    let clock = block;
    effects(&verifier.step(
        block,
        Event::Finalized {
            block,
            clock,
            tasks,
            unread: Vec::new(),
        },
    ))
}

/// Answers draws until there are none left; ours are those named. Gives back everything else, and the most
/// draws at once.
fn draw(verifier: &mut Verifier, first: Vec<Effect>, ours: impl Fn(u64) -> bool) -> (Vec<Effect>, usize) {
    let (mut waiting, mut others, mut most) = (first, Vec::new(), 0);
    loop {
        let (draws, rest): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .partition(|effect| matches!(effect, Effect::Draw { .. }));
        others.extend(rest);
        most = most.max(draws.len());
        if draws.is_empty() {
            return (others, most);
        }
        waiting = Vec::new();
        for effect in draws {
            let drawn = ours(effect.task()).then_some(Drawn {
                proof: AuditProof {
                    pre_output: [1; 32],
                    proof: [2; 64],
                },
                output: [3; 32],
            });
            let drawn = Event::Drawn {
                task: effect.task(),
                provider: provider(),
                drawn,
            };
            waiting.extend(effects(&verifier.step(10, drawn)));
        }
    }
}

/// Our audit of the provider, as the chain shows it.
fn with_audit(round: &mut RoundRecord, state: AuditState) {
    let audit = Audit {
        verifier: stash(),
        provider: provider(),
        bond: 1,
        draw: Default::default(),
        items: None,
        state,
    };
    round.audits.try_push(audit).unwrap();
}

/// Has all of the first task audited until block 12. Returns the seal.
fn seal(verifier: &mut Verifier) -> H256 {
    let first = see(verifier, 10, vec![auditing(1, 20)]);
    let (fetch, _) = draw(verifier, first, |_| true);
    let done = Event::EffectDone {
        task: 1,
        kind: fetch[0].kind(),
        block: None,
    };
    verifier.step(11, done);
    let ready = Event::AuditReady {
        task: 1,
        provider: provider(),
        found: Found::Whole(claim()),
    };
    match effects(&verifier.step(12, ready))[..] {
        [Effect::SubmitAnnouncement { seal, .. }] => seal,
        ref other => panic!("{other:?}"),
    }
}

fn claim() -> ResultClaim {
    ResultClaim {
        output: H256([6; 32]),
        trace_root: H256([7; 32]),
        units: 1,
    }
}

#[test]
fn a_verifier_sees_its_own_task_among_ten_thousand_of_others() {
    let mut config = config();
    config.tasks_max = 256;
    let draws_max = config.draws_max;
    let mut verifier = Verifier::new(config, Vec::new()).unwrap();
    let tasks: Vec<_> = (0..10_000).map(|id| auditing(id, 1_000)).collect();
    let mut found = Vec::new();
    for block in 10..60 {
        let first = see(&mut verifier, block, tasks.clone());
        let (others, most) = draw(&mut verifier, first, |task| task == OURS);
        assert!(most <= draws_max, "{most} draws at once");
        found.extend(others);
    }
    assert!(
        matches!(found.as_slice(), [Effect::FetchAudit { task: OURS, .. }]),
        "{found:?}"
    );
    // Nothing is kept of the others.
    assert_eq!(verifier.progress().count(), 1);
}

#[test]
fn a_verifier_draws_itself_once_the_seed_is_known_and_not_before() {
    let mut verifier = Verifier::new(config(), Vec::new()).unwrap();
    let mut early = auditing(1, 100);
    early.round.as_mut().unwrap().draw.as_mut().unwrap().seed = None;
    for block in 10..20 {
        assert_eq!(see(&mut verifier, block, vec![early.clone()]), []);
    }
    let drawn = see(&mut verifier, 20, vec![auditing(1, 100)]);
    let [Effect::Draw { input, .. }] = drawn.as_slice() else {
        panic!("{drawn:?}");
    };
    assert_eq!((input.seed, input.task), (H256([5; 32]), 1));
}

#[test]
fn several_audits_are_fetched_for_at_once_and_computed_one_after_the_other() {
    let mut verifier = Verifier::new(config(), Vec::new()).unwrap();
    let first = see(&mut verifier, 10, (0..6).map(|id| auditing(id, 100)).collect());
    let (fetches, _) = draw(&mut verifier, first, |_| true);
    let is_fetch = |effect: &Effect| matches!(effect, Effect::FetchAudit { .. });
    assert_eq!(fetches.iter().filter(|effect| is_fetch(effect)).count(), 6);
    let mut audits = Vec::new();
    for fetch in &fetches {
        let done = Event::EffectDone {
            task: fetch.task(),
            kind: fetch.kind(),
            block: None,
        };
        audits.extend(effects(&verifier.step(11, done)));
    }
    assert!(matches!(audits.as_slice(), [Effect::Audit { .. }]), "{audits:?}");
    let ready = Event::AuditReady {
        task: audits[0].task(),
        provider: provider(),
        found: Found::Whole(claim()),
    };
    let next = effects(&verifier.step(12, ready));
    assert!(
        matches!(
            next.as_slice(),
            [Effect::SubmitAnnouncement { .. }, Effect::Audit { .. }]
        ),
        "{next:?}"
    );
}

#[test]
fn an_audit_whose_time_is_over_is_stopped() {
    let mut verifier = Verifier::new(config(), Vec::new()).unwrap();
    let first = see(&mut verifier, 10, vec![auditing(1, 20)]);
    draw(&mut verifier, first, |_| true);
    let stopped = see(&mut verifier, 20, vec![auditing(1, 20)]);
    let kind = EffectKind::FetchAudit(surety_worker_core::key_of(&provider()));
    assert_eq!(stopped, [Effect::Cancel { task: 1, kind }]);
}

#[test]
fn a_sealed_audit_is_opened_on_the_best_blocks_word_and_after_its_window_whatever_it_meets() {
    let mut verifier = Verifier::new(config(), Vec::new()).unwrap();
    let seal = seal(&mut verifier);
    let mut owed = auditing(1, 20);
    let round = owed.round.as_mut().unwrap();
    with_audit(round, AuditState::Sealed(seal));
    round.phase = RoundPhase::Revealing { until: 30 };
    round.members[0].progress = MemberProgress::Revealed(claim());
    let best = |block, tasks| Event::Best {
        block,
        clock: block,
        tasks,
    };
    let opened = effects(&verifier.step(15, best(15, vec![owed.clone()])));
    assert!(
        matches!(opened.as_slice(), [Effect::SubmitAuditReveal { .. }]),
        "{opened:?}"
    );
    // Nobody hears of it while the window lasts.
    let round = owed.round.as_mut().unwrap();
    let verdict = Verdict::Failed(FailureReason::NoAgreement);
    round.phase = RoundPhase::Challengeable { until: 40, verdict };
    round.openings_until = Some(400);
    for (block, failure) in [
        (16, Failure::Permanent),
        (50, Failure::Failed),
        (390, Failure::Refused),
    ] {
        let failed = Event::EffectFailed {
            task: 1,
            kind: opened[0].kind(),
            failure,
        };
        verifier.step(block, failed);
        let again = see(&mut verifier, block + 2, vec![owed.clone()]);
        assert!(
            matches!(again.as_slice(), [Effect::SubmitAuditReveal { .. }]),
            "{block}: {again:?}"
        );
    }
}

#[test]
fn an_output_is_looked_for_over_minutes_and_then_demanded_by_who_has_audited_it() {
    let mut verifier = Verifier::new(config(), Vec::new()).unwrap();
    seal(&mut verifier);
    let mut shown = auditing(1, 20);
    let round = shown.round.as_mut().unwrap();
    round.members[0].progress = MemberProgress::Revealed(claim());
    let verdict = Verdict::Failed(FailureReason::NoAgreement);
    round.phase = RoundPhase::Challengeable { until: 400, verdict };
    // The announcement came too late: there is nothing for us in it.
    assert_eq!(see(&mut verifier, 21, vec![shown.clone()]), []);

    with_audit(shown.round.as_mut().unwrap(), AuditState::Confirmed);
    for block in 22..200 {
        let mut started = see(&mut verifier, block, vec![shown.clone()]);
        while let Some(effect) = started.pop() {
            if let Effect::SubmitDemand { .. } = effect {
                assert!(block > 22 + 60, "demanded after {} blocks", block - 22);
                return;
            }
            let failed = Event::EffectFailed {
                task: 1,
                kind: effect.kind(),
                failure: Failure::Refused,
            };
            started.extend(effects(&verifier.step(block, failed)));
        }
    }
    panic!("never demanded");
}

/// A committee that all verifiers are summoned to.
fn summoned() -> TaskSnapshot {
    use surety_dispute_game::{
        bisection::{Clocks, Game},
        committee::{CommitteeState, DisputeCommittee, SeatDraw, windows},
        testsuite::toy::Toy,
    };
    use surety_types::trust::Party;

    let dispute = surety_worker_core::DisputeRecord {
        task: 1,
        defender: Party::Provider(provider()),
        challenger: Party::Account(AccountId::new([7; 32])),
        claim: claim(),
        game: Game::new(claim().trace_root, &Toy, Clocks::equal(10)).unwrap(),
        bond: 1,
        committee_bond: 0,
        prepaid: None,
        moves: 9,
        opened_at: 1,
        ticked_at: 1,
        referred_at: Some(10),
    };
    let committee = DisputeCommittee {
        state: CommitteeState::of_all(H256([6; 32]), windows(100, 100)),
        claimed: H256([5; 32]),
        draw: SeatDraw {
            begun_at: 1,
            settled_by: 1,
            epoch_randomness: H256::zero(),
            verifier_stake: 1,
            corrupt_stake: 0,
            seed: None,
        },
        candidates: Default::default(),
        ticked_at: 10,
        suspended: 0,
        fund: None,
    };
    let mut snapshot = auditing(1, 5);
    snapshot.disputes = vec![(3, dispute)];
    snapshot.committees = vec![(3, committee)];
    snapshot
}

#[test]
fn nothing_is_sealed_while_there_is_no_room_for_promises() {
    let mut verifier = Verifier::new(config(), Vec::new()).unwrap();
    let room = |verifier: &mut Verifier, is_short| {
        let step = verifier.step(10, Event::Room { is_short });
        assert_eq!(step.records, []);
        effects(&step)
    };
    // An audit of ours is being computed when the disk fills up.
    let first = see(&mut verifier, 10, vec![auditing(2, 1_000)]);
    let (fetch, _) = draw(&mut verifier, first, |_| true);
    let done = Event::EffectDone {
        task: 2,
        kind: fetch[0].kind(),
        block: None,
    };
    let audit = effects(&verifier.step(10, done));
    let kind = audit[0].kind();
    assert_eq!(room(&mut verifier, true), [Effect::Cancel { task: 2, kind }]);
    let ready = || Event::AuditReady {
        task: 2,
        provider: provider(),
        found: Found::Whole(claim()),
    };
    assert_eq!(verifier.step(10, ready()), Step::default());
    let tasks = || vec![auditing(2, 1_000), auditing(3, 1_000), summoned()];
    assert_eq!(see(&mut verifier, 11, tasks()), []);
    // With room again all of it is taken up.
    let again = room(&mut verifier, false);
    let mut kinds: Vec<_> = again.iter().map(Effect::kind).collect();
    kinds.extend(see(&mut verifier, 20, tasks()).iter().map(Effect::kind));
    assert!(kinds.contains(&kind), "{kinds:?}");
    assert!(kinds.contains(&EffectKind::ComputeVote(3)), "{kinds:?}");
    let draws = kinds.iter().filter(|kind| matches!(kind, EffectKind::Draw(_)));
    assert_eq!(draws.count(), 1, "{kinds:?}");
}

#[test]
fn what_was_sealed_before_is_opened_with_or_without_room() {
    let mut verifier = Verifier::new(config(), Vec::new()).unwrap();
    let seal = seal(&mut verifier);
    verifier.step(12, Event::Room { is_short: true });
    let mut owed = auditing(1, 20);
    let round = owed.round.as_mut().unwrap();
    with_audit(round, AuditState::Sealed(seal));
    round.phase = RoundPhase::Revealing { until: 30 };
    round.members[0].progress = MemberProgress::Revealed(claim());
    let opened = see(&mut verifier, 21, vec![owed]);
    assert!(
        matches!(opened.as_slice(), [Effect::SubmitAuditReveal { .. }]),
        "{opened:?}"
    );
}
