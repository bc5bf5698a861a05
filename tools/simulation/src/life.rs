//! One task, from its commitments to its settlement, by the protocol's rules and over the real code.
//!
//! What is real: commitments and seals and what opens them, the audit plan, thresholds and draws, agreement,
//! the games of disputes, and how a slash is sized and split. What is modelled: a VRF's output is a random
//! number, moves cost blocks and transactions money, an audit of a wrong result convicts with the policy's
//! accuracy or not at all (one coin for all auditors of a task: the pessimistic reading of `p d`), and what
//! lies outside the protocol.

use sp_arithmetic::{FixedU128, Perbill, Perquintill};
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_audit_economics::{AuditPay, AuditPlan, AuditThreshold, Terms, correlated_fraction};
use surety_dispute_game::bisection::Side;
use surety_proofs::commitment;
use surety_types::task::ResultClaim;

use crate::{
    books::{Books, Role},
    game::{Challenger, Dispute, Output, Played},
    rules::{Market, REWARD, Rules},
};
use surety_dispute_game::testsuite::dice::Dice;

/// What happened in some tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tasks.
    pub tasks: u64,
    /// Tasks whose provider gave a right result.
    pub honest_tasks: u64,
    /// Tasks that an honest verifier was drawn for.
    pub audited: u64,
    /// Tasks whose provider was convicted.
    pub convicted: u64,
    /// Slashes, and bonds lost, of somebody who had done nothing wrong.
    pub honest_slashes: u64,
    /// Standstills of finality.
    pub stalls: u64,
    /// Tasks that were refused when they were posted.
    pub refusals: u64,
    /// Honest auditors that were kept off the network until their bonds were lost.
    pub honest_fines: u64,
    /// Disputes played.
    pub disputes: u64,
    /// Blocks of the longest dispute.
    pub blocks_max: u32,
    /// Moves of the longest dispute.
    pub moves_max: u32,
}

impl Tally {
    /// Adds what happened in others.
    pub fn add(&mut self, other: &Self) {
        self.tasks += other.tasks;
        self.honest_tasks += other.honest_tasks;
        self.audited += other.audited;
        self.convicted += other.convicted;
        self.honest_slashes += other.honest_slashes;
        self.stalls += other.stalls;
        self.refusals += other.refusals;
        self.honest_fines += other.honest_fines;
        self.disputes += other.disputes;
        self.blocks_max = self.blocks_max.max(other.blocks_max);
        self.moves_max = self.moves_max.max(other.moves_max);
    }
}

/// How many verifiers were drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// Honest ones.
    pub honest: u32,
    /// The cheat's.
    pub cronies: u32,
}

/// A commitment, and what only its author knows.
#[derive(Clone, Debug)]
pub struct Sealed {
    /// What everybody sees.
    pub commitment: H256,
    /// What was computed.
    pub claim: ResultClaim,
    /// Keeps it from being guessed.
    pub salt: H256,
}

/// What corrupt verifiers do when they are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cronies {
    /// What honest ones do.
    Work,
    /// They confirm whatever it is, without computing.
    Confirm,
    /// They say of a right result that it is wrong.
    Accuse,
    /// They do not say that they were drawn.
    Hide,
}

/// A task on its way.
pub struct Life<'a> {
    /// By what rules.
    pub rules: &'a Rules,
    /// In which market.
    pub market: &'a Market,
    /// How it is watched.
    pub plan: &'a AuditPlan,
    /// The part of what its provider earns that each audit is paid.
    pub audit_share: Perbill,
    /// Auditors expected: as planned, unless a strategy is watched more closely.
    pub expected: FixedU128,
    /// Corrupt verifiers.
    pub cronies: u32,
    /// Its number.
    pub task: u64,
    /// Chance of everything but the draw of auditors.
    pub dice: Dice,
    /// Chance of the draw, the same whatever else happens.
    draws: Dice,
    /// Part of the blocks that honest moves are left out of.
    pub censored: f64,
    /// What everybody won and lost.
    pub books: Books,
    /// What happened.
    pub tally: Tally,
}

impl<'a> Life<'a> {
    /// A task of number `task` in a run with this seed.
    pub fn new(
        rules: &'a Rules,
        market: &'a Market,
        (plan, audit_share): (&'a AuditPlan, Perbill),
        seed: u64,
        task: u64,
    ) -> Self {
        Self {
            rules,
            market,
            plan,
            audit_share,
            expected: plan.expected,
            cronies: market.cronies(),
            task,
            dice: Dice::new(seed, 2 * task),
            draws: Dice::new(seed, 2 * task + 1),
            censored: 0.0,
            books: Books::default(),
            tally: Tally {
                tasks: 1,
                ..Tally::default()
            },
        }
    }

    /// The right claim, or a wrong one.
    pub fn claim(&self, right: bool) -> ResultClaim {
        let hash = |what: u8| {
            H256(blake2_256(
                &[&self.task.to_le_bytes()[..], &[what, u8::from(right)]].concat(),
            ))
        };
        ResultClaim {
            output: hash(0),
            trace_root: hash(1),
            units: 1,
        }
    }

    /// `who` pays for a transaction.
    pub fn transact(&mut self, who: Role) {
        self.books.pay(who, Role::World, self.market.transaction);
    }

    /// `who` does the work.
    pub fn work(&mut self, who: Role) {
        self.books.pay(who, Role::World, self.market.work);
    }

    /// `who` commits to a claim.
    pub fn commit(&mut self, who: Role, claim: ResultClaim) -> Sealed {
        self.transact(who);
        let salt = self.dice.hash();
        Sealed {
            commitment: commitment(self.task, &who.account(), &claim, &salt),
            claim,
            salt,
        }
    }

    /// Whether claim and salt open what `who` committed to; the transaction costs either way.
    pub fn opens(&mut self, who: Role, committed: &H256, claim: &ResultClaim, salt: &H256) -> bool {
        self.transact(who);
        commitment(self.task, &who.account(), claim, salt) == *committed
    }

    /// Draws auditors.
    pub fn draw(&mut self) -> Drawn {
        let drawn = self.draw_of_names(1);
        self.tally.audited |= u64::from(drawn.honest > 0);
        drawn
    }

    /// The same when each corrupt verifier has split its stake among so many names.
    pub fn draw_of_names(&mut self, names: u32) -> Drawn {
        let total = u128::from(self.market.verifiers) * u128::from(names);
        Drawn {
            cronies: self.drawn_of(self.cronies * names, (1, total)),
            honest: self.drawn_of(self.market.verifiers - self.cronies, (names.into(), total)),
        }
    }

    /// How many of `verifiers` are drawn, each of whom has so much of all stake.
    fn drawn_of(&mut self, verifiers: u32, (stake, total): (u128, u128)) -> u32 {
        let threshold = AuditThreshold::weighted(self.expected, stake, total);
        (0..verifiers)
            .map(|_| u32::from(threshold.draws(&self.draws.vrf_output())))
            .sum()
    }

    /// Plays a dispute, in which honest moves may be censored. The winner.
    pub fn dispute(&mut self, right: bool, challenger: Challenger) -> Side {
        let honest = if right { Side::Defender } else { Side::Challenger };
        let dispute = Dispute {
            censored: (self.censored > 0.0).then_some((honest, self.censored)),
            ..Dispute::of(right, challenger, self.rules.blocks.clock)
        };
        self.played(dispute)
    }

    /// Plays a dispute as it is given.
    pub fn played(&mut self, dispute: Dispute) -> Side {
        // Nothing is refused that an honest side or a guesser plays: else it is a loss for the honest, and is
        // seen.
        let honest_loses = if dispute.right {
            Side::Challenger
        } else {
            Side::Defender
        };
        let Some(Played {
            outcome,
            moves,
            blocks,
            ..
        }) = dispute.play(&mut self.dice)
        else {
            return honest_loses;
        };
        self.tally.disputes += 1;
        self.tally.blocks_max = self.tally.blocks_max.max(blocks);
        self.tally.moves_max = self.tally.moves_max.max(moves);
        outcome.winner
    }

    /// The provider gets its price, the fee is taken, and a right answer is worth something to its client.
    pub fn settle(&mut self, provider: Role, right: bool) {
        self.books.pay(Role::Client, provider, REWARD);
        let fee = self.rules.fee.mul_floor(REWARD);
        self.books.pay(Role::Client, Role::Fees, fee);
        if right {
            self.books.pay(Role::World, Role::Client, self.market.worth);
        }
    }

    /// Audits that confirm are paid out of what the provider has earned.
    pub fn pay_audits(&mut self, provider: Role, honest: u32, cronies: u32) {
        let each = AuditPay::of(self.audit_share, REWARD, honest + cronies);
        for (auditor, count) in [(Role::Verifier, honest), (Role::Crony, cronies)] {
            self.books.pay(provider, auditor, each * u128::from(count));
        }
    }

    /// Items that each auditor has of a task of so many, as the chain finds it: all that is paid may be
    /// saved.
    pub fn items_of_auditors(&self, items: u32) -> u32 {
        let terms = Terms {
            saved: REWARD,
            ..self.market.terms()
        };
        let own = self
            .rules
            .policy
            .items(items, self.plan.expected, &terms, self.plan.lock);
        own.unwrap_or(items)
    }

    /// Auditors compute the result themselves; they announce, and reveal.
    pub fn audit(&mut self, auditor: Role, count: u32) {
        let each = self.market.audit + 2 * self.market.transaction;
        self.books.pay(auditor, Role::World, each * u128::from(count));
    }

    /// `loser` has lost a dispute with a bond: half to the other side, half burned.
    pub fn forfeit(&mut self, loser: Role, bond: u128, other: Role, guilty: bool) {
        self.tally.honest_slashes += u64::from(!guilty);
        self.books.pay(loser, other, bond / 2);
        self.books.pay(loser, Role::Burned, bond - bond / 2);
    }

    /// Takes `amount` of somebody's stake and splits it.
    pub fn slash(&mut self, offender: Role, amount: u128, finder: Role, guilty: bool) {
        self.tally.honest_slashes += u64::from(!guilty);
        let shares = self.rules.split.shares(amount);
        self.books.pay(offender, Role::Burned, shares.burned);
        self.books.pay(offender, finder, shares.finder);
        self.books.pay(offender, Role::Client, shares.client);
    }

    /// What a provider loses for a fault: `lock`, and of the rest of its stake `part`, or more as others of
    /// the cheat's are convicted in the same window.
    pub fn penalty(&self, lock: u128, part: Perquintill) -> u128 {
        let total = self.market.stake * u128::from(self.market.providers);
        let caught = self.rules.policy.caught(self.expected);
        let others = caught.mul_floor(self.market.corrupt_part().mul_floor(total));
        let part = if self.rules.base.is_zero() {
            part
        } else {
            correlated_fraction(part, others, total)
        };
        lock + part.mul_ceil(self.market.stake.saturating_sub(lock))
    }

    /// A provider is convicted of a wrong result: lock and base.
    pub fn convict(&mut self, offender: Role, finder: Role, guilty: bool) {
        self.tally.convicted = 1;
        let amount = self.penalty(self.plan.lock, self.rules.base);
        self.slash(offender, amount, finder, guilty);
    }

    /// A provider has never opened its commitment: its lock.
    pub fn no_reveal(&mut self, offender: Role, guilty: bool) {
        self.tally.convicted = u64::from(guilty);
        self.slash(offender, self.plan.lock, Role::Pool, guilty);
    }

    /// A lone honest provider, the audits of its work, disputes that cronies open, and its pay. Who was
    /// drawn.
    pub fn right_result(&mut self, provider: Role, cronies: Cronies) -> Drawn {
        self.tally.honest_tasks = 1;
        self.work(provider);
        let sealed = self.commit(provider, self.claim(true));
        let drawn = self.draw();
        self.audit(Role::Verifier, drawn.honest);
        if !self.opens(provider, &sealed.commitment, &sealed.claim, &sealed.salt) {
            self.no_reveal(provider, false);
            return drawn;
        }
        let mut confirmed = 0;
        match cronies {
            Cronies::Work => {
                self.audit(Role::Crony, drawn.cronies);
                confirmed = drawn.cronies;
            }
            Cronies::Confirm => confirmed = drawn.cronies,
            Cronies::Hide => {}
            Cronies::Accuse => {
                let bond = REWARD * self.rules.audit_rewards;
                for _ in 0..drawn.cronies {
                    self.challenged(provider, Role::Crony, Challenger::Guesses, bond);
                }
            }
        }
        self.settle(provider, true);
        self.pay_audits(provider, drawn.honest, confirmed);
        drawn
    }

    /// Somebody challenges a right result.
    pub fn challenged(&mut self, provider: Role, by: Role, how: Challenger, bond: u128) {
        self.transact(by);
        match self.dispute(true, how) {
            Side::Defender => self.forfeit(by, bond, provider, true),
            Side::Challenger => self.convict(provider, by, false),
        }
    }

    /// Honest auditors find a wrong result and dispute it. Whether it ends in a conviction.
    pub fn found(&mut self, honest: u32) -> bool {
        self.audit(Role::Verifier, honest);
        let accuracy = self.rules.policy.accuracy.deconstruct() as f64 / 1e18;
        if honest == 0 || !self.dice.chance(accuracy) {
            return false;
        }
        match self.dispute(false, Challenger::Computes) {
            Side::Challenger => true,
            Side::Defender => {
                // The honest challenger has lost.
                let bond = REWARD * self.rules.audit_rewards;
                self.forfeit(Role::Verifier, bond, Role::Provider, false);
                false
            }
        }
    }

    /// Verifiers that were drawn, and served no output, generate themselves and contradict a wrong result.
    /// Whether it ends in a conviction.
    pub fn found_without_output(&mut self, honest: u32, output: Output) -> bool {
        for _ in 0..honest {
            self.work(Role::Verifier);
        }
        let accuracy = self.rules.policy.accuracy.deconstruct() as f64 / 1e18;
        if honest == 0 || !self.dice.chance(accuracy) {
            return false;
        }
        let dispute = Dispute {
            output,
            ..Dispute::of(false, Challenger::Computes, self.rules.blocks.clock)
        };
        // What was shown is paid by whoever loses.
        self.transact(Role::Verifier);
        if self.played(dispute) == Side::Challenger {
            return true;
        }
        let bond = self.rules.challenge_bond(self.market);
        self.forfeit(Role::Verifier, bond, Role::Provider, false);
        false
    }

    /// Verifiers that confirmed what lost are played by `finder`, and lose: they have computed nothing.
    pub fn confirmed_wrong(&mut self, confirmed: u32, finder: Role) {
        let bonds = REWARD * self.rules.audit_rewards * u128::from(confirmed);
        self.slash(Role::Crony, bonds, finder, true);
    }

    /// The provider gives a wrong result. Its auditors have found it, and before they have won, it loses to a
    /// friend, or lets its time run out if it has none; or nobody has found it. Its own verifiers confirm it,
    /// or open their seals when that is over.
    pub fn lost_on_purpose(&mut self, friend: Option<Role>) -> bool {
        let sealed = self.commit(Role::Provider, self.claim(false));
        let drawn = self.draw();
        self.books.pay(Role::World, Role::Provider, self.market.outside);
        self.opens(Role::Provider, &sealed.commitment, &sealed.claim, &sealed.salt);
        let convicted = self.found(drawn.honest);
        if !convicted {
            self.judged(false, drawn, Cronies::Confirm, Role::Verifier);
            return false;
        }
        let finder = match friend {
            Some(friend) => {
                // It gets its bond back.
                self.transact(friend);
                if self.rules.pursuit.seals_first {
                    Role::Verifier
                } else {
                    friend
                }
            }
            None => Role::Verifier,
        };
        self.convict(Role::Provider, finder, true);
        if self.rules.pursuit.confirmers {
            self.confirmed_wrong(drawn.cronies, Role::Verifier);
        }
        true
    }

    /// The provider gives a wrong result. Whether it is convicted; `finder` gets the finder's part.
    pub fn wrong_result(&mut self, cronies: Cronies, finder: Role) -> bool {
        let drawn = self.draw();
        self.wrong_result_before(drawn, cronies, finder)
    }

    /// The same before auditors that are drawn already.
    pub fn wrong_result_before(&mut self, drawn: Drawn, cronies: Cronies, finder: Role) -> bool {
        self.tally.audited = u64::from(drawn.honest > 0);
        let sealed = self.commit(Role::Provider, self.claim(false));
        self.books.pay(Role::World, Role::Provider, self.market.outside);
        let opened = self.opens(Role::Provider, &sealed.commitment, &sealed.claim, &sealed.salt);
        let convicted = self.found(drawn.honest) && opened;
        self.judged(convicted, drawn, cronies, finder);
        convicted
    }

    /// What becomes of a wrong result.
    pub fn judged(&mut self, convicted: bool, drawn: Drawn, cronies: Cronies, finder: Role) {
        let confirmed = if cronies == Cronies::Confirm {
            drawn.cronies
        } else {
            0
        };
        if convicted {
            self.convict(Role::Provider, finder, true);
            self.confirmed_wrong(confirmed, finder);
            return;
        }
        self.settle(Role::Provider, false);
        self.pay_audits(Role::Provider, 0, confirmed);
    }
}
