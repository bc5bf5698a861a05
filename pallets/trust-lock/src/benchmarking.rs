//! The calls, and what time brings about, in the rounds that cost most.

use alloc::vec::Vec;
use frame_benchmarking::v2::*;
use frame_support::BoundedVec;
use frame_system::{pallet_prelude::BlockNumberFor, RawOrigin};
use sp_core::H256;
use sp_runtime::{
    traits::{Bounded, One},
    Saturating,
};
use surety_types::{
    limits::{BIDS_MAX, REDUNDANCY_MAX},
    stake::Role,
    task::{Assignment, MemberProgress, ResultClaim, Round, RoundMember, RoundPhase},
    traits::StakeLedger,
    TaskId,
};

use crate::{verdict, Call, Config, Pallet, RoundOf, Rounds};

const TASK: TaskId = 7;

/// Stake of the caller: 1,000 SURE. The calls lock and unlock nothing, so that only its being there counts.
fn stake<T: Config>() -> T::Balance {
    T::Balance::from(1_000_000_000u32).saturating_mul(1_000_000u32.into())
}

fn claim(output: u8) -> ResultClaim {
    ResultClaim {
        output: H256::repeat_byte(output),
        trace_root: H256::repeat_byte(1),
        units: 1,
    }
}

/// A round of the most members, all of them as far as `progress` says of their seats.
fn full_round<T: Config>(
    phase: RoundPhase<T::AccountId, BlockNumberFor<T>>,
    progress: impl Fn(u32) -> MemberProgress,
) -> RoundOf<T> {
    let members: Vec<_> = (0..REDUNDANCY_MAX)
        .map(|seat| RoundMember {
            provider: account("provider", seat, 0),
            lock: T::Balance::max_value(),
            progress: progress(seat),
        })
        .collect();
    let dropped: Vec<_> = (0..REDUNDANCY_MAX)
        .map(|seat| account("dropped", seat, 0))
        .collect();
    Round {
        redundancy: REDUNDANCY_MAX,
        units_max: u32::MAX,
        members: BoundedVec::truncate_from(members),
        dropped: BoundedVec::truncate_from(dropped),
        phase,
    }
}

/// The provider in `seat`, and its agent, in the block in which calls are measured.
fn agent_of<T: Config>(seat: u32) -> (T::AccountId, T::AccountId) {
    frame_system::Pallet::<T>::set_block_number(One::one());
    let (stash, agent) = (account("provider", seat, 0), account("agent", seat, 0));
    T::Stake::endow(&stash, &agent, Role::Provider, stake::<T>());
    (stash, agent)
}

/// Gives every member stake, and locks some of it.
fn lock_all<T: Config>(round: &mut RoundOf<T>) {
    for (seat, member) in (0..REDUNDANCY_MAX).zip(round.members.iter_mut()) {
        agent_of::<T>(seat);
        member.lock = One::one();
        frame_support::assert_ok!(T::Stake::lock(&member.provider, member.lock));
    }
}

#[benchmarks]
mod benchmarks {
    use super::*;

    #[benchmark]
    fn commit() {
        let last = REDUNDANCY_MAX - 1;
        let (_, agent) = agent_of::<T>(last);
        let until = frame_system::Pallet::<T>::block_number();
        let round = full_round::<T>(RoundPhase::Committing { until }, |seat| {
            if seat == last {
                MemberProgress::Working
            } else {
                MemberProgress::Committed(H256::repeat_byte(2))
            }
        });
        Rounds::<T>::insert(TASK, round);

        #[extrinsic_call]
        _(RawOrigin::Signed(agent), TASK, H256::repeat_byte(2));

        let round = Rounds::<T>::get(TASK);
        assert!(round.is_some_and(|round| matches!(round.phase, RoundPhase::Auditing { .. })));
    }

    /// Both changes of phase that a reveal can bring: the audit window is over, and nobody else has yet to reveal.
    /// They meet in one call only when one member committed; here the others have revealed all the same, so that
    /// the verdict is as large as it can be.
    #[benchmark]
    fn reveal() {
        let last = REDUNDANCY_MAX - 1;
        let (stash, agent) = agent_of::<T>(last);
        let salt = H256::repeat_byte(3);
        let until = frame_system::Pallet::<T>::block_number();
        let majority = surety_verification::majority(REDUNDANCY_MAX);
        let round = full_round::<T>(RoundPhase::Auditing { until }, |seat| {
            if seat == last {
                let sealed = surety_verification::commitment(TASK, &stash, &claim(0), &salt);
                MemberProgress::Committed(sealed)
            } else if seat < majority - 1 {
                MemberProgress::Revealed(claim(0))
            } else {
                MemberProgress::Revealed(claim(seat as u8))
            }
        });
        Rounds::<T>::insert(TASK, round);
        frame_system::Pallet::<T>::set_block_number(until + One::one());

        #[extrinsic_call]
        _(RawOrigin::Signed(agent), TASK, claim(0), salt);

        let round = Rounds::<T>::get(TASK);
        assert!(round.is_some_and(|round| {
            matches!(round.phase, RoundPhase::Challengeable { .. })
                && matches!(
                    verdict::verdict(&round),
                    surety_types::task::Verdict::Agreed { .. }
                )
        }));
    }

    /// As many reserves as there can be bids, and the last of them fill every seat. The rest have no stake to lock.
    #[benchmark]
    fn replace_members() {
        let until = frame_system::Pallet::<T>::block_number();
        let mut round = full_round::<T>(RoundPhase::Committing { until }, |_| MemberProgress::Working);
        round.dropped.clear();
        lock_all::<T>(&mut round);
        Rounds::<T>::insert(TASK, round);

        let unfit = BIDS_MAX - REDUNDANCY_MAX;
        let reserves: Vec<_> = (0..BIDS_MAX)
            .map(|rank| {
                let (provider, agent) = (account("reserve", rank, 0), account("agent of reserve", rank, 0));
                if rank >= unfit {
                    T::Stake::endow(&provider, &agent, Role::Provider, stake::<T>());
                }
                Assignment {
                    provider,
                    price: One::one(),
                }
            })
            .collect();
        let mut vacancies: Vec<usize> = (0..REDUNDANCY_MAX as usize).rev().collect();

        #[block]
        {
            if let Some(mut round) = Rounds::<T>::get(TASK) {
                Pallet::<T>::fill(TASK, &mut round, &mut vacancies, &reserves);
                Pallet::<T>::start_committing_again(TASK, &mut round);
                Rounds::<T>::insert(TASK, round);
            }
        }

        assert!(vacancies.is_empty());
    }

    #[benchmark]
    fn close() {
        let until = frame_system::Pallet::<T>::block_number();
        let mut round = full_round::<T>(RoundPhase::Committing { until }, |_| {
            MemberProgress::Revealed(claim(0))
        });
        let verdict = verdict::verdict(&round);
        round.phase = RoundPhase::Challengeable { until, verdict };
        lock_all::<T>(&mut round);
        Rounds::<T>::insert(TASK, round);

        #[block]
        {
            if let Some(round) = Rounds::<T>::get(TASK) {
                Pallet::<T>::close(TASK, &round);
            }
        }

        assert!(!Rounds::<T>::contains_key(TASK));
    }

    impl_benchmark_test_suite!(Pallet, crate::mock::TestExt::new().build(), crate::mock::Test);
}
