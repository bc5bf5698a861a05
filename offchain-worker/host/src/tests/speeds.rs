//! How fast a machine is, whatever else it does meanwhile.

use std::{sync::Arc, time::Duration};

use surety_engine::{Engine, EngineError, EnginePool, Job, JobSink, PoolConfig};
use surety_types::model::Operation;
use surety_worker_core::Event;

use super::{
    engine::{Puppet, manifest},
    generation::request,
};
use crate::{Engines, Vitals};

/// What a job is measured to take that stands aside for this work, in milliseconds.
async fn measured_beneath(
    urgent: impl FnOnce(&mut JobSink) -> Result<(), EngineError> + Send + 'static,
) -> u64 {
    let puppet = Arc::<Puppet>::default();
    let pool = EnginePool::new(PoolConfig { threads: 1, queue: 4 }).unwrap();
    let engine: Arc<dyn Engine> = puppet.clone();
    let engines = Engines::new(pool, [engine], Arc::new(Vitals::new().unwrap()));
    let job = Job {
        operation: Operation::Generate,
        input: request(1),
        units_max: 10,
    };
    let generation = engines.submit(&manifest().id(), job).unwrap();
    while puppet.runs() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    engines.answer(urgent).unwrap().await.unwrap_err();
    puppet.let_tokens(1);
    generation.await.unwrap();
    let measured = engines.take_measured();
    let [Event::Measured { millis, .. }] = measured.into_iter().collect::<Vec<_>>()[..] else {
        panic!("one measurement");
    };
    millis
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_job_stands_aside_for_does_not_make_its_kind_of_work_look_slow() {
    let slow_move = |_: &mut JobSink| {
        std::thread::sleep(Duration::from_millis(500));
        Err(EngineError::NotInTrace)
    };
    let millis = measured_beneath(slow_move).await;
    assert!(millis < 400, "{millis}");
}
