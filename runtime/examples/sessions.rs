//! How long the blocks take that elect validators and pay them: the runtime's Wasm, run as a node runs it, on
//! a state in memory with as many candidates and delegations as `scripts/bench staking` is about. Prints
//! JSON.

use std::{collections::HashMap, error::Error, time::Instant};

use ::surety_pallet_emission::WeightInfo as _;
use ::surety_pallet_validators::WeightInfo as _;
use codec::Encode;
use frame_system::RawOrigin;
use sc_executor::WasmExecutor;
use sp_consensus_babe::{
    AuthorityId, Slot,
    digests::{CompatibleDigestItem, PreDigest, SecondaryVRFPreDigest},
    make_vrf_sign_data,
};
use sp_core::{
    Pair,
    crypto::VrfSecret,
    ed25519, sr25519,
    traits::{CallContext, CodeExecutor, RuntimeCode, WrappedRuntimeCode},
};
use sp_crypto_hashing::blake2_256;
use sp_io::{SubstrateHostFunctions, TestExternalities};
use sp_runtime::{
    BuildStorage, Permill,
    generic::{Digest, DigestItem},
    traits::Header as _,
};
use surety_runtime::{
    AccountId, Babe, Balance, BalancesConfig, BlockNumber, Delegation, DelegationConfig, Executive,
    GenesisParametersConfig, Hash, Header, Runtime, RuntimeGenesisConfig, Session, SessionConfig,
    SessionKeys, UncheckedExtrinsic, ValidatorsConfig, WASM_BINARY,
    configs::{consensus::BABE_GENESIS_EPOCH_CONFIG, system::RuntimeBlockWeights},
    genesis_parameters::{self, Overrides},
    pots,
    units::{EPOCH_SLOTS, EXISTENTIAL_DEPOSIT, SLOT_MS, SURE},
    weights::{surety_pallet_emission as emission_weights, surety_pallet_validators as validators_weights},
};

const VALIDATORS: u32 = 100;
const CANDIDATES: u32 = 1_000;
/// Of each candidate.
const DELEGATORS: u32 = 100;
const BOND: Balance = 1_000 * SURE;
const DELEGATED: Balance = 10 * SURE;
/// A day is two sessions, so that there are blocks that elect and pay, and blocks that only elect.
const DAY_SESSIONS: u32 = 2;
/// How often each block is executed.
const ROUNDS: usize = 21;
/// Until those who are elected work.
const FIRST_SESSIONS_MAX: u32 = 20;
/// Any slot will do for the first block.
const FIRST_SLOT: u64 = 1_000;

type Failure = Box<dyn Error>;

fn account(name: &str, index: u32) -> AccountId {
    AccountId::new(blake2_256(format!("{name} {index}").as_bytes()))
}

fn operator(index: u32) -> AccountId {
    account("operator", index)
}

fn blocks_key(index: u32) -> sr25519::Pair {
    sr25519::Pair::from_seed(&blake2_256(&index.to_le_bytes()))
}

fn session_keys(index: u32) -> SessionKeys {
    let key = blocks_key(index).public();
    SessionKeys {
        babe: key.into(),
        grandpa: ed25519::Pair::from_seed(&blake2_256(&index.to_le_bytes()))
            .public()
            .into(),
        authority_discovery: key.into(),
    }
}

fn genesis() -> RuntimeGenesisConfig {
    let operators = || (0..CANDIDATES).map(operator);
    let delegators = (0..CANDIDATES * DELEGATORS).map(|index| account("delegator", index));
    let balances = operators()
        .map(|who| (who, BOND + SURE))
        .chain(delegators.map(|who| (who, DELEGATED + SURE)))
        .chain(pots::all().map(|pot| (pot, EXISTENTIAL_DEPOSIT)))
        .chain([(account("rich", 0), 100_000 * SURE)])
        .collect();
    let keys = (0..CANDIDATES).map(|index| (operator(index), operator(index), session_keys(index)));
    RuntimeGenesisConfig {
        balances: BalancesConfig {
            balances,
            ..Default::default()
        },
        babe: surety_runtime::BabeConfig {
            epoch_config: BABE_GENESIS_EPOCH_CONFIG,
            ..Default::default()
        },
        session: SessionConfig {
            keys: keys.collect(),
            ..Default::default()
        },
        delegation: DelegationConfig {
            pools: operators()
                .map(|who| (who, BOND, Permill::from_percent(5)))
                .collect(),
        },
        validators: ValidatorsConfig {
            candidates: operators().collect(),
        },
        genesis_parameters: GenesisParametersConfig {
            overrides: Overrides {
                delegation: genesis_parameters::Delegation {
                    min_self_bond: Some(BOND),
                    min_delegation: Some(DELEGATED),
                    ..Default::default()
                },
                validators: genesis_parameters::Validators {
                    validators_max: Some(VALIDATORS),
                    ..Default::default()
                },
                emission: genesis_parameters::Emission {
                    reward_sessions: Some(DAY_SESSIONS),
                },
                ..Default::default()
            },
            ..Default::default()
        },
        ..Default::default()
    }
}

/// A chain in memory, whose blocks are built natively, and measured in Wasm.
struct Chain {
    state: TestExternalities,
    keys: HashMap<AuthorityId, sr25519::Pair>,
    number: BlockNumber,
    slot: u64,
    parent: Hash,
    executor: WasmExecutor<SubstrateHostFunctions>,
    code: WrappedRuntimeCode<'static>,
}

impl Chain {
    fn new() -> Result<Self, Failure> {
        let code = WASM_BINARY.ok_or("the runtime was built with SKIP_WASM_BUILD")?;
        let keys = (0..CANDIDATES).map(|index| (blocks_key(index).public().into(), blocks_key(index)));
        Ok(Self {
            state: TestExternalities::new(genesis().build_storage()?),
            keys: keys.collect(),
            number: 0,
            slot: FIRST_SLOT,
            parent: Hash::zero(),
            executor: WasmExecutor::builder().build(),
            code: WrappedRuntimeCode(code.into()),
        })
    }

    /// All delegations, as if they were calls.
    fn delegate(&mut self) -> Result<(), Failure> {
        for pool in 0..CANDIDATES {
            let delegated = self.state.execute_with(|| {
                (0..DELEGATORS).try_for_each(|place| {
                    let who = account("delegator", pool * DELEGATORS + place);
                    Delegation::delegate(RawOrigin::Signed(who).into(), operator(pool), DELEGATED)
                })
            });
            delegated.map_err(<&str>::from)?;
        }
        Ok(self.state.commit_all()?)
    }

    /// The header with which the block of a slot begins.
    fn header(&mut self, slot: u64) -> Result<Header, Failure> {
        let epoch = self.state.execute_with(|| {
            if slot >= u64::from(Babe::current_epoch_start()) + EPOCH_SLOTS {
                Babe::next_epoch()
            } else {
                Babe::current_epoch()
            }
        });
        let number = self.number + 1;
        // They make blocks in turns.
        let place = usize::try_from(number)? % epoch.authorities.len();
        let key = self.keys.get(&epoch.authorities[place].0).ok_or("nobody's key")?;
        let data = make_vrf_sign_data(&epoch.randomness, Slot::from(slot), epoch.epoch_index);
        let digest = PreDigest::SecondaryVRF(SecondaryVRFPreDigest {
            authority_index: u32::try_from(place)?,
            slot: Slot::from(slot),
            vrf_signature: key.vrf_sign(&data),
        });
        let logs = vec![DigestItem::babe_pre_digest(digest)];
        let (any, digest) = (Default::default(), Digest { logs });
        Ok(Header::new(number, any, any, self.parent, digest))
    }

    fn inherents(&self, slot: u64) -> [UncheckedExtrinsic; 2] {
        let now = pallet_timestamp::Call::set { now: slot * SLOT_MS };
        // Two blocks behind, as ever.
        let finalized = self.number.saturating_sub(1);
        let note = surety_pallet_finality_clock::Call::note { finalized };
        [now.into(), note.into()].map(UncheckedExtrinsic::new_bare)
    }

    /// A block, natively.
    fn block(&mut self, slot: u64) -> Result<(), Failure> {
        let header = self.header(slot)?;
        let inherents = self.inherents(slot);
        self.parent = self.state.execute_with(|| {
            Executive::initialize_block(&header);
            for inherent in inherents {
                let applied = Executive::apply_extrinsic(inherent);
                assert!(matches!(applied, Ok(Ok(()))), "{applied:?}");
            }
            Executive::finalize_block().hash()
        });
        (self.number, self.slot) = (self.number + 1, slot);
        Ok(self.state.commit_all()?)
    }

    fn next_epoch_slot(&mut self) -> u64 {
        let start = self.state.execute_with(Babe::current_epoch_start);
        u64::from(start) + EPOCH_SLOTS
    }

    /// Builds blocks up to the last but `left` of the session.
    fn run_to_end(&mut self, left: u64) -> Result<(), Failure> {
        let end = self.next_epoch_slot().saturating_sub(left);
        while self.slot + 1 < end {
            self.block(self.slot + 1)?;
        }
        Ok(())
    }

    fn call(&mut self, method: &str, data: &[u8]) -> Result<(), Failure> {
        let code = RuntimeCode {
            code_fetcher: &self.code,
            heap_pages: None,
            hash: b"measured".to_vec(),
        };
        let context = CallContext::Onchain { import: true };
        let mut state = self.state.ext();
        let (answer, _) = self.executor.call(&mut state, &code, method, data, context);
        answer?;
        Ok(())
    }

    /// Milliseconds that the next block takes in Wasm: its beginning, where sessions change, and all of it.
    fn measure(&mut self, slot: u64) -> Result<(f64, f64), Failure> {
        let header = self.header(slot)?.encode();
        let inherents = self.inherents(slot);
        let (mut begins, mut blocks) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let began = Instant::now();
            self.call("Core_initialize_block", &header)?;
            begins.push(began.elapsed().as_secs_f64() * 1e3);
            for inherent in &inherents {
                self.call("BlockBuilder_apply_extrinsic", &inherent.encode())?;
            }
            self.call("BlockBuilder_finalize_block", &[])?;
            blocks.push(began.elapsed().as_secs_f64() * 1e3);
            self.state.reset_overlay();
        }
        Ok((median(begins), median(blocks)))
    }

    /// Puts so much more behind a candidate outside the set that it is elected.
    fn promote(&mut self) -> Result<(), Failure> {
        self.state.execute_with(|| {
            let works = Session::validators();
            let planned = Session::queued_keys();
            let idle = |who: &AccountId| !works.contains(who) && planned.iter().all(|(one, _)| one != who);
            let newcomer = (0..CANDIDATES)
                .map(operator)
                .find(idle)
                .ok_or("all of them work")?;
            let rich = RawOrigin::Signed(account("rich", 0));
            Delegation::delegate(rich.into(), newcomer, 100 * SURE).map_err(<&str>::from)
        })?;
        Ok(self.state.commit_all()?)
    }

    fn works(&mut self) -> usize {
        self.state.execute_with(|| Session::validators().len())
    }

    fn session(&mut self) -> u32 {
        self.state.execute_with(Session::current_index)
    }

    fn set(&mut self) -> Vec<AccountId> {
        let planned = self.state.execute_with(Session::queued_keys);
        planned.into_iter().map(|(who, _)| who).collect()
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn milliseconds(weight: frame_support::weights::Weight) -> f64 {
    weight.ref_time() as f64 / 1e9
}

fn main() -> Result<(), Failure> {
    let mut chain = Chain::new()?;
    chain.delegate()?;
    chain.block(FIRST_SLOT)?;
    // Validators of genesis are all candidates. Nobody is elected before more than half of them have said how
    // far finality has come.
    for _ in 0..FIRST_SESSIONS_MAX {
        if chain.works() == usize::try_from(VALIDATORS)? {
            break;
        }
        chain.run_to_end(0)?;
        let next = chain.next_epoch_slot();
        chain.block(next)?;
    }
    let (mut ordinary, mut elects, mut pays) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..2 * DAY_SESSIONS {
        chain.run_to_end(1)?;
        ordinary.push(chain.measure(chain.slot + 1)?);
        chain.promote()?;
        chain.block(chain.slot + 1)?;
        let pays_day = (chain.session() + 1) % DAY_SESSIONS == 0;
        let next = chain.next_epoch_slot();
        let measured = chain.measure(next)?;
        if pays_day {
            pays.push(measured);
        } else {
            elects.push(measured);
        }
        let before = chain.set();
        chain.block(next)?;
        if chain.set() == before || chain.set().len() != usize::try_from(VALIDATORS)? {
            return Err("the election that was measured elected nobody".into());
        }
    }
    let begin = |of: &[(f64, f64)]| median(of.iter().map(|(begins, _)| *begins).collect());
    let block = |of: &[(f64, f64)]| median(of.iter().map(|(_, block)| *block).collect());
    let change = validators_weights::WeightInfo::<Runtime>::change_session();
    let pay = emission_weights::WeightInfo::<Runtime>::pay_day;
    let report = serde_json::json!({
        "validators": VALIDATORS,
        "candidates": CANDIDATES,
        "delegations": CANDIDATES * DELEGATORS,
        "election_ms": begin(&elects) - begin(&ordinary),
        "payout_ms": begin(&pays) - begin(&elects),
        "block_ms": {
            "ordinary": block(&ordinary),
            "that elects": block(&elects),
            "that elects and pays": block(&pays),
        },
        "weight_ms": {
            "election, 1,000 candidates and validators": milliseconds(change),
            "payout, 100 operators": milliseconds(pay(VALIDATORS)),
            "payout, 1,000 operators": milliseconds(pay(CANDIDATES)),
            "block": milliseconds(RuntimeBlockWeights::get().max_block),
        },
    });
    println!("{report:#}");
    Ok(())
}
