//! The protocol's prices and locks, and the market in which they are tried.

use sp_arithmetic::{FixedU128, Perbill, Perquintill};
use surety_audit_economics::{
    AuditPay, AuditPlan, AuditPolicy, AuditRates, Refusal, SecurityLevel, SlashSplit, Terms,
};
use surety_types::{BLOCK_SECONDS, limits};

/// Plancks of one reward: the unit in which profits are reported.
pub const REWARD: u128 = 1_000_000_000_000;

/// What the protocol takes and gives. The defaults are the runtime's in production, but for `client_lock`.
#[derive(Clone, Debug)]
pub struct Rules {
    /// How audits and locks are planned.
    pub policy: AuditPolicy,
    /// Where a slash goes.
    pub split: SlashSplit,
    /// Part of the rest of its stake that a provider loses for a fault that stands alone.
    pub base: Perquintill,
    /// The protocol's fee, as a part of the price, on top of it.
    pub fee: Perquintill,
    /// Part of the price that a client loses for an input that cannot be had. In the runtime it is a part of
    /// the cap.
    pub client_lock: Perquintill,
    /// A challenger's bond is no less than this many rewards.
    pub challenge_rewards: u128,
    /// Challenges of one task that are played at once.
    pub places: u32,
    /// Who answers for a wrong result beside its provider, and to whom.
    pub pursuit: Pursuit,
    /// An auditor's bond, in rewards.
    pub audit_rewards: u128,
    /// What auditors get for audits that confirm, out of what the provider earns.
    pub audit_pay: AuditPay,
    /// Lost with a bid that is not opened, in plancks.
    pub bid_deposit: u128,
    /// What showing 1 KiB on chain costs, in plancks. Each side bears half of what was demanded.
    pub demand_price: u128,
    /// Whether auditors demand on chain what they are not served.
    pub auditors_demand: bool,
    /// Whether auditors of items have the leaves of those shown on chain, so that they need room for no more.
    pub leaves_demanded: bool,
    /// Whether members of committees are paid: where not, no honest one computes.
    pub committees_paid: bool,
    /// Whether keys and stake of auditors have to be older than what anybody can know of the draw.
    pub seasoned: bool,
    /// Whether places for bids go to seasoned stake, and not to whoever comes first.
    pub places_by_stake: bool,
    /// Whether whoever registered a model says how fast its reference machine is, and its list of auditors is
    /// empty once it has retired it.
    pub owners_decide: bool,
    /// Whether windows are counted on a clock that stands still while finality does.
    pub running_clock: bool,
    /// Windows in blocks.
    pub blocks: Blocks,
    /// A lock that is not planned, in plancks: for trying others.
    pub lock: Option<u128>,
}

impl Default for Rules {
    fn default() -> Self {
        let split = SlashSplit::default();
        Self {
            policy: AuditPolicy {
                rates: AuditRates::default(),
                able: Perquintill::one(),
                corrupt: Perquintill::from_rational(1u64, 3),
                accuracy: Perquintill::from_percent(95),
                burned: split.burned(),
                reward_multiple: 40,
            },
            split,
            base: Perquintill::from_percent(5),
            fee: Perquintill::from_percent(5),
            client_lock: Perquintill::from_percent(25),
            challenge_rewards: 5,
            places: limits::CHALLENGES_MAX,
            pursuit: Pursuit::FULL,
            audit_rewards: 20,
            audit_pay: AuditPay::default(),
            bid_deposit: REWARD,
            demand_price: REWARD / 100,
            auditors_demand: true,
            leaves_demanded: true,
            committees_paid: true,
            seasoned: true,
            places_by_stake: true,
            owners_decide: false,
            running_clock: true,
            blocks: Blocks::default(),
            lock: None,
        }
    }
}

/// What a provider cannot save by choosing how it loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pursuit {
    /// Who confirmed what it said answers for that, however it lost, and whenever the seal was opened.
    pub confirmers: bool,
    /// Verifiers whose seals differ get the finder's part before whoever it lost to.
    pub seals_first: bool,
    /// A fault that nobody could decide about is no shield from a graver one.
    pub graver: bool,
    /// A place for challenges that is freed can be taken again, and there is time for that.
    pub places_return: bool,
}

impl Pursuit {
    /// As it is.
    pub const FULL: Self = Self {
        confirmers: true,
        seals_first: true,
        graver: true,
        places_return: true,
    };

    /// As it was once: only who had confirmed what was judged wrong was asked.
    pub const OF_JUDGED_ONLY: Self = Self {
        confirmers: false,
        seals_first: false,
        graver: false,
        places_return: false,
    };
}

/// Windows, in blocks. The defaults are the runtime's in production; `scripts/bench trust` reads them there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// For audits, before the first reveal.
    pub audit: u32,
    /// For opening commitments.
    pub reveal: u32,
    /// For challenging a verdict.
    pub challenge: u32,
    /// For opening late what was sealed: first commitments, then audits of them.
    pub opening: u32,
    /// Of each side's chess clock in a dispute.
    pub clock: u32,
    /// For deciding a dispute about a cell that no block can compute.
    pub decision: u32,
    /// In which a slash can be vetoed.
    pub veto: u32,
    /// From unbonding to withdrawal.
    pub unbonding: u32,
}

impl Default for Blocks {
    fn default() -> Self {
        Self {
            audit: 300,
            reveal: 300,
            challenge: 1_800,
            opening: 10_800,
            clock: 900,
            decision: 10_800,
            veto: 43_200,
            unbonding: 7 * 43_200,
        }
    }
}

impl Blocks {
    /// Seconds that auditors have at least.
    pub const fn audit_seconds(&self) -> u32 {
        self.audit * BLOCK_SECONDS
    }

    /// From the last commitment until a slash for it is carried out, at the latest: it is opened late, then
    /// its audit, it is challenged in the last block, both sides use up their clocks, no block can compute
    /// the cell, and nobody vetoes.
    pub const fn slashed_within(&self) -> u32 {
        let opened = self.audit + self.reveal + 2 * self.opening + self.challenge;
        let disputed = 2 * self.clock + self.decision;
        opened + disputed + self.veto
    }
}

/// What work costs and is worth, and who is there. Amounts in plancks.
#[derive(Clone, Debug)]
pub struct Market {
    /// What the work costs whoever does it: a cheat saves it (g).
    pub work: u128,
    /// What a wrong answer is worth to the cheat (V).
    pub outside: u128,
    /// What a cap leaves each provider above the usual price.
    pub room: u128,
    /// What a right answer is worth to its client.
    pub worth: u128,
    /// What an audit costs whoever does it.
    pub audit: u128,
    /// What a transaction costs.
    pub transaction: u128,
    /// What it costs to keep one auditor, and whoever could carry its opening, off the network for as long as
    /// openings are taken.
    pub silence: u128,
    /// Stake of each provider, the lock included.
    pub stake: u128,
    /// Providers.
    pub providers: u32,
    /// Verifiers, all with the same stake.
    pub verifiers: u32,
    /// Percent of verifiers, of providers' stake and of block authors that are the cheat's.
    pub corrupt: u32,
    /// How closely the client wants its task watched.
    pub level: SecurityLevel,
    /// Clean tasks of the provider.
    pub clean_tasks: u32,
}

impl Market {
    /// The usual one, with `corrupt` percent of it the cheat's, at the level that a client gets unless it
    /// asks for another.
    pub fn with_corrupt(corrupt: u32) -> Self {
        Self {
            work: REWARD * 70 / 100,
            outside: REWARD * 50 / 100,
            room: REWARD * 50 / 100,
            worth: REWARD * 130 / 100,
            audit: REWARD * 10 / 100,
            transaction: REWARD / 1_000,
            silence: REWARD * 12,
            stake: REWARD * 400,
            providers: 100,
            verifiers: 100,
            corrupt,
            level: SecurityLevel::Standard,
            clean_tasks: 200,
        }
    }

    /// The same, less closely watched.
    pub fn basic(corrupt: u32) -> Self {
        Self {
            level: SecurityLevel::Basic,
            ..Self::with_corrupt(corrupt)
        }
    }

    /// What is at stake in a task.
    pub const fn terms(&self) -> Terms {
        Terms {
            reward: REWARD,
            saved: self.work,
            outside: self.outside,
        }
    }

    /// Number of verifiers that are the cheat's.
    pub const fn cronies(&self) -> u32 {
        self.verifiers * self.corrupt / 100
    }

    /// The same as a part.
    pub fn corrupt_part(&self) -> Perquintill {
        Perquintill::from_percent(self.corrupt.into())
    }
}

impl Rules {
    /// How a task is watched, and what is locked for it.
    ///
    /// # Errors
    /// The [`Refusal`] of a task whose risk no lock covers.
    pub fn plan(&self, market: &Market) -> Result<AuditPlan, Refusal> {
        match self.lock {
            Some(lock) => Ok(AuditPlan {
                level: market.level,
                expected: self.policy.rates.expected(market.level, market.clean_tasks),
                lock,
            }),
            None => self
                .policy
                .plan(market.level, market.clean_tasks, &market.terms(), market.stake),
        }
    }

    /// The part of what a provider earns that each of its audits gets, where `expected` are expected.
    pub fn audit_share(&self, market: &Market, expected: FixedU128) -> Perbill {
        let cost = Perquintill::from_rational(market.audit, market.work);
        self.audit_pay.share(cost, expected)
    }

    /// These rules for a corrupt part that is known and not feared, with a lock that is no more than honesty
    /// needs and no loss beyond it: those of the tiers that lose only the lock.
    pub fn lock_alone(&self, market: &Market) -> Self {
        let mut rules = self.clone();
        rules.policy.corrupt = market.corrupt_part();
        rules.policy.reward_multiple = 0;
        rules.base = Perquintill::zero();
        rules
    }

    /// Without audits.
    pub fn without_audits(&self) -> Self {
        let mut rules = self.clone();
        let none = FixedU128::from_u32(0);
        rules.policy.rates.basic = none;
        rules.policy.rates.standard = none;
        rules.policy.rates.high = none;
        rules.policy.rates.newcomer = none;
        rules.lock = Some(REWARD * 40);
        rules
    }

    /// A challenger's bond, in plancks: five rewards, twice what a dispute costs the defender, or so much
    /// that taking all places burns as much as losing the lock does.
    pub fn challenge_bond(&self, market: &Market) -> u128 {
        let lock = self.plan(market).map_or(0, |plan| plan.lock);
        let burned = self.policy.burned.mul_ceil(lock);
        // A defender computes again what it has computed once.
        (REWARD * self.challenge_rewards)
            .max(2 * market.work)
            .max((2 * burned).div_ceil(self.places.into()))
    }
}
