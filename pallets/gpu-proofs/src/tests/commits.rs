//! Committing to a run.

use frame_support::{
    assert_noop, assert_ok,
    dispatch::{DispatchClass, GetDispatchInfo, Pays},
};
use sp_core::H256;
use sp_runtime::DispatchError;
use surety_gpu_proofs::Plan;

use crate::{Call, Commitments, Error, Event, mock::*};

const PLAN: Plan = Plan { rows: 32, layers: 8 };
const ROOT: H256 = H256::repeat_byte(4);

#[test]
fn an_agent_commits_its_stash_and_pays_nothing() {
    TestExt::new().provider(1).execute_with(|| {
        let entropy = begin_round();
        let taken = GpuProofs::commit_run(signed(1), entropy, PLAN, ROOT).unwrap();
        assert_eq!(taken.pays_fee, Pays::No);
        System::assert_last_event(
            Event::RunCommitted {
                provider: 1,
                plan: PLAN,
            }
            .into(),
        );
        let commitment = Commitments::<Test>::get(1).unwrap();
        assert_eq!(
            (commitment.round, commitment.plan, commitment.root),
            (1, PLAN, ROOT)
        );
    });
}

/// A part of each block is kept for it, however full of other calls it is.
#[test]
fn commitments_cannot_be_crowded_out_by_what_has_no_deadline() {
    let call = Call::<Test>::commit_run {
        entropy: H256::zero(),
        plan: PLAN,
        root: ROOT,
    };
    assert_eq!(call.get_dispatch_info().class, DispatchClass::Operational);
}

#[test]
fn only_agents_of_bonded_providers_commit() {
    TestExt::new().provider(1).execute_with(|| {
        let entropy = begin_round();
        let stash = RuntimeOrigin::signed(1);
        assert_noop!(
            GpuProofs::commit_run(stash, entropy, PLAN, ROOT),
            Error::<Test>::NotAgent
        );
        assert_noop!(
            GpuProofs::commit_run(RuntimeOrigin::none(), entropy, PLAN, ROOT),
            DispatchError::BadOrigin
        );
    });
}

#[test]
fn nobody_commits_before_there_is_a_seed_or_after_the_window() {
    TestExt::new().provider(1).execute_with(|| {
        let commit = |entropy| GpuProofs::commit_run(signed(1), entropy, PLAN, ROOT);
        assert_noop!(commit(H256::zero()), Error::<Test>::NotRunning);
        RoundEvery::set(1);
        pass_block();
        RoundEvery::set(0);
        assert_noop!(commit(H256::zero()), Error::<Test>::NotRunning);
        let entropy = begin_round();
        // The seed's own block was two seconds before this one.
        pass_blocks(WINDOW_MS / SLOT_MS - 1);
        assert_ok!(commit(entropy));
        Commitments::<Test>::remove(1);
        pass_block();
        assert_noop!(commit(entropy), Error::<Test>::TooLate);
        pass_block();
        assert_noop!(commit(entropy), Error::<Test>::NotRunning);
    });
}

#[test]
fn a_run_of_another_forks_entropy_is_refused() {
    TestExt::new().provider(1).execute_with(|| {
        begin_round();
        assert_noop!(
            GpuProofs::commit_run(signed(1), H256::repeat_byte(9), PLAN, ROOT),
            Error::<Test>::OtherEntropy
        );
    });
}

#[test]
fn a_run_that_cannot_be_is_refused() {
    TestExt::new().provider(1).execute_with(|| {
        let entropy = begin_round();
        for plan in [Plan { rows: 33, ..PLAN }, Plan { layers: 7, ..PLAN }] {
            assert_noop!(
                GpuProofs::commit_run(signed(1), entropy, plan, ROOT),
                Error::<Test>::UnsoundPlan
            );
        }
    });
}

#[test]
fn a_provider_commits_once_a_round() {
    TestExt::new().provider(1).execute_with(|| {
        let entropy = begin_round();
        assert_ok!(GpuProofs::commit_run(signed(1), entropy, PLAN, ROOT));
        assert_noop!(
            GpuProofs::commit_run(signed(1), entropy, PLAN, ROOT),
            Error::<Test>::AlreadyCommitted
        );
    });
}
