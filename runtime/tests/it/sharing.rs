//! Who shares in a slash.

use sp_keyring::Sr25519Keyring::{self, Alice, FerdieStash};
use surety_audit_economics::audit_seal;
use surety_dispute_game::bisection::Move;
use surety_pallet_disputes::Call;
use surety_pallet_results::Call as ResultsCall;
use surety_pallet_trust_lock::Slashes;
use surety_runtime::{Balances, Runtime};
use surety_types::{stake::Role, task::TaskState};

use crate::{
    chain::{Chain, account},
    disputes::{STRANGER, VERIFIER, World, commit_all, proof, reveal_all, stake, verdict_of},
    market::{self, CLIENT, hash},
};

/// Has a stash and its agent bond as a verifier.
fn bond_verifier(chain: &mut Chain, stash: Sr25519Keyring, agent: Sr25519Keyring) {
    use surety_pallet_staking::Call as Stake;
    let amount = market::BOND;
    let role = Role::Verifier;
    chain.call(stash, Stake::bond { role, amount });
    let set = Stake::set_agent {
        agent: account(agent),
    };
    chain.call(stash, set);
    let confirm = Stake::confirm_agent {
        stash: account(stash),
    };
    chain.call(agent, confirm);
}

#[test]
fn verifiers_that_differ_share_the_finders_part_and_what_is_left_is_burned_to_the_planck() {
    let world = World::new();
    let mut chain = world.chain();
    bond_verifier(&mut chain, FerdieStash, Alice);
    let (task, members) = world.task(&mut chain, 1);
    let (_, lie) = world.liar(1, 2);
    let provider = members[0].account();
    commit_all(&mut chain, task, &[(members[0], lie.clone())]);
    let verifiers = [VERIFIER, (FerdieStash, Alice)];
    let salt = hash(77);
    for (verifier, agent) in verifiers {
        let seal = audit_seal(task, &provider, &account(verifier), &world.claim, &salt);
        let announce = ResultsCall::announce_audit {
            task,
            provider: provider.clone(),
            proof: proof(&mut chain, task, &provider, agent),
            seal,
        };
        chain.call(agent, announce);
    }
    reveal_all(&mut chain, task, &[(members[0], lie)]);
    // It gives up to a friend before anybody has opened its seal.
    let challenge = Call::challenge {
        task,
        provider: provider.clone(),
    };
    chain.call(STRANGER, challenge);
    let concede = Call::play {
        dispute: 0,
        number: 0,
        played: Move::Concede,
    };
    chain.call(members[0].agent, concede);
    for (verifier, agent) in verifiers {
        let reveal = ResultsCall::reveal_audit {
            task,
            provider: provider.clone(),
            verifier: account(verifier),
            claim: world.claim.clone(),
            salt,
        };
        chain.call(agent, reveal);
    }
    let accounts = [
        account(verifiers[0].0),
        account(verifiers[1].0),
        account(CLIENT),
        account(STRANGER),
    ];
    let ended = verdict_of(&mut chain, task);
    assert!(matches!(ended, TaskState::Failed { .. }), "{ended:?}");
    let mut free = || accounts.clone().map(|who| chain.free(&who));
    let before = free();
    let issued = chain.query(Balances::total_issuance);
    chain.run_until(60, || !Slashes::<Runtime>::contains_key(0));
    let lost = market::BOND - stake(&mut chain, &provider);
    let mut free = || accounts.clone().map(|who| chain.free(&who));
    let after = free();
    let got: Vec<_> = before
        .iter()
        .zip(after)
        .map(|(before, after)| after - before)
        .collect();
    let each = lost * 30 / 100 / 2;
    let client = lost * 20 / 100;
    assert_eq!(got, [each, each, client, 0]);
    let burned = issued - chain.query(Balances::total_issuance);
    assert_eq!(burned, lost - 2 * each - client);
}
