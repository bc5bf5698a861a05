//! How fast a machine is, whatever else it does meanwhile.

use std::{sync::Arc, time::Duration};

use surety_engine::{Engine, EngineError, EnginePool, Job, PoolConfig};
use surety_types::model::Operation;
use surety_worker_core::Event;

use super::engine::{manifest, Puppet};
use crate::{Engines, Vitals};

#[tokio::test(flavor = "multi_thread")]
async fn what_a_job_stands_aside_for_does_not_make_its_kind_of_work_look_slow() {
    let puppet = Arc::<Puppet>::default();
    let pool = EnginePool::new(PoolConfig { threads: 1, queue: 4 }).unwrap();
    let engine: Arc<dyn Engine> = puppet.clone();
    let engines = Engines::new(pool, [engine], Arc::new(Vitals::new().unwrap()));
    let job = Job {
        operation: Operation::Generate,
        input: br#"{"prompt":"so it goes","max_tokens":1}"#.to_vec(),
        units_max: 10,
    };
    let generation = engines.submit(&manifest().id(), job).unwrap();
    while puppet.runs() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let slow_move = |_: &mut _| {
        std::thread::sleep(Duration::from_secs(2));
        Err::<(), _>(EngineError::NotInTrace)
    };
    engines.answer(slow_move).unwrap().await.unwrap_err();
    puppet.let_tokens(1);
    generation.await.unwrap();
    let measured = engines.take_measured();
    let [Event::Measured { millis, .. }] = measured.into_iter().collect::<Vec<_>>()[..] else {
        panic!("one measurement");
    };
    assert!(millis < 1000, "{millis}");
}
