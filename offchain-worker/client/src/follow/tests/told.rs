//! Tasks that are told from the chain's blocks.

use super::*;

#[tokio::test]
async fn a_task_is_explained_from_the_blocks_there_are() {
    let world = World::new();
    let right = output(1.0);
    world.commit(0, &right).await;
    world.settle(settled(&right, 0));
    let told = story(&world.chain, TASK, 100).await.unwrap();
    let last = told.last().map(|told| told.text.as_str());
    assert_eq!(last, Some("settled in block 3"));
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
