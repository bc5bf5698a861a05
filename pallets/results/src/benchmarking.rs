//! The calls, and what time brings about, in the rounds that cost most. They need real signatures, draws and
//! games, and run over the runtime alone (`scripts/weights`).

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a benchmark that panics has failed"
)]

mod demands;
mod inputs;
mod openings;
mod promises;
pub mod setup;

use alloc::vec::Vec;
use demands::*;
use frame_benchmarking::v2::*;
use frame_support::traits::{Get, UnfilteredDispatchable, fungible::Inspect};
use frame_system::RawOrigin;
use inputs::*;
use openings::*;
use promises::*;
use setup::*;
use sp_core::H256;
use sp_runtime::traits::{One, Zero};
use surety_pallet_trust_lock::{NextSlashId, Pallet as TrustLock, Records, Slashes, fill_convictions};
use surety_types::{
    limits::{AUDITS_MAX, BIDS_MAX, DEMAND_PARTS_MAX, DEMANDS_MAX, REDUNDANCY_MAX},
    stake::Role,
    task::{Assignment, MemberProgress, RoundPhase},
    traits::{BlockEntropy, DrawVerifier, StakeLedger, TaskTrust},
    trust::{AuditState, Content, FaultKind},
};

use crate::{
    Call, CommitNotes, Config, Demands, Pallet, Rounds, SHOWN_MAX, asset, late::CONVICTED_AT_ONCE, verdict,
};

#[benchmarks]
mod benchmarks {
    use super::*;

    /// The first of all and the last, while a piece of the input is demanded: as many as can be were replaced
    /// before, and have missed what somebody does now. Where there are more members it is one or the other;
    /// here it is both, with all that else can be in a round.
    #[benchmark]
    fn commit() {
        let (_, agent) = agent_of::<T>(0);
        let until = TrustLock::<T>::now();
        let mut round = full_round::<T>(RoundPhase::Committing { until }, |_| MemberProgress::Working);
        round.members.truncate(1);
        demanded::<T>(&mut round);
        Rounds::<T>::insert(TASK, round);
        post::<T>();

        #[extrinsic_call]
        _(RawOrigin::Signed(agent), TASK, H256::repeat_byte(2));

        let round = Rounds::<T>::get(TASK);
        assert!(round.is_some_and(|round| matches!(round.phase, RoundPhase::Auditing { .. })));
        let dropped: T::AccountId = account("dropped", REDUNDANCY_MAX - 1, 0);
        assert!(Records::<T>::get(dropped).suspended_until.is_some());
    }

    /// Both changes of phase that a reveal can bring: the audit window is over, and nobody else has yet to
    /// reveal. They meet in one call only when one member committed; here the others have revealed all the
    /// same, so that the verdict is as large as it can be, and as many disputes begin as begin at once. It is
    /// another output than the provider has shown, so that it is convicted with it.
    #[benchmark]
    fn reveal() {
        let (stash, said, salt) = convicting_reveal::<T>();

        #[extrinsic_call]
        _(RawOrigin::Authorized, TASK, stash.clone(), said, salt);

        let round = Rounds::<T>::get(TASK).expect("it goes on");
        assert!(round.disputes.len() >= DISPUTES_AT_ONCE);
        assert!(matches!(round.phase, RoundPhase::Challengeable { .. }));
        let verdict = verdict::verdict(&round);
        assert!(matches!(verdict, surety_types::task::Verdict::Agreed { .. }));
        let mut members = round.members.into_iter();
        assert!(members.any(|member| member.provider == stash && member.fault.is_some()));
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

    /// As many reserves as there can be bids, and the last of them fill every seat but that of one who has
    /// committed. The rest have no stake to lock. Once a majority has committed those who leave are
    /// suspended; then less than half of the seats are left to fill, each of which costs more than that.
    #[benchmark]
    fn replace_members() {
        let until = TrustLock::<T>::now();
        let last = REDUNDANCY_MAX - 1;
        let mut round = full_round::<T>(RoundPhase::Committing { until }, |seat| {
            if seat == last {
                MemberProgress::Committed(H256::repeat_byte(2))
            } else {
                MemberProgress::Working
            }
        });
        round.dropped.clear();
        lock_all::<T>(&mut round);
        Rounds::<T>::insert(TASK, round);

        let unfit = BIDS_MAX - last;
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
        let mut vacancies: Vec<usize> = (0..last as usize).rev().collect();

        #[block]
        {
            if let Some(mut round) = Rounds::<T>::get(TASK) {
                Pallet::<T>::fill_vacancies(TASK, &mut round, &mut vacancies, &reserves);
                Pallet::<T>::start_committing_again(TASK, &mut round);
                Rounds::<T>::insert(TASK, round);
            }
        }

        assert!(vacancies.is_empty());
    }

    /// All locks are released, of the auditors too, and the client is paid because it was told another
    /// result, by one that was found at fault since.
    #[benchmark]
    fn close(a: Linear<1, AUDITS_MAX>, p: Linear<0, SHOWN_MAX>) {
        let until = TrustLock::<T>::now();
        let mut round = full_round::<T>(RoundPhase::Committing { until }, |_| {
            MemberProgress::Revealed(claim(0))
        });
        if let Some(first) = round.members.iter_mut().next() {
            first.fault = Some(FaultKind::WrongResult);
        }
        let verdict = verdict::verdict(&round);
        round.phase = RoundPhase::Challengeable { until, verdict };
        round.announced = Some(H256::repeat_byte(9));
        lock_all::<T>(&mut round);
        lock_audits::<T>(&mut round, a);
        post::<T>();
        let client: T::AccountId = account("client", 0, 0);
        asset::endow::<T>(&T::InsurancePool::get(), stake::<T>());
        let before = <T as Config>::Currency::balance(&client);
        for member in &round.members {
            Pallet::<T>::note_commitment(TASK, &member.provider, &member.provider, H256::zero());
        }
        show_parts::<T>(p);
        Rounds::<T>::insert(TASK, round);

        #[block]
        {
            if let Some(round) = Rounds::<T>::get(TASK) {
                Pallet::<T>::forget_shown(TASK);
                Pallet::<T>::close(TASK, &round);
            }
        }

        assert!(!Rounds::<T>::contains_key(TASK));
        assert!(<T as Config>::Currency::balance(&client) > before);
        let auditor: T::AccountId = account("verifier", 0, 0);
        assert_eq!(T::Stake::unlocked_stake(&auditor), T::Stake::stake(&auditor));
    }

    /// As many members as are found at fault in one step. The others agree, so that there is a verdict to
    /// bring up to date.
    #[benchmark]
    fn convict_silent() {
        at::<T>(One::one());
        let mut round = challengeable::<T>(&claim(0), |_| None);
        for member in round.members.iter_mut().take(CONVICTED_AT_ONCE) {
            member.progress = MemberProgress::Committed(H256::repeat_byte(2));
            member.missed_reveal = true;
        }
        round.reveals_until = Some(Zero::zero());

        #[block]
        {
            assert!(Pallet::<T>::convict_silent(TASK, &mut round));
            Rounds::<T>::insert(TASK, round);
        }

        assert_eq!(NextSlashId::<T>::get(), CONVICTED_AT_ONCE as u32);
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

        assert_eq!(NextSlashId::<T>::get(), CONVICTED_AT_ONCE as u32);
    }

    /// The entropy is looked for among as many outputs as are kept. The round has audits, though none can be
    /// announced before: so this is also what looking at any round costs.
    #[benchmark]
    fn seed_auditors() {
        let mut round = auditing_round::<T>();
        if let Some(draw) = &mut round.draw {
            draw.seed = None;
            T::Entropy::fill_for_benchmark(draw.begun_at);
        }
        Rounds::<T>::insert(TASK, round);

        #[block]
        {
            frame_support::assert_ok!(<Pallet<T> as TaskTrust<_, _, _>>::advance(TASK));
        }

        assert!(Rounds::<T>::get(TASK).is_some_and(|round| !round.awaits_seed()));
    }

    /// One sr25519 VRF is verified, for the last place that the provider's result has.
    #[benchmark]
    fn announce_audit() {
        let (agent, proof) = T::Draws::for_benchmark();
        let (verifier, agent) = verifier_of::<T>(agent);
        at::<T>(SETTLED.into());
        Rounds::<T>::insert(TASK, auditing_round::<T>());
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

        assert!(is_disputed::<T>());
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
    fn reveal_items() {
        let call = differing_items::<T>();

        #[block]
        {
            frame_support::assert_ok!(call.dispatch_bypass_filter(RawOrigin::Authorized.into()));
        }

        assert!(is_disputed::<T>());
    }

    #[benchmark]
    fn authorize_reveal_items() -> Result<(), BenchmarkError> {
        let call = differing_items::<T>();

        #[block]
        {
            authorize(&call)?;
        }

        Ok(())
    }

    #[benchmark]
    fn refute_audit() {
        fill_convictions::<T>(One::one());
        let call = refuted::<T>();
        let finder: T::AccountId = account("finder", 0, 0);

        #[block]
        {
            frame_support::assert_ok!(call.dispatch_bypass_filter(RawOrigin::Signed(finder).into()));
        }

        assert!(NextSlashId::<T>::get() > 0);
    }

    /// By a drawn auditor, the last that a provider has a place for: one sr25519 VRF is verified. Its agent
    /// has no money.
    #[benchmark]
    fn demand_unserved(p: Linear<1, DEMAND_PARTS_MAX>) {
        let (agent, proof) = T::Draws::for_benchmark();
        let (verifier, agent) = verifier_of::<T>(agent);
        asset::endow::<T>(&verifier, stake::<T>());
        at::<T>(SETTLED.into());
        let provider: T::AccountId = account("provider", 0, 0);
        let round = demanding_round::<T>(&provider, (Content::Input, 0), DEMANDS_MAX - 1);
        Rounds::<T>::insert(TASK, round);
        post_parts::<T>();

        #[extrinsic_call]
        demand(
            RawOrigin::Signed(agent),
            TASK,
            provider.clone(),
            input_parts(p),
            Some(proof),
        );

        let demands = Demands::<T>::get(TASK, provider);
        assert!(demands.iter().any(|open| open.demander == verifier));
    }

    /// Leaves of the largest trace, by an auditor that has sealed some items. Its agent has no money.
    #[benchmark]
    fn demand_leaves(p: Linear<1, DEMAND_PARTS_MAX>) {
        let (verifier, agent) = verifier_of::<T>(account("auditing", 0, 0));
        asset::endow::<T>(&verifier, stake::<T>());
        let provider: T::AccountId = account("provider", 0, 0);
        let (bytes, _) = leaves_demanded::<T>(&provider, DEMANDS_MAX - 1);
        sampled_by::<T>(&verifier, &provider);

        #[extrinsic_call]
        demand(
            RawOrigin::Signed(agent),
            TASK,
            provider.clone(),
            leaves_parts(p, bytes),
            None,
        );

        let demands = Demands::<T>::get(TASK, provider);
        assert!(demands.iter().any(|open| open.demander == verifier));
    }

    /// The first part of the largest output that can be shown before the reveal, which so many have demanded,
    /// and nothing else: it names the output, and the audit window begins again.
    #[benchmark]
    fn supply_output(d: Linear<1, DEMANDS_MAX>) {
        let (provider, agent) = agent_of::<T>(0);
        let (bytes, part) = output_part();
        let round = demanding_round::<T>(&provider, (Content::Output, part.part), d);
        Pallet::<T>::note_commitment(TASK, &provider, &agent, H256::zero());
        disputable::<T>();
        Rounds::<T>::insert(TASK, round);

        #[extrinsic_call]
        supply(RawOrigin::Signed(agent), TASK, Content::Output, bytes, part);

        assert_eq!(Demands::<T>::get(TASK, &provider).len() as u32, d - 1);
        assert!(CommitNotes::<T>::get(TASK, provider).is_some_and(|note| note.shown.is_some()));
    }

    /// A part of the largest input, as many demand.
    #[benchmark]
    fn supply_input_part(d: Linear<1, DEMANDS_MAX>) {
        let (provider, agent) = agent_of::<T>(0);
        let part = largest_part();
        let round = demanding_round::<T>(&provider, (Content::Input, part.part), d);
        Rounds::<T>::insert(TASK, round);
        post::<T>();

        #[extrinsic_call]
        supply(RawOrigin::Signed(agent), TASK, Content::Input, INPUT_BYTES, part);

        assert_eq!(Demands::<T>::get(TASK, provider).len() as u32, d - 1);
    }

    /// The first part of the leaves of the largest trace, as many demand: 511 hashes, and the way up.
    #[benchmark]
    fn supply_leaves(d: Linear<1, DEMANDS_MAX>) {
        let (provider, agent) = agent_of::<T>(0);
        let (bytes, part) = leaves_demanded::<T>(&provider, d);

        #[extrinsic_call]
        supply(RawOrigin::Signed(agent), TASK, Content::Leaves, bytes, part);

        assert_eq!(Demands::<T>::get(TASK, provider).len() as u32, d - 1);
    }

    /// The last provider has shown nothing in time of what as many have demanded as can, and the others have
    /// time yet: it is convicted, and the verdict is brought up to date.
    #[benchmark]
    fn end_demand() {
        let last: T::AccountId = account("provider", REDUNDANCY_MAX - 1, 0);
        agent_of::<T>(REDUNDANCY_MAX - 1);
        let mut round = challengeable::<T>(&disputable::<T>(), |_| None);
        fill_convictions::<T>(One::one());
        post_parts::<T>();
        for member in &round.members {
            demanding_round::<T>(&member.provider, (Content::Input, 0), DEMANDS_MAX);
        }
        round.demands = DEMANDS_MAX * REDUNDANCY_MAX;
        at::<T>(TrustLock::<T>::now() + One::one());
        not_due_before::<T>(&last);

        #[block]
        {
            assert!(Pallet::<T>::end_demand(TASK, &mut round));
            Rounds::<T>::insert(TASK, round);
        }

        assert!(NextSlashId::<T>::get() > 0);
    }

    /// Two signatures are checked, and the provider is convicted among the most convictions that are kept.
    #[benchmark]
    fn report_equivocation() {
        let (one, other) = equivocation::<T>();
        let caller: T::AccountId = whitelisted_caller();

        #[extrinsic_call]
        _(RawOrigin::Signed(caller), one, other);

        assert!(Slashes::<T>::contains_key(0));
    }

    /// By an agent without money.
    #[benchmark]
    fn demand_input() {
        let (provider, agent) = agent_of::<T>(0);
        Rounds::<T>::insert(TASK, working_round::<T>());
        asset::endow::<T>(&provider, stake::<T>());
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
