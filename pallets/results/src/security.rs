//! How closely a task is watched, and how much stake is locked for it: `surety_audit_economics::` with this
//! chain's parameters.
//!
//! A task asks for a level and declares its value at risk. When it is posted its level is raised until stake
//! that there is could make cheating a loss, or it is refused; when it is drawn, only providers with the
//! stake for its lock get it. How many items of a result each of its auditors computes, and how many are
//! expected, is fixed when its provider gets the task.
//!
//! Whatever is locked, paid and drawn rests on work being worth its price. So none is done for less than
//! `WorkPrice` says, or a ring of client and provider could have all auditors compute for nothing.

use frame_support::{ensure, traits::Get};
use frame_system::pallet_prelude::BlockNumberFor;
use sp_runtime::{
    DispatchError, FixedU128, PerThing, Perbill, Permill, Perquintill, SaturatedConversion,
    traits::Saturating,
};
use surety_audit_economics::{
    AuditPay, AuditPolicy, AuditRates, AuditWork, Refusal, Terms, generation_audit,
};
use surety_pallet_trust_lock::{Pallet as TrustLock, Records, quintillionths};
use surety_types::{
    BLOCK_SECONDS,
    input::Work,
    limits,
    model::{ModelAudits, Operation},
    stake::Role,
    task::{AuditRate, AuditTerms, Security, SecurityLevel, TaskSpec},
    traits::StakeLedger,
};

use crate::{Config, Error, MemberOf, Pallet, RoundOf};

impl<T: Config> Pallet<T> {
    /// Auditors expected for a result of `provider` in a task that is watched at `level`.
    pub fn auditors_expected(provider: &T::AccountId, level: SecurityLevel) -> FixedU128 {
        Self::audit_rates().expected(level, Records::<T>::get(provider).clean_tasks)
    }

    /// The level for a task, and how it is audited. Without a value at risk the level is what was asked for:
    /// the usual lock covers it.
    pub(crate) fn do_secure(
        price: T::Balance,
        spec: &TaskSpec,
        audits: ModelAudits,
    ) -> Result<(SecurityLevel, AuditTerms), DispatchError> {
        // Of items a majority decides then, which is worth something where nothing more is at risk.
        let is_decided = spec.operation == Operation::Embed && spec.security.value_at_risk == 0;
        ensure!(audits.has_referee || is_decided, Error::<T>::NoReferee);
        let audits = Self::audit_terms(&spec.work(), audits);
        let least = Self::do_least_price(spec.units_max, &audits);
        ensure!(price >= least, Error::<T>::PriceTooLow);
        let (policy, mut security) = (Self::audit_policy(&audits), spec.security);
        if security.value_at_risk > 0 {
            // More than that no `redundancy` providers can have. Who can lock it is seen in the draw.
            let stake: u128 = T::Stake::bonded_in_all(Role::Provider).into();
            let available = stake.checked_div(spec.redundancy.into()).unwrap_or_default();
            let plan = policy.plan(security.level, u32::MAX, &terms(price, &security), available);
            security.level = plan.map_err(refusal::<T>)?.level;
        }
        let expected = policy.rates.expected(security.level, u32::MAX);
        Self::items(price, spec.units_max, (&security, &audits), expected).map_err(refusal::<T>)?;
        // A lower price may make each auditor's own items all of them, and whoever plays computes all.
        let seconds = AuditWork::of(&audits, spec.units_max).seconds(u32::MAX);
        ensure!(
            blocks::<T>(seconds) <= T::AuditWindowMax::get(),
            Error::<T>::AuditTooLong
        );
        Ok((security.level, audits))
    }

    /// How this work of a model is audited.
    pub fn audit_terms(work: &Work, audits: ModelAudits) -> AuditTerms {
        AuditTerms {
            operation: work.operation,
            input_bytes: work.input_bytes,
            item_tokens: audits.item_tokens,
            speed: audits.speed,
            able: Self::able(audits.able),
            verifier_stake: T::Stake::bonded_in_all(Role::Verifier).into(),
            // No position of a generation can be computed without those before it.
            item_parts: match work.operation {
                Operation::Embed => audits.item_parts,
                Operation::Generate => 0,
            },
        }
    }

    /// What each provider is paid at least for so many units.
    pub(crate) fn do_least_price(units_max: u32, audits: &AuditTerms) -> T::Balance {
        AuditWork::of(audits, units_max)
            .worth(T::WorkPrice::get().into())
            .into()
    }

    /// What an auditor locks for a result that is paid `price`.
    pub(crate) fn do_audit_bond(price: T::Balance) -> T::Balance {
        price.saturating_mul(T::AuditBondMultiple::get().into())
    }

    /// The part of the verifiers' stake that can audit a model.
    fn able(declared: u128) -> Permill {
        let all: u128 = T::Stake::bonded_in_all(Role::Verifier).into();
        let declared = if all == 0 {
            Permill::zero()
        } else {
            Permill::from_rational(declared.min(all), all)
        };
        declared.max(T::VerifiersAble::get())
    }

    /// Items that each auditor computes of a result that is paid `price` for `units_max` units.
    fn items(
        price: T::Balance,
        units_max: u32,
        (security, audits): (&Security, &AuditTerms),
        expected: FixedU128,
    ) -> Result<u32, Refusal> {
        if audits.item_parts == 0 {
            return Self::audit_policy(audits)
                .items(1, expected, &terms(price, security), 0)
                .map(|_| u32::MAX);
        }
        let lock = Self::do_lock_for(price, security, audits).into();
        let items = Self::audit_policy(audits).items(units_max, expected, &terms(price, security), lock)?;
        // A whole task is whole whatever it has.
        let is_whole = items == units_max || items > audits.items_max();
        Ok(if is_whole { u32::MAX } else { items })
    }

    /// How the result of a provider is audited that is paid `price`.
    pub(crate) fn audit_rate(
        provider: &T::AccountId,
        price: T::Balance,
        units_max: u32,
        (security, audits): (&Security, &AuditTerms),
    ) -> AuditRate {
        let expected = Self::auditors_expected(provider, security.level);
        let items = Self::items(price, units_max, (security, audits), expected);
        AuditRate {
            expected,
            // Nobody can lock what no lock would do for.
            items: items.unwrap_or(u32::MAX),
        }
    }

    /// How long a round's auditors have: those of its dearest audit.
    pub(crate) fn audit_window(round: &RoundOf<T>) -> BlockNumberFor<T> {
        let work = AuditWork::of(&round.terms, round.units_max);
        let seconds = round
            .members
            .iter()
            .map(|member| work.seconds(member.audits.items));
        let longest = blocks::<T>(seconds.max().unwrap_or(0));
        longest.min(T::AuditWindowMax::get()).max(T::AuditWindow::get())
    }

    /// What the windows are longer by in which all of the task may have to be computed: theirs are made for
    /// tasks that take no longer than the shortest audit window.
    pub fn time_for_all(round: &RoundOf<T>) -> BlockNumberFor<T> {
        let all = blocks::<T>(AuditWork::of(&round.terms, round.units_max).seconds(u32::MAX));
        all.min(T::AuditWindowMax::get())
            .saturating_sub(T::AuditWindow::get())
    }

    /// Until when what was sealed can be opened: whoever was shown nothing of its items computes all.
    pub(crate) fn openings_end(round: &RoundOf<T>) -> BlockNumberFor<T> {
        let window = T::OpeningWindow::get().saturating_add(Self::time_for_all(round));
        TrustLock::<T>::window_end(window)
    }

    /// The part of what a provider earns for `units` units that each of its audits gets.
    pub(crate) fn audit_share(round: &RoundOf<T>, member: &MemberOf<T>, units: u32) -> Perbill {
        let part = match round.terms.operation {
            Operation::Generate => Self::generation_part(round, units),
            Operation::Embed => {
                let items = member.audits.items.min(units);
                Perquintill::from_rational(u64::from(items), u64::from(units.max(1)))
            }
        };
        let able = FixedU128::from(round.terms.able);
        let pay = AuditPay {
            premium: T::AuditPremium::get(),
        };
        pay.share(part, member.audits.expected.saturating_mul(able))
    }

    /// What one pass over so many tokens of a generation costs, as a part of generating them.
    fn generation_part(round: &RoundOf<T>, units: u32) -> Perquintill {
        let work = Work {
            operation: Operation::Generate,
            input_bytes: round.terms.input_bytes,
            units_max: units,
        };
        generation_audit(T::GenerationAuditCost::get(), work.prompt_tokens(), units)
    }

    /// What it costs whoever has not done the work to compute any one number of a result again that is paid
    /// `price`, rounded up. Nobody offers work for less than it costs.
    pub fn computing_cost(round: &RoundOf<T>, price: T::Balance) -> T::Balance {
        match round.terms.operation {
            Operation::Generate => {
                let price: u128 = price.into();
                Self::generation_part(round, round.units_max)
                    .mul_ceil(price)
                    .into()
            }
            // The item that it is of.
            Operation::Embed => price.into().div_ceil(round.units_max.max(1).into()).into(),
        }
    }

    /// The lock for a provider with enough clean tasks: it is audited least, and a newcomer locks no less.
    pub(crate) fn do_lock_for(price: T::Balance, security: &Security, audits: &AuditTerms) -> T::Balance {
        let policy = Self::audit_policy(audits);
        let expected = policy.rates.expected(security.level, u32::MAX);
        let lock = policy.least_lock(expected, &terms(price, security));
        // Nobody can lock what no lock would do for.
        let lock = lock.unwrap_or(u128::MAX);
        price
            .saturating_mul(T::LockMultiple::get().into())
            .max(lock.into())
    }

    /// What a provider that is paid `price` really loses of its lock at least, in plancks: the part that is
    /// burned.
    pub fn burned_lock(price: T::Balance, security: &Security, audits: &AuditTerms) -> u128 {
        Self::burned_part(Self::do_lock_for(price, security, audits), audits)
    }

    /// The part of a lock that is burned when it is lost, in plancks.
    pub fn burned_part(lock: T::Balance, audits: &AuditTerms) -> u128 {
        Self::audit_policy(audits).burned.mul_ceil(lock.into())
    }

    /// No more auditors are ever expected than there are places for: locks must not count on more.
    fn audit_rates() -> AuditRates {
        let most = FixedU128::from_u32(limits::AUDITORS_EXPECTED_MAX);
        AuditRates {
            basic: T::AuditorsBasic::get().min(most),
            standard: T::AuditorsExpected::get().min(most),
            high: T::AuditorsHigh::get().min(most),
            newcomer: T::AuditorsNewcomer::get().min(most),
            probation_tasks: T::ProbationTasks::get(),
        }
    }

    fn audit_policy(audits: &AuditTerms) -> AuditPolicy {
        let shares = T::FinderShare::get().saturating_add(T::ClientShare::get());
        AuditPolicy {
            rates: Self::audit_rates(),
            able: quintillionths(audits.able),
            corrupt: quintillionths(T::VerifiersCorrupt::get()),
            accuracy: quintillionths(T::AuditAccuracy::get()),
            burned: quintillionths(shares.left_from_one()),
            reward_multiple: T::LockMultiple::get(),
        }
    }
}

/// What is at stake. A cheat saves no more than it is paid: nobody offers work for less than it costs.
fn terms<Balance: Copy + Into<u128>>(price: Balance, security: &Security) -> Terms {
    Terms {
        reward: price.into(),
        saved: price.into(),
        outside: security.value_at_risk,
    }
}

fn blocks<T: Config>(seconds: u32) -> BlockNumberFor<T> {
    seconds.div_ceil(BLOCK_SECONDS).saturated_into()
}

const fn refusal<T: Config>(refusal: Refusal) -> Error<T> {
    match refusal {
        Refusal::BeyondStake { .. } => Error::ValueAtRiskTooHigh,
        Refusal::NobodyAble => Error::NobodyAudits,
        Refusal::NeverPunished => Error::NeverPunished,
    }
}
