//! For some lines of a text, the other line whose embedding is nearest: shows at a glance that the vectors
//! mean something.

use serde::Serialize;
use surety_engine::Embeddings;

/// A line and its nearest other line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Neighbor {
    /// The line.
    pub line: String,
    /// The other line that is most like it.
    pub nearest: String,
    /// Cosine of the angle between both vectors: 1 is the same direction.
    pub cosine: f32,
}

/// Lines and vectors do not belong together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the text has {lines} lines, the output {vectors} vectors: they do not belong together")]
pub struct Mismatch {
    /// Lines of the text.
    pub lines: usize,
    /// Rows of the output.
    pub vectors: usize,
}

/// For `count` lines, spread evenly over all, the nearest other line.
///
/// # Errors
/// [`Mismatch`].
pub fn nearest(items: &[&str], embeddings: &Embeddings, count: usize) -> Result<Vec<Neighbor>, Mismatch> {
    if items.len() != embeddings.len() {
        return Err(Mismatch {
            lines: items.len(),
            vectors: embeddings.len(),
        });
    }
    let rows: Vec<&[f32]> = embeddings.rows().collect();
    let count = count.min(items.len());
    let step = items.len().checked_div(count).unwrap_or(1).max(1);
    Ok(items
        .iter()
        .zip(&rows)
        .enumerate()
        .step_by(step)
        .take(count)
        .filter_map(|(index, (line, row))| {
            let others = items.iter().zip(&rows).enumerate();
            let (nearest, cosine) = others
                // The same line elsewhere would win, and say nothing.
                .filter(|(other, (text, _))| *other != index && *text != line)
                .map(|(_, (text, other))| (*text, cosine(row, other)))
                .max_by(|(_, a), (_, b)| a.total_cmp(b))?;
            Some(Neighbor {
                line: line.trim().into(),
                nearest: nearest.trim().into(),
                cosine,
            })
        })
        .collect())
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f32>();
    let length = (dot(a, a) * dot(b, b)).sqrt();
    if length > 0.0 { dot(a, b) / length } else { 0.0 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_nearest_other_line_is_found() {
        let text = &["east", "north", "almost east", "east"];
        let vectors = vec![1.0, 0.0, 0.0, 2.0, 3.0, 0.1, 1.0, 0.0];
        let embeddings = Embeddings::new(2, vectors).unwrap();
        let found = nearest(text, &embeddings, 2).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].line.as_str(), found[0].nearest.as_str()),
            ("east", "almost east")
        );
        assert!(found[0].cosine > 0.99 && found[0].cosine <= 1.0);
        assert_eq!(found[1].line, "almost east");
        assert_eq!(nearest(text, &embeddings, 99).unwrap().len(), 4);
        assert!(nearest(text, &embeddings, 0).unwrap().is_empty());
    }

    #[test]
    fn text_and_vectors_must_belong_together() {
        let embeddings = Embeddings::new(1, vec![1.0]).unwrap();
        let mismatch = Mismatch { lines: 2, vectors: 1 };
        assert_eq!(nearest(&["a", "b"], &embeddings, 1), Err(mismatch));
    }
}
