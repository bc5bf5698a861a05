//! Tasks that are told from the chain's blocks.

use super::*;

#[tokio::test]
async fn a_task_is_explained_from_the_blocks_there_are() {
    let world = World::new();
    let right = output(1.0);
    world.commit(0, &right).await;
    world.settle(settled(&right, 0));
    let told = story(&world.chain, TASK, 100).await.unwrap();
    let texts: Vec<&str> = told.iter().map(|told| told.text.as_str()).collect();
    let [pruned, .., end, paid, rest] = texts.as_slice() else {
        panic!("{texts:?}");
    };
    assert!(pruned.contains("archive node"), "{pruned}");
    assert_eq!(*end, "settled in block 3");
    assert!(paid.contains("is paid 0.000000000007 SURE"), "{paid}");
    assert_eq!(
        *rest,
        "the fee is 0.000000000001 SURE; 0.000000000092 SURE go back to the client"
    );
    let blocks: Vec<u32> = told.iter().map(|told| told.block).collect();
    assert!(blocks.is_sorted(), "{blocks:?}");
    let unknown = story(&world.chain, 77, 100).await.unwrap_err();
    assert!(matches!(unknown, ClientError::UnknownTask(77)));
}

#[tokio::test]
async fn a_node_that_fails_is_not_taken_for_one_that_keeps_no_old_blocks() {
    let world = World::new();
    world.settle(settled(&output(1.0), 0));
    let broken = ChainError::Rpc {
        what: "a value".into(),
        reason: "its database is broken".into(),
    };
    // Whether there is such a task is answered.
    world.chain.fail_reads_after(1, broken, 1);
    let failed = story(&world.chain, TASK, 100).await.unwrap_err();
    assert!(failed.to_string().contains("its database is broken"), "{failed}");
}

#[tokio::test]
async fn a_task_that_ended_long_ago_is_told_from_its_end_backwards() {
    let world = World::new();
    world.settle(settled(&output(1.0), 0));
    for _ in 0..50 {
        world.chain.finalize();
    }
    let told = story(&world.chain, TASK, 10).await.unwrap();
    assert!(told.iter().all(|told| told.block <= 3), "{told:?}");
    assert!(
        told.iter().any(|told| told.text == "settled in block 3"),
        "{told:?}"
    );
    assert!(
        told.last().unwrap().text.contains("go back to the client"),
        "{told:?}"
    );
}
