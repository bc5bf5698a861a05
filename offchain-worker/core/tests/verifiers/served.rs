//! A provider that shows its auditor two outputs, or another than it reveals.

use surety_proofs::{CommitStatement, SignedStatement};
use surety_types::trust::FaultKind;
use surety_worker_core::Record;

use super::*;

type Statement = SignedStatement<AccountId>;

/// Its signed word that it hands this output over.
fn signed(output: u8) -> Statement {
    Statement {
        statement: CommitStatement {
            task: 1,
            provider: provider(),
            commitment: H256([4; 32]),
            output: H256([output; 32]),
        },
        agent: AccountId::new([3; 32]),
        signature: [output; 64],
    }
}

pub fn generating() -> TaskSnapshot {
    let mut task = auditing(1, 20);
    task.task.spec.operation = Operation::Generate;
    task
}

pub fn fetched(output: u8) -> Event {
    Event::AuditFetched {
        task: 1,
        provider: provider(),
        statement: signed(output),
    }
}

/// Our result when the output is the one that was shown.
pub fn found(output: u8) -> ResultClaim {
    ResultClaim {
        output: H256([output; 32]),
        ..claim()
    }
}

/// A verifier that plays one task, and whatever its journal holds.
pub struct Auditor {
    pub verifier: Verifier,
    pub journal: Vec<Record>,
}

impl Auditor {
    /// It has drawn itself, and is asked to fetch what it audits.
    pub fn new() -> Self {
        let mut auditor = Self {
            verifier: Verifier::new(config(), Vec::new()).unwrap(),
            journal: Vec::new(),
        };
        assert_eq!(auditor.draws(), [fetch(None)]);
        auditor
    }

    pub fn draws(&mut self) -> Vec<Effect> {
        let first = see(&mut self.verifier, 10, vec![generating()]);
        draw(&mut self.verifier, first, |_| true).0
    }

    pub fn hear(&mut self, block: u32, event: Event) -> Vec<Effect> {
        let step = self.verifier.step(block, event);
        self.journal.extend(step.records.clone());
        effects(&step)
    }

    pub fn see(&mut self, block: u32, task: &TaskSnapshot) -> Vec<Effect> {
        let (clock, tasks) = (block, vec![task.clone()]);
        let unread = Vec::new();
        self.hear(
            block,
            Event::Finalized {
                block,
                clock,
                tasks,
                unread,
            },
        )
    }

    pub fn restart(&mut self) {
        self.verifier = Verifier::new(config(), self.journal.clone()).unwrap();
    }

    /// It has sealed what it found of this output.
    fn seal(&mut self, output: u8) -> H256 {
        self.hear(11, fetched(output));
        let ready = Event::AuditReady {
            task: 1,
            provider: provider(),
            found: Found::Whole(found(output)),
        };
        match self.hear(12, ready)[..] {
            [Effect::SubmitAnnouncement { seal, .. }] => seal,
            ref other => panic!("{other:?}"),
        }
    }
}

pub fn fetch(output: Option<u8>) -> Effect {
    Effect::FetchAudit {
        task: 1,
        provider: provider(),
        spec: generating().task.spec,
        output: output.map(|output| H256([output; 32])),
    }
}

pub fn report(statement: u8, other: Option<u8>) -> Effect {
    Effect::SubmitReport {
        task: 1,
        provider: provider(),
        statement: signed(statement),
        other: other.map(signed),
    }
}

pub fn failed(kind: EffectKind, failure: Failure) -> Event {
    Event::EffectFailed {
        task: 1,
        kind,
        failure,
    }
}

/// The provider reveals this output; our seal is on the chain.
pub fn revealed(output: u8, seal: H256, phase: RoundPhase<AccountId, u32>) -> TaskSnapshot {
    let mut task = generating();
    let round = task.round.as_mut().unwrap();
    round.members[0].progress = MemberProgress::Revealed(found(output));
    round.phase = phase;
    with_audit(round, AuditState::Sealed(seal));
    if matches!(round.phase, RoundPhase::Challengeable { .. }) {
        round.openings_until = Some(1_000);
    }
    task
}

pub fn challengeable() -> RoundPhase<AccountId, u32> {
    let verdict = Verdict::Failed(FailureReason::NoAgreement);
    RoundPhase::Challengeable { until: 100, verdict }
}

#[test]
fn after_a_restart_the_output_that_was_signed_before_is_audited_and_no_other() {
    let mut auditor = Auditor::new();
    auditor.hear(11, fetched(7));
    auditor.restart();
    assert_eq!(auditor.draws(), [fetch(Some(7))]);
    let kind = EffectKind::FetchAudit(surety_worker_core::key_of(&provider()));
    let audits = auditor.hear(
        12,
        Event::EffectDone {
            task: 1,
            kind,
            block: None,
        },
    );
    let [Effect::Audit { output, .. }] = audits.as_slice() else {
        panic!("{audits:?}");
    };
    assert_eq!(*output, Some(H256([7; 32])));
}

#[test]
fn who_signs_another_output_after_a_restart_is_reported_with_both_and_not_audited() {
    let mut auditor = Auditor::new();
    auditor.hear(11, fetched(7));
    auditor.restart();
    assert_eq!(auditor.draws(), [fetch(Some(7))]);
    let both = [report(7, Some(8))];
    assert_eq!(auditor.hear(12, fetched(8)), both);
    // Also when it crashes before that arrives.
    auditor.restart();
    let started = auditor.see(13, &generating());
    assert!(started.contains(&both[0]), "{started:?}");
    assert!(
        !started
            .iter()
            .any(|effect| matches!(effect, Effect::Audit { .. })),
        "{started:?}"
    );
}

#[test]
fn a_report_goes_on_until_the_chain_knows_and_the_seal_waits_for_it() {
    let mut auditor = Auditor::new();
    let seal = auditor.seal(7);
    let task = revealed(9, seal, challengeable());
    let mut started = auditor.see(20, &task);
    let mut reports = 0;
    for block in 21..900 {
        for effect in std::mem::take(&mut started) {
            assert_eq!(effect, report(7, None), "at {block}");
            reports += 1;
            let failure = if reports % 2 == 0 {
                Failure::Refused
            } else {
                Failure::Failed
            };
            let kind = effect.kind();
            started.extend(auditor.hear(block, failed(kind, failure)));
        }
        started.extend(auditor.see(block, &task));
    }
    assert!(reports > 80, "{reports} reports");
    let mut known = task.clone();
    known.round.as_mut().unwrap().members[0].fault = Some(FaultKind::Equivocation);
    let opened = auditor.see(901, &known);
    assert!(
        matches!(opened.as_slice(), [Effect::SubmitAuditReveal { .. }]),
        "{opened:?}"
    );
}

#[test]
fn a_provider_that_lost_before_is_reported_all_the_same() {
    let mut auditor = Auditor::new();
    let seal = auditor.seal(7);
    let mut task = revealed(9, seal, challengeable());
    task.round.as_mut().unwrap().members[0].fault = Some(FaultKind::LostDispute);
    assert_eq!(auditor.see(20, &task), [report(7, None)]);
}

#[test]
fn a_seal_is_opened_in_time_whatever_becomes_of_the_report() {
    let mut auditor = Auditor::new();
    let seal = auditor.seal(7);
    let revealing = revealed(9, seal, RoundPhase::Revealing { until: 30 });
    assert_eq!(auditor.see(29, &revealing), [report(7, None)]);
    let late = revealed(9, seal, challengeable());
    // Ten blocks before the end, at the six that the clock may move in each.
    let near = 1_000 - 60;
    assert_eq!(auditor.see(near - 1, &late), []);
    let opened = auditor.see(near, &late);
    assert!(
        matches!(opened.as_slice(), [Effect::SubmitAuditReveal { .. }]),
        "{opened:?}"
    );
}

#[test]
fn what_was_signed_and_revealed_alike_is_no_matter_for_a_report() {
    let mut auditor = Auditor::new();
    let seal = auditor.seal(7);
    let opened = auditor.see(20, &revealed(7, seal, RoundPhase::Revealing { until: 30 }));
    assert!(
        matches!(opened.as_slice(), [Effect::SubmitAuditReveal { .. }]),
        "{opened:?}"
    );
}

#[test]
fn where_the_time_for_openings_is_short_a_seal_waits_for_half_of_it() {
    let mut auditor = Auditor::new();
    auditor.hear(10, Event::OpeningWindow { seconds: 120 });
    let seal = auditor.seal(7);
    let mut late = revealed(9, seal, challengeable());
    late.round.as_mut().unwrap().openings_until = Some(80);
    assert_eq!(auditor.see(49, &late), [report(7, None)]);
    let opened = auditor.see(50, &late);
    assert!(
        matches!(opened.as_slice(), [Effect::SubmitAuditReveal { .. }]),
        "{opened:?}"
    );
}

#[test]
fn a_seal_that_the_chain_waits_for_is_opened_by_who_took_its_task_for_finished() {
    let mut auditor = Auditor::new();
    let seal = auditor.seal(7);
    let is_finished = |record: &Record| matches!(record, Record::Finished { .. });
    let mut block = 12;
    while !auditor.journal.iter().any(is_finished) {
        block += 1;
        auditor.hear(
            block,
            Event::Finalized {
                block,
                clock: block,
                tasks: Vec::new(),
                unread: Vec::new(),
            },
        );
        assert!(block < 100, "it never gives up");
    }
    auditor.restart();
    // The node is well again. What it lists owes the opening.
    let task = revealed(7, seal, challengeable());
    assert_eq!(auditor.see(block + 1, &task), [fetch(None)]);
    auditor.hear(block + 2, fetched(7));
    let ready = Event::AuditReady {
        task: 1,
        provider: provider(),
        found: Found::Whole(found(7)),
    };
    let opened = auditor.hear(block + 3, ready);
    assert!(
        matches!(opened.as_slice(), [Effect::SubmitAuditReveal { .. }]),
        "{opened:?}"
    );
}
