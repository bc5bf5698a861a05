//! Calls are sent until their deadline, and what was promised is opened as soon as the best block asks for
//! it.

use surety_types::task::AuditDraw;
use surety_worker_core::Failure;

use super::*;

fn result(salt: H256) -> (Record, H256) {
    let hash = commitment(1, &stash(), &claim(1), &salt);
    let made = Record::ResultMade {
        task: 1,
        at: 9,
        claim: claim(1),
        salt,
        commitment: hash,
    };
    (made, hash)
}

/// A provider that has computed task 1, and the commitment.
fn computed() -> (Provider, H256) {
    let (made, hash) = result(H256([5; 32]));
    (provider(vec![made]), hash)
}

fn fail(provider: &mut Provider, block: u32, kind: EffectKind, failure: Failure) -> Step {
    provider.step(
        block,
        Event::EffectFailed {
            task: 1,
            kind,
            failure,
        },
    )
}

fn at(provider: &mut Provider, block: u32, clock: u32, tasks: Vec<TaskSnapshot>) -> Step {
    provider.step(
        block,
        Event::Finalized {
            block,
            clock,
            tasks,
            unread: Vec::new(),
        },
    )
}

fn best(provider: &mut Provider, block: u32, clock: u32, tasks: Vec<TaskSnapshot>) -> Step {
    provider.step(block, Event::Best { block, clock, tasks })
}

const ANY: [Failure; 3] = [Failure::Refused, Failure::Failed, Failure::Permanent];

#[test]
fn a_commit_is_sent_again_until_its_deadline_whatever_it_met() {
    for failure in ANY {
        let (mut provider, _) = computed();
        let mut sent = Vec::new();
        for block in 10..=110 {
            let step = see(&mut provider, block, vec![working(1)]);
            if kinds(&step) == [EffectKind::Commit] {
                sent.push((block, step.effects[0].urgent));
                assert_eq!(
                    fail(&mut provider, block, EffectKind::Commit, failure),
                    Step::default()
                );
            }
        }
        let every_block: Vec<_> = (91..=100).collect();
        let last: Vec<_> = sent
            .iter()
            .map(|(block, _)| *block)
            .filter(|block| *block > 90)
            .collect();
        match failure {
            Failure::Refused => assert_eq!(last, every_block),
            _ => assert!(
                last.len() >= 5 && last.last() > Some(&98),
                "{failure:?}: {last:?}"
            ),
        }
        assert!(
            sent.iter().all(|(block, urgent)| *urgent || *block < 90),
            "{sent:?}"
        );
        assert!(!sent[0].1, "nothing hurries at first");
    }
}

#[test]
fn what_was_refused_again_and_again_is_urgent_before_its_deadline_is_near() {
    let (mut provider, _) = computed();
    let mut urgent = Vec::new();
    for block in 10..20 {
        for due in see(&mut provider, block, vec![working(1)]).effects {
            urgent.push(due.urgent);
            fail(&mut provider, block, due.effect.kind(), Failure::Refused);
        }
    }
    assert_eq!(urgent[..4], [false, false, true, true]);
}

#[test]
fn a_clock_that_stands_still_ends_no_attempts() {
    let (mut provider, _) = computed();
    let mut sent = 0;
    // Finality stands, and with it the clock; blocks go on.
    at(&mut provider, 10, 50, vec![working(1)]);
    for block in 11..2000 {
        let step = fail(&mut provider, block, EffectKind::Commit, Failure::Failed);
        let again = best(&mut provider, block, 50, vec![working(1)]);
        sent += kinds(&step).len() + kinds(&again).len();
    }
    assert!(sent > 200, "{sent}");
}

#[test]
fn a_commitment_is_opened_as_soon_as_the_best_block_asks_for_it_and_no_more_once_it_shows_it() {
    let (mut provider, hash) = computed();
    let phase = |until| RoundPhase::Revealing { until };
    let committed = |phase| running(1, MemberProgress::Committed(hash), phase);
    at(
        &mut provider,
        10,
        10,
        vec![committed(RoundPhase::Auditing { until: 12 })],
    );
    let step = best(&mut provider, 13, 10, vec![committed(phase(22))]);
    assert_eq!(kinds(&step), [EffectKind::Reveal]);
    let done = Event::EffectDone {
        task: 1,
        kind: EffectKind::Reveal,
        block: None,
    };
    provider.step(14, done);
    let shown = || vec![running(1, MemberProgress::Revealed(claim(1)), phase(22))];
    for block in 15..300 {
        assert_eq!(best(&mut provider, block, 10, shown()), Step::default());
    }
    // Finalised state catches up, one block at a time: it is behind the best one.
    let step = at(&mut provider, 299, 12, vec![committed(phase(22))]);
    assert_eq!(step, Step::default());
    // That block was replaced by one without it.
    let step = best(&mut provider, 300, 12, vec![committed(phase(22))]);
    assert_eq!(kinds(&step), [EffectKind::Reveal]);
}

#[test]
fn a_commitment_is_opened_when_audits_are_over_even_if_nobody_has_moved_the_round_on() {
    let (mut provider, hash) = computed();
    let auditing = |until| running(1, MemberProgress::Committed(hash), RoundPhase::Auditing { until });
    assert_eq!(best(&mut provider, 13, 13, vec![auditing(13)]), Step::default());
    let step = best(&mut provider, 14, 14, vec![auditing(13)]);
    assert_eq!(kinds(&step), [EffectKind::Reveal]);
}

#[test]
fn a_commitment_stays_sealed_while_it_is_not_known_what_auditors_draw_themselves_with() {
    let (mut provider, hash) = computed();
    let mut auditing = running(
        1,
        MemberProgress::Committed(hash),
        RoundPhase::Auditing { until: 13 },
    );
    let seeded = auditing.clone();
    auditing.round.as_mut().unwrap().draw = Some(AuditDraw {
        begun_at: 10,
        settled_by: 10,
        epoch_randomness: H256::zero(),
        verifier_stake: 1,
        seed: None,
    });
    for block in 14..40 {
        let step = best(&mut provider, block, block, vec![auditing.clone()]);
        assert_eq!(step, Step::default());
    }
    let step = best(&mut provider, 40, 40, vec![seeded]);
    assert_eq!(kinds(&step), [EffectKind::Reveal]);
}

#[test]
fn nothing_is_promised_on_the_best_blocks_word() {
    let mut provider = provider(Vec::new());
    assert_eq!(
        best(&mut provider, 10, 10, vec![bidding(1), working(2)]),
        Step::default()
    );
    let (mut provider, _) = computed();
    assert_eq!(best(&mut provider, 10, 10, vec![working(1)]), Step::default());
}

#[test]
fn a_commit_that_the_best_block_shows_is_not_sent_again_while_finality_stands_still() {
    let (mut provider, hash) = computed();
    let step = at(&mut provider, 10, 10, vec![working(1)]);
    assert_eq!(kinds(&step), [EffectKind::Commit]);
    let done = Event::EffectDone {
        task: 1,
        kind: EffectKind::Commit,
        block: None,
    };
    provider.step(11, done);
    let phase = RoundPhase::Committing { until: 100 };
    let shown = || vec![running(1, MemberProgress::Committed(hash), phase.clone())];
    for block in 12..500 {
        assert_eq!(best(&mut provider, block, 10, shown()), Step::default());
        assert_eq!(at(&mut provider, 10, 10, vec![working(1)]), Step::default());
    }
}

#[test]
fn a_state_from_before_the_block_that_has_a_commit_does_not_have_it_sent_again() {
    let (mut provider, _) = computed();
    // After a restart nothing is known yet but what is final, which is behind the best block.
    let step = at(&mut provider, 10, 10, vec![working(1)]);
    assert_eq!(kinds(&step), [EffectKind::Commit]);
    let done = Event::EffectDone {
        task: 1,
        kind: EffectKind::Commit,
        block: Some(15),
    };
    provider.step(10, done);
    for block in 11..=17 {
        let step = best(&mut provider, block, 10, vec![working(1)]);
        assert_eq!(step, Step::default(), "{block}");
    }
    // That block was replaced by one without it.
    let step = best(&mut provider, 18, 10, vec![working(1)]);
    assert_eq!(kinds(&step), [EffectKind::Commit]);
}

#[test]
fn a_reveal_that_was_missed_is_still_sent_while_the_chain_waits_for_it() {
    let (mut provider, hash) = computed();
    let verdict = Verdict::Failed(FailureReason::NoAgreement);
    let phase = RoundPhase::Challengeable { until: 20, verdict };
    let mut owed = running(1, MemberProgress::Committed(hash), phase);
    let round = owed.round.as_mut().unwrap();
    round.members[0].missed_reveal = true;
    assert_eq!(
        at(&mut provider, 15, 15, vec![owed.clone()]),
        Step::default(),
        "nobody waits"
    );
    owed.round.as_mut().unwrap().reveals_until = Some(400);
    // Beyond the challenge window, too.
    for (attempt, block) in [(0, 16), (1, 50), (2, 399)] {
        let step = at(&mut provider, block, block, vec![owed.clone()]);
        assert_eq!(kinds(&step), [EffectKind::Reveal], "attempt {attempt}");
        fail(&mut provider, block, EffectKind::Reveal, ANY[attempt]);
    }
    let mut convicted = owed;
    convicted.round.as_mut().unwrap().members[0].fault = Some(FaultKind::NoReveal);
    assert_eq!(at(&mut provider, 410, 410, vec![convicted]), Step::default());
}

#[test]
fn a_bid_is_opened_as_soon_as_the_best_block_asks_for_it() {
    let mut provider = provider(Vec::new());
    let records = see(&mut provider, 10, vec![bidding(1)]).records;
    let [Record::BidMade { bid, .. }] = records.as_slice() else {
        panic!("{records:?}");
    };
    let mut shown = task(1, TaskState::Revealing { until: 100 });
    shown.bid = Some(BidSeen {
        seal: bid.seal(1, &stash()),
        opened: false,
    });
    let step = best(&mut provider, 11, 11, vec![shown.clone()]);
    assert_eq!(kinds(&step), [EffectKind::BidReveal]);
    // A task whose bids are closed is not over for who opened its own.
    shown.task.state = TaskState::Drawing { since: 12 };
    shown.bid = shown.bid.map(|bid| BidSeen { opened: true, ..bid });
    assert_eq!(see(&mut provider, 12, vec![shown]), Step::default());
    assert_eq!(provider.progress().collect::<Vec<_>>(), [(1, Progress::Bidding)]);
}

#[test]
fn what_can_no_longer_matter_is_stopped() {
    let mut provider = provider(Vec::new());
    assert_eq!(
        kinds(&see(&mut provider, 10, vec![working(1)])),
        [EffectKind::Fetch]
    );
    let step = see(&mut provider, 101, vec![working(1)]);
    let stopped = Effect::Cancel {
        task: 1,
        kind: EffectKind::Fetch,
    };
    assert_eq!(effects(&step), [stopped]);
    assert_eq!(see(&mut provider, 102, vec![working(1)]), Step::default());
}

#[test]
fn a_bid_is_never_urgent_and_given_up_once_a_block_has_refused_it() {
    let mut provider = provider(Vec::new());
    let mut sent = 0;
    for block in 10..99 {
        for due in see(&mut provider, block, vec![bidding(1)]).effects {
            assert!(due.effect.kind() == EffectKind::Bid && !due.urgent, "{due:?}");
            sent += 1;
            fail(&mut provider, block, EffectKind::Bid, Failure::Refused);
        }
    }
    assert!(sent > 30, "{sent}");
    let mut provider = self::provider(Vec::new());
    assert_eq!(
        kinds(&see(&mut provider, 10, vec![bidding(1)])),
        [EffectKind::Bid]
    );
    fail(&mut provider, 10, EffectKind::Bid, Failure::Failed);
    for block in 11..99 {
        assert_eq!(see(&mut provider, block, vec![bidding(1)]), Step::default());
    }
}

#[test]
fn an_input_that_is_gone_when_its_turn_comes_is_fetched_again() {
    let mut provider = provider(Vec::new());
    see(&mut provider, 10, vec![working(1)]);
    provider.step(10, Event::InputReady { task: 1 });
    let failed = Event::EffectFailed {
        task: 1,
        kind: EffectKind::Compute,
        failure: Failure::Refused,
    };
    assert_eq!(kinds(&provider.step(11, failed)), [EffectKind::Fetch]);
    assert_eq!(
        kinds(&provider.step(12, Event::InputReady { task: 1 })),
        [EffectKind::Compute]
    );
}
