//! The calls, and what time brings about, in the rounds that cost most. They need real signatures, draws and games, and
//! run over the runtime alone (`scripts/weights`).

mod committee;
mod inputs;
mod openings;
mod setup;

use alloc::vec::Vec;
use committee::*;
use frame_benchmarking::v2::*;
use frame_support::traits::{EnsureOrigin, UnfilteredDispatchable};
use frame_system::RawOrigin;
use inputs::*;
use openings::*;
use setup::*;
use sp_core::H256;
use sp_runtime::traits::{One, Zero};
use surety_dispute_game::bisection::Clocks;
use surety_proofs::{CommitStatement, SegmentOpening, SignedStatement};
use surety_types::{
    limits::{BIDS_MAX, REDUNDANCY_MAX},
    stake::Role,
    task::{Assignment, MemberProgress, ResultClaim, RoundPhase},
    traits::{DrawVerifier, SignatureVerifier, StakeLedger, TaskOutcome},
    trust::{AuditState, Demand, Party},
};

use crate::{
    asset, committee::SUSPENDED_AT_ONCE, late::CONVICTED_AT_ONCE, types::LongCell, verdict, Call, Config,
    Demands, Disputes, HoldReason, NextSlashId, Pallet, Records, Rounds, Slashes,
};

fn suspended<T: Config>() -> usize {
    let records = Records::<T>::iter_values();
    records.filter(|record| record.suspended_until.is_some()).count()
}

#[benchmarks]
mod benchmarks {
    use super::*;

    /// The last of all, while a piece of the input is demanded.
    #[benchmark]
    fn commit() {
        let last = REDUNDANCY_MAX - 1;
        let (_, agent) = agent_of::<T>(last);
        let until = Pallet::<T>::now();
        let mut round = full_round::<T>(RoundPhase::Committing { until }, |seat| {
            if seat == last {
                MemberProgress::Working
            } else {
                MemberProgress::Committed(H256::repeat_byte(2))
            }
        });
        demanded::<T>(&mut round);
        Rounds::<T>::insert(TASK, round);

        #[extrinsic_call]
        _(RawOrigin::Signed(agent), TASK, H256::repeat_byte(2));

        let round = Rounds::<T>::get(TASK);
        assert!(round.is_some_and(|round| matches!(round.phase, RoundPhase::Auditing { .. })));
    }

    /// Both changes of phase that a reveal can bring: the audit window is over, and nobody else has yet to reveal.
    /// They meet in one call only when one member committed; here the others have revealed all the same, so that
    /// the verdict is as large as it can be, and as many disputes begin as begin at once.
    #[benchmark]
    fn reveal() {
        let said = disputable::<T>();
        let last = REDUNDANCY_MAX - 1;
        let (stash, _) = agent_of::<T>(last);
        let salt = H256::repeat_byte(3);
        let until = Pallet::<T>::now();
        let majority = surety_dispute_game::majority(REDUNDANCY_MAX);
        let round = full_round::<T>(RoundPhase::Auditing { until }, |seat| {
            if seat == last {
                let sealed = surety_proofs::commitment(TASK, &stash, &said, &salt);
                MemberProgress::Committed(sealed)
            } else if seat < majority - 1 {
                MemberProgress::Revealed(said.clone())
            } else {
                MemberProgress::Revealed(ResultClaim {
                    output: H256::repeat_byte(seat as u8),
                    ..said.clone()
                })
            }
        });
        Rounds::<T>::insert(TASK, round);
        at::<T>(until + One::one());

        #[extrinsic_call]
        _(RawOrigin::Authorized, TASK, stash, said, salt);

        assert!(Disputes::<T>::contains_key(crate::matching::OPENED_AT_ONCE - 1));
        let round = Rounds::<T>::get(TASK);
        assert!(round.is_some_and(|round| {
            matches!(round.phase, RoundPhase::Challengeable { .. })
                && matches!(
                    verdict::verdict(&round),
                    surety_types::task::Verdict::Agreed { .. }
                )
        }));
    }

    #[benchmark]
    fn authorize_reveal() -> Result<(), BenchmarkError> {
        let call = last_reveal::<T>();

        #[block]
        {
            authorize(&call)?;
        }

        Ok(())
    }

    /// As many reserves as there can be bids, and the last of them fill every seat. The rest have no stake to lock.
    #[benchmark]
    fn replace_members() {
        let until = Pallet::<T>::now();
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
        let until = Pallet::<T>::now();
        let mut round = full_round::<T>(RoundPhase::Committing { until }, |_| {
            MemberProgress::Revealed(claim(0))
        });
        let verdict = verdict::verdict(&round);
        round.phase = RoundPhase::Challengeable { until, verdict };
        lock_all::<T>(&mut round);
        for member in &round.members {
            Pallet::<T>::note_commitment(TASK, &member.provider, &member.provider, H256::zero());
        }
        Rounds::<T>::insert(TASK, round);

        #[block]
        {
            if let Some(round) = Rounds::<T>::get(TASK) {
                Pallet::<T>::close(TASK, &round);
            }
        }

        assert!(!Rounds::<T>::contains_key(TASK));
    }

    /// As many members as are found at fault in one step. The others agree, so that there is a verdict to bring up to date.
    #[benchmark]
    fn convict_silent() {
        at::<T>(One::one());
        let mut round = challengeable::<T>(&claim(0), |_| None);
        for member in round.members.iter_mut().take(CONVICTED_AT_ONCE) {
            member.progress = MemberProgress::Committed(H256::repeat_byte(2));
            member.missed_reveal = true;
        }
        round.openings_until = Some(Zero::zero());

        #[block]
        {
            assert!(Pallet::<T>::convict_silent(TASK, &mut round));
            Rounds::<T>::insert(TASK, round);
        }

        assert_eq!(NextSlashId::<T>::get(), CONVICTED_AT_ONCE as u64);
    }

    /// As many auditors as are found at fault in one step. None has missed a deadline before.
    #[benchmark]
    fn convict_absent() {
        at::<T>(One::one());
        let mut round = challengeable::<T>(&claim(0), |_| None);
        for audit in round.audits.iter_mut() {
            audit.state = AuditState::Sealed(H256::repeat_byte(2));
        }

        #[block]
        {
            assert!(Pallet::<T>::convict_absent(TASK, &mut round));
            Rounds::<T>::insert(TASK, round);
        }

        assert_eq!(NextSlashId::<T>::get(), CONVICTED_AT_ONCE as u64);
    }

    /// One sr25519 VRF is verified.
    #[benchmark]
    fn announce_audit() {
        let (agent, proof) = T::Draws::for_benchmark();
        let (verifier, agent) = verifier_of::<T>(agent);
        let until = Pallet::<T>::now();
        let round = full_round::<T>(RoundPhase::Auditing { until }, |_| {
            MemberProgress::Committed(H256::repeat_byte(2))
        });
        Rounds::<T>::insert(TASK, round);
        let provider: T::AccountId = account("provider", 0, 0);
        let seal = H256::repeat_byte(3);

        #[extrinsic_call]
        _(RawOrigin::Signed(agent), TASK, provider, proof, seal);

        let audits = Rounds::<T>::get(TASK).map(|round| round.audits);
        assert!(audits.is_some_and(|audits| audits.iter().any(|audit| audit.verifier == verifier)));
    }

    #[benchmark]
    fn reveal_audit() {
        let call = differing_audit::<T>();

        #[block]
        {
            frame_support::assert_ok!(call.dispatch_bypass_filter(RawOrigin::Authorized.into()));
        }

        assert!(Disputes::<T>::contains_key(0));
    }

    #[benchmark]
    fn authorize_reveal_audit() -> Result<(), BenchmarkError> {
        let call = last_audit::<T>();

        #[block]
        {
            authorize(&call)?;
        }

        Ok(())
    }

    #[benchmark]
    fn challenge() {
        let said = disputable::<T>();
        at::<T>(One::one());
        let round = challengeable::<T>(&said, |_| None);
        let challenger: T::AccountId = account("challenger", 0, 0);
        asset::endow::<T>(&challenger, stake::<T>());
        Rounds::<T>::insert(TASK, round);

        #[extrinsic_call]
        _(RawOrigin::Signed(challenger), TASK, account("provider", 0, 0));

        assert!(Disputes::<T>::contains_key(0));
    }

    /// By the client, in the place of somebody else.
    #[benchmark]
    fn demand() {
        at::<T>(One::one());
        let round = challengeable::<T>(&claim(0), |_| None);
        Rounds::<T>::insert(TASK, round);
        let by: T::AccountId = account("client", 0, 0);
        asset::endow::<T>(&by, stake::<T>());
        T::Outcome::post_for_benchmark(TASK, &by, Default::default());
        let provider: T::AccountId = account("provider", 0, 0);
        let other: T::AccountId = account("other", 0, 0);
        let price = T::SupplyPrice::get();
        asset::endow::<T>(&other, stake::<T>());
        frame_support::assert_ok!(asset::hold::<T>(HoldReason::Demand, &other, price));
        let displaced = Demand {
            by: other,
            segment: 1,
            price,
            until: Pallet::<T>::now(),
        };
        Demands::<T>::insert(TASK, &provider, displaced);

        #[extrinsic_call]
        _(RawOrigin::Signed(by), TASK, provider.clone(), 0);

        assert_eq!(
            Demands::<T>::get(TASK, provider).map(|demand| demand.segment),
            Some(0)
        );
    }

    /// A segment of an output of more than a mebibyte, whose length a court knows.
    #[benchmark]
    fn supply() {
        let (provider, agent) = agent_of::<T>(0);
        let (said, output) = embedded::<T>();
        let round = challengeable::<T>(&said, |_| None);
        Rounds::<T>::insert(TASK, round);
        let by: T::AccountId = account("client", 0, 0);
        let price = T::Balance::from(1_000_000u32);
        asset::endow::<T>(&by, price);
        frame_support::assert_ok!(asset::hold::<T>(HoldReason::Demand, &by, price));
        let until = Pallet::<T>::now();
        let demanded = Demand {
            by,
            segment: 5,
            price,
            until,
        };
        Demands::<T>::insert(TASK, &provider, demanded);
        let opening = SegmentOpening::new(&output, 5).expect("there is such a segment");
        let output_bytes = output.len() as u32;

        #[extrinsic_call]
        _(RawOrigin::Signed(agent), TASK, output_bytes, opening);

        assert!(!Demands::<T>::contains_key(TASK, provider));
    }

    #[benchmark]
    fn play_int8_product() {
        let (agent, opening) = opening_is_due::<T>(LongCell::Int8Product);

        #[extrinsic_call]
        play(RawOrigin::Signed(agent), 0, 0, opening);

        assert!(is_convicted::<T>());
    }

    #[benchmark]
    fn play_int12_product() {
        let (agent, opening) = opening_is_due::<T>(LongCell::Int12Product);

        #[extrinsic_call]
        play(RawOrigin::Signed(agent), 0, 0, opening);

        assert!(is_convicted::<T>());
    }

    #[benchmark]
    fn play_choice() {
        let (agent, opening) = opening_is_due::<T>(LongCell::Choice);

        #[extrinsic_call]
        play(RawOrigin::Signed(agent), 0, 0, opening);

        assert!(is_convicted::<T>());
    }

    /// Time is over, and as many further disputes are opened as are opened at once.
    #[benchmark]
    fn advance_dispute() {
        let said = disputable::<T>();
        agent_of::<T>(0);
        let other = |seat| {
            let output = H256::repeat_byte(u8::try_from(seat).unwrap_or_default());
            (seat % 2 == 1).then(|| ResultClaim {
                output,
                ..said.clone()
            })
        };
        let mut round = challengeable::<T>(&said, other);
        fill_convictions::<T>(One::one());
        let party = Party::Provider(account("provider", 1, 0));
        dispute_about::<T>(&mut round, (&said, &[]), party, Clocks::equal(0));
        Rounds::<T>::insert(TASK, round);
        let caller: T::AccountId = whitelisted_caller();

        #[extrinsic_call]
        _(RawOrigin::Signed(caller), 0);

        assert!(!Disputes::<T>::contains_key(0));
        assert!(Disputes::<T>::contains_key(crate::matching::OPENED_AT_ONCE));
    }

    #[benchmark]
    fn cancel_slash() -> Result<(), BenchmarkError> {
        due_slash::<T>();
        let origin = T::VetoOrigin::try_successful_origin().map_err(|_| BenchmarkError::Weightless)?;

        #[extrinsic_call]
        _(origin as T::RuntimeOrigin, 0);

        assert!(!Slashes::<T>::contains_key(0));
        Ok(())
    }

    #[benchmark]
    fn carry_out_slash() {
        let offender = due_slash::<T>();
        let before = T::Stake::stake(&offender);
        let caller: T::AccountId = whitelisted_caller();

        #[extrinsic_call]
        _(RawOrigin::Signed(caller), 0);

        assert!(T::Stake::stake(&offender) < before);
    }

    /// One sr25519 VRF is verified, and the newcomer draws better than all who are there.
    #[benchmark]
    fn join_committee() {
        let (agent, proof) = T::Draws::seat_for_benchmark();
        let (verifier, agent) = verifier_of::<T>(agent);
        drawing::<T>();
        let seal = H256::repeat_byte(3);

        #[extrinsic_call]
        _(RawOrigin::Signed(agent), 0, 0, Some(proof), seal);

        let candidates = crate::Committees::<T>::get(0).map(|committee| committee.candidates);
        assert!(candidates.is_some_and(|seated| seated.iter().any(|seat| seat.verifier == verifier)));
    }

    /// The answer that decides: all members of eight rounds kept silent, and a third of the voters answered otherwise.
    #[benchmark]
    fn reveal_vote() {
        let (verifier, _) = verifier_of::<T>(account("auditors agent", 0, 0));
        let value = voted::<T>(&verifier);

        #[extrinsic_call]
        _(RawOrigin::Authorized, 0, verifier, value, salt());

        assert!(!Disputes::<T>::contains_key(0));
        assert!(suspended::<T>() >= SUSPENDED_AT_ONCE as usize);
    }

    #[benchmark]
    fn authorize_reveal_vote() -> Result<(), BenchmarkError> {
        let (verifier, _) = verifier_of::<T>(account("auditors agent", 0, 0));
        let call = Call::<T>::reveal_vote {
            dispute: 0,
            value: voted::<T>(&verifier),
            verifier,
            salt: salt(),
        };

        #[block]
        {
            authorize(&call)?;
        }

        Ok(())
    }

    /// Nobody of eight rounds or of the vote of all has opened its seal, and nobody has decided in time instead.
    #[benchmark]
    fn advance_committee() {
        silent::<T>();

        #[block]
        {
            run_out::<T>();
        }

        assert!(!Disputes::<T>::contains_key(0));
        assert!(suspended::<T>() >= SUSPENDED_AT_ONCE as usize);
    }

    /// Two signatures are checked, and the provider is convicted among the most convictions that are kept.
    #[benchmark]
    fn report_equivocation() {
        let provider: T::AccountId = account("provider", 0, 0);
        let promise = |output| CommitStatement {
            task: TASK,
            provider: provider.clone(),
            commitment: H256::repeat_byte(2),
            output: H256::repeat_byte(output),
        };
        let (one, other) = (promise(1), promise(2));
        let genesis = Pallet::<T>::genesis();
        let (agent, signatures) =
            T::Signatures::for_benchmark(&[one.message(&genesis), other.message(&genesis)]);
        at::<T>(One::one());
        T::Stake::endow(&provider, &agent, Role::Provider, stake::<T>());
        let round = challengeable::<T>(&claim(0), |_| None);
        Rounds::<T>::insert(TASK, round);
        fill_convictions::<T>(One::one());
        let mut signed = [one, other]
            .into_iter()
            .zip(signatures)
            .map(|(statement, signature)| SignedStatement {
                statement,
                agent: agent.clone(),
                signature,
            });
        let one = signed.next().expect("there are two");
        let caller: T::AccountId = whitelisted_caller();

        #[extrinsic_call]
        _(RawOrigin::Signed(caller), one, signed.next());

        assert!(Slashes::<T>::contains_key(0));
    }

    #[benchmark]
    fn demand_input() {
        let (_, agent) = agent_of::<T>(0);
        Rounds::<T>::insert(TASK, working_round::<T>());
        asset::endow::<T>(&agent, stake::<T>());
        post::<T>();

        #[extrinsic_call]
        _(RawOrigin::Signed(agent), TASK, 0);

        assert!(Rounds::<T>::get(TASK).is_some_and(|round| round.input_demand.is_some()));
    }

    /// A segment of the longest input that there can be: its proof is as long as one gets.
    #[benchmark]
    fn supply_input() {
        agent_of::<T>(0);
        let mut round = working_round::<T>();
        demanded::<T>(&mut round);
        Rounds::<T>::insert(TASK, round);
        let opening = post::<T>();
        let caller: T::AccountId = whitelisted_caller();

        #[extrinsic_call]
        _(RawOrigin::Signed(caller), TASK, opening);

        assert!(Rounds::<T>::get(TASK).is_some_and(|round| round.input_demand.is_none()));
    }

    #[benchmark]
    fn withhold_input() {
        put_withheld::<T>();

        #[block]
        {
            if let Some(round) = Rounds::<T>::get(TASK) {
                Pallet::<T>::end_withheld(TASK, round);
            }
        }

        assert!(!Rounds::<T>::contains_key(TASK));
    }
}
