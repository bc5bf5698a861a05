//! What our own calls cost, as `scripts/weights` measured it: run it again instead of editing what it wrote.
//! `ARCHITECTURE.md` says how, and what is an allowance.

// Made by the benchmarking tool, in its own style.
#![allow(clippy::all, missing_docs, unused_qualifications)]

pub mod surety_pallet_block_entropy;
pub mod surety_pallet_channels;
pub mod surety_pallet_delegation;
pub mod surety_pallet_disputes;
pub mod surety_pallet_emission;
pub mod surety_pallet_finality_clock;
pub mod surety_pallet_gpu_proofs;
pub mod surety_pallet_model_registry;
pub mod surety_pallet_provider_registry;
pub mod surety_pallet_results;
pub mod surety_pallet_staking;
pub mod surety_pallet_task_auction;
pub mod surety_pallet_trust_lock;
pub mod surety_pallet_validators;
