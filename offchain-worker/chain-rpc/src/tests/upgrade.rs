//! Upgrades of the chain's runtime while this program goes on.

use codec::Encode;
use scale_info::{TypeInfo, meta_type};
use sp_core::{H256, crypto::AccountId32};
use subxt::ext::frame_metadata::v14::StorageEntryType;
use surety_types::task::{Bid, TaskSpec};

use super::{
    fixture::{self, AuctionCall, runtime, runtime_with},
    node::Node,
    pool::Answer,
};
use crate::{RpcChain, RpcConfig, runtime::Entry};
use surety_chain_client::{Call, Chain, ChainError, ErrorClass, PartlyRead, Signer, Until, When, sample};

/// The bid of a later runtime: fields in another order, one more at the end.
#[derive(TypeInfo, Encode)]
struct LaterBid {
    deposit: u128,
    seal: H256,
    opened: Option<Bid<u128>>,
    score: u32,
}

/// The calls of a later runtime: another order, and a new argument that may be left out.
#[derive(TypeInfo)]
#[allow(dead_code, non_camel_case_types)]
enum LaterCall {
    #[codec(index = 9)]
    post {
        cap: u128,
        spec: TaskSpec,
        note: Option<Vec<u8>>,
    },
    bid {
        task: u64,
        seal: H256,
    },
    reveal_bid {
        task: u64,
        provider: AccountId32,
        bid: Bid<u128>,
    },
    cancel {
        task: u64,
    },
    advance {
        task: u64,
    },
}

fn later() -> Vec<subxt::ext::frame_metadata::v15::PalletMetadata> {
    let mut pallets = fixture::pallets(meta_type::<LaterCall>());
    let auction = pallets
        .iter_mut()
        .find(|pallet| pallet.name == "TaskAuction")
        .unwrap();
    let entries = &mut auction.storage.as_mut().unwrap().entries;
    let bids = entries.iter_mut().find(|entry| entry.name == "Bids").unwrap();
    let StorageEntryType::Map { value, .. } = &mut bids.ty else {
        panic!("it is a map");
    };
    *value = meta_type::<LaterBid>();
    pallets
}

#[test]
fn a_runtime_with_more_and_in_another_order_fits() {
    let runtime = runtime_with(later()).unwrap();
    let bid = sample::records::bid_record();
    let written = LaterBid {
        deposit: bid.deposit,
        seal: bid.seal,
        opened: bid.opened.clone(),
        score: 9,
    };
    let read = runtime.reader(Entry::Bids).unwrap().read(&written.encode());
    assert_eq!(read, Ok(bid));

    let mut calls = sample::calls().into_iter();
    let post = calls.find(|call| matches!(call, Call::PostTask { .. })).unwrap();
    let Call::PostTask { spec, cap } = &post else {
        panic!("it is a post");
    };
    let expected = [vec![53, 9], cap.encode(), spec.encode(), vec![0]].concat();
    assert_eq!(runtime.encoded(&post), Ok(expected));
}

#[test]
fn every_record_is_read_as_the_runtime_of_today_writes_it() {
    let runtime = runtime();
    for task in sample::records::tasks() {
        assert_eq!(
            runtime.reader(Entry::Tasks).unwrap().read(&task.encode()),
            Ok(task)
        );
    }
    for round in sample::records::rounds() {
        assert_eq!(
            runtime.reader(Entry::Rounds).unwrap().read(&round.encode()),
            Ok(round)
        );
    }
    for dispute in sample::trust_records::disputes() {
        assert_eq!(
            runtime.reader(Entry::Disputes).unwrap().read(&dispute.encode()),
            Ok(dispute)
        );
    }
    for committee in sample::committee::committees() {
        assert_eq!(
            runtime
                .reader(Entry::Committees)
                .unwrap()
                .read(&committee.encode()),
            Ok(committee)
        );
    }
    let (provider, stake, model) = (
        sample::records::provider(),
        sample::records::stake(),
        sample::records::model(),
    );
    assert_eq!(
        runtime.reader(Entry::Providers).unwrap().read(&provider.encode()),
        Ok(provider)
    );
    assert_eq!(
        runtime.reader(Entry::Ledgers).unwrap().read(&stake.encode()),
        Ok(stake)
    );
    assert_eq!(
        runtime.reader(Entry::Models).unwrap().read(&model.encode()),
        Ok(model)
    );
    let (demand, slash, record) = (
        sample::trust_records::demand(),
        sample::trust_records::slash(),
        sample::trust_records::record(),
    );
    assert_eq!(
        runtime.reader(Entry::Demands).unwrap().read(&demand.encode()),
        Ok(demand)
    );
    assert_eq!(
        runtime.reader(Entry::Slashes).unwrap().read(&slash.encode()),
        Ok(slash)
    );
    assert_eq!(
        runtime.reader(Entry::Records).unwrap().read(&record.encode()),
        Ok(record)
    );
    let view = sample::records::task_view();
    assert_eq!(
        runtime.answer("TaskApi", "task").unwrap().read(&view.encode()),
        Ok(view)
    );
    for call in sample::calls() {
        let encoded = runtime.encoded(&call).unwrap();
        assert_eq!(encoded[2..], call.encode_arguments());
    }
}

#[tokio::test]
async fn a_record_that_cannot_be_read_hides_no_other_and_is_not_taken_for_over() {
    let node = Node::start(1).await;
    let (runtime, task) = (runtime(), sample::records::tasks().remove(0));
    for id in [1u64, 2] {
        node.put(&runtime, Entry::Tasks, &[&id.encode()], task.encode());
        node.put(&runtime, Entry::OpenTasks, &[&id.encode()], Vec::new());
    }
    let chain = RpcChain::connect(RpcConfig::new(&node.url)).await.unwrap();
    let ids = || async {
        let open = chain.open_tasks(When::Finalized, None).await.unwrap();
        let read = open.tasks.iter().map(|task| task.id).collect::<Vec<_>>();
        (read, open.unread)
    };
    assert_eq!(ids().await, (vec![1, 2], Vec::new()));
    // Whether it was known before or not: what is there and cannot be read is named.
    node.put(&runtime, Entry::Tasks, &[&1u64.encode()], vec![0xff; 7]);
    node.put(&runtime, Entry::Tasks, &[&3u64.encode()], vec![0xff; 7]);
    node.put(&runtime, Entry::OpenTasks, &[&3u64.encode()], Vec::new());
    let garbled = |id| PartlyRead {
        id,
        task: None,
        round: Some(None),
        bid: Some(None),
    };
    assert_eq!(ids().await, (vec![2], vec![garbled(1), garbled(3)]));
}

#[tokio::test]
async fn a_call_is_signed_for_the_runtime_of_the_moment() {
    let node = Node::start(1).await;
    let chain = RpcChain::connect(RpcConfig::new(&node.url)).await.unwrap();
    let signer = Signer::from_uri("//Alice").unwrap();
    // The upgrade comes between signing and the pool: the first signature is bad.
    node.script([Answer::Refuse(1010, "Transaction has a bad signature")]);
    node.change(|state| {
        state.best += 1;
        state.spec_version += 1;
        state.runtime = fixture::metadata(later());
    });
    let call = Call::Heartbeat;
    chain.submit(&signer, call, Until::Included.into()).await.unwrap();
    assert_eq!(node.state().handed_over.len(), 2);
    let mut calls = sample::calls().into_iter();
    let post = calls.find(|call| matches!(call, Call::PostTask { .. })).unwrap();
    chain.submit(&signer, post, Until::Included.into()).await.unwrap();
    let sent = node.state().handed_over.last().cloned().unwrap();
    // The later runtime's index and its new argument.
    assert!(sent.windows(2).any(|bytes| bytes == [53, 9]) && sent.last() == Some(&0));
}

#[tokio::test]
async fn an_upgrade_that_does_not_fit_is_reported_for_what_it_breaks_and_for_nothing_else() {
    let node = Node::start(1).await;
    let chain = RpcChain::connect(RpcConfig::new(&node.url)).await.unwrap();
    let without_trust: Vec<_> = fixture::pallets(meta_type::<AuctionCall>())
        .into_iter()
        .filter(|pallet| pallet.name != "TrustLock")
        .collect();
    node.change(|state| {
        (state.best, state.finalized) = (110, 108);
        state.spec_version += 1;
        state.runtime = fixture::metadata(without_trust.clone());
    });
    let broken = chain.slashes(When::Best).await.unwrap_err();
    assert!(matches!(broken, ChainError::Outgrown { .. }), "{broken}");
    assert_eq!(broken.class(), ErrorClass::Refused);
    assert!(broken.is_retryable());
    assert_eq!(chain.models(When::Best).await, Ok(Vec::new()));
    // The next upgrade mends it.
    node.change(|state| {
        (state.best, state.finalized) = (120, 118);
        state.spec_version += 1;
        state.runtime = fixture::metadata(later());
    });
    assert_eq!(chain.slashes(When::Best).await, Ok(Vec::new()));
    let refused = RpcChain::connect(RpcConfig::new(&node.url)).await;
    assert!(refused.is_ok());
    node.change(|state| {
        state.best = 121;
        state.spec_version += 1;
        state.runtime = fixture::metadata(without_trust);
    });
    let refused = RpcChain::connect(RpcConfig::new(&node.url)).await.err();
    assert!(
        matches!(refused, Some(ChainError::Incompatible { .. })),
        "{refused:?}"
    );
}
