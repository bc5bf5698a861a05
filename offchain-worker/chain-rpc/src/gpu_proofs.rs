//! The chain's rounds of the benchmark, by the functions of `GpuProofsApi`.

use async_trait::async_trait;
use codec::Encode;
use sp_core::crypto::AccountId32;

use super::{RpcChain, runtime::Runtime, transcode::Shape};
use surety_chain_client::{ChainError, GpuProofsChain, GpuRound, When};
use surety_gpu_proofs::{MeasuredView, RunView};

const API: &str = "GpuProofsApi";

#[async_trait]
impl GpuProofsChain for RpcChain {
    async fn gpu_round(&self, when: When) -> Result<Option<GpuRound>, ChainError> {
        self.0.api(when, (API, "round"), &[]).await
    }

    async fn gpu_run(&self, when: When, provider: &AccountId32) -> Result<Option<RunView>, ChainError> {
        self.0.api(when, (API, "run"), &provider.encode()).await
    }

    async fn measured(&self, when: When, provider: &AccountId32) -> Result<Option<MeasuredView>, ChainError> {
        self.0.api(when, (API, "measured"), &provider.encode()).await
    }
}

impl Runtime {
    /// The functions that are called of a runtime with the benchmark. Those before had none.
    pub(super) fn check_gpu_proofs(&self) -> Vec<Result<(), ChainError>> {
        if !self.has_gpu_proofs() {
            return Vec::new();
        }
        let account = Shape::of::<AccountId32>;
        let check = |name, inputs: &[Shape], output| self.check_function((API, name), inputs, &output);
        vec![
            check("round", &[], Shape::of::<Option<GpuRound>>()),
            check("run", &[account()], Shape::of::<Option<RunView>>()),
            check("measured", &[account()], Shape::of::<Option<MeasuredView>>()),
        ]
    }
}
