//! Genesis presets, and what any genesis has to have. `chain-spec/` holds the presets as JSON.

#![warn(missing_docs)]

use alloc::{format, string::String, vec, vec::Vec};
use frame_support::build_struct_json_patch;
use serde_json::Value;
use sp_core::{
    crypto::{Ss58Codec, get_public_from_string_or_panic},
    ed25519, sr25519,
};
use sp_genesis_builder::{DEV_RUNTIME_PRESET, LOCAL_TESTNET_RUNTIME_PRESET, PresetId};
use sp_keyring::Sr25519Keyring;
use sp_runtime::{
    FixedU128, Permill,
    traits::{IdentifyAccount, Verify},
};
use surety_pallet_emission::genesis;

use crate::{
    AccountId, BabeConfig, Balance, BalancesConfig, BlockNumber, DelegationConfig, GenesisParametersConfig,
    Runtime, RuntimeGenesisConfig, SessionConfig, SessionKeys, Signature, SudoConfig,
    TechnicalCommitteeConfig, ValidatorsConfig, VestingConfig,
    configs::{compute::TreasuryAccount, consensus::BABE_GENESIS_EPOCH_CONFIG},
    genesis_parameters::{self, Overrides},
    pots,
    units::{EXISTENTIAL_DEPOSIT, MILLI_SURE, SURE},
};

/// Four validators, and whoever else has something at genesis, with keys that everybody knows: whoever starts
/// a network replaces them. What there is of SURE is shared out as ADR 40 says.
pub const TESTNET_PRESET: &str = "testnet";

/// Who has the founders' part of `testnet`, and what is left for its launch, as secret URIs without `//`.
const FOUNDERS: &str = "Surety//testnet//founders";
const LAUNCH: &str = "Surety//testnet//launch";

/// What each well-known account of `dev` and `local` starts with.
const DEV_ENDOWMENT: Balance = 1_000_000 * SURE;

/// What each validator of `testnet` starts with.
const TESTNET_ENDOWMENT: Balance = 100_000 * SURE;

/// What founders can pay fees with before anything has vested.
const FOUNDERS_LIQUID: Balance = 10 * SURE;

/// What each validator has of it in its own pool: half of that may be lost before it has to add to it.
const SELF_BOND: Balance = 20_000 * SURE;

/// What each validator has of each reward before it is shared.
const COMMISSION: Permill = Permill::from_percent(10);

struct Genesis {
    /// Secret URIs of the validators, without the leading `//`.
    validators: Vec<String>,
    endowments: Vec<(AccountId, Balance)>,
    /// What the treasury starts with.
    treasury: Balance,
    /// Whose endowment vests: from which block on, for how many, and how much of it does not.
    vesting: Vec<(AccountId, BlockNumber, BlockNumber, Balance)>,
    sudo: Option<AccountId>,
    /// Who may whitelist what referenda have root do.
    committee: Vec<AccountId>,
    overrides: Overrides,
}

impl Genesis {
    fn into_patch(self) -> Value {
        let mut balances = self.endowments;
        let treasury = TreasuryAccount::get();
        balances.extend(pots::all().map(|pot| {
            let amount = if pot == treasury {
                self.treasury
            } else {
                EXISTENTIAL_DEPOSIT
            };
            (pot, amount)
        }));
        let candidates: Vec<_> = self.validators.iter().map(|uri| account(uri)).collect();
        let keys = self
            .validators
            .iter()
            .map(|uri| (account(uri), account(uri), session_keys(uri)))
            .collect::<Vec<_>>();
        let pools = candidates
            .iter()
            .map(|operator| (operator.clone(), SELF_BOND, COMMISSION))
            .collect::<Vec<_>>();
        build_struct_json_patch!(RuntimeGenesisConfig {
            balances: BalancesConfig { balances },
            babe: BabeConfig {
                epoch_config: BABE_GENESIS_EPOCH_CONFIG
            },
            session: SessionConfig { keys },
            vesting: VestingConfig {
                vesting: self.vesting
            },
            delegation: DelegationConfig { pools },
            validators: ValidatorsConfig { candidates },
            sudo: SudoConfig { key: self.sudo },
            technical_committee: TechnicalCommitteeConfig {
                members: self.committee
            },
            genesis_parameters: GenesisParametersConfig {
                overrides: self.overrides
            },
        })
    }
}

fn account(uri: &str) -> AccountId {
    <Signature as Verify>::Signer::from(get_public_from_string_or_panic::<sr25519::Public>(uri))
        .into_account()
}

fn session_keys(uri: &str) -> SessionKeys {
    SessionKeys {
        babe: get_public_from_string_or_panic::<sr25519::Public>(uri).into(),
        grandpa: get_public_from_string_or_panic::<ed25519::Public>(uri).into(),
        authority_discovery: get_public_from_string_or_panic::<sr25519::Public>(uri).into(),
    }
}

fn well_known_endowments() -> Vec<(AccountId, Balance)> {
    Sr25519Keyring::iter()
        .map(|key| (key.to_account_id(), DEV_ENDOWMENT))
        .collect()
}

fn well_known_committee() -> Vec<AccountId> {
    ["Alice", "Bob", "Charlie", "Dave"].map(account).to_vec()
}

/// A task without disputes from post to settlement in under four minutes, and locks that a small stake can
/// bear.
fn short_windows() -> Overrides {
    Overrides {
        provider_registry: genesis_parameters::ProviderRegistry {
            heartbeat_window: Some(60),
            ..Default::default()
        },
        auction: genesis_parameters::Auction {
            bid_window: Some(8),
            reveal_window: Some(8),
            // A minute and a half at least for whatever somebody loses money by missing: a line may be down
            // for one.
            late_reveal_window: Some(45),
            finished_retention: Some(3_600),
            ..Default::default()
        },
        results: genesis_parameters::Results {
            commit_window: Some(45),
            audit_window: Some(12),
            audit_window_max: Some(1_800),
            reveal_window: Some(45),
            opening_window: Some(60),
            challenge_window: Some(10),
            lock_multiple: Some(2),
            audit_bond_multiple: Some(2),
            supply_window: Some(60),
            input_window: Some(45),
            // All verifiers are ours: the lock stays what a small stake can bear.
            verifiers_corrupt: Some(Permill::zero()),
            // Tasks can be posted before any verifier is there.
            verifiers_able: Some(Permill::one()),
            ..Default::default()
        },
        disputes: genesis_parameters::Disputes {
            dispute_clock: Some(60),
            decision_window: Some(40),
            seat_window: Some(30),
            vote_window: Some(30),
            // Nobody has to wait for a committee before it can be tried out. Keys are not safe against being
            // chosen then.
            seat_seasoning: Some(0),
            ..Default::default()
        },
        trust_lock: genesis_parameters::TrustLock {
            probation_tasks: Some(20),
            slash_deferral: Some(15),
            correlation_window: Some(300),
            jail_period: Some(300),
            suspension_period: Some(45),
            ..Default::default()
        },
        channels: genesis_parameters::Channels {
            // Answers worth a hundredth of a SURE have a point, and the models here take next to no time.
            point_rate: Some(FixedU128::from_u32(100)),
            point_cost: Some(MILLI_SURE / 10),
            verifiers_able: Some(Permill::one()),
            supply_window: Some(60),
            announce_window: Some(45),
            batch_window: Some(90),
            dispute_window: Some(45),
            refute_window: Some(45),
            closing_period: Some(330),
            ..Default::default()
        },
        gpu_proofs: genesis_parameters::GpuProofs {
            // No round until somebody wants one: all of a machine is at work for a minute in each.
            round_every: Some(0),
            open_window: Some(45),
        },
        ..short_sessions()
    }
}

/// Stake that a developer has, and days whose end a developer sees.
fn short_sessions() -> Overrides {
    Overrides {
        staking: genesis_parameters::Staking {
            min_bond: Some(100 * SURE),
            unbonding_period: Some(10_000),
            ..Default::default()
        },
        delegation: genesis_parameters::Delegation {
            min_self_bond: Some(1_000 * SURE),
            // Who stops validating works for two sessions more, and a slash for that waits for a veto.
            unbonding_period: Some(330),
            ..Default::default()
        },
        validators: genesis_parameters::Validators {
            validators_min: Some(1),
            ..Default::default()
        },
        emission: genesis_parameters::Emission {
            reward_sessions: Some(1),
        },
        governance: genesis_parameters::Governance {
            governance_unit: Some(10),
        },
        ..Default::default()
    }
}

fn dev() -> Value {
    Genesis {
        validators: vec!["Alice".into()],
        endowments: well_known_endowments(),
        treasury: EXISTENTIAL_DEPOSIT,
        vesting: Vec::new(),
        sudo: Some(Sr25519Keyring::Alice.to_account_id()),
        committee: well_known_committee(),
        overrides: short_windows(),
    }
    .into_patch()
}

fn local() -> Value {
    Genesis {
        validators: vec!["Alice".into(), "Bob".into(), "Charlie".into()],
        endowments: well_known_endowments(),
        treasury: EXISTENTIAL_DEPOSIT,
        vesting: Vec::new(),
        sudo: None,
        committee: well_known_committee(),
        overrides: short_windows(),
    }
    .into_patch()
}

fn testnet_validators() -> Vec<String> {
    (0..4).map(|i| format!("Surety//testnet//{i}")).collect()
}

fn testnet() -> Value {
    let validators = testnet_validators();
    let mut endowments: Vec<_> = validators
        .iter()
        .map(|uri| (account(uri), TESTNET_ENDOWMENT))
        .collect();
    let founders = account(FOUNDERS);
    endowments.push((founders.clone(), genesis::FOUNDERS));
    // What is for the launch has given validators theirs, and pots their deposits, but for the treasury's.
    let pots_deposits = EXISTENTIAL_DEPOSIT.saturating_mul((pots::all().len() as Balance).saturating_sub(1));
    let launch = genesis::LAUNCH
        .saturating_sub(TESTNET_ENDOWMENT.saturating_mul(validators.len() as Balance))
        .saturating_sub(pots_deposits);
    endowments.push((account(LAUNCH), launch));
    Genesis {
        endowments,
        treasury: genesis::TREASURY,
        vesting: vec![(
            founders,
            genesis::FOUNDERS_CLIFF_BLOCKS,
            genesis::FOUNDERS_VESTING_BLOCKS,
            FOUNDERS_LIQUID,
        )],
        committee: validators.iter().map(|uri| account(uri)).collect(),
        validators,
        sudo: None,
        overrides: Overrides::default(),
    }
    .into_patch()
}

/// The preset called `id`, as a JSON patch of the default genesis configuration.
pub fn get_preset(id: &PresetId) -> Option<Vec<u8>> {
    let patch = match id.as_str() {
        DEV_RUNTIME_PRESET => dev(),
        LOCAL_TESTNET_RUNTIME_PRESET => local(),
        TESTNET_PRESET => testnet(),
        _ => return None,
    };
    serde_json::to_vec(&patch).ok()
}

/// Looks for what no specification may have, once its genesis is in the state.
///
/// # Errors
/// A sentence that says what to change.
pub fn check() -> Result<(), String> {
    if let Some(pot) = pots::without_deposit().next() {
        let pot = pot.to_ss58check();
        return Err(format!(
            "{pot} is a pot without an existential deposit: put [\"{pot}\", {EXISTENTIAL_DEPOSIT}] into \
             `balances`"
        ));
    }
    // Agents alone have accounts without money (STAKE-7).
    let mut assets = pallet_assets::Asset::<Runtime>::iter();
    if let Some((asset, _)) = assets.find(|(_, details)| details.is_sufficient) {
        return Err(format!(
            "asset {asset} keeps accounts: say `false` for it in `assets.assets`"
        ));
    }
    match left_to_everybody() {
        Some(uri) => Err(format!(
            "//{uri} has money or a seat, and everybody can sign for it: put accounts of your own in place of \
             {}",
            account(&uri).to_ss58check()
        )),
        None => Ok(()),
    }
}

/// Somebody of `testnet` whose key is no secret, where any validator's are others than there: then it is
/// somebody's own network, and what is left of that one is forgotten.
fn left_to_everybody() -> Option<String> {
    let mut uris = testnet_validators();
    let known: Vec<_> = uris.iter().map(|uri| session_keys(uri)).collect();
    let used = pallet_session::QueuedKeys::<Runtime>::get();
    if !used.is_empty() && used.iter().all(|(_, keys)| known.contains(keys)) {
        return None;
    }
    uris.extend([FOUNDERS, LAUNCH].map(String::from));
    let members = pallet_collective::Members::<Runtime>::get();
    uris.into_iter().find(|uri| {
        let who = account(uri);
        members.contains(&who) || frame_system::Account::<Runtime>::contains_key(&who)
    })
}

/// The names that [`get_preset`] knows.
pub fn preset_names() -> Vec<PresetId> {
    [DEV_RUNTIME_PRESET, LOCAL_TESTNET_RUNTIME_PRESET, TESTNET_PRESET]
        .into_iter()
        .map(PresetId::from)
        .collect()
}
