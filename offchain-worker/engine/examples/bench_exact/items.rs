//! An encoder whose weights are made up, and items of all lengths: whole jobs, and passes with and without
//! the trace.

use std::{ops::ControlFlow, time::Instant};

use rayon::prelude::*;
use serde::Deserialize;
use serde_json::json;
use surety_engine::{
    Engine, EngineError,
    exact::{ExactBert, Scratch},
};
use surety_exact::Precision;
use surety_models::Form;
use surety_types::model::Pooling;

use crate::{
    Result,
    clock::Blind,
    device,
    made_up::{self, EncoderShape},
    talk::{answer, measured, say, threads},
};

#[derive(Deserialize)]
struct Command {
    /// Items.
    items: usize,
    /// Tokens of the longest.
    longest: usize,
    look: Look,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Look {
    /// A whole job, to its claim.
    Job,
    /// Passes, and the leaves of the trace.
    Traced,
    /// Passes that nobody looks at.
    Blind,
}

pub fn run(shape: &str, precision: &str, count: usize, on: &str) -> Result<()> {
    let precision = match precision {
        "int8" => Precision::Int8,
        "int12" => Precision::Int12,
        other => return Err(format!("{other} is no precision").into()),
    };
    let begun = Instant::now();
    let pool = threads(count)?;
    let weights = made_up::encoder(&serde_json::from_str::<EncoderShape>(shape)?, precision);
    let bounds = made_up::bounds(weights.word_embeddings.rows, weights.position_embeddings.rows);
    let architecture = weights.architecture(Pooling::Mean)?;
    let manifest = made_up::manifest(&weights)?;
    let devices = device::open(on)?;
    let engine = pool.install(|| ExactBert::new(manifest, weights)?.on(&devices))?;
    say(&json!({
        "ready": true,
        "load_seconds": begun.elapsed().as_secs_f64(),
        "width": architecture.width,
        "layers": architecture.layers,
    }))?;
    answer(|command: Command| {
        let items = made_up::items(command.items, command.longest, &bounds);
        let job = made_up::embedding(&items, &bounds)?;
        let traced = match command.look {
            Look::Job => {
                return pool.install(|| {
                    measured(|| {
                        engine.run(&job, &mut |_| ControlFlow::Continue(()))?;
                        Ok(items.len())
                    })
                });
            }
            Look::Traced => true,
            Look::Blind => false,
        };
        let groups = groups(&items, engine.pass_rows());
        pool.install(|| {
            measured(|| {
                let done: std::result::Result<Vec<usize>, EngineError> = groups
                    .par_iter()
                    .map_init(Scratch::default, |scratch, group| {
                        if !traced {
                            return Ok(engine.pass(group, scratch, &mut Blind)?.len());
                        }
                        let mut trace = engine.recorder();
                        engine.pass(group, scratch, &mut trace)?;
                        let rows: Vec<usize> = group.iter().map(|ids| ids.len()).collect();
                        Ok(trace.leaves(&rows).len())
                    })
                    .collect();
                done?;
                Ok(items.len())
            })
        })
    })
}

/// Items that go through a pass together.
fn groups(items: &[Vec<u32>], rows_max: usize) -> Vec<Vec<&[u32]>> {
    let (mut groups, mut rows) = (Vec::<Vec<&[u32]>>::new(), rows_max);
    for item in items {
        rows += item.len();
        match groups.last_mut() {
            Some(group) if rows <= rows_max => group.push(item),
            _ => {
                groups.push(vec![item]);
                rows = item.len();
            }
        }
    }
    groups
}
