//! The steps between matrix products, each with its gradient. Composed of the tensor library's own operations
//! they would take more time than the products themselves.

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor, bail};
use surety_exact::{ArithmeticError, exp, largest_score, sum, sum_of_squares};

fn floats<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let values = storage.as_slice::<f32>()?;
    match layout
        .contiguous_offsets()
        .and_then(|(from, to)| values.get(from..to))
    {
        Some(values) => Ok(values),
        None => bail!("the values do not stand in one piece"),
    }
}

/// Turns scores into `e^(score - largest)` in place, and returns their sum.
fn softmax_row(scores: &mut [f32]) -> std::result::Result<f32, ArithmeticError> {
    let largest = largest_score(scores)?;
    for score in scores.iter_mut() {
        *score = exp(*score - largest);
    }
    Ok(sum(scores))
}

fn values(tensor: &Tensor) -> Result<Vec<f32>> {
    tensor.flatten_all()?.to_vec1()
}

fn like(values: Vec<f32>, tensor: &Tensor) -> Result<Tensor> {
    Tensor::from_vec(values, tensor.shape(), tensor.device())
}

fn last(shape: &Shape) -> Result<usize> {
    match shape.dims().last() {
        Some(width) if *width > 0 => Ok(*width),
        _ => bail!("no values in a row"),
    }
}

fn not_finite(fault: ArithmeticError) -> candle_core::Error {
    candle_core::Error::Msg(format!(
        "training has diverged ({fault:?}); try a smaller learning rate"
    ))
}

/// Root mean square norm of each row, times a weight.
pub(super) struct RmsNorm {
    pub(super) epsilon: f32,
}

impl RmsNorm {
    fn inverse(&self, row: &[f32]) -> f32 {
        (sum_of_squares(row) / row.len() as f32 + self.epsilon)
            .sqrt()
            .recip()
    }
}

impl CustomOp2 for RmsNorm {
    fn name(&self) -> &'static str {
        "rms-norm"
    }

    fn cpu_fwd(
        &self,
        rows: &CpuStorage,
        rows_layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (rows, weight) = (floats(rows, rows_layout)?, floats(weight, weight_layout)?);
        let mut out = Vec::with_capacity(rows.len());
        for row in rows.chunks_exact(last(rows_layout.shape())?) {
            let inverse = self.inverse(row);
            out.extend(row.iter().zip(weight).map(|(x, w)| x * inverse * w));
        }
        Ok((CpuStorage::F32(out), rows_layout.shape().clone()))
    }

    fn bwd(
        &self,
        rows: &Tensor,
        weight: &Tensor,
        _result: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let width = last(rows.shape())?;
        let (x, w, mut g) = (values(rows)?, values(weight)?, values(gradient)?);
        let mut weight_gradient = vec![0.0; width];
        let mut products = vec![0.0; width];
        for (row, g) in x.chunks_exact(width).zip(g.chunks_exact_mut(width)) {
            let inverse = self.inverse(row);
            for (((g, x), w), (product, into)) in g
                .iter_mut()
                .zip(row)
                .zip(&w)
                .zip(products.iter_mut().zip(&mut weight_gradient))
            {
                *into += *g * x * inverse;
                *g *= w;
                *product = *g * x;
            }
            let along = sum(&products) * inverse * inverse / width as f32;
            for (g, x) in g.iter_mut().zip(row) {
                *g = inverse * (*g - x * along);
            }
        }
        Ok((Some(like(g, rows)?), Some(like(weight_gradient, weight)?)))
    }
}

/// Rotates the two halves of each head's row by its position's angles.
#[derive(Clone)]
pub(super) struct Rotate {
    /// `(sin, cos)` for each position and pair, position by position.
    pub(super) angles: std::sync::Arc<[(f32, f32)]>,
    /// Width of a head.
    pub(super) head_dim: usize,
    /// Back instead of forth.
    pub(super) back: bool,
}

impl CustomOp1 for Rotate {
    fn name(&self) -> &'static str {
        "rotate"
    }

    /// Rows `[sequence, position, heads * head_dim]`.
    fn cpu_fwd(&self, rows: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (_, positions, width) = layout.shape().dims3()?;
        let half = self.head_dim / 2;
        if half == 0 || width == 0 || width % self.head_dim != 0 || positions * half > self.angles.len() {
            bail!(
                "rows of {width} by {positions} cannot be rotated in heads of {}",
                self.head_dim
            );
        }
        let sign = if self.back { -1.0 } else { 1.0 };
        let mut out = floats(rows, layout)?.to_vec();
        for sequence in out.chunks_exact_mut(positions * width) {
            for (row, angles) in sequence
                .chunks_exact_mut(width)
                .zip(self.angles.chunks_exact(half))
            {
                for head in row.chunks_exact_mut(self.head_dim) {
                    let (low, high) = head.split_at_mut(half);
                    for ((a, b), (sin, cos)) in low.iter_mut().zip(high).zip(angles) {
                        let sin = sin * sign;
                        (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
                    }
                }
            }
        }
        Ok((CpuStorage::F32(out), layout.shape().clone()))
    }

    fn bwd(&self, _rows: &Tensor, _result: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let back = Self {
            back: !self.back,
            ..self.clone()
        };
        Ok(Some(gradient.contiguous()?.apply_op1_no_bwd(&back)?))
    }
}

/// Softmax of scores `[.., rows, positions]`, where row `i` sees the positions up to `i % positions`: several
/// heads that share their keys stand below each other.
pub(super) struct CausalSoftmax {
    pub(super) scale: f32,
}

impl CustomOp1 for CausalSoftmax {
    fn name(&self) -> &'static str {
        "causal-softmax"
    }

    fn cpu_fwd(&self, scores: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let positions = last(layout.shape())?;
        let mut out = floats(scores, layout)?.to_vec();
        for (row, seen) in out.chunks_exact_mut(positions).zip((1..=positions).cycle()) {
            let (seen, unseen) = row.split_at_mut(seen);
            seen.iter_mut().for_each(|score| *score *= self.scale);
            let inverse = softmax_row(seen).map_err(not_finite)?.recip();
            seen.iter_mut().for_each(|weight| *weight *= inverse);
            unseen.fill(0.0);
        }
        Ok((CpuStorage::F32(out), layout.shape().clone()))
    }

    fn bwd(&self, scores: &Tensor, weights: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let positions = last(scores.shape())?;
        let (weights, mut g) = (values(weights)?, values(gradient)?);
        for (weights, g) in weights.chunks_exact(positions).zip(g.chunks_exact_mut(positions)) {
            for (g, weight) in g.iter_mut().zip(weights) {
                *g *= weight;
            }
            let along = sum(g);
            for (g, weight) in g.iter_mut().zip(weights) {
                *g = (*g - along * weight) * self.scale;
            }
        }
        Ok(Some(like(g, scores)?))
    }
}

/// `silu(gate) * up`.
pub(super) struct SwiGlu;

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

impl CustomOp2 for SwiGlu {
    fn name(&self) -> &'static str {
        "swiglu"
    }

    fn cpu_fwd(
        &self,
        gate: &CpuStorage,
        gate_layout: &Layout,
        up: &CpuStorage,
        up_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let gate = floats(gate, gate_layout)?.iter();
        let out = gate
            .zip(floats(up, up_layout)?)
            .map(|(gate, up)| gate * sigmoid(*gate) * up)
            .collect();
        Ok((CpuStorage::F32(out), gate_layout.shape().clone()))
    }

    fn bwd(
        &self,
        gate: &Tensor,
        up: &Tensor,
        _result: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (mut gates, mut ups, g) = (values(gate)?, values(up)?, values(gradient)?);
        for ((gate, up), g) in gates.iter_mut().zip(&mut ups).zip(&g) {
            let s = sigmoid(*gate);
            (*gate, *up) = (g * *up * s * (1.0 + *gate * (1.0 - s)), g * *gate * s);
        }
        Ok((Some(like(gates, gate)?), Some(like(ups, up)?)))
    }
}

/// Mean of `-ln p(target)` over rows of logits, in nats.
pub(super) struct CrossEntropy {
    /// The token that should have been foretold, row by row.
    pub(super) targets: Vec<u32>,
}

impl CustomOp1 for CrossEntropy {
    fn name(&self) -> &'static str {
        "cross-entropy"
    }

    fn cpu_fwd(&self, logits: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let width = last(layout.shape())?;
        let rows = floats(logits, layout)?.chunks_exact(width);
        if rows.len() != self.targets.len() {
            bail!("{} rows for {} targets", rows.len(), self.targets.len());
        }
        let mut total = 0.0;
        for (logits, target) in rows.zip(&self.targets) {
            let mut row = logits.to_vec();
            let sum = softmax_row(&mut row).map_err(not_finite)?;
            // The floor keeps one token of no probability from making the mean infinite.
            let hit = row.get(*target as usize).copied().unwrap_or_default() / sum;
            total -= f64::from(hit.max(f32::MIN_POSITIVE).ln());
        }
        let mean = total / self.targets.len().max(1) as f64;
        Ok((CpuStorage::F32(vec![mean as f32]), Shape::from(())))
    }

    fn bwd(&self, logits: &Tensor, _result: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let width = last(logits.shape())?;
        let by = gradient.to_scalar::<f32>()? / self.targets.len().max(1) as f32;
        let mut rows = values(logits)?;
        for (row, target) in rows.chunks_exact_mut(width).zip(&self.targets) {
            let factor = by / softmax_row(row).map_err(not_finite)?;
            row.iter_mut().for_each(|weight| *weight *= factor);
            if let Some(hit) = row.get_mut(*target as usize) {
                *hit -= by;
            }
        }
        Ok(Some(like(rows, logits)?))
    }
}

#[cfg(test)]
mod tests;
