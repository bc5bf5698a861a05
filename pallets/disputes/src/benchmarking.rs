//! The calls, and what time brings about, in the disputes that cost most. They need real signatures, draws
//! and games, and run over the runtime alone (`scripts/weights`).

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a benchmark that panics has failed"
)]

mod committee;
mod setup;

use committee::*;
use frame_benchmarking::v2::*;
use frame_support::{pallet_prelude::TransactionSource, traits::Authorize};
use frame_system::RawOrigin;
use setup::*;
use sp_core::H256;
use sp_runtime::traits::One;
use surety_dispute_game::{
    bisection::{Clocks, PARTS_MAX},
    quorum_streak::BALLOTS_MAX,
};
use surety_pallet_results::{
    LongCell, Pallet as Results, Rounds, Shown,
    benchmarking::setup::{TASK, agent_of, at, challengeable, disputable, stake, verifier_of},
};
use surety_pallet_trust_lock::{Records, fill_convictions};
use surety_types::{
    limits::DISPUTES_MAX,
    task::ResultClaim,
    traits::DrawVerifier,
    trust::{AuditState, Party},
};

use crate::{Call, Committees, Config, Disputes, OPENED_AT_ONCE, PAID_AT_ONCE, Pallet, SUSPENDED_AT_ONCE};

fn suspended<T: Config>() -> usize {
    let records = Records::<T>::iter_values();
    records.filter(|record| record.suspended_until.is_some()).count()
}

/// How many of the audits are over that contradicted a provider.
fn audits_over<T: Config>() -> usize {
    let audits = Rounds::<T>::get(TASK).map(|round| round.audits);
    let audits = audits.into_iter().flatten().take(OPENED_AT_ONCE as usize);
    audits.filter(|audit| audit.state == AuditState::Over).count()
}

/// What a pool does with it.
fn authorize<T: Config>(call: &Call<T>) -> Result<(), BenchmarkError> {
    call.authorize(TransactionSource::External)
        .ok_or("no signature is asked for")??;
    Ok(())
}

#[benchmarks]
mod benchmarks {
    use super::*;

    #[benchmark]
    fn challenge() {
        let said = disputable::<T>();
        at::<T>(One::one());
        let mut round = challengeable::<T>(&said, |_| None);
        let challenger: T::AccountId = account("challenger", 0, 0);
        all_but_one_dispute::<T>(&mut round, &said);
        // The bond holds what a committee costs as well.
        for _ in 0..200 {
            surety_pallet_results::asset::endow::<T>(&challenger, stake::<T>());
        }
        Rounds::<T>::insert(TASK, round);

        #[extrinsic_call]
        _(RawOrigin::Signed(challenger), TASK, account("provider", 0, 0));

        assert!(Disputes::<T>::contains_key(DISPUTES_MAX - 1));
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

    #[benchmark]
    fn play_ask() {
        let (challenger, moves) = naming_is_due::<T>();

        #[extrinsic_call]
        play(RawOrigin::Signed(challenger), 0, 0, moves);

        assert!(Disputes::<T>::get(0).is_some_and(|dispute| dispute.prepaid.is_some()));
    }

    /// The part is the last that a committee waits for: all others were shown before, of input and output.
    #[benchmark]
    fn show_part() {
        let (due, part) = largest_part();
        let blob = due.blob;
        let dispute = waiting::<T>();

        #[block]
        {
            if due.is(&part) {
                Results::<T>::keep_part(TASK, &blob, part);
                let others =
                    (0..2 * PARTS_MAX).filter(|part| Results::<T>::is_part_shown(TASK, &blob, *part));
                assert_eq!(others.count(), 1);
                Pallet::<T>::convene(0, &dispute, &cell(), 0);
            }
        }

        assert!(Shown::<T>::contains_key(TASK, (blob.content, blob.bytes, 3)));
        assert!(Committees::<T>::contains_key(0));
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
        assert!(Disputes::<T>::contains_key(OPENED_AT_ONCE));
    }

    /// Time is over for a provider whom as many auditors contradict as audits are ended at once, and whose
    /// result nobody else stands by.
    #[benchmark]
    fn end_audits() {
        let said = disputable::<T>();
        let (provider, _) = agent_of::<T>(0);
        let own = lonely(&said);
        let mut round = challengeable::<T>(&said, |seat| (seat == 0).then(|| own.clone()));
        fill_convictions::<T>(One::one());
        differing::<T>(&mut round, &provider);
        let party = Party::Provider(account("provider", 1, 0));
        dispute_about::<T>(&mut round, (&own, &[]), party, Clocks::equal(0));
        Rounds::<T>::insert(TASK, round);
        let caller: T::AccountId = whitelisted_caller();

        #[extrinsic_call]
        advance_dispute(RawOrigin::Signed(caller), 0);

        assert_eq!(audits_over::<T>(), OPENED_AT_ONCE as usize);
    }

    /// One sr25519 VRF is verified, and the newcomer draws better than all who are there, for the last
    /// ballot.
    #[benchmark]
    fn join_committee() {
        let (agent, proof) = T::Draws::seat_for_benchmark();
        let (verifier, agent) = verifier_of::<T>(agent);
        drawing::<T>();
        let seal = H256::repeat_byte(3);

        #[extrinsic_call]
        _(RawOrigin::Signed(agent), 0, BALLOTS_MAX - 1, Some(proof), seal);

        let candidates = Committees::<T>::get(0).map(|committee| committee.candidates);
        assert!(candidates.is_some_and(|seated| seated.iter().any(|seat| seat.verifier == verifier)));
    }

    /// The answer that decides in the last ballot: all members of the others kept silent, but those of the
    /// two before.
    #[benchmark]
    fn reveal_vote() {
        let (verifier, _) = verifier_of::<T>(account("auditors agent", 0, 0));
        let value = voted::<T>(&verifier);

        #[extrinsic_call]
        _(RawOrigin::Authorized, 0, verifier, value, salt());

        let committee = Committees::<T>::get(0).expect("it winds up");
        assert!(committee.fund.is_some());
        assert_eq!(audits_over::<T>(), OPENED_AT_ONCE as usize);
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

    /// As many as a vote of all takes have come.
    #[benchmark]
    fn open_vote() {
        summoned::<T>();
        let caller: T::AccountId = whitelisted_caller();

        #[extrinsic_call]
        advance_committee(RawOrigin::Signed(caller), 0);

        let committee = Committees::<T>::get(0).expect("it still sits");
        assert!(committee.state.is_revealing() && committee.candidates.is_empty());
    }

    /// Nobody of all rounds or of the vote of all has opened its seal, and nobody has decided in time
    /// instead. As many auditors contradict one of the sides as disputes are opened at once.
    #[benchmark]
    fn advance_committee() {
        silent::<T>();

        #[block]
        {
            run_out::<T>();
        }

        assert!(!Disputes::<T>::contains_key(0));
        assert!(suspended::<T>() >= SUSPENDED_AT_ONCE as usize);
        // Auditors still play who was in the dark.
        assert!(Disputes::<T>::contains_key(OPENED_AT_ONCE));
    }

    /// All members of the three rounds that decided were right, and nobody else is to be suspended.
    #[benchmark]
    fn pay_members() {
        winding_up::<T>();
        let caller: T::AccountId = whitelisted_caller();

        #[extrinsic_call]
        advance_committee(RawOrigin::Signed(caller), 0);

        let fund = Committees::<T>::get(0).and_then(|committee| committee.fund);
        assert!(fund.is_some_and(|fund| fund.paid == PAID_AT_ONCE));
    }
}
