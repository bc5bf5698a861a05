//! Hostile accounts may call whatever they like, in any order and at any time. Who is honest and plays its
//! disputes loses nothing, no money appears or goes missing, and everything ends by time alone.

mod audits;
mod showing;

use frame_support::traits::fungible::Mutate;
use proptest::{collection::vec, prelude::*};
use surety_dispute_game::bisection::{Move, Side};
use surety_pallet_test_kit::{MockOutcome, MockStake};
use surety_types::{
    task::Verdict,
    trust::{AuditProof, Content, ContentPart, DemandedParts},
};

use audits::{AuditStep, Audits, any_audit_step};
use showing::{ShowingStep, any_showing_step};
use surety_pallet_integration_tests::*;

const TRUTH: u8 = 9;
/// The honest: some members and one verifier.
const HONEST_VERIFIER: AccountId = FIRST_VERIFIER;
/// The hostile, beside members: verifiers and strangers.
const HOSTILE_VERIFIER: AccountId = FIRST_VERIFIER + 1;

#[derive(Clone, Debug)]
enum Step {
    Commit(AccountId, u8),
    /// Opens what it has committed to, if anything.
    Reveal(AccountId),
    Announce(AccountId, AccountId, u8),
    /// Opens what it has sealed, if anything.
    RevealAudit(AccountId, AccountId),
    Challenge(AccountId, AccountId),
    Demand(AccountId, AccountId, DemandedParts),
    /// A verifier demands before the reveal.
    DemandUnserved(AccountId, AccountId, DemandedParts),
    Supply(AccountId, Content, u8),
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
    Showing(ShowingStep),
    Audit(AuditStep),
    Pass(BlockNumber),
}

/// Right, or wrong in one way or another.
const RESULTS: [u8; 4] = [TRUTH, 8, 7, TOO_LARGE];

fn any_result() -> impl Strategy<Value = u8> {
    proptest::sample::select(RESULTS.to_vec())
}

/// Which of the open disputes, counted again from the first as often as it takes.
fn any_dispute() -> impl Strategy<Value = u32> {
    0u32..24
}

/// The number of the one that is meant; that of none where none is open.
fn dispute_at(place: u32) -> u32 {
    let open = disputes();
    let place = place as usize % open.len().max(1);
    open.get(place).map_or(u32::MAX, |(id, _)| *id)
}

fn any_hostile_verifier() -> impl Strategy<Value = AccountId> {
    HOSTILE_VERIFIER..HOSTILE_VERIFIER + 3
}

fn any_step(members: AccountId) -> impl Strategy<Value = Step> {
    let member = move || 1..=members;
    let verifier = any_hostile_verifier;
    let stranger = || FIRST_STRANGER..FIRST_STRANGER + 4;
    let demander = || prop_oneof![3 => stranger(), 1 => Just(MockOutcome::CLIENT)];
    let (result, dispute) = (any_result, any_dispute);
    prop_oneof![
        8 => (member(), result()).prop_map(|(who, result)| Step::Commit(who, result)),
        6 => member().prop_map(Step::Reveal),
        3 => (verifier(), member(), result()).prop_map(|(who, of, result)| Step::Announce(who, of, result)),
        3 => (verifier(), member()).prop_map(|(who, of)| Step::RevealAudit(who, of)),
        3 => (stranger(), member()).prop_map(|(who, of)| Step::Challenge(who, of)),
        2 => (demander(), member(), any_parts()).prop_map(|(who, of, parts)| Step::Demand(who, of, parts)),
        2 => (verifier(), member(), any_parts())
            .prop_map(|(who, of, parts)| Step::DemandUnserved(who, of, parts)),
        1 => (member(), any_content(), result())
            .prop_map(|(who, content, result)| Step::Supply(who, content, result)),
        2 => (member(), 0u32..4).prop_map(|(who, piece)| Step::DemandInput(who, piece)),
        1 => (0u32..3).prop_map(Step::SupplyJunk),
        10 => (dispute(), result()).prop_map(|(id, result)| Step::Play(id, result)),
        3 => (stranger(), dispute(), any::<u8>()).prop_map(|(who, id, junk)| Step::PlayJunk(who, id, junk)),
        4 => (dispute(), result()).prop_map(|(id, result)| Step::Sabotage(id, result)),
        2 => dispute().prop_map(Step::Concede),
        1 => dispute().prop_map(Step::AdvanceDispute),
        1 => (0u32..6).prop_map(Step::CarryOut),
        1 => (verifier(), member()).prop_map(|(who, of)| Step::AnnounceUndrawn(who, of)),
        6 => any_showing_step().prop_map(Step::Showing),
        6 => any_audit_step(members).prop_map(Step::Audit),
        5 => (1u64..4).prop_map(Step::Pass),
    ]
}

fn any_content() -> impl Strategy<Value = Content> {
    prop_oneof![
        1 => Just(Content::Input),
        2 => Just(Content::Output),
        1 => Just(Content::Leaves),
    ]
}

fn any_parts() -> impl Strategy<Value = DemandedParts> {
    let part = (any_content(), 0u32..3).prop_map(|(content, part)| ContentPart { content, part });
    vec(part, 0..5).prop_map(DemandedParts::truncate_from)
}

/// A round that has come as far as its disputes before anybody does what it likes: what each seat says,
/// unless it is honest, and what hostile verifiers have sealed of whom.
#[derive(Clone, Debug)]
struct Revealed {
    results: Vec<u8>,
    audits: Vec<(AccountId, AccountId, u8)>,
}

fn any_revealed(members: AccountId) -> impl Strategy<Value = Revealed> {
    let results = vec(any_result(), members as usize);
    let audits = vec((any_hostile_verifier(), 1..=members, any_result()), 0..6);
    (results, audits).prop_map(|(results, audits)| Revealed { results, audits })
}

/// Members by seat: whether each is honest.
struct World {
    honest: Vec<AccountId>,
    audits: Audits,
    /// Whether honest challengers have not got the output that they contradict.
    lacks_output: bool,
}

impl World {
    /// Everybody's agent has money for what it may have to ask for.
    fn new(honest: Vec<bool>, audits: Audits, lacks_output: bool) -> Self {
        set_truth(TRUTH);
        post_input();
        audits.begin();
        for stash in members().into_iter().chain(verifiers()) {
            let _ = <Balances as Mutate<_>>::mint_into(&agent_of(stash), MONEY);
        }
        let _ = <Balances as Mutate<_>>::mint_into(&MockOutcome::CLIENT, MONEY);
        let honest = (1..).zip(honest).filter(|(_, honest)| *honest);
        Self {
            honest: honest.map(|(stash, _)| stash).collect(),
            audits,
            lacks_output,
        }
    }

    fn reveal_all(&self, begun: Revealed) {
        let results: Vec<_> = (1..).zip(begun.results).collect();
        let said = |(stash, result)| {
            if self.is_honest(stash) {
                (stash, TRUTH)
            } else {
                (stash, result)
            }
        };
        let results: Vec<_> = results.into_iter().map(said).collect();
        all_commit(&results);
        for (verifier, provider, result) in begun.audits {
            tried(self.audits.announce(verifier, provider, result));
        }
        self.audit_honestly();
        pass(AUDIT_WINDOW + 1);
        all_reveal(&results);
    }

    fn is_honest(&self, account: AccountId) -> bool {
        self.honest.contains(&account) || account == HONEST_VERIFIER
    }

    /// The player that is to move in a dispute, unless it is somebody honest.
    fn hostile_side(&self, id: u32) -> Option<AccountId> {
        let party = to_move(id)?;
        (!self.is_honest(*party.account())).then(|| player_of(&party))
    }

    /// A hostile player makes a move in one of the open disputes, if it is its turn.
    fn play_hostile(&self, place: u32, played: impl FnOnce(u32) -> Move) {
        let id = dispute_at(place);
        if let Some(player) = self.hostile_side(id) {
            tried(play(player, id, played(id)));
        }
    }

    /// What hostile accounts do; whatever would be done in the name of somebody honest is left out.
    fn take(&self, step: Step) {
        match step {
            Step::Commit(who, result) if !self.is_honest(who) => tried(commit(who, result)),
            Step::Reveal(who) if !self.is_honest(who) => tried(RESULTS.map(|result| reveal(who, result))),
            Step::Commit(..) | Step::Reveal(..) => {}
            Step::Announce(who, of, result) => {
                if round().is_some_and(|round| round.draw.is_some()) {
                    tried(announce(who, of, result));
                }
            }
            Step::RevealAudit(who, of) => tried(RESULTS.map(|result| reveal_audit(who, of, result))),
            Step::Challenge(who, of) => tried(challenge(who, of)),
            Step::Demand(who, provider, parts) => tried(demand(who, provider, parts)),
            Step::DemandUnserved(who, provider, parts) => {
                if round().is_some_and(|round| round.draw.is_some()) {
                    tried(demand_unserved(who, provider, parts));
                }
            }
            Step::Supply(who, content, result) if !self.is_honest(who) => supply(who, content, result),
            Step::Supply(..) => {}
            Step::DemandInput(who, segment) if !self.is_honest(who) => tried(demand_input(who, segment)),
            Step::DemandInput(..) => {}
            Step::SupplyJunk(segment) => tried(supply_input(FIRST_STRANGER, &output(TRUTH), segment)),
            Step::Play(place, result) => self.play_hostile(place, |id| next_move(id, result)),
            Step::Sabotage(place, result) => self.play_hostile(place, |id| sabotage(id, result)),
            Step::Concede(place) => self.play_hostile(place, |_| Move::Concede),
            Step::PlayJunk(who, place, junk) => {
                let id = dispute_at(place);
                let player = self.hostile_side(id).unwrap_or(who);
                tried(play(player, id, junk_move(junk)));
            }
            Step::AdvanceDispute(place) => {
                let dispute = dispute_at(place);
                tried(send_as(FIRST_STRANGER, DisputesCall::advance_dispute { dispute }))
            }
            Step::CarryOut(slash) => tried(send_as(FIRST_STRANGER, TrustLockCall::carry_out_slash { slash })),
            Step::AnnounceUndrawn(who, provider) => announce_undrawn(who, provider),
            Step::Showing(step) => self.show(step),
            Step::Audit(step) => self.audit(step),
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
            for demand in Demands::<Test>::get(TASK, stash) {
                for wanted in demand.parts {
                    supply(*stash, wanted.content, TRUTH);
                }
            }
        }
        self.audit_honestly();
        self.play_honestly();
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

    /// Until nobody honest is to move. Who has not got an output asks for it first.
    fn play_honestly(&self) {
        let honest = self.honest.iter().chain([&HONEST_VERIFIER]);
        let honest: Vec<_> = honest.map(|account| (*account, TRUTH)).collect();
        loop {
            if self.lacks_output {
                self.ask_honestly();
            }
            if !play_round(&honest) {
                return;
            }
        }
    }
}

/// Whether it went through makes no difference.
fn tried<T>(_: T) {}

fn junk_move(junk: u8) -> Move {
    match junk % 4 {
        0 => Move::Concede,
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

/// There is one part of each.
fn supply(who: AccountId, content: Content, result: u8) {
    match content {
        Content::Input => tried(show(who, content, &input(), 0)),
        Content::Output => tried(show_output(who, result)),
        Content::Leaves => tried(show_leaves(who, result)),
    }
}

/// Verifiers that confirmed what the honest one contradicts, and whose result it was. A provider that has
/// said two things frees them: what auditors were shown of it is void.
fn confirmed_lies(told: &[RuntimeEvent]) -> Vec<(AccountId, AccountId)> {
    let mut revealed = Vec::new();
    let mut two_faced = Vec::new();
    for event in told {
        match event {
            RuntimeEvent::Results(ResultsEvent::AuditRevealed {
                verifier,
                provider,
                agrees,
                ..
            }) => revealed.push((*verifier, *provider, *agrees)),
            RuntimeEvent::Results(ResultsEvent::EquivocationReported { provider, .. }) => {
                two_faced.push(*provider)
            }
            _ => {}
        }
    }
    let is_lie = |of| revealed.contains(&(HONEST_VERIFIER, of, false)) && !two_faced.contains(&of);
    let confirmed = revealed.iter().filter(|(_, of, agrees)| *agrees && is_lie(*of));
    confirmed
        .map(|(verifier, provider, _)| (*verifier, *provider))
        .collect()
}

/// Everything that strangers, stashes and the pool have, on hold or not.
fn money_in_all() -> Balance {
    Balances::total_issuance()
}

impl World {
    /// Nobody hostile does anything any more.
    fn ends_by_time(&self) {
        let mut blocks = 0;
        while Rounds::<Test>::contains_key(TASK) || Slashes::<Test>::iter().next().is_some() {
            self.be_honest();
            pass(1);
            check();
            blocks += 1;
            assert!(blocks < 2_000, "a round that does not end");
        }
        assert_eq!(DisputeStorage::<Test>::iter().count(), 0);
        assert_eq!(Demands::<Test>::iter().count(), 0);
        assert_eq!(MockStake::locked_in_all(), 0);
        assert!(
            NextDisputeId::<Test>::get() <= 64,
            "more disputes than parties can lose"
        );
    }

    /// The honest have all that they had, and whoever stood by a lie that they saw has not.
    fn is_just(&self, told: &[RuntimeEvent]) {
        for stash in self.honest.iter().chain([&HONEST_VERIFIER]) {
            assert_eq!(MockStake::slashed(*stash), 0, "{stash} was slashed");
        }
        self.showing_cost_the_honest_no_more_than_half(told);
        // However it came out.
        for (verifier, provider) in confirmed_lies(told) {
            assert!(
                MockStake::slashed(verifier) > 0,
                "{verifier} got away with {provider}'s lie"
            );
        }
        for verifier in self.guessed(told) {
            assert!(
                MockStake::slashed(verifier) > 0,
                "{verifier} got away with a guess"
            );
        }
        // Nobody was paid for a lie that somebody honest contradicted.
        let decisions = MockOutcome::decisions();
        assert_eq!(decisions.len(), 1);
        assert_eq!(MockOutcome::withheld(), [], "an honest client was robbed");
        if let Verdict::Agreed {
            claim: accepted,
            majority,
            ..
        } = &decisions[0].1
            && !self.honest.is_empty()
        {
            assert_eq!(accepted, &claim(TRUTH));
            assert!(self.honest.iter().all(|stash| majority.contains(stash)));
        }
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::contextualize_config(ProptestConfig::with_cases(200)))]

    #[test]
    fn whoever_is_honest_loses_nothing_whatever_the_others_do(
        (redundancy, honest, (audits, lacks_output), begun, steps) in (1u32..=5).prop_flat_map(|redundancy| (
            Just(redundancy),
            vec(any::<bool>(), redundancy as usize),
            (Audits::any(), any::<bool>()),
            proptest::option::of(any_revealed(redundancy.into())),
            vec(any_step(redundancy.into()), 0..120),
        )),
    ) {
        TestExt::new().round_of(redundancy).execute_with(|| {
            let world = World::new(honest, audits, lacks_output);
            let issued = money_in_all();
            begun.into_iter().for_each(|begun| world.reveal_all(begun));
            for step in steps {
                world.take(step);
                check();
            }
            world.ends_by_time();
            // Bonds are returned, or half of each is burned: nothing comes from nowhere.
            assert!(money_in_all() <= issued);
            world.is_just(&events());
        });
    }
}
