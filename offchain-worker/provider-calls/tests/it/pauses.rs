//! While something else has the machine: nobody waits for the end of that who could ask another provider.

use surety_channel_calls::Refusal;
use surety_types::model::Operation;

use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vectors_that_would_wait_are_refused_as_busy_at_once_and_tokens_that_would_not_are_made() {
    let mut world = World::new(&[]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    *world.aside.lock().unwrap() = vec![Operation::Embed];
    let refused = client.ask(world.items(3)).await;
    assert_eq!(refused.refused, Some(Refusal::Busy));
    let text = client.finish(client.ask(world.text(1, 5, 20, 8)).await).await;
    assert!(text.receipt.is_some());
    world.aside.lock().unwrap().clear();
    let vectors = client.finish(client.ask(world.items(3)).await).await;
    assert!(vectors.receipt.is_some());
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_taken_before_is_answered_to_its_end_while_everything_new_is_refused() {
    let mut world = World::new(&[]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    let open = client.ask(world.text(1, 5, 100, 8)).await;
    assert_eq!(open.refused, None);
    *world.aside.lock().unwrap() = Operation::ALL.to_vec();
    for wanted in [world.text(2, 5, 20, 8), world.items(3)] {
        assert_eq!(client.ask(wanted).await.refused, Some(Refusal::Busy));
    }
    let whole = client.finish(open).await;
    assert!(whole.receipt.is_some());
    process.stop().await;
}
