//! Each call and each piece of the sweep, at its bounds.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a benchmark that panics has failed"
)]

use alloc::{vec, vec::Vec};
use frame_benchmarking::v2::*;
use frame_support::{
    pallet_prelude::TransactionSource,
    traits::{Authorize, Get},
};
use frame_system::{RawOrigin, pallet_prelude::BlockNumberFor};
use sp_core::H256;
use sp_runtime::traits::{BlockNumberProvider, One, Saturating};
use surety_types::{
    TaskId,
    limits::{AUDITS_MAX, BIDS_MAX, ENDPOINTS_MAX, REDUNDANCY_MAX},
    model::Operation,
    multiaddr::{Endpoint, Endpoints},
    speed::{Requirements, Tier},
    stake::Role,
    task::{AuditTerms, Bid, PerMember, ResultClaim, Security, SecurityLevel, TaskSpec, Verdict},
    traits::{
        BlockEntropy, Escrow, ModelCatalog, ProviderDirectory, StakeLedger, TaskClock, TaskOutcome, TaskTrust,
    },
    trust::AuditToPay,
};

use crate::{tick::LOOK_TASKS_MAX, *};

/// 1,000 SURE: pays the highest redundancy.
const CAP: Balance = 1_000_000_000_000_000;
/// Of the dearest bid.
const PRICE: Balance = 1_000_000;

const SEED: u32 = 0;

/// A planck at risk, so that everything is computed, at the level that needs the largest lock.
const SECURITY: Security = Security {
    level: SecurityLevel::Basic,
    value_at_risk: 1,
};

/// So that what was measured and what is declared is looked at. Every provider here meets it.
fn requirements() -> Requirements {
    Requirements {
        tier: Some(Tier::C),
        memory_mib: 1,
        region: "DE".parse().ok(),
    }
}

/// The longest address there is, as often as allowed.
fn sources() -> Result<Endpoints, BenchmarkError> {
    let (front, back) = (
        "/dns4/",
        "/udp/65535/quic-v1/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp",
    );
    let host_bytes =
        (surety_types::limits::MULTIADDR_BYTES_MAX as usize).saturating_sub(front.len() + back.len());
    let text = [front.as_bytes(), &vec![b'a'; host_bytes], back.as_bytes()].concat();
    let source = Endpoint::try_from(text).map_err(|_| "address too long")?;
    Endpoints::try_from(vec![source; ENDPOINTS_MAX as usize]).map_err(|_| "too many addresses".into())
}

fn spec<T: Config>() -> Result<TaskSpec, BenchmarkError> {
    let redundancy = T::RedundancyMax::get();
    back::<T>(redundancy);
    Ok(TaskSpec {
        model: T::Models::register_for_benchmark(Operation::Embed),
        operation: Operation::Embed,
        input: H256::repeat_byte(1),
        input_bytes: 12,
        units_max: 1,
        redundancy,
        sources: sources()?,
        security: SECURITY,
        requirements: requirements(),
    })
}

/// A task that is running, for benchmarks of `results`.
pub(crate) fn put_task<T: Config>(
    id: TaskId,
    client: &T::AccountId,
    input: surety_types::ContentHash,
    input_bytes: u32,
) {
    let spec = TaskSpec {
        model: H256::repeat_byte(1),
        operation: Operation::Embed,
        input,
        input_bytes,
        units_max: 1,
        redundancy: 1,
        sources: Endpoints::default(),
        security: SECURITY,
        requirements: Default::default(),
    };
    let state = TaskStateOf::<T>::Running {
        assignments: PerMember::new(),
        reserves: Default::default(),
    };
    let task = TaskOf::<T> {
        client: client.clone(),
        spec,
        cap: CAP,
        audits: AuditTerms::default(),
        posted_at: One::one(),
        state,
    };
    Tasks::<T>::insert(id, task);
    OpenTasks::<T>::insert(id, ());
}

/// Stake enough in all that a task with this much at risk is taken.
fn back<T: Config>(redundancy: u32) {
    let (stash, agent): (T::AccountId, _) = (account("backer", 0, SEED), account("backer agent", 0, SEED));
    let stake = T::Trust::lock_for(CAP, &SECURITY, &AuditTerms::default()).saturating_mul(redundancy.into());
    T::Stake::endow(&stash, &agent, Role::Provider, stake);
}

fn client<T: Config>() -> T::AccountId {
    let client: T::AccountId = account("client", 0, SEED);
    T::Escrow::endow(&client, CAP);
    client
}

fn post<T: Config>() -> Result<TaskId, BenchmarkError> {
    let id = NextTaskId::<T>::get();
    let spec = spec::<T>()?;
    let model = spec.model;
    Pallet::<T>::do_post(client::<T>(), spec, CAP)?;
    // It goes with the task.
    T::Models::retire_for_benchmark(&model);
    Ok(id)
}

/// A provider that can back any price; returns its stash and its agent.
fn provider<T: Config>(index: u32) -> (T::AccountId, T::AccountId) {
    let stash: T::AccountId = account("stash", index, SEED);
    let agent: T::AccountId = account("agent", index, SEED);
    let stake = T::Trust::lock_for(CAP, &SECURITY, &AuditTerms::default())
        .saturating_add(T::BidDeposit::get().saturating_mul(2));
    T::Stake::endow(&stash, &agent, Role::Provider, stake);
    T::Providers::register_for_benchmark(&stash);
    (stash, agent)
}

/// Prices fall with the index, so that none is like another.
fn bid_of(index: u32) -> Bid<Balance> {
    Bid {
        price: PRICE.saturating_sub(index.into()),
        seconds: 1,
        salt: H256::repeat_byte(2),
    }
}

/// Places bids of the providers in `indices`.
fn place<T: Config>(task: TaskId, indices: core::ops::Range<u32>) -> Result<(), BenchmarkError> {
    for index in indices {
        let (stash, agent) = provider::<T>(index);
        Pallet::<T>::do_bid(agent, task, bid_of(index).seal(task, &stash)).map_err(|error| error.error)?;
    }
    Ok(())
}

/// A task whose places are all taken, by providers whose stake counts, and one more whose stake is such that
/// it ranks better than one of them. Nobody is ranked yet.
fn crowded<T: Config>() -> Result<(TaskId, T::AccountId), BenchmarkError> {
    for index in 0..BIDS_MAX {
        provider::<T>(index);
    }
    let (stash, agent) = provider::<T>(BIDS_MAX);
    let much = T::Stake::unlocked_stake(&stash).saturating_mul(1_000);
    T::Stake::endow(&stash, &agent, Role::Provider, much);
    pass::<T>(T::BidderSeasoning::get().saturating_add(1).into());
    let task = post::<T>()?;
    for index in 0..=BIDS_MAX {
        T::Providers::register_for_benchmark(&account("stash", index, SEED));
    }
    for index in 0..BIDS_MAX {
        Pallet::<T>::do_bid(account("agent", index, SEED), task, H256::zero())
            .map_err(|error| error.error)?;
    }
    T::Entropy::fill_for_benchmark(frame_system::Pallet::<T>::block_number());
    Ok((task, agent))
}

/// Lets blocks pass, and as much time.
fn pass<T: Config>(blocks: BlockNumberFor<T>) {
    let (block, time) = (frame_system::Pallet::<T>::block_number(), Pallet::<T>::now());
    frame_system::Pallet::<T>::set_block_number(block.saturating_add(blocks));
    T::BlockNumberProvider::set_block_number(time.saturating_add(blocks));
}

/// A task whose reveals have closed, with `opened` and then `unopened` bids.
fn drawable<T: Config>(opened: u32, unopened: u32) -> Result<TaskId, BenchmarkError> {
    let task = post::<T>()?;
    place::<T>(task, 0..opened.saturating_add(unopened))?;
    pass::<T>(T::BidWindow::get().saturating_add(One::one()));
    for index in 0..opened {
        Pallet::<T>::do_reveal_bid(task, account("stash", index, SEED), bid_of(index))?;
    }
    pass::<T>(T::RevealWindow::get().saturating_add(One::one()));
    for index in 0..opened {
        T::Providers::register_for_benchmark(&account("stash", index, SEED));
    }
    if opened == 0 {
        Pallet::<T>::do_advance(task).map_err(|error| error.error)?;
    }
    Ok(task)
}

fn hold_draw<T: Config>(task: TaskId) -> Result<(), BenchmarkError> {
    let record = Tasks::<T>::get(task).ok_or("no task")?;
    Pallet::<T>::hold_draw(task, &record, Pallet::<T>::benchmark_entropy())?;
    Ok(())
}

fn running<T: Config>(bids: u32) -> Result<TaskId, BenchmarkError> {
    let task = drawable::<T>(bids, 0)?;
    hold_draw::<T>(task)?;
    Ok(task)
}

/// An audit of `provider` by a verifier of its own, whose account exists.
fn audit_to_pay<T: Config>((provider, number): (&T::AccountId, u32)) -> AuditToPay<T::AccountId> {
    let verifier: T::AccountId = account("verifier", number, SEED);
    T::Escrow::endow(&verifier, CAP);
    AuditToPay {
        // Every one of them gets something.
        share: sp_runtime::Perbill::one(),
        units: u32::MAX,
        provider: provider.clone(),
        verifier,
    }
}

fn assert_state<T: Config>(task: TaskId, expected: fn(&TaskStateOf<T>) -> bool) {
    assert!(Tasks::<T>::get(task).is_some_and(|task| expected(&task.state)));
}

#[benchmarks]
mod benchmarks {
    use super::*;

    #[benchmark]
    fn post() -> Result<(), BenchmarkError> {
        let (client, spec) = (client::<T>(), spec::<T>()?);
        #[extrinsic_call]
        _(RawOrigin::Signed(client), spec, CAP);
        assert_eq!(NextTaskId::<T>::get(), 1);
        Ok(())
    }

    #[benchmark]
    fn bid() -> Result<(), BenchmarkError> {
        let task = super::post::<T>()?;
        let (stash, agent) = provider::<T>(0);
        #[extrinsic_call]
        _(RawOrigin::Signed(agent), task, H256::zero());
        assert!(Bids::<T>::contains_key(task, stash));
        Ok(())
    }

    #[benchmark]
    fn displace_bid() -> Result<(), BenchmarkError> {
        let (task, agent) = crowded::<T>()?;
        #[extrinsic_call]
        bid(RawOrigin::Signed(agent), task, H256::zero());
        assert!(Rankings::<T>::contains_key(task));
        Ok(())
    }

    #[benchmark]
    fn reveal_bid() -> Result<(), BenchmarkError> {
        let task = super::post::<T>()?;
        place::<T>(task, 0..1)?;
        pass::<T>(T::BidWindow::get().saturating_add(One::one()));
        let stash: T::AccountId = account("stash", 0, SEED);
        #[extrinsic_call]
        _(RawOrigin::Authorized, task, stash, bid_of(0));
        assert!(Bids::<T>::iter_prefix_values(task).all(|record| record.opened.is_some()));
        Ok(())
    }

    #[benchmark]
    fn authorize_reveal_bid() -> Result<(), BenchmarkError> {
        let task = super::post::<T>()?;
        place::<T>(task, 0..1)?;
        pass::<T>(T::BidWindow::get().saturating_add(One::one()));
        let call = Call::<T>::reveal_bid {
            task,
            provider: account("stash", 0, SEED),
            bid: bid_of(0),
        };
        #[block]
        {
            call.authorize(TransactionSource::External)
                .ok_or("no signature is asked for")??;
        }
        Ok(())
    }

    #[benchmark]
    fn cancel(b: Linear<0, BIDS_MAX>) -> Result<(), BenchmarkError> {
        let task = super::post::<T>()?;
        place::<T>(task, 0..b)?;
        #[extrinsic_call]
        _(RawOrigin::Signed(client::<T>()), task);
        assert_state::<T>(task, |state| matches!(state, TaskStateOf::<T>::Cancelled { .. }));
        Ok(())
    }

    #[benchmark]
    fn open_reveals() -> Result<(), BenchmarkError> {
        let task = super::post::<T>()?;
        pass::<T>(T::BidWindow::get().saturating_add(One::one()));
        #[block]
        {
            Pallet::<T>::do_advance(task).map_err(|error| error.error)?;
        }
        assert_state::<T>(task, |state| matches!(state, TaskStateOf::<T>::Revealing { .. }));
        Ok(())
    }

    /// The highest redundancy takes the lower end as many bids as it is. Entropy is looked for as well, among
    /// as much as is kept.
    #[benchmark]
    fn draw(b: Linear<REDUNDANCY_MAX, BIDS_MAX>) -> Result<(), BenchmarkError> {
        let task = drawable::<T>(b, 0)?;
        let since = frame_system::Pallet::<T>::block_number();
        T::Entropy::fill_for_benchmark(since);
        #[block]
        {
            let _ = T::Entropy::first_after(since);
            hold_draw::<T>(task)?;
        }
        assert_state::<T>(task, |state| matches!(state, TaskStateOf::<T>::Running { .. }));
        Ok(())
    }

    #[benchmark]
    fn forfeit(b: Linear<0, BIDS_MAX>) -> Result<(), BenchmarkError> {
        let task = drawable::<T>(0, b)?;
        let forfeited;
        #[block]
        {
            forfeited = Pallet::<T>::forfeit_unopened(task, &Pallet::<T>::bids_of(task));
        }
        assert_eq!(forfeited, b);
        Ok(())
    }

    #[benchmark]
    fn decided(m: Linear<1, REDUNDANCY_MAX>, a: Linear<0, AUDITS_MAX>) -> Result<(), BenchmarkError> {
        let task = running::<T>(BIDS_MAX)?;
        let Some(TaskStateOf::<T>::Running { assignments, .. }) =
            Tasks::<T>::get(task).map(|task| task.state)
        else {
            return Err("not running".into());
        };
        let majority: Vec<_> = assignments
            .into_iter()
            .take(m as usize)
            .map(|member| member.provider)
            .collect();
        let audits: Vec<_> = majority.iter().cycle().zip(0..a).map(audit_to_pay::<T>).collect();
        let verdict = Verdict::Agreed {
            claim: ResultClaim {
                output: H256::zero(),
                trace_root: H256::zero(),
                units: 1,
            },
            majority: PerMember::try_from(majority).map_err(|_| "too many")?,
            minority: Default::default(),
            absent: Default::default(),
        };
        #[block]
        {
            Pallet::<T>::decided(task, verdict, &audits)?;
        }
        assert_state::<T>(task, |state| matches!(state, TaskStateOf::<T>::Settled { .. }));
        Ok(())
    }

    #[benchmark]
    fn take_reserves() -> Result<(), BenchmarkError> {
        let task = running::<T>(BIDS_MAX)?;
        let taken;
        #[block]
        {
            // More than there are: every reserve is looked at.
            taken = Pallet::<T>::take_reserves(task, BIDS_MAX);
        }
        assert!(!taken.is_empty());
        Ok(())
    }

    #[benchmark]
    fn remove(b: Linear<0, BIDS_MAX>) -> Result<(), BenchmarkError> {
        let task = super::post::<T>()?;
        place::<T>(task, 0..b)?;
        Pallet::<T>::do_cancel(client::<T>(), task)?;
        pass::<T>(T::FinishedRetention::get().saturating_add(One::one()));
        #[block]
        {
            Pallet::<T>::do_advance(task).map_err(|error| error.error)?;
        }
        assert!(!Tasks::<T>::contains_key(task));
        Ok(())
    }

    #[benchmark]
    fn sweep_base() -> Result<(), BenchmarkError> {
        let now = Pallet::<T>::now();
        AgendaSweptTo::<T>::put(now);
        #[block]
        {
            Pallet::<T>::sweep(T::BlockWeights::get().max_block);
            AgendaSweptTo::<T>::put(now);
        }
        Ok(())
    }

    #[benchmark]
    fn sweep_look() -> Result<(), BenchmarkError> {
        let time = Pallet::<T>::now();
        for task in 0..TaskId::from(LOOK_TASKS_MAX) {
            Agenda::<T>::insert(time, task, ());
        }
        let found;
        #[block]
        {
            found = Pallet::<T>::look(time);
        }
        assert_eq!(found.len(), LOOK_TASKS_MAX as usize);
        Ok(())
    }

    #[benchmark]
    fn sweep_entropy() -> Result<(), BenchmarkError> {
        let task = super::post::<T>()?;
        let since = frame_system::Pallet::<T>::block_number();
        T::Entropy::fill_for_benchmark(since);
        Pallet::<T>::wake_with_entropy(task, since);
        let found;
        #[block]
        {
            let since = AwaitingEntropy::<T>::get(task).unwrap_or_default();
            found = T::Entropy::first_after(since).is_some() && Tasks::<T>::contains_key(task);
        }
        assert!(found);
        Ok(())
    }

    #[benchmark]
    fn sweep_task() -> Result<(), BenchmarkError> {
        let task = super::post::<T>()?;
        let now = Pallet::<T>::now();
        Pallet::<T>::wake_after(task, now);
        let time = now.saturating_add(One::one());
        #[block]
        {
            Pallet::<T>::sweep_task(time, task);
        }
        assert!(!Agenda::<T>::contains_key(time, task));
        Ok(())
    }

    impl_benchmark_test_suite!(
        Pallet,
        sp_io::TestExternalities::new(Default::default()),
        mock::Test
    );
}
