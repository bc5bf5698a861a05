//! Each invariant notices when it is broken.

use frame_support::assert_ok;
use sp_runtime::TryRuntimeError;
use surety_audit_economics::PlaceRank;
use surety_pallet_test_kit::MockModels;
use surety_types::{limits, traits::ModelCatalog};

use crate::{
    Agenda, AgendaSweptTo, AwaitingEntropy, BidCount, BidCounts, BidRecord, Bids, NextTaskId, OpenTasks,
    Pallet, Place, Ranking, Rankings, Substitutes, TaskStateOf, Tasks, mock::*,
};

/// Breaks something about a task that runs with providers 0 and 1 drawn or in reserve, and another in
/// bidding.
fn noticed(id: &'static str, corrupt: impl FnOnce(u64, u64)) {
    TestExt::new().providers(3).run(|| {
        let running = assign(1, &[500, 600]);
        let bidding = post(1);
        assert_ok!(place(bidding, 0, 500));
        assert_sound();
        corrupt(running, bidding);
        match Pallet::<Test>::do_try_state() {
            Err(TryRuntimeError::Other(message)) => assert!(message.starts_with(id), "{message}"),
            other => panic!("{id} went unnoticed: {other:?}"),
        }
    });
}

fn edit_state(task: u64, change: impl FnOnce(&mut TaskStateOf<Test>)) {
    Tasks::<Test>::mutate_extant(task, |task| change(&mut task.state));
}

#[test]
fn auc_1_notices_ids_from_nowhere() {
    noticed("AUC-1", |_, _| NextTaskId::<Test>::put(1));
}

#[test]
fn auc_2_notices_miscounted_bids() {
    let placed = |placed| BidCount {
        placed,
        ..Default::default()
    };
    noticed("AUC-2", |_, bidding| {
        BidCounts::<Test>::insert(bidding, placed(2))
    });
    noticed("AUC-2", |_, bidding| {
        BidCounts::<Test>::mutate(bidding, |count| count.opened = 1)
    });
    noticed("AUC-2", |_, bidding| Bids::<Test>::remove(bidding, stash(0)));
    noticed("AUC-2", |_, _| {
        let record = BidRecord {
            seal: Default::default(),
            opened: None,
            deposit: 0,
        };
        Bids::<Test>::insert(77, stash(0), record);
        BidCounts::<Test>::insert(77, placed(1));
    });
}

#[test]
fn auc_3_notices_money_out_of_place() {
    noticed("AUC-3", |_, bidding| {
        Tasks::<Test>::mutate_extant(bidding, |task| task.cap += 1)
    });
    noticed("AUC-3", |_, bidding| {
        edit_state(bidding, |state| {
            *state = TaskStateOf::<Test>::Cancelled { at: 1, fee: 0 }
        })
    });
}

#[test]
fn auc_4_notices_forgotten_tasks() {
    noticed("AUC-4", |_, bidding| {
        let entries: Vec<_> = Agenda::<Test>::iter_keys()
            .filter(|(_, task)| *task == bidding)
            .collect();
        for (block, task) in entries {
            Agenda::<Test>::remove(block, task);
        }
    });
    noticed("AUC-4", |_, _| AgendaSweptTo::<Test>::put(1_000));
    noticed("AUC-4", |_, bidding| AwaitingEntropy::<Test>::insert(bidding, 1));
}

#[test]
fn auc_5_notices_assignments_that_rest_on_nothing() {
    let edit = |running, change: fn(&mut Vec<AccountId>, &mut Balance)| {
        edit_state(running, |state| {
            let TaskStateOf::<Test>::Running { assignments, .. } = state else {
                unreachable!()
            };
            let mut providers: Vec<_> = assignments.iter().map(|member| member.provider).collect();
            let mut price = assignments[0].price;
            change(&mut providers, &mut price);
            assignments.clear();
            for provider in providers {
                assignments
                    .try_push(surety_types::task::Assignment { provider, price })
                    .unwrap();
            }
        });
    };
    // Nobody; a second one; one from the reserves; one without a bid; a price below the bid; one above the
    // cap.
    noticed("AUC-5", |running, _| {
        edit(running, |providers, _| providers.clear())
    });
    noticed("AUC-5", |running, _| {
        edit(running, |providers, _| providers.push(stash(2)))
    });
    noticed("AUC-5", |running, _| {
        edit(running, |providers, _| providers[0] = stash(1))
    });
    noticed("AUC-5", |running, _| {
        edit(running, |providers, _| providers[0] = stash(2))
    });
    noticed("AUC-5", |running, _| edit(running, |_, price| *price = 499));
    noticed("AUC-5", |running, _| edit(running, |_, price| *price = CAP + 1));
}

#[test]
fn auc_6_notices_settlements_that_do_not_add_up() {
    noticed("AUC-6", |running, _| {
        assert_ok!(decide(running, agreed(&[0], 100)));
        edit_state(running, |state| {
            let TaskStateOf::<Test>::Settled { fee, .. } = state else {
                unreachable!()
            };
            *fee += 1;
        });
    });
}

#[test]
fn auc_7_notices_substitutes_of_idle_tasks() {
    noticed("AUC-7", |_, bidding| {
        Substitutes::<Test>::insert(bidding, surety_types::task::PerBid::new())
    });
}

#[test]
fn auc_8_notices_bids_that_were_opened_early() {
    noticed("AUC-8", |_, bidding| {
        Bids::<Test>::mutate(bidding, stash(0), |record| {
            record.as_mut().unwrap().opened = Some(bid(0, 500));
        });
        BidCounts::<Test>::mutate(bidding, |count| count.opened = 1);
    });
}

#[test]
fn auc_9_notices_tasks_that_are_listed_wrongly() {
    noticed("AUC-9", |running, _| OpenTasks::<Test>::remove(running));
    noticed("AUC-9", |_, _| OpenTasks::<Test>::insert(77, ()));
    noticed("AUC-9", |_, bidding| {
        assert_ok!(TaskAuction::cancel(signed(CLIENT), bidding));
        OpenTasks::<Test>::insert(bidding, ());
    });
}

#[test]
fn auc_10_notices_models_of_no_task_and_tasks_of_no_model() {
    noticed("AUC-10", |_, _| MockModels::acquire(&MODEL));
    noticed("AUC-10", |_, _| MockModels::release(&MODEL));
}

/// A task whose bidders are ranked, and which is then broken.
fn noticed_in_a_ranking(corrupt: impl FnOnce(&mut Ranking<AccountId>)) {
    let places = u64::from(limits::BIDS_MAX);
    let ext = TestExt::new().providers(places);
    ext.provider_with(places, 1_000 * STAKE).run(|| {
        let task = post(1);
        for index in 0..places {
            assert_ok!(place(task, index, 500));
        }
        run_to(3);
        assert_ok!(place(task, places, 500));
        assert_sound();
        Rankings::<Test>::mutate_extant(task, corrupt);
        match Pallet::<Test>::do_try_state() {
            Err(TryRuntimeError::Other(message)) => assert!(message.starts_with("AUC-11"), "{message}"),
            other => panic!("it went unnoticed: {other:?}"),
        }
    });
}

#[test]
fn auc_11_notices_wrong_places() {
    noticed_in_a_ranking(|ranking| ranking.places[..].swap(0, 1));
    noticed_in_a_ranking(|ranking| {
        ranking.places.pop();
    });
    noticed_in_a_ranking(|ranking| ranking.places[63].provider = 77);
    noticed("AUC-11", |_, bidding| {
        let ranking = Ranking {
            entropy: Default::default(),
            places: Default::default(),
        };
        Rankings::<Test>::insert(bidding, ranking);
    });
    noticed("AUC-11", |_, bidding| {
        let place = Place {
            rank: PlaceRank::new(bidding, &stash(0), &Default::default(), 1),
            provider: stash(0),
        };
        let ranking = Ranking {
            entropy: Default::default(),
            places: vec![place].try_into().unwrap(),
        };
        Rankings::<Test>::insert(bidding, ranking);
    });
}
