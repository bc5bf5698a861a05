//! Upgrades of the chain's runtime while this program goes on.

use std::fmt::Debug;

use codec::{Compact, Decode, Encode};
use scale_info::{TypeInfo, meta_type};
use sp_core::{H256, crypto::AccountId32};
use subxt::ext::frame_metadata::v14::StorageEntryType;
use surety_types::task::{Bid, TaskSpec};

use super::{
    calls::auction_calls,
    fixture::{self, AuctionCall, AuctionEvent, runtime, runtime_with},
    node::{Node, Older},
    pool::Answer,
};
use crate::{RpcChain, RpcConfig, entries::Entry, runtime::Runtime};
use surety_chain_client::{Call, Chain, ChainError, ErrorClass, PartlyRead, Signer, Until, When, sample};

/// The bid of a later runtime: fields in another order, one more at the end.
#[derive(TypeInfo, Encode)]
struct LaterBid {
    deposit: u128,
    seal: H256,
    opened: Option<Bid<u128>>,
    score: u32,
}

auction_calls! {
    /// The calls of a later runtime: another order, and a new argument that may be left out.
    enum LaterCall {
        #[codec(index = 9)]
        post { cap: u128, spec: TaskSpec, note: Option<Vec<u8>> },
    }
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

/// Whether records are read as this program would write them.
fn reads<T>(runtime: &Runtime, entry: Entry, records: impl IntoIterator<Item = T>)
where
    T: Debug + Decode + Encode + PartialEq + TypeInfo + 'static,
{
    for record in records {
        let read = runtime.reader(entry).unwrap().read(&record.encode());
        assert_eq!(read, Ok(record), "{entry:?}");
    }
}

#[test]
fn every_record_is_read_as_the_runtime_of_today_writes_it() {
    use sample::{committee, records, trust_records};
    let runtime = runtime();
    reads(&runtime, Entry::Tasks, records::tasks());
    reads(&runtime, Entry::Rounds, records::rounds());
    reads(&runtime, Entry::Disputes, trust_records::disputes());
    reads(&runtime, Entry::Committees, committee::committees());
    reads(&runtime, Entry::Providers, [records::provider()]);
    reads(&runtime, Entry::Ledgers, [records::stake()]);
    reads(&runtime, Entry::Models, [records::model()]);
    reads(&runtime, Entry::Demands, [vec![trust_records::demand()]]);
    reads(&runtime, Entry::Slashes, [trust_records::slash()]);
    reads(&runtime, Entry::Records, [trust_records::record()]);
    let view = records::task_view();
    let answer = runtime.answer("TaskApi", "task").unwrap().read(&view.encode());
    assert_eq!(answer, Ok(view));
    let alone = |call: &Call| !matches!(call, Call::Batch(_));
    for call in sample::calls().into_iter().filter(alone) {
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

/// Metadata in which `TaskAuction` has another index: what its events say in one runtime is nothing in the
/// other.
fn moved() -> Vec<subxt::ext::frame_metadata::v15::PalletMetadata> {
    let mut pallets = later();
    let auction = pallets.iter_mut().find(|pallet| pallet.name == "TaskAuction");
    auction.unwrap().index = 60;
    pallets
}

/// A node whose chain was upgraded in block 100, with a bid as the runtime before wrote it.
async fn upgraded_at_100() -> Node {
    let node = Node::start(1).await;
    let bid = sample::records::bid_record();
    let keys: [&[u8]; 2] = [&7u64.encode(), &[1; 32]];
    node.put(&runtime(), Entry::Bids, &keys, bid.encode());
    let task = sample::records::tasks().remove(0);
    node.put(&runtime(), Entry::Tasks, &[&7u64.encode()], task.encode());
    node.put(&runtime(), Entry::OpenTasks, &[&7u64.encode()], Vec::new());
    let posted = AuctionEvent::TaskPosted {
        task: 7,
        client: AccountId32::new([1; 32]),
        cap: 12,
    };
    // One event, of the first extrinsic, of pallet 53, without topics.
    let events = (Compact(1u32), 0u8, 0u32, 53u8, posted, Compact(0u32)).encode();
    node.put(&runtime(), Entry::Events, &[], events);
    node.change(|state| {
        state.older = Some(Older {
            last: 100,
            spec_version: state.spec_version,
            runtime: state.runtime.clone(),
        });
        state.spec_version += 1;
        state.runtime = fixture::metadata(moved());
    });
    node
}

#[tokio::test]
async fn the_block_of_an_upgrade_is_read_as_the_runtime_before_it_wrote_it() {
    let node = upgraded_at_100().await;
    let chain = RpcChain::connect(RpcConfig::new(&node.url)).await.unwrap();
    let at = chain.block(When::Best).await.unwrap();
    assert_eq!(at.number, 100);
    let events = chain.events(at.hash).await.unwrap();
    assert!(events[0].is("TaskAuction", "TaskPosted"), "{events:?}");
    let stash = AccountId32::new([1; 32]);
    let open = chain.open_tasks(When::At(at.hash), Some(&stash)).await.unwrap();
    let bids: Vec<_> = open.tasks.iter().map(|open| open.bid.clone()).collect();
    assert_eq!(bids, [Some(sample::records::bid_record())]);
}

#[tokio::test]
async fn a_call_at_the_block_of_an_upgrade_is_signed_as_the_new_runtime_takes_it() {
    let node = upgraded_at_100().await;
    let chain = RpcChain::connect(RpcConfig::new(&node.url)).await.unwrap();
    node.change(|state| {
        // The first extrinsic's event is none of this call's.
        state.storage.clear();
    });
    let call = Call::AdvanceTask { task: 7 };
    let signer = Signer::from_uri("//Alice").unwrap();
    let included = chain.submit(&signer, call, Until::Included.into()).await;
    assert_eq!(included.unwrap().block.number, 101);
    let sent = node.state().handed_over[0].clone();
    let arguments = [vec![60, 4], 7u64.encode()].concat();
    assert!(sent.ends_with(&arguments), "{sent:?}");
}

#[tokio::test]
async fn functions_are_called_in_the_state_before_an_upgrade_whose_runtime_they_are_of() {
    let node = upgraded_at_100().await;
    let chain = RpcChain::connect(RpcConfig::new(&node.url)).await.unwrap();
    let function = "TaskApi_price_limit";
    node.change(|state| {
        state.functions.insert(function, Some(40u128).encode());
    });
    let called = || {
        let state = node.state();
        state
            .called
            .last()
            .map(|(function, block, _)| (*function, *block))
    };
    let at = chain.block(When::Best).await.unwrap();
    assert_eq!(chain.price_limit(When::At(at.hash), 100, 2).await, Ok(Some(40)));
    // What every block of this node has for a parent.
    assert_eq!(called(), Some((function, 0)));
    node.change(|state| state.best = 101);
    assert_eq!(chain.price_limit(When::Best, 100, 2).await, Ok(Some(40)));
    assert_eq!(called(), Some((function, 101)));
}

#[tokio::test]
async fn a_function_that_the_runtime_has_lost_is_reported_as_what_the_upgrade_broke() {
    let node = Node::start(1).await;
    let chain = RpcChain::connect(RpcConfig::new(&node.url)).await.unwrap();
    let function = "TaskApi_price_limit";
    node.change(|state| {
        state.functions.insert(function, Some(40u128).encode());
    });
    assert_eq!(chain.price_limit(When::Best, 100, 2).await, Ok(Some(40)));
    node.change(|state| {
        (state.best, state.finalized) = (110, 108);
        state.spec_version += 1;
        state.runtime = fixture::metadata_without_apis();
        state.functions.clear();
    });
    let broken = chain.price_limit(When::Best, 100, 2).await.unwrap_err();
    assert!(matches!(broken, ChainError::Outgrown { .. }), "{broken}");
}
