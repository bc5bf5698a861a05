//! How code is upgraded, and what the technical committee can do about it: make a referendum faster.

use codec::Encode;
use frame_support::{
    assert_ok,
    dispatch::GetDispatchInfo,
    traits::{Get, GetStorageVersion, OnRuntimeUpgrade, PalletInfoAccess, PalletsInfoAccess, StorageVersion},
};
use frame_system::RawOrigin;
use sp_core::traits::{Externalities, ReadRuntimeVersion};
use sp_keyring::Sr25519Keyring::{self, Alice, AliceStash, Bob, Charlie, Dave, Eve, EveStash, Ferdie};
use sp_runtime::traits::{BlakeTwo256, Hash};
use sp_version::RuntimeVersion;
use surety_runtime::{
    Runtime, RuntimeCall, RuntimeEvent, System, TechnicalCommittee, UncheckedExtrinsic, VERSION,
    configs::{origins::Origin, tracks::GovernanceUnit, whitelist::MotionDuration},
    next_version::{WriteAnew, Written},
    params::dynamic::staking,
    units::SURE,
};
use surety_types::task::TaskState;

use crate::{
    chain::{Chain, account},
    disputes::{World, commit_all, disputes, play_out, reveal_all, verdict_of},
    market::all_ok,
    presets::preset,
    referenda::{dev, enacted, min_bond, propose, root},
};

/// Those who may whitelist calls.
const COMMITTEE: [Sr25519Keyring; 4] = [Alice, Bob, Charlie, Dave];

/// A code is its encoded version here, and nothing else.
struct VersionAlone;

impl ReadRuntimeVersion for VersionAlone {
    fn read_runtime_version(&self, code: &[u8], _: &mut dyn Externalities) -> Result<Vec<u8>, String> {
        Ok(code.to_vec())
    }
}

fn code(spec_version: u32) -> Vec<u8> {
    let version = RuntimeVersion {
        spec_version,
        ..VERSION
    };
    version.encode()
}

fn authorize(code: &[u8]) -> RuntimeCall {
    let code_hash = BlakeTwo256::hash(code);
    frame_system::Call::authorize_upgrade { code_hash }.into()
}

/// Nobody signs it.
fn bring(code: Vec<u8>) -> UncheckedExtrinsic {
    let call = frame_system::Call::apply_authorized_upgrade { code };
    UncheckedExtrinsic::new_bare(call.into())
}

fn running_code() -> Option<Vec<u8>> {
    sp_io::storage::get(b":code").map(|code| code.to_vec())
}

#[test]
fn code_is_authorised_by_referendum_and_brought_by_anybody() {
    let mut chain = dev();
    chain.read_versions(VersionAlone);
    let next = code(VERSION.spec_version + 1);
    assert!(chain.try_extrinsic(bring(next.clone())).is_err());
    let index = propose(&mut chain, root(), authorize(&next));
    assert_eq!(enacted(&mut chain, index), Ok(()));
    // Only what was decided on.
    let other = code(VERSION.spec_version + 2);
    assert!(chain.try_extrinsic(bring(other)).is_err());
    assert_eq!(chain.try_extrinsic(bring(next.clone())), Ok(Ok(())));
    assert_eq!(chain.query(running_code), Some(next.clone()));
    // And only once.
    assert!(chain.try_extrinsic(bring(next)).is_err());
    chain.run_to(chain.number() + 3);
}

#[test]
fn code_of_no_later_version_is_refused_whoever_has_authorised_it() {
    let mut chain = dev();
    chain.read_versions(VersionAlone);
    let same = code(VERSION.spec_version);
    let hash = BlakeTwo256::hash(&same);
    chain.query(|| {
        assert_ok!(System::authorize_upgrade(RawOrigin::Root.into(), hash));
    });
    let before = chain.query(running_code);
    assert_eq!(chain.try_extrinsic(bring(same)), Ok(Ok(())));
    let is_refusal = |event: &RuntimeEvent| match event {
        RuntimeEvent::System(event) => matches!(
            event,
            frame_system::Event::RejectedInvalidAuthorizedUpgrade { .. }
        ),
        _ => false,
    };
    assert!(chain.events().iter().any(is_refusal));
    assert_eq!(chain.query(running_code), before);
}

/// As `scripts/bench upgrade` shows with real processes.
#[test]
fn a_dispute_and_a_task_go_on_where_an_upgrade_writes_them_anew() {
    let world = World::new();
    let mut chain = world.chain();
    let (task, members) = world.task(&mut chain, 3);
    let (liar, lie) = world.liar(2, 3);
    let (right, honest) = (world.claim.clone(), || world.honest());
    let results = [
        (members[0], right.clone()),
        (members[1], lie),
        (members[2], right.clone()),
    ];
    commit_all(&mut chain, task, &results);
    reveal_all(&mut chain, task, &results);
    let another = world.post(&mut chain, 3).unwrap();
    assert_eq!(disputes(&mut chain).len(), 1);

    chain.query(WriteAnew::on_runtime_upgrade);
    assert_eq!(chain.query(Written::get), Some((2, 1, 1)));
    // Once is enough.
    chain.query(|| {
        Written::kill();
        WriteAnew::on_runtime_upgrade()
    });
    assert_eq!(chain.query(Written::get), None);

    let mut players = [
        (members[0].account(), honest()),
        (members[1].account(), liar),
        (members[2].account(), honest()),
    ];
    play_out(&mut chain, &world, &mut players);
    let ended = verdict_of(&mut chain, task);
    let TaskState::Settled { claim, payments, .. } = ended else {
        panic!("{ended:?}")
    };
    assert_eq!((claim, payments.len()), (right, 2));
    // Nobody has bid for it.
    let ended = verdict_of(&mut chain, another);
    assert!(matches!(ended, TaskState::Failed { .. }), "{ended:?}");
}

/// A motion of the committee to whitelist a call, with so many ayes. It is carried by as many.
fn whitelist(chain: &mut Chain, ayes: usize, call: &RuntimeCall) {
    let close = move_to_whitelist(chain, ayes, ayes, call);
    chain.call(Ferdie, close);
}

/// A motion that is carried by `threshold` ayes, with those that there are. Returns the call that closes it.
fn move_to_whitelist(chain: &mut Chain, threshold: usize, ayes: usize, call: &RuntimeCall) -> RuntimeCall {
    let call_hash = BlakeTwo256::hash_of(call);
    let motion: RuntimeCall = pallet_whitelist::Call::whitelist_call { call_hash }.into();
    let proposal_hash = BlakeTwo256::hash_of(&motion);
    let index = chain.query(pallet_collective::ProposalCount::<Runtime>::get);
    let length_bound = motion.encoded_size() as u32;
    let close = pallet_collective::Call::close {
        proposal_hash,
        index,
        proposal_weight_bound: motion.get_dispatch_info().call_weight,
        length_bound,
    };
    let propose = pallet_collective::Call::propose {
        threshold: threshold as u32,
        proposal: Box::new(motion),
        length_bound,
    };
    let aye = || -> RuntimeCall {
        let (proposal, approve) = (proposal_hash, true);
        let vote = pallet_collective::Call::vote {
            proposal,
            index,
            approve,
        };
        vote.into()
    };
    let mut calls: Vec<(Sr25519Keyring, RuntimeCall)> = vec![(Alice, propose.into())];
    calls.extend(COMMITTEE.into_iter().take(ayes).map(|member| (member, aye())));
    all_ok(chain.block(calls));
    close.into()
}

fn dispatch(call: &RuntimeCall) -> RuntimeCall {
    let call = Box::new(call.clone());
    pallet_whitelist::Call::dispatch_whitelisted_call_with_preimage { call }.into()
}

#[test]
fn the_fast_track_needs_three_quarters_of_the_committee_and_a_referendum() {
    let mut chain = dev();
    let call = min_bond(9 * SURE);
    let hash = BlakeTwo256::hash_of(&call);
    let is_whitelisted = || pallet_whitelist::WhitelistedCall::<Runtime>::contains_key(hash);
    whitelist(&mut chain, 2, &call);
    assert!(!chain.query(is_whitelisted));
    whitelist(&mut chain, 3, &call);
    assert!(chain.query(is_whitelisted));
    // That alone does nothing.
    assert!(chain.try_call(Alice, dispatch(&call)).is_err());
    let submitted = chain.number() + 1;
    let index = propose(&mut chain, Origin::WhitelistedCaller.into(), dispatch(&call));
    assert_eq!(enacted(&mut chain, index), Ok(()));
    assert_eq!(chain.query(staking::MinBond::get), 9 * SURE);
    // In less than a unit, where root alone needs three.
    assert!(chain.number() < submitted + chain.query(GovernanceUnit::get));
}

/// The first of them may be prime: its vote is no other's.
#[test]
fn members_of_the_committee_who_say_nothing_agree_to_nothing() {
    let mut chain = dev();
    let call = min_bond(9 * SURE);
    chain.query(|| {
        let members = COMMITTEE.map(account).to_vec();
        let prime = Some(account(Alice));
        assert_ok!(TechnicalCommittee::set_members(
            RawOrigin::Root.into(),
            members,
            prime,
            4
        ));
    });
    let close = move_to_whitelist(&mut chain, 3, 1, &call);
    let until = chain.number() + chain.query(MotionDuration::get);
    chain.run_to(until);
    chain.call(Ferdie, close);
    let hash = BlakeTwo256::hash_of(&call);
    assert!(!chain.query(|| pallet_whitelist::WhitelistedCall::<Runtime>::contains_key(hash)));
}

#[test]
fn a_referendum_has_nothing_done_at_once_that_the_committee_has_not_whitelisted() {
    let mut chain = dev();
    let (before, call) = (chain.query(staking::MinBond::get), min_bond(9 * SURE));
    let index = propose(&mut chain, Origin::WhitelistedCaller.into(), dispatch(&call));
    assert_eq!(enacted(&mut chain, index), Ok(()));
    assert_eq!(chain.query(staking::MinBond::get), before);
    assert!(chain.try_call(Ferdie, dispatch(&call)).is_err());
    // It waits a unit for them, and anybody has it done then.
    whitelist(&mut chain, 3, &call);
    chain.call(Ferdie, dispatch(&call));
    assert_eq!(chain.query(staking::MinBond::get), 9 * SURE);
}

#[test]
fn the_committee_is_set_by_root_with_a_proposal_that_was_noted_first() {
    let mut chain = dev();
    let seven = [Bob, Charlie, Dave, Eve, Ferdie, AliceStash, EveStash].map(account);
    let call: RuntimeCall = pallet_collective::Call::set_members {
        new_members: seven.to_vec(),
        prime: None,
        old_count: 4,
    }
    .into();
    let bytes = call.encode();
    chain.call(Alice, pallet_preimage::Call::note_preimage { bytes });
    let index = propose(&mut chain, root(), call);
    assert_eq!(enacted(&mut chain, index), Ok(()));
    let members = chain.query(pallet_collective::Members::<Runtime>::get);
    assert!(members.len() == 7 && seven.iter().all(|one| members.contains(one)));
}

/// What has no version could not be migrated: this does not compile with a pallet that says none.
fn is_at_its_layout<P>() -> &'static str
where
    P: GetStorageVersion<InCodeStorageVersion = StorageVersion> + PalletInfoAccess,
{
    let (state, code) = (P::on_chain_storage_version(), P::in_code_storage_version());
    assert_eq!(state, code, "{}", P::name());
    P::module_name()
}

#[test]
fn migrations_lead_every_pallet_of_ours_to_the_layout_of_its_code() {
    use surety_runtime::*;

    preset("testnet", || {
        // As they were before each had its first migration. Those of others whose layouts changed before the
        // first release have none.
        StorageVersion::new(1).put::<TrustLock>();
        StorageVersion::new(1).put::<Billing>();
        <<Runtime as frame_system::Config>::SingleBlockMigrations as OnRuntimeUpgrade>::on_runtime_upgrade();
        let mut seen = vec![
            is_at_its_layout::<FinalityClock>(),
            is_at_its_layout::<BlockEntropy>(),
            is_at_its_layout::<GpuProofs>(),
            is_at_its_layout::<Staking>(),
            is_at_its_layout::<ProviderRegistry>(),
            is_at_its_layout::<ModelRegistry>(),
            is_at_its_layout::<TaskAuction>(),
            is_at_its_layout::<TrustLock>(),
            is_at_its_layout::<Billing>(),
            is_at_its_layout::<Results>(),
            is_at_its_layout::<Disputes>(),
            is_at_its_layout::<Channels>(),
            is_at_its_layout::<Delegation>(),
            is_at_its_layout::<Validators>(),
            is_at_its_layout::<Emission>(),
        ];
        let mut ours: Vec<_> = AllPalletsWithSystem::infos()
            .into_iter()
            .map(|pallet| pallet.module_name)
            .filter(|name| name.starts_with("surety_pallet_"))
            .collect();
        seen.sort_unstable();
        ours.sort_unstable();
        assert_eq!(seen, ours);
    });
}
