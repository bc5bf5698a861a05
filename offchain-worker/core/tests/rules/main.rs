//! Single facts about the state machine; `simulation` is about all of them at once.

#![allow(clippy::unwrap_used)]

mod absence;
mod attempts;
mod capacity;
mod displaced;
mod lost;
mod money;
mod requiring;
mod unbacked;

use sp_core::H256;
use surety_proofs::commitment;
use surety_types::{
    model::Operation,
    task::{
        Assignment, FailureReason, MemberProgress, ResultClaim, RoundMember, RoundPhase, Task, TaskSpec,
        TaskState, Verdict,
    },
    trust::FaultKind,
    view::BidTerms,
};
use surety_worker_core::{
    AccountId, BidSeen, Config, Effect, EffectKind, Event, PriceList, Progress, Provider, Rate, Record,
    ReplayError, RoundRecord, SecretSalts, Step, TaskSnapshot,
};

fn stash() -> AccountId {
    AccountId::new([1; 32])
}

fn model() -> H256 {
    H256([2; 32])
}

fn config() -> Config {
    let rate = Rate {
        price_per_unit: 10,
        units_per_second: 5,
        seconds_ahead: 1,
    };
    let prices = PriceList::new(1000, 1000).with(model(), Operation::Embed, rate);
    Config::new(stash(), prices, SecretSalts::new([9; 32]))
}

fn provider(records: Vec<Record>) -> Provider {
    Provider::new(config(), records).unwrap()
}

fn task(id: u64, state: TaskState<AccountId, u128, u32>) -> TaskSnapshot {
    let spec = TaskSpec {
        model: model(),
        operation: Operation::Embed,
        input: H256([3; 32]),
        input_bytes: 100,
        units_max: 50,
        redundancy: 2,
        sources: Default::default(),
        security: Default::default(),
        requirements: Default::default(),
    };
    TaskSnapshot {
        id,
        task: Task {
            client: AccountId::new([4; 32]),
            spec,
            cap: 2000,
            audits: surety_types::task::AuditTerms::default(),
            posted_at: 1,
            state,
        },
        round: None,
        bid: None,
        terms: Some(BidTerms {
            price_limit: 1000,
            lock: 500 * 40,
        }),
        disputes: Vec::new(),
        demands: Vec::new(),
        committees: Vec::new(),
    }
}

fn bidding(id: u64) -> TaskSnapshot {
    task(id, TaskState::Bidding { until: 100 })
}

fn running(id: u64, progress: MemberProgress, phase: RoundPhase<AccountId, u32>) -> TaskSnapshot {
    let assignment = Assignment {
        provider: stash(),
        price: 500,
    };
    let state = TaskState::Running {
        assignments: vec![assignment].try_into().unwrap(),
        reserves: Default::default(),
    };
    let member = RoundMember {
        progress,
        ..RoundMember::new(stash(), 500, 1)
    };
    let round = RoundRecord {
        members: vec![member].try_into().unwrap(),
        phase,
        ..RoundRecord::new(50, 0)
    };
    let mut snapshot = task(id, state);
    snapshot.round = Some(round);
    snapshot
}

fn working(id: u64) -> TaskSnapshot {
    running(id, MemberProgress::Working, RoundPhase::Committing { until: 100 })
}

fn claim(output: u8) -> ResultClaim {
    ResultClaim {
        output: H256([output; 32]),
        trace_root: H256([6; 32]),
        units: 20,
    }
}

fn see(provider: &mut Provider, block: u32, tasks: Vec<TaskSnapshot>) -> Step {
    see_part(provider, block, tasks, Vec::new())
}

fn see_part(provider: &mut Provider, block: u32, tasks: Vec<TaskSnapshot>, unread: Vec<u64>) -> Step {
    let event = Event::Finalized {
        block,
        clock: block,
        tasks,
        unread,
    };
    provider.step(block, event)
}

fn effects(step: &Step) -> Vec<Effect> {
    step.effects.iter().map(|due| due.effect.clone()).collect()
}

fn kinds(step: &Step) -> Vec<EffectKind> {
    effects(step).iter().map(Effect::kind).collect()
}

#[test]
fn a_bid_asks_for_the_listed_price_and_its_record_comes_with_it() {
    let mut provider = provider(Vec::new());
    let step = see(&mut provider, 10, vec![bidding(7)]);
    let [Record::BidMade { task: 7, at: 10, bid }] = step.records.as_slice() else {
        panic!("{:?}", step.records);
    };
    assert_eq!((bid.price, bid.seconds), (500, 11));
    let seal = bid.seal(7, &stash());
    assert_eq!(effects(&step), [Effect::SubmitBid { task: 7, seal }]);
    // The same state again asks for nothing new.
    assert_eq!(see(&mut provider, 10, vec![bidding(7)]), Step::default());
}

#[test]
fn tasks_that_pay_too_little_or_come_too_late_are_left_to_others() {
    let mut provider = provider(Vec::new());
    let mut poor = bidding(1);
    poor.terms.as_mut().unwrap().price_limit = 499;
    let mut unknown = bidding(2);
    unknown.terms = None;
    let late = task(3, TaskState::Bidding { until: 10 });
    let mut foreign = bidding(4);
    foreign.task.spec.model = H256([9; 32]);
    let step = see(&mut provider, 10, vec![poor, unknown, late, foreign]);
    assert_eq!(step, Step::default());
    assert_eq!(provider.progress().count(), 0);
}

#[test]
fn no_more_tasks_than_allowed_are_taken_on() {
    let mut config = config();
    config.tasks_max = 3;
    let mut provider = Provider::new(config, Vec::new()).unwrap();
    let step = see(&mut provider, 10, (0..10).map(bidding).collect());
    assert_eq!(step.effects.len(), 3);
}

#[test]
fn a_second_result_is_ignored() {
    let mut provider = provider(Vec::new());
    assert_eq!(
        kinds(&see(&mut provider, 10, vec![working(1)])),
        [EffectKind::Fetch]
    );
    assert_eq!(
        kinds(&provider.step(10, Event::InputReady { task: 1 })),
        [EffectKind::Compute]
    );
    let first = Event::ResultReady {
        task: 1,
        claim: claim(1),
        leaves: None,
    };
    let step = provider.step(10, first);
    assert_eq!(kinds(&step), [EffectKind::Commit]);
    assert!(matches!(
        step.records.as_slice(),
        [Record::ResultMade { task: 1, .. }]
    ));
    let second = Event::ResultReady {
        task: 1,
        claim: claim(2),
        leaves: None,
    };
    assert_eq!(provider.step(10, second), Step::default());
}

#[test]
fn a_restart_commits_to_what_the_journal_holds_and_then_reveals_it() {
    let salt = H256([5; 32]);
    let hash = commitment(1, &stash(), &claim(1), &salt);
    let made = Record::ResultMade {
        task: 1,
        at: 9,
        claim: claim(1),
        salt,
        commitment: hash,
    };
    let mut provider = provider(vec![made]);
    let step = see(&mut provider, 10, vec![working(1)]);
    assert_eq!(
        effects(&step),
        [Effect::SubmitCommit {
            task: 1,
            commitment: hash
        }]
    );
    let revealing = RoundPhase::Revealing { until: 100 };
    let committed = running(1, MemberProgress::Committed(hash), revealing.clone());
    let step = see(&mut provider, 11, vec![committed]);
    assert_eq!(
        effects(&step),
        [Effect::SubmitReveal {
            task: 1,
            claim: claim(1),
            salt
        }]
    );
    let revealed = running(1, MemberProgress::Revealed(claim(1)), revealing);
    assert_eq!(see(&mut provider, 12, vec![revealed]), Step::default());
    assert_eq!(provider.progress().collect::<Vec<_>>(), [(1, Progress::Revealed)]);
    assert_eq!(see(&mut provider, 101, Vec::new()), Step::default());
    let step = see(&mut provider, 102, Vec::new());
    assert_eq!(step.records, [Record::Finished { task: 1, at: 102 }]);
    assert_eq!(effects(&step), [Effect::Forget { task: 1 }]);
}

#[test]
fn a_commitment_that_is_not_ours_is_never_opened() {
    let phase = RoundPhase::Revealing { until: 100 };
    let foreign = running(1, MemberProgress::Committed(H256([7; 32])), phase);
    let mut provider = provider(Vec::new());
    see(&mut provider, 10, vec![foreign.clone()]);
    provider.step(10, Event::InputReady { task: 1 });
    let ready = Event::ResultReady {
        task: 1,
        claim: claim(1),
        leaves: None,
    };
    assert_eq!(provider.step(10, ready), Step::default());
    assert_eq!(see(&mut provider, 11, vec![foreign]), Step::default());
}

#[test]
fn a_result_with_more_units_than_paid_for_is_given_up() {
    let mut provider = provider(Vec::new());
    see(&mut provider, 10, vec![working(1)]);
    provider.step(10, Event::InputReady { task: 1 });
    let mut claim = claim(1);
    claim.units = 51;
    let ready = Event::ResultReady {
        task: 1,
        claim,
        leaves: None,
    };
    assert_eq!(provider.step(10, ready), Step::default());
    assert_eq!(provider.progress().collect::<Vec<_>>(), [(1, Progress::GivenUp)]);
}

#[test]
fn a_finished_task_is_not_taken_up_again_and_hides_no_other() {
    let mut provider = provider(vec![Record::Finished { task: 5, at: 9 }]);
    assert_eq!(see(&mut provider, 10, vec![bidding(5)]), Step::default());

    // However many have finished since: a task with a lower number is another one.
    let many = (100..10_100).map(|task| Record::Finished { task, at: 9 });
    let mut provider = self::provider(many.collect());
    assert_eq!(see(&mut provider, 10, vec![bidding(100)]), Step::default());
    assert_eq!(
        kinds(&see(&mut provider, 11, vec![bidding(99)])),
        [EffectKind::Bid]
    );
}

#[test]
fn a_state_older_than_the_journal_changes_nothing() {
    let mut provider = provider(Vec::new());
    let made = see(&mut provider, 50, vec![bidding(1)]).records;
    let mut restarted = self::provider(made);
    // A node that lags behind does not list the task yet.
    assert_eq!(see(&mut restarted, 40, Vec::new()), Step::default());
    assert_eq!(
        kinds(&see(&mut restarted, 51, vec![bidding(1)])),
        [EffectKind::Bid]
    );
}

#[test]
fn a_bid_that_the_journal_lacks_is_opened_if_it_is_the_one_we_would_make() {
    let mut provider = provider(Vec::new());
    let records = see(&mut provider, 10, vec![bidding(1)]).records;
    let [Record::BidMade { bid, .. }] = records.as_slice() else {
        panic!("{records:?}");
    };
    let shown = |seal| {
        let mut snapshot = task(1, TaskState::Revealing { until: 100 });
        snapshot.bid = Some(BidSeen { seal, opened: false });
        snapshot
    };
    let mut forgetful = self::provider(Vec::new());
    let step = see(&mut forgetful, 20, vec![shown(bid.seal(1, &stash()))]);
    assert_eq!(
        effects(&step),
        [Effect::SubmitBidReveal {
            task: 1,
            bid: bid.clone()
        }]
    );
    assert_eq!(step.records.len(), 1);
    let mut forgetful = self::provider(Vec::new());
    assert_eq!(
        see(&mut forgetful, 20, vec![shown(H256([8; 32]))]),
        Step::default()
    );
}

#[test]
fn what_is_due_first_is_computed_first_and_only_so_much_at_once() {
    let mut config = config();
    config.fetching_max = 1;
    let mut provider = Provider::new(config, Vec::new()).unwrap();
    let until = |id, until| running(id, MemberProgress::Working, RoundPhase::Committing { until });
    let step = see(&mut provider, 10, vec![until(1, 90), until(2, 40), until(3, 60)]);
    let started = |step: Step| -> Vec<_> { effects(&step).iter().map(|e| (e.task(), e.kind())).collect() };
    assert_eq!(started(step), [(2, EffectKind::Fetch)]);
    let step = provider.step(10, Event::InputReady { task: 2 });
    assert_eq!(started(step), [(3, EffectKind::Fetch), (2, EffectKind::Compute)]);
}

#[test]
fn a_journal_that_contradicts_itself_or_is_of_another_stash_is_refused() {
    let mut maker = provider(Vec::new());
    let records = see(&mut maker, 10, vec![bidding(1)]).records;
    let mut other = records.clone();
    let Record::BidMade { bid, .. } = &mut other[0] else {
        panic!("{other:?}");
    };
    bid.price += 1;
    let twice = [records.clone(), records.clone()].concat();
    assert!(Provider::new(config(), twice).is_ok());
    let contradiction = [records, other].concat();
    assert_eq!(
        Provider::new(config(), contradiction).err(),
        Some(ReplayError::Contradiction { task: 1 })
    );

    let (salt, theirs) = (H256([5; 32]), AccountId::new([8; 32]));
    let foreign = Record::ResultMade {
        task: 1,
        at: 1,
        claim: claim(1),
        salt,
        commitment: commitment(1, &theirs, &claim(1), &salt),
    };
    assert_eq!(
        Provider::new(config(), vec![foreign]).err(),
        Some(ReplayError::WrongStash { task: 1 })
    );
}

#[test]
fn nothing_is_bid_for_while_there_is_no_room_for_promises() {
    let mut provider = provider(Vec::new());
    // This bid is made and not sent yet: its call got lost.
    let made = see(&mut provider, 10, vec![bidding(1)]);
    assert_eq!(kinds(&made), [EffectKind::Bid]);
    let lost = Event::EffectFailed {
        task: 1,
        kind: EffectKind::Bid,
        failure: surety_worker_core::Failure::Refused,
    };
    provider.step(10, lost);
    provider.step(10, Event::Room { is_short: true });
    let short = see(&mut provider, 13, vec![bidding(1), bidding(2), working(4)]);
    // What was promised before is worked for.
    assert_eq!(kinds(&short), [EffectKind::Fetch]);
    assert_eq!(short.records, []);
    let again = provider.step(13, Event::Room { is_short: false });
    assert_eq!(kinds(&again), [EffectKind::Bid]);
    let again = see(&mut provider, 14, vec![bidding(1), bidding(2), working(4)]);
    assert_eq!(kinds(&again), [EffectKind::Bid]);
}
