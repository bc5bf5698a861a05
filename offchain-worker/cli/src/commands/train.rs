//! `surety model train-demo`: a small language model out of a text.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Instant,
};

use indicatif::ProgressBar;
use serde::Serialize;
use surety_demo_model::{TrainEvent, TrainOptions, Trained, train};

use super::Context;
use crate::{
    args::TrainDemoArgs,
    error::{CliError, Result},
    output::Output,
};

/// A model that has just been trained.
#[derive(Serialize)]
struct TrainedView {
    path: String,
    parameters: usize,
    /// Trained on, repetitions counted.
    tokens: usize,
    seconds: f64,
    /// Of the last steps, in nats a token.
    loss: f64,
    /// On text that was kept back.
    perplexity: f64,
    bits_per_byte: f64,
    /// How it goes on from some beginnings.
    samples: Vec<String>,
}

impl TrainedView {
    fn new(trained: Trained, seconds: f64) -> Self {
        Self {
            path: trained.path.display().to_string(),
            parameters: trained.parameters,
            tokens: trained.tokens,
            seconds,
            loss: trained.loss,
            perplexity: trained.perplexity(),
            bits_per_byte: trained.held_out_bits_per_byte,
            samples: trained.samples,
        }
    }

    fn text(&self) -> String {
        let mut text = format!(
            "trained {:.1} million parameters on {} tokens in {:.0} s; on text it has not seen: perplexity {:.1}, \
             {:.2} bits a byte\n",
            self.parameters as f64 / 1e6,
            self.tokens,
            self.seconds,
            self.perplexity,
            self.bits_per_byte
        );
        for sample in &self.samples {
            text.push_str(&format!("\n  {}", sample.replace('\n', " ")));
        }
        text.push_str(&format!("\n\nit is in {}", self.path));
        text
    }
}

fn options(args: &TrainDemoArgs) -> TrainOptions {
    let preset = if args.quick {
        TrainOptions::quick()
    } else {
        TrainOptions::demo()
    };
    TrainOptions {
        steps: args.steps.unwrap_or(preset.steps),
        seed: args.seed,
        threads: args
            .threads
            .unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)),
        ..preset
    }
}

pub(super) async fn run(context: &Context, args: TrainDemoArgs) -> Result<()> {
    let text = tokio::fs::read_to_string(&args.text)
        .await
        .map_err(CliError::file(&args.text))?;
    let options = options(&args);
    let out = args
        .out
        .unwrap_or_else(|| context.config.home.join("demo-source"));
    let stop = Arc::<AtomicBool>::default();
    let mut bar = Bar::new(context.out, stop.clone());
    let started = Instant::now();
    let mut training =
        tokio::task::spawn_blocking(move || train(&text, &options, &out, &mut |event| bar.show(event)));
    let trained = tokio::select! {
        trained = &mut training => trained,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.map_err(CliError::file("signals"))?;
            // It ends after its step, and tells so.
            stop.store(true, Ordering::Relaxed);
            training.await
        }
    };
    let trained = trained.map_err(|e| CliError::Internal(e.to_string()))??;
    let view = TrainedView::new(trained, started.elapsed().as_secs_f64());
    context.out.result(&view, || view.text())
}

/// Shows a training: a bar for its steps.
struct Bar {
    out: Output,
    stop: Arc<AtomicBool>,
    steps: Option<ProgressBar>,
    /// Of late: one step's loss jumps about.
    loss: Option<f64>,
}

impl Bar {
    fn new(out: Output, stop: Arc<AtomicBool>) -> Self {
        Self {
            out,
            stop,
            steps: None,
            loss: None,
        }
    }

    fn show(&mut self, event: TrainEvent) -> ControlFlow<()> {
        match event {
            TrainEvent::Started {
                parameters,
                tokens,
                held_out,
            } => self.out.step(&format!(
                "training {:.1} million parameters on {tokens} tokens, measuring with {held_out} others",
                parameters as f64 / 1e6
            )),
            TrainEvent::Step { done, total, loss } => self.step(done as u64, total as u64, loss),
            _ => {}
        }
        if self.stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn step(&mut self, done: u64, total: u64, loss: f64) {
        const TEMPLATE: &str = "{msg} {wide_bar} {pos}/{len}, {eta} left";
        let smooth = self.loss.map_or(loss, |before| 0.9 * before + 0.1 * loss);
        self.loss = Some(smooth);
        let bar = self
            .steps
            .get_or_insert_with(|| self.out.bar(total, "training", TEMPLATE));
        bar.set_message(format!("loss {smooth:.2}"));
        bar.set_position(done);
        if done == total {
            bar.finish();
        }
    }
}
