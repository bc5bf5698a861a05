//! View functions, as clients of a node call them: by their ids, with SCALE in and out.

use codec::{Decode, Encode};
use frame_support::view_functions::{ViewFunction, ViewFunctionDispatchError, ViewFunctionId};
use sp_keyring::Sr25519Keyring::AliceStash;
use surety_pallet_billing as billing;
use surety_pallet_disputes as disputes;
use surety_pallet_provider_registry as registry;
use surety_pallet_results as results;
use surety_pallet_staking as staking;
use surety_runtime::{AccountId, Balance, ProviderRegistry, Runtime};
use surety_types::{
    ModelId, TaskId,
    history::{Earning, Page},
    stake::Role,
    task::TaskState,
    traits::ProviderDirectory,
};

use crate::{
    chain::{Chain, account},
    disputes::{World, commit_all, reveal_all},
    market::*,
};

/// What a view function answers.
fn ask<F: ViewFunction<ReturnType: Decode> + Encode>(chain: &mut Chain, function: F) -> F::ReturnType {
    let answer = chain.query(|| Runtime::execute_view_function(F::id(), function.encode()));
    let answer = answer.expect("the runtime has the function, and it takes this");
    F::ReturnType::decode(&mut answer.as_slice()).expect("it answers with what it says")
}

fn earnings(chain: &mut Chain, who: AccountId, before: Option<TaskId>) -> Page<Earning<Balance>> {
    ask(chain, billing::EarningsViewFunction::<Runtime>::new(who, before))
}

fn providers_of(chain: &mut Chain, model: ModelId) -> Vec<AccountId> {
    let page = ask(
        chain,
        registry::ProvidersOfViewFunction::<Runtime>::new(model, None),
    );
    assert_eq!(page.next, None);
    assert!(page.items.iter().all(|provider| provider.is_available));
    page.items.into_iter().map(|provider| provider.stash).collect()
}

#[test]
fn who_works_on_a_model_and_what_they_earn_is_told_while_they_work_and_when_they_are_paid() {
    let mut chain = open();
    let model = manifest().id();
    assert_eq!(providers_of(&mut chain, model), []);
    let task = post(&mut chain, 3);
    auction(&mut chain, task, &PROVIDERS);
    let at_work = members(&mut chain, task);

    let mut expected: Vec<_> = at_work.iter().map(Provider::account).collect();
    expected.sort();
    assert_eq!(providers_of(&mut chain, model), expected);
    assert_eq!(providers_of(&mut chain, hash(77)), []);
    let one = at_work[0].account();
    let round = ask(&mut chain, results::RoundOfViewFunction::<Runtime>::new(task)).unwrap();
    let member = round
        .members
        .iter()
        .find(|member| member.provider == one)
        .unwrap();
    let open = earnings(&mut chain, one.clone(), None);
    let [
        Earning {
            task: of,
            amount,
            is_settled: false,
        },
    ] = open.items[..]
    else {
        panic!("{open:?}")
    };
    assert_eq!((of, amount, open.next), (task, member.price, None));
    let escrow = ask(&mut chain, billing::EscrowViewFunction::<Runtime>::new(task)).unwrap();
    assert_eq!((escrow.client, escrow.held), (account(CLIENT), CAP));
    let ledger = ask(
        &mut chain,
        staking::LedgerViewFunction::<Runtime>::new(one.clone()),
    )
    .unwrap();
    assert_eq!((ledger.role, ledger.bonded), (Role::Provider, BOND));
    assert!(ledger.locked >= member.lock && member.lock > 0);

    all_ok(
        chain.block(
            at_work
                .iter()
                .map(|member| member.commits(task, &right()))
                .collect(),
        ),
    );
    wait_for_reveals(&mut chain, task);
    all_ok(
        chain.block(
            at_work
                .iter()
                .map(|member| member.reveals(task, &right()))
                .collect(),
        ),
    );
    wait_for_end(&mut chain, task);

    let TaskState::Settled { payments, .. } = chain.query(|| state(task)) else {
        panic!("not settled")
    };
    for payment in payments {
        let paid = earnings(&mut chain, payment.provider, None).items;
        let amount = payment.price;
        assert_eq!(
            paid,
            [Earning {
                task,
                amount,
                is_settled: true
            }]
        );
    }
    // What comes before the task, and who had nothing of it.
    assert_eq!(earnings(&mut chain, one, Some(task)).items, []);
    assert_eq!(earnings(&mut chain, account(AliceStash), None).items, []);
    assert_eq!(
        ask(&mut chain, results::RoundOfViewFunction::<Runtime>::new(task)),
        None
    );
    assert_eq!(
        ask(&mut chain, billing::EscrowViewFunction::<Runtime>::new(task)),
        None
    );
}

#[test]
fn a_provider_is_shown_with_its_entry_and_whether_it_would_be_given_work() {
    let mut chain = open();
    let [provider, ..] = PROVIDERS;
    let view = |chain: &mut Chain| {
        let stash = provider.account();
        ask(chain, registry::ProviderViewFunction::<Runtime>::new(stash)).unwrap()
    };
    let fresh = view(&mut chain);
    assert_eq!((fresh.entry.device, fresh.stash), (device(), provider.account()));
    assert!(fresh.is_available);
    // Nothing is heard of it any more.
    chain.run_until(1_000, || !ProviderRegistry::is_available(&provider.account()));
    assert!(!view(&mut chain).is_available);
    let nobody = account(AliceStash);
    assert_eq!(
        ask(
            &mut chain,
            registry::ProviderViewFunction::<Runtime>::new(nobody.clone())
        ),
        None
    );
    assert_eq!(
        ask(&mut chain, staking::LedgerViewFunction::<Runtime>::new(nobody)),
        None
    );
}

#[test]
fn an_open_dispute_is_told_by_its_number_and_by_its_task() {
    let world = World::new();
    let mut chain = world.chain();
    let (task, members) = world.task(&mut chain, 3);
    let (_, lie) = world.liar(2, 3);
    let claims = [world.claim.clone(), lie, world.claim.clone()];
    let results: Vec<_> = members.into_iter().zip(claims).collect();
    commit_all(&mut chain, task, &results);
    reveal_all(&mut chain, task, &results);
    let of_task = ask(&mut chain, disputes::DisputesOfViewFunction::<Runtime>::new(task));
    let [view] = &of_task[..] else {
        panic!("{of_task:?}")
    };
    assert_eq!(view.dispute.task, task);
    let by_number = ask(&mut chain, disputes::DisputeViewFunction::<Runtime>::new(view.id));
    assert_eq!(by_number.as_ref(), Some(&view.dispute));
    assert_eq!(
        ask(
            &mut chain,
            disputes::CommitteeViewFunction::<Runtime>::new(view.id)
        ),
        None
    );
    assert_eq!(
        ask(
            &mut chain,
            disputes::DisputeViewFunction::<Runtime>::new(view.id + 1)
        ),
        None
    );
}

#[test]
fn a_function_that_is_not_there_and_input_that_is_no_input_are_refused_by_name() {
    let mut chain = open();
    let id = billing::EarningsViewFunction::<Runtime>::id();
    let mut execute = |id: ViewFunctionId, input: Vec<u8>| {
        chain
            .query(|| Runtime::execute_view_function(id, input))
            .unwrap_err()
    };
    assert!(matches!(
        execute(id.clone(), vec![1, 2]),
        ViewFunctionDispatchError::Codec
    ));
    let unknown = ViewFunctionId {
        suffix: [0; 16],
        ..id
    };
    assert!(matches!(
        execute(unknown, Vec::new()),
        ViewFunctionDispatchError::NotFound(_)
    ));
}
