//! Rounds of the benchmark: the functions that are asked, and runtimes that have none.

use codec::Encode;
use scale_info::{TypeInfo, meta_type};
use sp_core::{H256, crypto::AccountId32};
use subxt::ext::frame_metadata::v15;
use surety_gpu_proofs::{MeasuredView, Openings, Plan, RoundStage, RunView, Tier};

use super::{
    fixture::{AuctionCall, function, metadata_without, pallets, runtime, runtime_with},
    node::Node,
};
use crate::{RpcChain, RpcConfig};
use surety_chain_client::{Call, Chain, ChainError, GpuProofsChain, GpuRound, When, sample};

/// The calls of `GpuProofs`, under the indices that they have.
#[derive(TypeInfo)]
#[allow(dead_code, non_camel_case_types)]
pub enum GpuProofsCall {
    commit_run { entropy: H256, plan: Plan, root: H256 },
    open_run { openings: Box<Openings> },
}

pub fn functions() -> Vec<v15::RuntimeApiMethodMetadata> {
    let account = || vec![("provider", meta_type::<AccountId32>())];
    vec![
        function("round", Vec::new(), meta_type::<Option<GpuRound>>()),
        function("run", account(), meta_type::<Option<RunView>>()),
        function("measured", account(), meta_type::<Option<MeasuredView>>()),
    ]
}

#[tokio::test]
async fn each_function_is_given_its_arguments_and_read() {
    let node = Node::start(1).await;
    let chain = RpcChain::connect(RpcConfig::new(&node.url)).await.unwrap();
    let (at, stash) = (When::Finalized, AccountId32::new([9; 32]));
    let round = GpuRound {
        number: 3,
        window_ms: 30_000,
        stage: RoundStage::Running {
            entropy: H256([4; 32]),
            since_ms: 5,
        },
        time_ms: 6,
        now: 7,
    };
    let run = RunView {
        round: 3,
        plan: Plan { rows: 32, layers: 8 },
        root: H256([8; 32]),
    };
    let measured = MeasuredView {
        tier: Tier::B,
        giga_operations: 9,
        memory_mib: 10,
        rounds_missed: 1,
    };
    node.change(|state| {
        let answers = [
            ("GpuProofsApi_round", Some(round).encode()),
            ("GpuProofsApi_run", Some(run).encode()),
            ("GpuProofsApi_measured", Some(measured).encode()),
        ];
        state.functions.extend(answers);
    });
    let given = || node.state().called.last().cloned().unwrap().2;
    assert_eq!(chain.gpu_round(at).await, Ok(Some(round)));
    assert_eq!(given(), Vec::<u8>::new());
    assert_eq!(chain.gpu_run(at, &stash).await, Ok(Some(run)));
    assert_eq!(given(), stash.encode());
    assert_eq!(chain.measured(at, &stash).await, Ok(Some(measured)));
    assert_eq!(given(), stash.encode());
}

#[tokio::test]
async fn a_chain_without_the_benchmark_fits_and_says_that_it_has_none() {
    let node = Node::start(1).await;
    node.change(|state| state.runtime = metadata_without("GpuProofs", "GpuProofsApi"));
    let chain = RpcChain::connect(RpcConfig::new(&node.url)).await.unwrap();
    let error = chain.gpu_round(When::Finalized).await.unwrap_err();
    assert!(matches!(&error, ChainError::Outgrown { .. }), "{error}");
    let stash = AccountId32::new([1; 32]);
    assert_eq!(chain.benchmarked(When::Finalized, &stash).await, Ok(None));
    let mut without = pallets(meta_type::<AuctionCall>());
    without.retain(|pallet| pallet.name != "GpuProofs");
    let runtime = runtime_with(without).unwrap();
    for call in calls() {
        assert!(matches!(runtime.encoded(&call), Err(ChainError::Outgrown { .. })));
    }
}

fn calls() -> Vec<Call> {
    let mut calls = sample::calls();
    calls.retain(|call| call.name().pallet == "GpuProofs");
    calls
}

#[test]
fn a_call_about_the_benchmark_is_written_as_the_chain_takes_it() {
    let calls = calls();
    assert_eq!(calls.len(), 2);
    for (index, call) in (0..).zip(calls) {
        let expected = [vec![23, index], call.encode_arguments()].concat();
        assert_eq!(runtime().encoded(&call), Ok(expected), "{call:?}");
    }
}
