//! Tasks without a result, and nodes that do not answer.

use super::*;

#[tokio::test]
async fn a_failed_task_is_reported_and_has_no_result() {
    let world = World::new();
    world.settle(TaskState::Failed {
        at: 3,
        reason: FailureReason::NotEnoughResults,
    });
    let mut run = world.run();
    let report = run.until_over().await.unwrap();
    assert_eq!(
        (report.state.as_str(), report.refund),
        ("Failed", Some(Plancks(100)))
    );
    assert!(run.failure.take().unwrap().contains("too few"));
}

#[tokio::test]
async fn an_output_that_nobody_has_is_an_error_that_names_everybody() {
    let world = World::new();
    world.settle(settled(&output(1.0), 0));
    let mut run = world.run();
    run.patience = Duration::from_secs(1);
    let error = run.until_over().await.unwrap_err();
    assert!(matches!(error, ClientError::Undelivered { task: TASK, .. }));
    let text = error.to_string();
    assert!(text.contains("does not have it"), "{text}");
}

#[tokio::test]
async fn an_unknown_task_is_said_to_be_unknown() {
    let world = World::new();
    let mut run = world.run();
    run.follow.task = 77;
    let error = run.until_over().await.unwrap_err();
    assert!(matches!(error, ClientError::UnknownTask(77)));
}

#[tokio::test]
async fn a_node_that_is_away_for_a_moment_is_waited_for() {
    let world = World::new();
    world.chain.set_unreachable(true);
    let script = async {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        world.chain.set_unreachable(false);
        world.settle(TaskState::Cancelled { at: 3, fee: 0 });
    };
    let mut run = world.run();
    let report = with_script(&mut run, script).await.unwrap();
    assert_eq!(report.state, "Cancelled");
}

#[tokio::test]
async fn an_output_is_not_asked_for_before_its_round_is_audited_and_again_where_that_was_too_early() {
    let world = World::new();
    let right = output(1.0);
    world.commit_to(0, &right, Readers::NOBODY).await;
    let refused = || world.providers[0].counters().requests_refused_reader;
    let mut run = world.run();
    for _ in 0..3 {
        run.look().await.unwrap();
        assert!(run.fetching.is_none() && refused() == 0);
    }
    world.chain.open_audits(TASK, 99);
    let script = async {
        // To the provider that is not final yet.
        while refused() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(!world.path().exists());
        world.commit_to(0, &right, Readers::Everyone).await;
        while !world.path().exists() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        world.settle(settled(&right, 0));
    };
    with_script(&mut run, script).await.unwrap();
    assert_eq!(std::fs::read(world.path()).unwrap(), right);
}
