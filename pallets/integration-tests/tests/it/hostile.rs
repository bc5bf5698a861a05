//! Hostile accounts may call whatever they like, in any order and at any time. Who is honest and plays its
//! disputes loses nothing, no money appears or goes missing, and everything ends by time alone.

use frame_support::traits::fungible::Mutate;
use proptest::{collection::vec, prelude::*};
use surety_dispute_game::bisection::{Missing, Move, Side};
use surety_pallet_test_kit::{MockOutcome, MockStake};
use surety_proofs::SegmentOpening;
use surety_types::{task::Verdict, trust::AuditProof};

use surety_pallet_integration_tests::*;

const TRUTH: u8 = 9;
/// The honest: some members and one verifier.
const HONEST_VERIFIER: AccountId = FIRST_VERIFIER;
/// The hostile, beside members: verifiers and strangers.
const HOSTILE_VERIFIER: AccountId = FIRST_VERIFIER + 1;

#[derive(Clone, Debug)]
enum Step {
    Commit(AccountId, u8),
    Reveal(AccountId, u8),
    Announce(AccountId, AccountId, u8),
    RevealAudit(AccountId, AccountId, u8),
    Challenge(AccountId, AccountId),
    Demand(AccountId, AccountId, u32),
    Supply(AccountId, u8, u32),
    DemandInput(AccountId, u32),
    SupplyJunk(u32),
    /// Plays what a side with this result would, in one of the open disputes.
    Play(u32, u8),
    /// Plays something else.
    PlayJunk(AccountId, u32, u8),
    Sabotage(u32, u8),
    /// Gives up.
    Concede(u32),
    AdvanceDispute(u32),
    CarryOut(u32),
    AnnounceUndrawn(AccountId, AccountId),
    Pass(BlockNumber),
}

fn any_step(members: AccountId) -> impl Strategy<Value = Step> {
    let member = move || 1..=members;
    let verifier = || HOSTILE_VERIFIER..HOSTILE_VERIFIER + 3;
    let stranger = || FIRST_STRANGER..FIRST_STRANGER + 4;
    let demander = || prop_oneof![3 => stranger(), 1 => Just(MockOutcome::CLIENT)];
    let result = || prop_oneof![Just(TRUTH), Just(8), Just(7), Just(TOO_LARGE)];
    let dispute = || 0u32..24;
    prop_oneof![
        4 => (member(), result()).prop_map(|(who, result)| Step::Commit(who, result)),
        4 => (member(), result()).prop_map(|(who, result)| Step::Reveal(who, result)),
        3 => (verifier(), member(), result()).prop_map(|(who, of, result)| Step::Announce(who, of, result)),
        3 => (verifier(), member(), result()).prop_map(|(who, of, result)| Step::RevealAudit(who, of, result)),
        3 => (stranger(), member()).prop_map(|(who, of)| Step::Challenge(who, of)),
        2 => (demander(), member(), 0u32..4).prop_map(|(who, of, piece)| Step::Demand(who, of, piece)),
        1 => (member(), result(), 0u32..3).prop_map(|(who, result, piece)| Step::Supply(who, result, piece)),
        2 => (member(), 0u32..4).prop_map(|(who, piece)| Step::DemandInput(who, piece)),
        1 => (0u32..3).prop_map(Step::SupplyJunk),
        10 => (dispute(), result()).prop_map(|(id, result)| Step::Play(id, result)),
        3 => (stranger(), dispute(), any::<u8>()).prop_map(|(who, id, junk)| Step::PlayJunk(who, id, junk)),
        4 => (dispute(), result()).prop_map(|(id, result)| Step::Sabotage(id, result)),
        4 => dispute().prop_map(Step::Concede),
        1 => dispute().prop_map(Step::AdvanceDispute),
        1 => (0u32..6).prop_map(Step::CarryOut),
        1 => (verifier(), member()).prop_map(|(who, of)| Step::AnnounceUndrawn(who, of)),
        5 => (1u64..4).prop_map(Step::Pass),
    ]
}

/// Members by seat: whether each is honest.
struct World {
    honest: Vec<AccountId>,
}

impl World {
    fn is_honest(&self, account: AccountId) -> bool {
        self.honest.contains(&account) || account == HONEST_VERIFIER
    }

    /// What hostile accounts do; whatever would be done in the name of somebody honest is left out.
    fn take(&self, step: Step) {
        let hostile_side = |id: u32| {
            let party = to_move(id)?;
            (!self.is_honest(*party.account())).then(|| player_of(&party))
        };
        match step {
            Step::Commit(who, result) if !self.is_honest(who) => tried(commit(who, result)),
            Step::Reveal(who, result) if !self.is_honest(who) => tried(reveal(who, result)),
            Step::Commit(..) | Step::Reveal(..) => {}
            Step::Announce(who, of, result) => {
                if round().is_some_and(|round| round.draw.is_some()) {
                    tried(announce(who, of, result));
                }
            }
            Step::RevealAudit(who, of, result) => tried(reveal_audit(who, of, result)),
            Step::Challenge(who, of) => tried(challenge(who, of)),
            Step::Demand(who, of, segment) => {
                tried(send_as(
                    who,
                    ResultsCall::demand {
                        task: TASK,
                        provider: of,
                        segment,
                    },
                ));
            }
            Step::Supply(who, result, segment) if !self.is_honest(who) => supply(who, result, segment),
            Step::Supply(..) => {}
            Step::DemandInput(who, segment) if !self.is_honest(who) => tried(demand_input(who, segment)),
            Step::DemandInput(..) => {}
            Step::SupplyJunk(segment) => tried(supply_input(FIRST_STRANGER, &output(TRUTH), segment)),
            Step::Play(id, result) => {
                if let Some(player) = hostile_side(id) {
                    tried(play(player, id, next_move(id, result)));
                }
            }
            Step::Sabotage(id, result) => {
                if let Some(player) = hostile_side(id) {
                    tried(play(player, id, sabotage(id, result)));
                }
            }
            Step::Concede(id) => {
                if let Some(player) = hostile_side(id) {
                    tried(play(player, id, Move::Concede));
                }
            }
            Step::PlayJunk(who, id, junk) => {
                let player = hostile_side(id).unwrap_or(who);
                tried(play(player, id, junk_move(junk)));
            }
            Step::AdvanceDispute(dispute) => {
                tried(send_as(FIRST_STRANGER, DisputesCall::advance_dispute { dispute }))
            }
            Step::CarryOut(slash) => tried(send_as(FIRST_STRANGER, TrustLockCall::carry_out_slash { slash })),
            Step::AnnounceUndrawn(who, provider) => announce_undrawn(who, provider),
            Step::Pass(blocks) => {
                for _ in 0..blocks {
                    self.be_honest();
                    pass(1);
                }
            }
        }
    }

    /// What the honest do in every block.
    fn be_honest(&self) {
        if let Some(segment) = demanded_input() {
            tried(supply_input(MockOutcome::CLIENT, &input(), segment));
        }
        for stash in &self.honest {
            tried(commit(*stash, TRUTH));
            tried(reveal(*stash, TRUTH));
            if Demands::<Test>::contains_key(TASK, stash) {
                let wanted = Demands::<Test>::get(TASK, stash).map(|demand| demand.segment);
                supply(*stash, TRUTH, wanted.unwrap_or_default().min(2));
            }
        }
        if round().is_some_and(|round| round.draw.is_some()) {
            for stash in members() {
                tried(announce(HONEST_VERIFIER, stash, TRUTH));
                tried(reveal_audit(HONEST_VERIFIER, stash, TRUTH));
            }
        }
        let honest: Vec<_> = self
            .honest
            .iter()
            .chain([&HONEST_VERIFIER])
            .map(|account| (*account, TRUTH))
            .collect();
        play_out(&honest);
        // Who decides what no block can, knows the truth.
        for (id, dispute) in disputes() {
            if dispute.referred_at.is_some() {
                let winner = if dispute.claim == claim(TRUTH) {
                    Side::Defender
                } else {
                    Side::Challenger
                };
                tried(Disputes::decide_dispute(RuntimeOrigin::root(), id, winner));
            }
        }
    }
}

/// Whether it went through makes no difference.
fn tried<T>(_: T) {}

fn junk_move(junk: u8) -> Move {
    match junk % 5 {
        0 => Move::Concede,
        4 => Move::Ask(Missing::Output),
        1 => Move::Name(junk),
        2 => Move::Pick(junk.into()),
        _ => Move::Post(Default::default()),
    }
}

fn announce_undrawn(who: AccountId, provider: AccountId) {
    let announced = send(
        who,
        ResultsCall::announce_audit {
            task: TASK,
            provider,
            proof: AuditProof {
                pre_output: [1; 32],
                proof: [0; 64],
            },
            seal: Default::default(),
        },
    );
    assert!(announced.is_err());
}

fn supply(who: AccountId, result: u8, segment: u32) {
    let bytes = output(result);
    if let Some(opening) = SegmentOpening::new(&bytes, segment) {
        let output_bytes = bytes.len() as u32;
        tried(send(
            who,
            ResultsCall::supply {
                task: TASK,
                output_bytes,
                opening,
            },
        ));
    }
}

/// Verifiers that confirmed what the honest one contradicts, and whose result it was.
fn confirmed_lies() -> Vec<(AccountId, AccountId)> {
    let revealed: Vec<_> = events()
        .into_iter()
        .filter_map(|event| match event {
            RuntimeEvent::Results(ResultsEvent::AuditRevealed {
                verifier,
                provider,
                agrees,
                ..
            }) => Some((verifier, provider, agrees)),
            _ => None,
        })
        .collect();
    let is_lie = |wanted| revealed.contains(&(HONEST_VERIFIER, wanted, false));
    let confirmed = revealed
        .iter()
        .filter(|(_, provider, agrees)| *agrees && is_lie(*provider));
    confirmed
        .map(|(verifier, provider, _)| (*verifier, *provider))
        .collect()
}

/// Everything that strangers, stashes and the pool have, on hold or not.
fn money_in_all() -> Balance {
    Balances::total_issuance()
}

proptest! {
    #![proptest_config(proptest::test_runner::contextualize_config(ProptestConfig::with_cases(200)))]

    #[test]
    fn whoever_is_honest_loses_nothing_whatever_the_others_do(
        (redundancy, honest, steps) in (1u32..=5).prop_flat_map(|redundancy| {
            let members = AccountId::from(redundancy);
            (Just(redundancy), vec(any::<bool>(), redundancy as usize), vec(any_step(members), 0..120))
        }),
    ) {
        TestExt::new().round_of(redundancy).execute_with(|| {
            set_truth(TRUTH);
            post_input();
            let honest: Vec<_> = (1..).zip(honest).filter(|(_, honest)| *honest).map(|(stash, _)| stash).collect();
            let world = World { honest };
            let _ = <Balances as Mutate<_>>::mint_into(&MockOutcome::CLIENT, MONEY);
            let issued = money_in_all();
            for step in steps {
                world.take(step);
                check();
            }

            // From here on nobody hostile does anything.
            let mut blocks = 0;
            while Rounds::<Test>::contains_key(TASK) || Slashes::<Test>::iter().next().is_some() {
                world.be_honest();
                pass(1);
                check();
                blocks += 1;
                assert!(blocks < 2_000, "a round that does not end");
            }
            assert_eq!(DisputeStorage::<Test>::iter().count(), 0);
            assert_eq!(Demands::<Test>::iter().count(), 0);
            assert_eq!(MockStake::locked_in_all(), 0);
            assert!(NextDisputeId::<Test>::get() <= 64, "more disputes than parties can lose");
            // Bonds are returned, or half of each is burned: nothing comes from nowhere.
            assert!(money_in_all() <= issued);

            for stash in world.honest.iter().chain([&HONEST_VERIFIER]) {
                assert_eq!(MockStake::slashed(*stash), 0, "{stash} was slashed");
            }
            // Whoever confirmed a lie that the honest verifier saw has lost its bond, however it came out.
            for (verifier, provider) in confirmed_lies() {
                assert!(MockStake::slashed(verifier) > 0, "{verifier} got away with {provider}'s lie");
            }
            // Nobody was paid for a lie that somebody honest contradicted.
            let decisions = MockOutcome::decisions();
            assert_eq!(decisions.len(), 1);
            assert_eq!(MockOutcome::withheld(), [], "an honest client was robbed");
            if let Verdict::Agreed { claim: accepted, majority, .. } = &decisions[0].1 {
                let contradicted = !world.honest.is_empty();
                if contradicted {
                    assert_eq!(accepted, &claim(TRUTH));
                    assert!(world.honest.iter().all(|stash| majority.contains(stash)));
                }
            }
        });
    }
}
