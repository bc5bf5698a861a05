//! What `surety-node benchmark pallet` can measure.

// Without pallet_treasury, whose benchmarks want a queue of approvals with some room: ours has none.
frame_benchmarking::define_benchmarks!(
    [frame_system, SystemBench::<Runtime>]
    [pallet_balances, Balances]
    [pallet_referenda, Referenda]
    [pallet_conviction_voting, ConvictionVoting]
    [pallet_collective, TechnicalCommittee]
    [pallet_whitelist, Whitelist]
    [surety_pallet_staking, Staking]
    [surety_pallet_finality_clock, FinalityClock]
    [surety_pallet_block_entropy, BlockEntropy]
    [surety_pallet_gpu_proofs, GpuProofs]
    [surety_pallet_provider_registry, ProviderRegistry]
    [surety_pallet_model_registry, ModelRegistry]
    [surety_pallet_task_auction, TaskAuction]
    [surety_pallet_results, Results]
    [surety_pallet_disputes, Disputes]
    [surety_pallet_trust_lock, TrustLock]
    [surety_pallet_channels, Channels]
    [surety_pallet_delegation, Delegation]
    [surety_pallet_validators, Validators]
    [surety_pallet_emission, Emission]
);
