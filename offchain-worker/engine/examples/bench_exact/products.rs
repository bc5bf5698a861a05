//! A decoder's matrix products by themselves, by the kernel for few rows and by that for many, and how fast a
//! device's memory is.

use std::time::Instant;

use serde::Deserialize;
use serde_json::{Value, json};
use surety_cuda::{Floats, GpuBackend, Kernels, Packed, Path, Quanta, Rows, Weights};
use surety_exact::Precision;
use surety_models::weights::{Linear, Quanta as QuantaHere};

use crate::{
    Result, device,
    made_up::{self, DecoderShape},
    talk::{answer, say},
};

#[derive(Deserialize)]
#[serde(untagged)]
enum Command {
    /// Multiply rows by matrices.
    Product {
        matrices: Matrices,
        rows: usize,
        path: Taken,
        rounds: usize,
        /// Matrices in turns, of so many bytes: more than what keeps them near.
        bytes: usize,
    },
    /// Add an array of so many bytes to another. Behind the other, which has all of this, too.
    Add { bytes: usize, rounds: usize },
}

#[derive(Clone, Copy, Deserialize)]
enum Matrices {
    #[serde(rename = "query, key, value")]
    Attention,
    #[serde(rename = "gate, up")]
    Gate,
    #[serde(rename = "down")]
    Down,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Taken {
    Few,
    Many,
}

pub fn run(shape: &str, on: &str) -> Result<()> {
    let shape = serde_json::from_str(shape)?;
    match device::emulated(on) {
        Some(machine) => measure(Kernels::new(machine)?, &shape),
        None => measure_on(on, &shape),
    }
}

#[cfg(feature = "cuda")]
fn measure_on(on: &str, shape: &DecoderShape) -> Result<()> {
    use surety_engine::Choice;
    let Choice::Cuda(numbers) = on.parse()? else {
        return Err("products by themselves are for a device: cuda:N".into());
    };
    let number = numbers.first().copied().unwrap_or(0);
    measure(Kernels::new(surety_cuda::Device::open(number)?)?, shape)
}

#[cfg(not(feature = "cuda"))]
fn measure_on(_: &str, _: &DecoderShape) -> Result<()> {
    Err(surety_cuda::Error::NotBuilt.into())
}

fn measure<M: GpuBackend>(mut kernels: Kernels<M>, shape: &DecoderShape) -> Result<()> {
    say(&json!({"ready": true}))?;
    answer(|command: Command| match command {
        Command::Add { bytes, rounds } => add(&mut kernels, bytes, rounds),
        Command::Product {
            matrices,
            rows,
            path,
            rounds,
            bytes,
        } => {
            kernels.take(match path {
                Taken::Few => Path::Few,
                Taken::Many => Path::Many,
            });
            let mut all = Products::new(&mut kernels, matrices, shape, (rows, bytes))?;
            all.measure(&mut kernels, rounds)
        }
    })
}

/// Each number is read twice and written once.
fn add<M: GpuBackend>(kernels: &mut Kernels<M>, bytes: usize, rounds: usize) -> Result<Value> {
    let zeros = vec![0.0; bytes / size_of::<f32>()];
    let (mut sum, other) = (kernels.upload(&zeros)?, kernels.upload(&zeros)?);
    kernels.add(&mut sum, &other)?;
    kernels.check()?;
    let begun = Instant::now();
    for _ in 0..rounds {
        kernels.add(&mut sum, &other)?;
    }
    kernels.check()?;
    let moved = 3 * bytes * rounds;
    Ok(json!({"bytes_per_second": moved as f64 / begun.elapsed().as_secs_f64()}))
}

/// Products of the same rows by several sets of matrices.
struct Products<M: GpuBackend> {
    rows: Rows<M>,
    sets: Vec<Vec<(Packed<M>, Floats<M>)>>,
}

impl<M: GpuBackend> Products<M> {
    fn new(
        kernels: &mut Kernels<M>,
        matrices: Matrices,
        shape: &DecoderShape,
        (count, bytes): (usize, usize),
    ) -> Result<Self> {
        let (hidden, inner) = (shape.hidden, shape.inner);
        let kv = hidden / shape.heads * shape.kv_heads;
        let (inputs, outputs) = match matrices {
            Matrices::Attention => (hidden, vec![hidden, kv, kv]),
            Matrices::Gate => (hidden, vec![inner, inner]),
            Matrices::Down => (inner, vec![hidden]),
        };
        let of_a_set = inputs * outputs.iter().sum::<usize>();
        let linears: Vec<Linear> = outputs
            .iter()
            .map(|width| made_up::matrix(inputs, *width))
            .collect();
        let mut sets = Vec::new();
        for _ in 0..bytes.div_ceil(of_a_set).max(1) {
            let mut set = Vec::new();
            for linear in &linears {
                set.push((pack(kernels, linear)?, kernels.floats(count * linear.outputs)?));
            }
            sets.push(set);
        }
        let values: Vec<f32> = (0..count * inputs).map(|i| (i % 251) as f32 - 125.0).collect();
        let floats = kernels.upload(&values)?;
        let mut rows = Rows::new(Precision::Int8);
        kernels.quantize(&floats, inputs, None, &mut rows)?;
        Ok(Self { rows, sets })
    }

    fn once(&mut self, kernels: &mut Kernels<M>, round: usize) -> Result<()> {
        let at = round % self.sets.len();
        let Some(set) = self.sets.get_mut(at) else {
            return Ok(());
        };
        let mut parts: Vec<_> = set.iter_mut().map(|(weights, out)| (&*weights, out)).collect();
        Ok(kernels.products(&self.rows, &mut parts)?)
    }

    fn measure(&mut self, kernels: &mut Kernels<M>, rounds: usize) -> Result<Value> {
        self.once(kernels, 0)?;
        kernels.check()?;
        let begun = Instant::now();
        for round in 0..rounds {
            self.once(kernels, round)?;
        }
        kernels.check()?;
        Ok(json!({"seconds": begun.elapsed().as_secs_f64() / rounds.max(1) as f64}))
    }
}

fn pack<M: GpuBackend>(kernels: &mut Kernels<M>, linear: &Linear) -> Result<Packed<M>> {
    Ok(kernels.pack(&Weights {
        inputs: linear.inputs,
        outputs: linear.outputs,
        q: match &linear.q {
            QuantaHere::Int8(q) => Quanta::Int8(q),
            QuantaHere::Int12(q) => Quanta::Int12(q),
        },
        scales: &linear.scales,
        bias: None,
    })?)
}
