//! Lives of channels with everything that can be done to them, in any order and with arguments that need not
//! make sense. One provider tells the truth and does what it owes, another one lies.
//!
//! After each step every invariant holds, no money was made or lost, no channel has paid more than its
//! vouchers say, and the honest have lost nothing but levies and prices of demands. No channel ends before
//! who tells the truth was paid what was counted for it. In the end everything ends.

mod paying;
mod seller;
mod steps;

use std::collections::{BTreeMap, BTreeSet};

use frame_support::traits::fungible::Mutate;
use proptest::{strategy::ValueTree, test_runner::TestRunner};
use surety_audit_economics::channels::points_drawn;
use surety_channels::{Demanded, PointsFound};
use surety_pallet_staking::Event as StakingEvent;
use surety_types::{stake::Role, traits::StakeLedger};

use self::seller::Seller;
use super::*;
use crate::{DisputedReceipts, Event, Offers, PointsAudits, Wanted};

const TRACE: H256 = H256::repeat_byte(3);

/// The sellers, by their place.
const HONEST: usize = 0;
const LIAR: usize = 1;

/// A life, and what everybody has signed and found in it.
struct Life {
    sellers: [Seller; 2],
    /// The highest sum that was signed for a channel.
    signed: BTreeMap<ChannelId, u128>,
    /// Who has opened a channel.
    payers: BTreeMap<ChannelId, AccountId32>,
    /// What a channel has paid.
    paid: BTreeMap<ChannelId, u128>,
    /// Channels of which something was counted that was batched too late.
    late: BTreeSet<ChannelId>,
    /// Statements that clients hold.
    held: Vec<SignedChunkStatement<AccountId32>>,
    /// What the verifier has sealed.
    sealed: BTreeMap<(usize, BatchNumber), PointsFound>,
    is_verifier_honest: bool,
    /// What was paid for demands.
    prices: u128,
    /// What was demanded over each channel.
    demanded: BTreeMap<ChannelId, Demanded>,
    levies: u128,
    endowed: u128,
    burned: u128,
    /// Names of what has happened.
    seen: BTreeSet<String>,
}

impl Life {
    fn new(is_verifier_honest: bool) -> Self {
        let liar = Seller::new(AccountId32::new([100; 32]), sr25519::Pair::from_seed(&[101; 32]));
        for who in [liar.stash.clone(), liar.agent()] {
            assert_ok!(<Balances as Mutate<_>>::mint_into(&who, START));
        }
        assert_ok!(Staking::bond(
            signed(liar.stash.clone()),
            Role::Provider,
            500 * SURE
        ));
        assert_ok!(Staking::set_agent(signed(liar.stash.clone()), liar.agent()));
        assert_ok!(Staking::confirm_agent(signed(liar.agent()), liar.stash.clone()));
        assert_ok!(ChannelsPallet::stand(signed(liar.stash.clone()), LOCK, CAP));
        assert_ok!(ChannelsPallet::add_signer(signed(liar.agent())));
        System::reset_events();
        Self {
            sellers: [Seller::new(stash(), agent_pair()), liar],
            signed: BTreeMap::new(),
            payers: BTreeMap::new(),
            paid: BTreeMap::new(),
            late: BTreeSet::new(),
            held: Vec::new(),
            sealed: BTreeMap::new(),
            is_verifier_honest,
            prices: 0,
            demanded: BTreeMap::new(),
            levies: 0,
            endowed: Balances::total_issuance(),
            burned: 0,
            seen: BTreeSet::new(),
        }
    }

    /// Everybody: some are nobody's agents or payers.
    fn everybody(&self) -> Vec<AccountId32> {
        let sellers = self.sellers.iter().flat_map(|of| [of.stash.clone(), of.agent()]);
        let others = [payer(), reporter(), verifier(), verifier_agent(), Pot::get()];
        sellers.chain(others).collect()
    }

    fn anybody(&self, number: usize) -> AccountId32 {
        let all = self.everybody();
        all[number % all.len()].clone()
    }

    /// What has to hold after every step.
    fn check(&mut self) {
        check();
        for record in System::events() {
            if let RuntimeEvent::ChannelsPallet(event) = &record.event {
                self.seen.extend(name_of(event));
            }
            match record.event {
                RuntimeEvent::ChannelsPallet(Event::Redeemed { channel, paid }) => {
                    *self.paid.entry(channel).or_default() += paid;
                }
                RuntimeEvent::ChannelsPallet(Event::Demanded { ref wanted, .. }) => {
                    self.prices += wanted.price(DemandPrice::get());
                    if let Wanted::Receipt { channel, nonce, .. } = *wanted {
                        let demanded = self.demanded.entry(channel).or_default();
                        self.prices += demanded.demand(nonce, DemandPrice::get());
                    }
                }
                RuntimeEvent::ChannelsPallet(Event::BatchCommitted { provider, levy, .. })
                    if provider == stash() =>
                {
                    self.levies += levy;
                }
                RuntimeEvent::Staking(StakingEvent::Slashed { stash: of, amount }) => {
                    assert_ne!(of, stash(), "who told the truth was slashed");
                    assert!(
                        of != verifier() || !self.is_verifier_honest,
                        "who computed was slashed"
                    );
                    self.burned += amount;
                }
                _ => {}
            }
        }
        System::reset_events();
        let all = self.everybody();
        let there = all.iter().map(whole).sum::<u128>() + whole(&ChannelsPallet::pot());
        assert_eq!(there + self.burned, self.endowed, "money was made or lost");
        let prices = self.prices;
        for (channel, paid) in &self.paid {
            let promised = self.signed.get(channel).copied().unwrap_or_default();
            assert!(
                *paid <= promised,
                "channel {channel} has paid more than was signed"
            );
        }
        for who in [payer(), reporter()] {
            let own = self.payers.iter().filter(|(_, payer)| **payer == who);
            let paid: u128 = own.filter_map(|(channel, _)| self.paid.get(channel)).sum();
            assert!(worth(&who) + paid + prices >= START, "a payer has lost something");
        }
        assert!(
            worth(&stash()) + self.levies >= START,
            "who told the truth has lost something"
        );
        if self.is_verifier_honest {
            let both = worth(&verifier()) + worth(&verifier_agent());
            assert!(both + prices >= 2 * START, "who computed has lost something");
        }
    }

    /// Everything comes to an end, whatever was open: nothing is left that keeps anybody's money.
    fn settle(&mut self) {
        for (channel, of) in Channels::<Test>::iter().collect::<Vec<_>>() {
            assert_ok!(ChannelsPallet::close(signed(of.payer), channel));
        }
        for _ in 0..5 {
            // Points that are shown have rounds of their own.
            for round in DisputedReceipts::<Test>::iter_keys().collect::<Vec<_>>() {
                ChannelsPallet::receipt_decided(round, true);
            }
            self.pass(SUPPLY + WINDOW + 1);
            for number in [HONEST, LIAR] {
                for _ in self.sellers[number].owed() {
                    self.end_demand(number, 0);
                }
            }
            self.check();
        }
        assert_eq!(DisputedReceipts::<Test>::iter().count(), 0);
        assert_eq!(Demands::<Test>::iter().count(), 0, "a demand does not end");
        self.pass(LIFE + 2 * CLOSING);
        assert_eq!(Channels::<Test>::iter().count(), 0, "a channel does not end");
        let audits: Vec<_> = PointsAudits::<Test>::iter_keys().collect();
        let lacking = Err(Error::<Test>::PotLacksPay.into());
        let ended = audits.into_iter().map(|((provider, batch), verifier)| {
            let ended = ChannelsPallet::end_points(signed(reporter()), provider, batch, verifier);
            assert!(ended.is_ok() || ended == lacking, "{ended:?}");
            ended
        });
        if ended.filter(Result::is_err).count() > 0 {
            // They wait until their batches go.
            self.pass(REDEEM_BY);
        }
        assert_eq!(PointsAudits::<Test>::iter().count(), 0, "an audit does not end");
        self.check();
        for (stash, (model, operation), _) in Offers::<Test>::iter().collect::<Vec<_>>() {
            assert_ok!(ChannelsPallet::withdraw_offer(signed(stash), model, operation));
        }
        for (stash, provider) in Standings::<Test>::iter().collect::<Vec<_>>() {
            if provider.lock > 0 {
                assert_ok!(ChannelsPallet::stand(signed(stash), 0, 0));
            }
        }
        assert_eq!(in_pot(), 0);
        for who in self.everybody() {
            for role in [Role::Provider, Role::Verifier] {
                let bonded = Staking::bonded(&who, role);
                if bonded > 0 {
                    assert_ok!(Staking::unbond(signed(who.clone()), bonded));
                }
            }
        }
        self.check();
    }
}

/// What somebody has, in its channels, too.
fn worth(who: &AccountId32) -> u128 {
    let own = Channels::<Test>::iter_values().filter(|channel| channel.payer == *who);
    whole(who) + own.map(|channel| channel.held()).sum::<u128>()
}

/// How many points the verifier has on a batch.
fn points_of(provider: &AccountId32, batch: BatchNumber) -> Option<usize> {
    let record = Batches::<Test>::get(provider, batch)?;
    let input = ReceiptsInput {
        seed: ChannelsPallet::seed_of(provider, batch, &record)?,
        provider: provider.clone(),
        batch,
    };
    let fields = input.fields();
    let agent = verifier_agent();
    let output = Hashed::output(
        &agent,
        RECEIPTS_LABEL,
        &borrowed(&fields),
        RECEIPTS_CONTEXT,
        &PROOF,
    )?;
    let stake = Staking::bonded(&verifier(), Role::Verifier);
    let price = record.window.root.sums.price;
    let mean = points_mean(record.rate, price, stake, record.draw.verifier_stake);
    Some(points_drawn(&output, mean) as usize)
}

/// What it is called.
fn name_of(something: &impl core::fmt::Debug) -> Option<String> {
    let text = format!("{something:?}");
    let name = text
        .split(|letter: char| !letter.is_alphanumeric() && letter != ':')
        .next();
    Some(name?.trim_start_matches("Event::").into())
}

type Steps = Vec<(u8, u16, u16)>;

fn steps() -> impl Strategy<Value = (bool, Steps)> {
    let step = (0u8..34, any::<u16>(), any::<u16>());
    (any::<bool>(), prop::collection::vec(step, 20..120))
}

/// A life. Returns what has happened in it, and all faults that somebody was convicted for.
fn live(is_verifier_honest: bool, steps: Steps) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    run(|| {
        let mut life = Life::new(is_verifier_honest);
        for (kind, a, b) in steps {
            life.step(kind, a.into(), b.into());
            life.check();
        }
        life.settle();
        seen = core::mem::take(&mut life.seen);
        seen.extend(Convicted::get().iter().filter_map(name_of));
    });
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_money_goes_missing_and_the_honest_lose_nothing_whatever_is_done_in_whatever_order(
        (is_verifier_honest, steps) in steps(),
    ) {
        live(is_verifier_honest, steps);
    }
}

/// Otherwise the lives above would prove little.
#[test]
fn everything_that_can_happen_does_in_some_life() {
    let happens = "Opened Changed Closing ClosedByPayee Held Ended Stands Leaves BatchCommitted Redeemed Disputed DisputeOver \
        Demanded DemandOver PointsAnnounced PointsOpened PointsEnded SignerAdded Offered OfferWithdrawn BusyReported \
        PoolPriced Convicted PaidAsShown GoneOn HeldBack";
    let faults = "Equivocation FalseBatch WithheldData WrongResult AuditNoShow ConfirmedWrong";
    let all = happens.split_whitespace().chain(faults.split_whitespace());
    let mut missing: BTreeSet<String> = all.map(String::from).collect();
    let mut runner = TestRunner::deterministic();
    for _ in 0..512 {
        let (is_verifier_honest, steps) = steps().new_tree(&mut runner).expect("unconditional").current();
        for seen in live(is_verifier_honest, steps) {
            missing.remove(&seen);
        }
        if missing.is_empty() {
            return;
        }
    }
    panic!("{missing:?} never happens");
}
