//! Whatever is done in whatever order, everybody has what the model says, and no planck appears or vanishes.

use std::{cell::RefCell, collections::BTreeSet};

use frame_support::{assert_ok, traits::fungible::Mutate};
use proptest::{
    prelude::*,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};
use sp_runtime::{Permill, Perquintill};
use surety_types::traits::PoolLedger;

use super::model::{Model, UNIT};
use crate::{DELEGATORS_MAX, Delegators, Error, Event, Pools, Stakes, mock::*};

const OPERATORS: u64 = 3;
const ACTORS: u64 = 4;
/// Delegators of the first pool that do nothing: one more fills it.
const CROWD: std::ops::Range<u64> = 100..99 + DELEGATORS_MAX as u64;
/// Plancks that a test's amounts are multiples of: what does not divide is small against them.
const SCALE: Balance = 1_000_000_007;
/// Plancks by which one step may bring somebody away from the model: two where a fund takes stake in, and
/// one that others' coming and going leaves behind.
const STEP_ERROR: Balance = 4;

#[derive(Clone, Debug)]
enum Step {
    Open(Balance, u32),
    Delegate(u64, Balance),
    /// Thousandths of the stake; all of it at 1,000.
    Undelegate(u64, Balance),
    /// The chunk's index, where to, and thousandths of it.
    Redelegate(usize, u64, Balance),
    Withdraw,
    Claim(u64),
    Settle(u64, u64),
    SetCommission(u32),
    /// Thousandths of what is behind an operator.
    Reward(u64, Balance),
    /// The same, of a day that is not over.
    Serve(u64, Balance),
    /// So many sessions after the offence.
    Convict(u64, u32),
    Spare(u64),
    /// Thousandths, and which of those that wait. Convicts of what is so many sessions ago where none does.
    Slash(u64, u64, u32),
    PassBlocks(u64),
    PassSessions(u32),
}

fn steps() -> impl Strategy<Value = Vec<(AccountId, Step)>> {
    let operator = || 1..=OPERATORS;
    let share = || prop_oneof![2 => Just(1_000u128), 3 => 1..=1_000u128];
    let stake = || 100..6_000u128;
    let lost = || prop_oneof![12 => 1..600u64, 1 => 990..1_000u64, 2 => Just(1_000u64)];
    let step = prop_oneof![
        3 => (900..3_000u128, 0..200_000u32).prop_map(|(bond, part)| Step::Open(bond, part)),
        8 => (operator(), stake()).prop_map(|(operator, amount)| Step::Delegate(operator, amount)),
        6 => (operator(), share()).prop_map(|(operator, part)| Step::Undelegate(operator, part)),
        8 => (0..2usize, operator(), share()).prop_map(|(at, to, part)| Step::Redelegate(at, to, part)),
        3 => Just(Step::Withdraw),
        2 => operator().prop_map(Step::Claim),
        5 => (1..=ACTORS, operator()).prop_map(|(who, operator)| Step::Settle(who, operator)),
        1 => (0..200_000u32).prop_map(Step::SetCommission),
        4 => (operator(), 1..100u128).prop_map(|(operator, part)| Step::Reward(operator, part)),
        3 => (operator(), 0..DAY).prop_map(|(operator, ago)| Step::Convict(operator, ago)),
        1 => operator().prop_map(Step::Spare),
        4 => (operator(), lost(), 0..DAY).prop_map(|(operator, part, at)| Step::Slash(operator, part, at)),
        3 => (1..2 * PERIOD).prop_map(Step::PassBlocks),
        5 => (1..3 * DAY).prop_map(Step::PassSessions),
        4 => (operator(), 1..100u128).prop_map(|(operator, part)| Step::Serve(operator, part)),
    ];
    prop::collection::vec((1..=ACTORS, step), 20..100)
}

/// The pallet beside its model.
#[derive(Default)]
struct Both {
    model: Model,
    error: Balance,
    burned: Balance,
    minted: Balance,
    /// What was not refused, by what happened.
    happened: BTreeSet<&'static str>,
}

impl Both {
    fn tolerates(&self, real: Balance, model: u128) -> bool {
        (real * UNIT).abs_diff(model) <= self.error * UNIT
    }

    /// Takes a step on both sides, where the pallet does not refuse it.
    fn take(&mut self, who: AccountId, step: Step) {
        let origin = signed(who);
        let model = &mut self.model;
        match step {
            Step::Open(bond, commission) => {
                let part = Permill::from_parts(commission);
                if transactional(|| Delegation::open(origin, bond * SCALE, part)) {
                    self.happened.insert("opened");
                    model.delegate(who, who, bond * SCALE);
                    model.pools.get_mut(&who).unwrap().commission = commission.into();
                }
            }
            Step::Delegate(operator, amount) => {
                let before = Delegators::<Test>::get(operator);
                if transactional(|| Delegation::delegate(origin, operator, amount * SCALE)) {
                    self.happened.insert("delegated");
                    self.displace(operator, &before, amount * SCALE);
                    self.model.delegate(who, operator, amount * SCALE);
                }
            }
            Step::Undelegate(operator, part) => {
                let of_operator = |one: &&(AccountId, Balance)| one.0 == operator;
                let amount = working(who)
                    .iter()
                    .find(of_operator)
                    .map_or(1, |one| one.1 * part / 1_000);
                let served = Served::get(operator);
                if transactional(|| Delegation::undelegate(origin, operator, amount)) {
                    if let Some(amount) = served.filter(|_| who == operator || !model.is_led(operator)) {
                        self.happened.insert("paid before the day was over");
                        self.minted += amount;
                        model.reward(operator, amount);
                    }
                    let stays = working(who).iter().any(|one| one.0 == operator);
                    self.happened.insert(if stays { "left in part" } else { "left" });
                    model.leave(who, operator, stays.then_some(amount));
                }
            }
            Step::Redelegate(at, to, part) => {
                let chunks = leaving(who);
                let Some((from, day, worth)) = chunks.get(at).copied() else {
                    return;
                };
                let amount = worth * part / 1_000;
                let before = Delegators::<Test>::get(to);
                let is_early = from != to && model.answers(who, from, day);
                let result = with_result(|| Delegation::redelegate(origin, from, day, to, amount));
                if result.is_ok() {
                    assert!(!model.is_kept(who, from, day) && !is_early);
                    self.happened
                        .insert(if from == to { "came back" } else { "moved" });
                    self.displace(to, &before, amount);
                    self.model.redelegate(who, from, day, to, amount);
                } else if result == Err(Error::<Test>::TooEarly.into()) {
                    assert!(is_early);
                }
            }
            Step::Withdraw => {
                let done = transactional(|| Delegation::withdraw(origin));
                assert_eq!(done, self.model.withdraw(who));
                if done {
                    self.happened.insert("withdrawn");
                }
            }
            Step::Claim(operator) => {
                if transactional(|| Delegation::claim(origin, operator)) {
                    self.happened.insert("claimed");
                    model.claim(who, operator);
                }
            }
            Step::Settle(delegator, operator) => {
                let done = with_result(|| {
                    Delegation::settle(origin, delegator, operator)
                        .map(|_| ())
                        .map_err(|refused| refused.error)
                });
                if done.is_ok() && model.pools.contains_key(&operator) {
                    let stays = working(delegator).iter().any(|one| one.0 == operator);
                    let held = self.model.pools[&operator].holdings.contains_key(&delegator);
                    self.happened.insert("settled");
                    if held && !stays {
                        self.happened.insert("dropped");
                        self.model.drop_holding(delegator, operator);
                    }
                }
            }
            Step::SetCommission(part) => {
                if transactional(|| Delegation::set_commission(origin, Permill::from_parts(part))) {
                    model.pools.get_mut(&who).unwrap().commission = part.into();
                }
            }
            Step::Reward(operator, part) => {
                let amount = Delegation::backing(&operator) * part / 1_000;
                if amount > 0 {
                    reward(operator, amount);
                    self.minted += amount;
                    self.happened.insert("rewarded");
                    model.reward(operator, amount);
                }
            }
            Step::Serve(operator, part) => {
                let amount = Delegation::backing(&operator) * part / 1_000;
                if amount > 0 {
                    Served::mutate(operator, |served| {
                        *served = Some(served.unwrap_or_default() + amount)
                    });
                }
            }
            Step::Convict(operator, ago) => self.convict(operator, ago),
            Step::Spare(operator) => {
                Delegation::spare(&operator);
                if model.waiting.contains_key(&operator) {
                    self.happened.insert("spared");
                    model.decide(operator, 0);
                }
            }
            Step::Slash(operator, thousandths, at) => {
                if !model.waiting.contains_key(&operator) {
                    self.convict(operator, at);
                }
                let until = self.model.leaving_day(operator);
                let since = self.model.decide(operator, at as usize);
                let part = Perquintill::from_rational(thousandths, 1_000u64);
                Delegation::slash(&operator, part, since * DAY);
                self.model.slash(operator, thousandths.into(), since, until);
                self.happened.insert("slashed");
            }
            Step::PassBlocks(blocks) => pass_blocks(blocks),
            Step::PassSessions(sessions) => Session::set(Session::get() + sessions),
        }
    }

    /// Convicts an operator of what it did so many sessions ago.
    fn convict(&mut self, operator: AccountId, ago: u32) {
        let since = Session::get().saturating_sub(ago);
        Delegation::note_pending(&operator, since);
        if self.model.convict(operator, since / DAY) {
            self.happened.insert("waited long");
        }
    }

    /// Has whoever lost its place in a pool leave the model's, too: nobody there has less.
    fn displace(&mut self, operator: AccountId, before: &[(u128, AccountId)], amount: Balance) {
        let now = Delegators::<Test>::get(operator);
        let gone = before
            .iter()
            .find(|(_, who)| !now.iter().any(|(_, other)| other == who));
        let Some((_, displaced)) = gone else {
            return;
        };
        assert_eq!(before.len(), DELEGATORS_MAX as usize);
        let holdings = &self.model.pools[&operator].holdings;
        let least = holdings
            .iter()
            .filter(|(who, _)| **who != operator)
            .map(|(_, one)| one.stake)
            .min();
        let stake = holdings[displaced].stake;
        assert!(stake <= least.unwrap() + self.error * UNIT);
        assert!(stake < (amount + self.error) * UNIT);
        self.happened.insert("displaced");
        self.model.leave(*displaced, operator, None);
    }

    /// Compares everybody, and counts all plancks.
    fn compare(&mut self) {
        for event in System::read_events_for_pallet::<Event<Test>>() {
            if let Event::Burned { amount, .. } = event {
                self.burned += amount;
            }
        }
        System::reset_events();
        let endowed = Balance::from(ACTORS) * 20_000 * SCALE + crowd_stake();
        let issued = Balances::total_issuance() - existential_deposits();
        assert_eq!(issued + self.burned, endowed + self.minted);

        let unburned = Delegation::unburned();
        let everybody = Balance::from(ACTORS) + Balance::from(CROWD.end - CROWD.start);
        let burned = (self.burned + unburned) * UNIT;
        assert!(burned.abs_diff(self.model.burned) <= self.error * everybody * UNIT);

        let mut all = Balances::free_balance(Delegation::pot()) - EXISTENTIAL_DEPOSIT;
        for who in (1..=ACTORS).chain(CROWD) {
            all += spendable(who) + held(who);
            let free = self.model.free.get(&who).copied().unwrap_or_default();
            assert!(self.tolerates(spendable(who), free), "free of {who}");
        }
        assert_eq!(all, issued);

        for (operator, pool) in &self.model.pools {
            let real = Pools::<Test>::get(operator).expect("the pool is there");
            for (who, holding) in &pool.holdings {
                let stake = Stakes::<Test>::get(who).unwrap_or_default();
                let worth = stake
                    .delegation(operator)
                    .map_or(0, |one| real.fund.worth(one.shares));
                assert!(
                    self.tolerates(worth, holding.stake),
                    "stake of {who} behind {operator}"
                );
                let earned = if who == operator { pool.earned } else { 0 };
                let claimable = Delegation::claimable(*who, *operator);
                assert!(
                    self.tolerates(claimable, holding.owed + earned),
                    "earned by {who}"
                );
            }
        }
        assert_eq!(Pools::<Test>::iter().count(), self.model.pools.len());
        for (who, stake) in Stakes::<Test>::iter() {
            for chunk in leaving(who) {
                let model = &self.model.chunks[&(who, chunk.0, chunk.1)];
                assert!(self.tolerates(chunk.2, model.amount), "chunk of {who}");
            }
            for one in &stake.delegations {
                assert!(self.model.pools[&one.operator].holdings.contains_key(&who));
            }
        }
        // A chunk that is gone was worth nothing.
        let gone = |who: AccountId, operator: AccountId, day: u32| {
            !leaving(who).iter().any(|one| (one.0, one.1) == (operator, day))
        };
        let error = self.error * UNIT;
        self.model.chunks.retain(|(who, operator, day), chunk| {
            let is_gone = gone(*who, *operator, *day);
            assert!(!is_gone || chunk.amount <= error);
            !is_gone
        });
    }
}

fn crowd_stake() -> Balance {
    CROWD.map(crowded).sum()
}

fn crowded(who: AccountId) -> Balance {
    (1_500 + Balance::from(who)) * SCALE
}

fn existential_deposits() -> Balance {
    let accounts = ACTORS + (CROWD.end - CROWD.start) + 1;
    Balance::from(accounts) * EXISTENTIAL_DEPOSIT
}

fn served() -> Balance {
    Served::iter_values().sum()
}

/// A refused call changes nothing, as in a block.
fn with_result(call: impl FnOnce() -> sp_runtime::DispatchResult) -> sp_runtime::DispatchResult {
    frame_support::storage::with_storage_layer(call)
}

fn transactional(call: impl FnOnce() -> sp_runtime::DispatchResult) -> bool {
    with_result(call).is_ok()
}

/// Everything that has to happen at least once, or the test says nothing of it.
const HAPPENS: [&str; 16] = [
    "came back",
    "claimed",
    "delegated",
    "displaced",
    "dropped",
    "left",
    "left in part",
    "moved",
    "opened",
    "paid before the day was over",
    "rewarded",
    "settled",
    "slashed",
    "spared",
    "waited long",
    "withdrawn",
];

fn config(cases: u32) -> ProptestConfig {
    proptest::test_runner::contextualize_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases)
    })
}

#[test]
fn everybody_has_what_the_model_says() {
    let happened = RefCell::new(BTreeSet::new());
    // The same lives each time: what has to happen in one of them is known to.
    let lives = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let result = TestRunner::new_with_rng(config(64), lives).run(&steps(), |steps| {
        happened.borrow_mut().extend(compared(steps));
        Ok(())
    });
    result.unwrap_or_else(|failed| panic!("{failed}"));
    assert_eq!(happened.into_inner(), BTreeSet::from(HAPPENS));
}

/// Takes the steps on both sides. Returns what has happened.
fn compared(steps: Vec<(AccountId, Step)>) -> BTreeSet<&'static str> {
    let mut ext = TestExt::new();
    MinSelfBond::set(1_000 * SCALE);
    MinDelegation::set(100 * SCALE);
    let mut both = Both::default();
    for who in (1..=ACTORS).chain(CROWD) {
        let amount = if who <= ACTORS {
            20_000 * SCALE
        } else {
            crowded(who)
        };
        ext = ext.endow(who, amount);
        both.model.free.insert(who, amount * UNIT);
    }
    ext.execute_with(|| {
        for operator in [1, 2] {
            assert_ok!(Delegation::open(signed(operator), 5_000 * SCALE, Permill::zero()));
            both.model.delegate(operator, operator, 5_000 * SCALE);
        }
        for who in CROWD {
            assert_ok!(Delegation::delegate(signed(who), 1, crowded(who)));
            both.model.delegate(who, 1, crowded(who));
        }
        for (who, step) in steps {
            both.error += STEP_ERROR;
            both.take(who, step);
            assert_ok!(Delegation::do_try_state());
            both.compare();
        }
    });
    both.happened
}

proptest! {
    #![proptest_config(config(128))]

    /// Where a planck is much, rounding is most of what happens.
    #[test]
    fn small_numbers_break_no_invariant(steps in steps()) {
        let ext = (1..=ACTORS).fold(TestExt::new(), |ext, who| ext.endow(who, 60));
        MinSelfBond::set(3);
        MinDelegation::set(1);
        ext.execute_with(|| {
            let mut minted = Balances::total_issuance();
            let mut burned = 0;
            for (who, step) in steps {
                let origin = signed(who);
                let small = |amount: Balance| amount % 17 + 1;
                let _refused = match step {
                    Step::Open(bond, part) => transactional(|| Delegation::open(origin, small(bond), Permill::from_parts(part))),
                    Step::Delegate(operator, amount) => transactional(|| Delegation::delegate(origin, operator, small(amount))),
                    Step::Undelegate(operator, amount) => {
                        let before = served();
                        let done = transactional(|| Delegation::undelegate(origin, operator, small(amount)));
                        minted += before - served();
                        done
                    }
                    Step::Redelegate(at, to, amount) => leaving(who).get(at).is_some_and(|(from, day, _)| {
                        transactional(|| Delegation::redelegate(origin, *from, *day, to, small(amount)))
                    }),
                    Step::Withdraw => transactional(|| Delegation::withdraw(origin)),
                    Step::Claim(operator) => transactional(|| Delegation::claim(origin, operator)),
                    Step::Settle(delegator, operator) => Delegation::settle(origin, delegator, operator).is_ok(),
                    Step::SetCommission(part) => transactional(|| Delegation::set_commission(origin, Permill::from_parts(part))),
                    Step::Reward(operator, amount) => {
                        assert_ok!(Balances::mint_into(&Delegation::pot(), small(amount)));
                        minted += small(amount);
                        Delegation::reward(&operator, small(amount)) > 0
                    }
                    Step::Serve(operator, amount) => {
                        Served::insert(operator, small(amount));
                        true
                    }
                    Step::Convict(operator, ago) => {
                        Delegation::note_pending(&operator, Session::get().saturating_sub(ago));
                        true
                    }
                    Step::Spare(operator) => {
                        Delegation::spare(&operator);
                        true
                    }
                    Step::Slash(operator, thousandths, ago) => {
                        let part = Perquintill::from_rational(thousandths, 1_000u64);
                        Delegation::slash(&operator, part, Session::get().saturating_sub(ago)) > 0
                    }
                    Step::PassBlocks(blocks) => {
                        pass_blocks(blocks);
                        true
                    }
                    Step::PassSessions(sessions) => {
                        Session::set(Session::get() + sessions);
                        true
                    }
                };
                assert_ok!(Delegation::do_try_state());
                for event in System::read_events_for_pallet::<Event<Test>>() {
                    if let Event::Burned { amount, .. } = event {
                        burned += amount;
                    }
                }
                System::reset_events();
                assert_eq!(Balances::total_issuance() + burned, minted);
            }
        });
    }
}
