//! Benchmarks, each with as many candidates and validators as there may be.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a benchmark that panics has failed"
)]

use alloc::vec::Vec;
use codec::Decode;
use frame_benchmarking::{account, v2::*};
use frame_support::traits::Get;
use frame_system::RawOrigin;
use pallet_session::{NextKeys, QueuedKeys, Validators};
use sp_runtime::{
    Perbill,
    traits::{BlockNumberProvider, Saturating},
};
use sp_staking::offence::{OffenceDetails, OnOffenceHandler};
use surety_types::traits::PoolLedger;

use crate::{
    Authored, BeganAt, Call, Candidate, Candidates, Config, Pallet, Punished, Punishment, ServiceOf,
    Services, StoodStill,
};

/// Keys that nobody has. A key is 32 bytes; its index makes it another.
fn keys<T: Config>(index: u32) -> Result<T::Keys, BenchmarkError> {
    let bytes: Vec<u8> = index.to_le_bytes().into_iter().cycle().take(1_024).collect();
    T::Keys::decode(&mut bytes.as_slice()).map_err(|_| BenchmarkError::Stop("keys are longer than that"))
}

/// An operator with a pool of its own, keys, and nothing else.
fn operator<T: Config>(index: u32) -> Result<T::AccountId, BenchmarkError> {
    let operator: T::AccountId = account("operator", index, 0);
    T::Pools::open_for_benchmark(&operator, T::MinSelfBond::get());
    NextKeys::<T>::insert(&operator, keys::<T>(index)?);
    Ok(operator)
}

/// Makes there be as many candidates as there may be but `fewer`.
fn candidates<T: Config>(fewer: u32) -> Result<Vec<T::AccountId>, BenchmarkError> {
    let count = T::CandidatesMax::get().saturating_sub(fewer);
    let _ = Candidates::<T>::clear(u32::MAX, None);
    (0..count)
        .map(|index| {
            let operator = operator::<T>(index)?;
            let candidate = Candidate {
                wants_to: true,
                missed_millionths: 0,
                proven: true,
            };
            Candidates::<T>::insert(&operator, candidate);
            Ok(operator)
        })
        .collect()
}

#[benchmarks]
mod benches {
    use super::*;

    #[benchmark]
    fn validate() -> Result<(), BenchmarkError> {
        candidates::<T>(1)?;
        let operator = operator::<T>(T::CandidatesMax::get())?;

        #[extrinsic_call]
        _(RawOrigin::Signed(operator.clone()));

        assert!(Candidates::<T>::get(&operator).is_some_and(|candidate| candidate.wants_to));
        Ok(())
    }

    #[benchmark]
    fn chill() -> Result<(), BenchmarkError> {
        let all = candidates::<T>(0)?;
        let operator = all.last().cloned().ok_or(BenchmarkError::Stop("no candidates"))?;

        #[extrinsic_call]
        _(RawOrigin::Signed(operator.clone()));

        assert!(Candidates::<T>::get(&operator).is_some_and(|candidate| !candidate.wants_to));
        Ok(())
    }

    #[benchmark]
    fn note_author() -> Result<(), BenchmarkError> {
        let author: T::AccountId = account("operator", 0, 0);
        Authored::<T>::insert(&author, 1);

        #[block]
        {
            <Pallet<T> as pallet_authorship::EventHandler<_, _>>::note_author(author.clone());
        }

        assert_eq!(Authored::<T>::get(&author), 2);
        Ok(())
    }

    /// All validators made something but a tenth, who are chilled for it; all of them were convicted of what
    /// is forgotten now; and all have to be ranked.
    #[benchmark]
    fn change_session() -> Result<(), BenchmarkError> {
        let all = candidates::<T>(0)?;
        let punishment = Punishment {
            session: 0,
            until: 0,
            // Whether it waits is asked.
            slash: Some(0),
            before: Perbill::zero(),
            part: Perbill::one(),
            withheld: Some(ServiceOf::<T>::default()),
        };
        for (index, operator) in all.iter().enumerate() {
            if index % 10 == 0 {
                Candidates::<T>::insert(
                    operator,
                    Candidate {
                        wants_to: true,
                        missed_millionths: u64::MAX,
                        proven: true,
                    },
                );
            } else {
                Authored::<T>::insert(operator, 1);
            }
            Punished::<T>::insert(operator, punishment);
        }
        Validators::<T>::put(all.clone());
        QueuedKeys::<T>::kill();
        let now = T::BlockNumberProvider::current_block_number();
        BeganAt::<T>::put(now);
        T::BlockNumberProvider::set_block_number(now.saturating_add(T::CandidatesMax::get().into()));
        let session = T::SessionsKept::get().saturating_mul(2);
        let planned;

        #[block]
        {
            Pallet::<T>::close_session(session);
            Pallet::<T>::begin_session();
            planned = Pallet::<T>::plan(session.saturating_add(2));
        }

        assert!(!StoodStill::<T>::get());
        assert!(
            all.first()
                .and_then(Candidates::<T>::get)
                .is_some_and(|candidate| !candidate.wants_to)
        );
        assert!(Punished::<T>::iter().next().is_none());
        assert!(planned.is_some());
        Ok(())
    }

    #[benchmark]
    fn on_offence() -> Result<(), BenchmarkError> {
        let all = candidates::<T>(0)?;
        let operator = all.last().cloned().ok_or(BenchmarkError::Stop("no candidates"))?;
        Validators::<T>::put(all);
        let service = ServiceOf::<T> {
            made: 1,
            ..Default::default()
        };
        Services::<T>::insert(&operator, service);
        let offence = OffenceDetails {
            offender: (operator.clone(), ()),
            reporters: Vec::new(),
        };

        #[block]
        {
            Pallet::<T>::on_offence(&[offence], &[Perbill::one()], 0);
        }

        assert!(Punished::<T>::contains_key(&operator));
        Ok(())
    }

    impl_benchmark_test_suite!(Pallet, crate::mock::TestExt::new(4).build(), crate::mock::Test);
}
