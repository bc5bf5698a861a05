//! What a provider does when its result is in dispute, or its output is demanded.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use sp_core::H256;
use surety_dispute_game::bisection::{
    Cell, Clocks, Game, Judgement, LeafKind, LeafShape, Length, Missing, Move, Referee, Roots, RowsShape,
    Shape, Side, Trace, defend,
};
use surety_proofs::{commitment, merkle_root};
use surety_types::{
    limits::{INPUT_BYTES_MAX, PART_BYTES},
    model::Operation,
    task::{
        FailureReason, MemberProgress, ResultClaim, RoundMember, RoundPhase, Task, TaskSpec, TaskState,
        Verdict,
    },
    trust::{Content, ContentPart, Demand, DemandedParts, Party},
};
use surety_worker_core::{
    AccountId, Config, DisputeRecord, Effect, EffectKind, Event, NoBids, Provider, Record, RoundRecord,
    SecretSalts, Step, TaskSnapshot,
};

const TASK: u64 = 5;
const CLOCK: u32 = 50;

fn stash() -> AccountId {
    AccountId::new([2; 32])
}

fn config() -> Config {
    Config::new(stash(), NoBids, SecretSalts::new([9; 32]))
}

/// Twenty leaves of one word.
struct Words;

impl Shape for Words {
    fn leaves(&self) -> u32 {
        20
    }

    fn leaf(&self, leaf: u32) -> Option<LeafShape> {
        (leaf < 20).then_some(LeafShape {
            length: Length::Known(1),
            kind: LeafKind::Computed,
        })
    }

    fn steps(&self, _: u32, _: u32) -> Option<u32> {
        Some(1)
    }

    fn rows(&self, leaf: u32, _: u32, _: u32) -> Option<RowsShape> {
        (leaf < 20).then_some(RowsShape {
            rows: 1,
            row_bytes: 4,
            quantized: None,
        })
    }
}

/// Nobody comes as far as a cell here.
struct Nobody;

impl Referee for Nobody {
    fn opening_bytes(&self, _: &Cell) -> Option<u32> {
        None
    }

    fn needed(&self, _: &Cell) -> Option<Missing> {
        None
    }

    fn judge(&self, _: &Cell, _: &Roots, _: &[u8]) -> Judgement {
        Judgement::Unproven
    }
}

/// The leaves alone.
struct Own(Vec<H256>);

impl Trace for Own {
    type Error = std::convert::Infallible;

    fn leaves(&mut self) -> Result<&[H256], Self::Error> {
        Ok(&self.0)
    }

    fn steps(&mut self, _: u32) -> Result<Vec<H256>, Self::Error> {
        Ok(Vec::new())
    }

    fn rows(&mut self, _: u32, _: u32) -> Result<Vec<H256>, Self::Error> {
        Ok(Vec::new())
    }

    fn row(&mut self, _: u32, _: u32, _: u32) -> Result<Vec<u8>, Self::Error> {
        Ok(Vec::new())
    }

    fn open(&mut self, _: &Cell) -> Result<Vec<u8>, Self::Error> {
        Ok(Vec::new())
    }
}

fn root() -> H256 {
    merkle_root((0..20).map(H256::from_low_u64_be))
}

fn claim() -> ResultClaim {
    ResultClaim {
        output: H256([7; 32]),
        trace_root: root(),
        units: 3,
    }
}

fn dispute() -> DisputeRecord {
    DisputeRecord {
        task: TASK,
        defender: Party::Provider(stash()),
        challenger: Party::Account(AccountId::new([8; 32])),
        claim: claim(),
        game: Game::new(root(), &Words, Clocks::equal(CLOCK)).unwrap(),
        bond: 1,
        committee_bond: 0,
        prepaid: None,
        moves: 0,
        opened_at: 10,
        ticked_at: 10,
        referred_at: None,
    }
}

fn challenged(disputes: Vec<(u32, DisputeRecord)>) -> TaskSnapshot {
    let spec = TaskSpec {
        model: H256([1; 32]),
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
        progress: MemberProgress::Revealed(claim()),
        ..RoundMember::new(stash(), 500, 1)
    };
    let round = RoundRecord {
        members: vec![member].try_into().unwrap(),
        phase: RoundPhase::Challengeable {
            until: 100,
            verdict: Verdict::Failed(FailureReason::NoAgreement),
        },
        ..RoundRecord::new(50, 0)
    };
    TaskSnapshot {
        id: TASK,
        task: Task {
            client: AccountId::new([4; 32]),
            spec,
            cap: 2000,
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
        disputes,
        demands: Vec::new(),
        committees: Vec::new(),
    }
}

fn see(provider: &mut Provider, block: u32, snapshot: TaskSnapshot) -> Step {
    let tasks = vec![snapshot];
    let clock = block;
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

fn effects(step: &Step) -> Vec<Effect> {
    step.effects.iter().map(|due| due.effect.clone()).collect()
}

fn post(first: u64) -> Move {
    Move::Post(
        vec![H256::from_low_u64_be(first), H256::zero()]
            .try_into()
            .unwrap(),
    )
}

fn ready(number: u32, played: Move) -> Event {
    Event::MoveReady {
        task: TASK,
        dispute: 3,
        number,
        played,
    }
}

fn made() -> Record {
    Record::MoveMade {
        task: TASK,
        at: 11,
        dispute: 3,
        number: 0,
        played: post(1),
    }
}

fn submitted() -> Effect {
    Effect::SubmitMove {
        task: TASK,
        dispute: 3,
        number: 0,
        played: post(1),
    }
}

#[test]
fn a_provider_defends_with_one_move_for_each_state() {
    // Its journal is lost, which is no reason to lose a dispute.
    let mut provider = Provider::new(config(), Vec::new()).unwrap();
    let step = see(&mut provider, 11, challenged(vec![(3, dispute())]));
    let [Effect::ComputeMove { side, record, .. }] = &effects(&step)[..] else {
        panic!("{:?}", step.effects);
    };
    assert_eq!((*side, record.moves), (Side::Defender, 0));

    let step = provider.step(11, ready(0, post(1)));
    assert_eq!((effects(&step), step.records), (vec![submitted()], vec![made()]));
    let step = provider.step(11, ready(0, post(2)));
    assert_eq!(step, Step::default(), "another move for the same state is none");
    let step = provider.step(11, done(EffectKind::Play(3)));
    let sent = Record::MoveSubmitted {
        task: TASK,
        at: 11,
        dispute: 3,
        number: 0,
    };
    assert_eq!(step.records, vec![sent.clone()]);

    // A block that is gone, and a restart: the same move again.
    let mut provider = Provider::new(config(), vec![made(), sent]).unwrap();
    let kinds = |step: Step| effects(&step).iter().map(Effect::kind).collect::<Vec<_>>();
    let early = see(&mut provider, 12, challenged(vec![(3, dispute())]));
    assert_eq!(kinds(early), [], "it may still show");
    let late = see(&mut provider, 30, challenged(vec![(3, dispute())]));
    assert_eq!(effects(&late), vec![submitted()]);
}

#[test]
fn a_move_that_was_not_made_before_a_crash_is_looked_for_again() {
    let mut provider = Provider::new(config(), Vec::new()).unwrap();
    let first = see(&mut provider, 11, challenged(vec![(3, dispute())]));
    let mut provider = Provider::new(config(), first.records.clone()).unwrap();
    let again = see(&mut provider, 12, challenged(vec![(3, dispute())]));
    assert_eq!(effects(&again), effects(&first));
}

#[test]
fn two_moves_for_one_state_are_a_contradiction() {
    let other = Record::MoveMade {
        task: TASK,
        at: 11,
        dispute: 3,
        number: 0,
        played: post(2),
    };
    assert!(Provider::new(config(), vec![made(), other]).is_err());
}

#[test]
fn a_challenger_whose_time_is_over_is_pointed_out() {
    let mut record = dispute();
    let played = Move::Post(children().try_into().unwrap());
    record.game.step(Side::Defender, played, &Words, &Nobody).unwrap();
    record.moves = 1;
    let mut provider = Provider::new(config(), Vec::new()).unwrap();
    let waiting = see(&mut provider, 10 + CLOCK, challenged(vec![(3, record.clone())]));
    assert_eq!(effects(&waiting), vec![]);
    let over = see(&mut provider, 11 + CLOCK, challenged(vec![(3, record)]));
    let advance = Effect::SubmitAdvance {
        task: TASK,
        dispute: 3,
    };
    assert_eq!(effects(&over), vec![advance]);
}

/// The nodes below the root of twenty leaves.
fn children() -> Vec<H256> {
    let mut own = Own((0..20).map(H256::from_low_u64_be).collect());
    match defend(&dispute().game, &Words, &mut own).unwrap() {
        Move::Post(children) => children.to_vec(),
        other => panic!("{other:?}"),
    }
}

const SALT: H256 = H256([6; 32]);

fn sealed_commitment() -> H256 {
    commitment(TASK, &stash(), &claim(), &SALT)
}

fn done(kind: EffectKind) -> Event {
    Event::EffectDone {
        task: TASK,
        kind,
        block: None,
    }
}

/// That we have computed the claim.
fn sealed_result() -> Record {
    Record::ResultMade {
        task: TASK,
        at: 1,
        claim: claim(),
        salt: SALT,
        commitment: sealed_commitment(),
    }
}

#[test]
fn what_is_demanded_of_us_is_shown_while_there_is_time() {
    let demanded = |of: AccountId| {
        let demand = |by: u8, parts: &[(Content, u32)]| {
            let parts = parts.iter().map(|(content, part)| ContentPart {
                content: *content,
                part: *part,
            });
            let demand = Demand {
                demander: AccountId::new([by; 32]),
                by: AccountId::new([by; 32]),
                parts: DemandedParts::truncate_from(parts.collect()),
                price: 1,
                until: 40,
            };
            (of.clone(), demand)
        };
        let mut snapshot = challenged(Vec::new());
        snapshot.demands = vec![
            demand(8, &[(Content::Output, 5), (Content::Output, 4)]),
            demand(9, &[(Content::Output, 4), (Content::Input, 1)]),
        ];
        snapshot
    };
    let mut provider = Provider::new(config(), vec![sealed_result()]).unwrap();
    let others = see(&mut provider, 20, demanded(AccountId::new([3; 32])));
    assert_eq!(effects(&others), vec![]);
    let ours = see(&mut provider, 21, demanded(stash()));
    // Each once, whoever has demanded it.
    let supply = |content, part, hash| Effect::SubmitSupply {
        task: TASK,
        part: ContentPart { content, part },
        hash,
    };
    let input = challenged(Vec::new()).task.spec.input;
    let expected = vec![
        supply(Content::Input, 1, input),
        supply(Content::Output, 4, claim().output),
        supply(Content::Output, 5, claim().output),
    ];
    assert_eq!(effects(&ours), expected);
    // Nobody knows how long a generation is: one part follows the other.
    let mut provider = Provider::new(config(), vec![sealed_result()]).unwrap();
    let mut generated = demanded(stash());
    generated.task.spec.operation = Operation::Generate;
    let ours = see(&mut provider, 21, generated);
    assert_eq!(effects(&ours), expected[..2]);
}

#[test]
fn a_long_input_is_shown_some_parts_at_a_time_until_none_is_missing() {
    let mut missing: BTreeSet<u32> = (0..INPUT_BYTES_MAX / PART_BYTES).collect();
    let mut provider = Provider::new(config(), vec![sealed_result()]).unwrap();
    for block in 20.. {
        let part = |part: &u32| ContentPart {
            content: Content::Input,
            part: *part,
        };
        let mut snapshot = challenged(Vec::new());
        snapshot.demands = vec![(
            stash(),
            Demand {
                demander: AccountId::new([8; 32]),
                by: AccountId::new([8; 32]),
                parts: DemandedParts::truncate_from(missing.iter().map(part).collect()),
                price: 1,
                until: 400,
            },
        )];
        let step = see(&mut provider, block, snapshot);
        let shown = effects(&step).into_iter().filter_map(|effect| match effect {
            Effect::SubmitSupply { part, .. } => Some(part),
            _ => None,
        });
        let shown: Vec<_> = shown.collect();
        assert!(shown.len() <= 8, "{}", shown.len());
        for part in shown {
            assert!(missing.remove(&part.part), "twice: {part:?}");
            let kind = EffectKind::Supply(part);
            provider.step(block, done(kind));
        }
        if missing.is_empty() {
            assert_eq!(block, 20 + 15, "sixteen blocks of eight");
            return;
        }
    }
}

/// A dispute about `claim` in which the provider has so many blocks left.
fn with_time(claim: ResultClaim, blocks: u32) -> DisputeRecord {
    DisputeRecord {
        game: Game::new(claim.trace_root, &Words, Clocks::equal(blocks)).unwrap(),
        claim,
        ..dispute()
    }
}

/// Disputes in which moves are looked for.
fn looked_for(step: &Step) -> Vec<u32> {
    let moves = step.effects.iter().filter_map(|due| match due.effect.kind() {
        EffectKind::ComputeMove(dispute) => Some(dispute),
        _ => None,
    });
    moves.collect()
}

#[test]
fn disputes_about_one_claim_wait_for_one_computation_in_the_order_of_their_clocks() {
    let time = |dispute: u32| 1_000 + 100 * ((dispute * 7) % 16);
    let mut disputes: Vec<_> = (0..16)
        .map(|dispute| (dispute, with_time(claim(), time(dispute))))
        .collect();
    // Another claim has a trace of its own, and waits for none of them.
    let other = ResultClaim {
        output: H256([8; 32]),
        ..claim()
    };
    disputes.push((99, with_time(other, 9_000)));
    let mut provider = Provider::new(config(), Vec::new()).unwrap();
    let mut step = see(&mut provider, 11, challenged(disputes.clone()));
    let mut order = Vec::new();
    assert_eq!(looked_for(&step).len(), 2, "one of each claim");
    assert!(looked_for(&step).contains(&99));
    while let Some(next) = looked_for(&step).into_iter().find(|dispute| *dispute != 99) {
        assert!(!order.contains(&next));
        order.push(next);
        let ready = Event::MoveReady {
            task: TASK,
            dispute: next,
            number: 0,
            played: post(u64::from(next) + 1),
        };
        step = provider.step(11, ready);
    }
    let mut expected: Vec<_> = (0..16).collect();
    expected.sort_by_key(|dispute| time(*dispute));
    assert_eq!(order, expected);
}

#[test]
fn a_dispute_that_ends_while_its_move_is_looked_for_makes_way_for_the_next() {
    let disputes: Vec<_> = (1..=3)
        .map(|dispute| (dispute, with_time(claim(), 1_000 * dispute)))
        .collect();
    let mut provider = Provider::new(config(), Vec::new()).unwrap();
    let step = see(&mut provider, 11, challenged(disputes.clone()));
    assert_eq!(looked_for(&step), [1]);
    let step = see(&mut provider, 12, challenged(disputes[1..].to_vec()));
    let stopped = Effect::Cancel {
        task: TASK,
        kind: EffectKind::ComputeMove(1),
    };
    assert!(effects(&step).contains(&stopped), "{:?}", step.effects);
    assert_eq!(looked_for(&step), [2]);
}
