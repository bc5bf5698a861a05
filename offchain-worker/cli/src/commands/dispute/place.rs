//! Where in a computation a number is, in words.

use serde::Serialize;
use surety_chain_client::{Chain, ChainError, When};
use surety_dispute_game::bisection::{Cell, CellValue, Game, Level, Shape};
use surety_engine::exact::kernels::Precision;
use surety_model_trace::{Layout, Op, Part, Step, TaskFacts};
use surety_types::{
    TaskId,
    model::ModelManifest,
    task::{ResultClaim, TaskSpec},
};

/// The layout of a claim about a task, while the chain knows the task and its model.
pub(super) async fn layout(
    chain: &dyn Chain,
    task: TaskId,
    claim: &ResultClaim,
) -> Result<Option<Layout>, ChainError> {
    let Some(info) = chain.task(When::Finalized, task).await? else {
        return Ok(None);
    };
    let model = chain.model(When::Finalized, &info.task.spec.model).await?;
    Ok(model.and_then(|model| layout_of(&model.manifest, &info.task.spec, claim)))
}

fn layout_of(manifest: &ModelManifest, spec: &TaskSpec, claim: &ResultClaim) -> Option<Layout> {
    let exact = manifest.exact.as_ref()?;
    let facts = TaskFacts {
        family: manifest.family,
        operation: spec.operation,
        input: spec.input,
        input_bytes: spec.input_bytes,
        units_max: spec.units_max,
        stop: manifest.text.stop.clone(),
        units: claim.units,
        output: claim.output,
    };
    Layout::new(&exact.architecture, facts).ok()
}

/// A cell in words and numbers.
#[derive(Debug, PartialEq, Serialize)]
pub struct NamedCell {
    pub(super) leaf: u32,
    pub(super) step: u32,
    pub(super) row: u32,
    pub(super) cell: u32,
    /// What the defender says it is: its bytes in hexadecimal digits.
    pub(super) value: String,
    /// What it is, in words.
    pub(super) name: String,
}

impl NamedCell {
    pub(super) fn new(layout: Option<&Layout>, cell: &Cell) -> Self {
        let bytes = match &cell.value {
            CellValue::Word(bytes) => bytes.to_vec(),
            CellValue::Byte(byte) => vec![*byte],
        };
        Self {
            leaf: cell.leaf,
            step: cell.step,
            row: cell.row,
            cell: cell.cell,
            value: format!("0x{}", hex::encode(bytes)),
            name: cell_text(layout, cell),
        }
    }
}

/// What a cell is, such as "number 7 of row 0 of the activation function of layer 3, item 0".
pub fn cell_text(layout: Option<&Layout>, cell: &Cell) -> String {
    let what = step_text(layout, cell.leaf, cell.length, cell.step);
    let number = number_text(layout, cell);
    format!("{number} of row {} of {what}", cell.row)
}

/// Which of a row's numbers, or bytes of one.
fn number_text(layout: Option<&Layout>, cell: &Cell) -> String {
    let plan = layout.and_then(|layout| layout.plan(cell.leaf, cell.length));
    let quantized = plan.and_then(|plan| Some((plan.rows_of(cell.step)?.quantized?, plan.precision())));
    match quantized {
        Some((bytes, _)) if cell.cell >= bytes => format!("scale {}", cell.cell - bytes),
        Some((_, Precision::Int12)) => {
            let byte = if cell.cell.is_multiple_of(2) {
                "low"
            } else {
                "high"
            };
            format!("the {byte} byte of number {}", cell.cell / 2)
        }
        _ => format!("number {}", cell.cell),
    }
}

fn step_text(layout: Option<&Layout>, leaf: u32, length: u32, step: u32) -> String {
    let part = layout.and_then(|layout| layout.part(leaf));
    let at = match part {
        None => return format!("step {step} of leaf {leaf}"),
        Some(Part::Input) => return "the input".into(),
        Some(Part::Output) => return "the output".into(),
        Some(Part::SampledTokens { chunk }) => format!("chunk {chunk} of the choice of tokens"),
        Some(Part::Rows {
            sequence, chunk: 0, ..
        }) => format!("item {sequence}"),
        Some(Part::Rows { sequence, chunk, .. }) => format!("item {sequence}, chunk {chunk}"),
    };
    let found = layout
        .and_then(|layout| layout.plan(leaf, length))
        .and_then(|plan| plan.step(step));
    match found {
        Some(Step { layer, op }) => format!("{} of layer {layer}, {at}", op_text(op)),
        None => format!("step {step}, {at}"),
    }
}

/// Leaves in words.
fn leaf_text(layout: Option<&Layout>, leaf: u32) -> String {
    match layout.and_then(|layout| layout.part(leaf)) {
        None => format!("leaf {leaf}"),
        Some(Part::Input) => "the input".into(),
        Some(Part::Output) => "the output".into(),
        Some(Part::SampledTokens { chunk }) => format!("the tokens chosen in chunk {chunk}"),
        Some(Part::Rows {
            sequence,
            chunk,
            stride,
        }) => {
            let layers = layout
                .map(|layout| layout.cut().layers_of(stride))
                .unwrap_or_default();
            let last = layers.end.saturating_sub(1);
            format!(
                "layers {} to {last} of item {sequence}, chunk {chunk}",
                layers.start
            )
        }
    }
}

/// How far a game has come.
pub(super) fn game_text(layout: Option<&Layout>, game: &Game) -> String {
    let place = game.place();
    let range = game.leaves_in_dispute();
    let (from, to) = (range.start, range.end.saturating_sub(1));
    match place.level {
        Level::Leaves if from == to => format!("the difference is in {}", leaf_text(layout, from)),
        Level::Leaves => format!(
            "the difference is between {} (leaf {from}) and {} (leaf {to})",
            leaf_text(layout, from),
            leaf_text(layout, to)
        ),
        Level::Steps => format!(
            "in {}: between {} and {}",
            leaf_text(layout, place.leaf),
            step_text(layout, place.leaf, place.length, from),
            step_text(layout, place.leaf, place.length, to)
        ),
        Level::Rows => format!(
            "in {}: rows {from} to {to}",
            step_text(layout, place.leaf, place.length, place.step)
        ),
        Level::Segments => format!(
            "in row {} of {}: pieces {from} to {to} of 1 KiB",
            place.row,
            step_text(layout, place.leaf, place.length, place.step)
        ),
    }
}

/// Leaves of a layout, for the first line.
pub(super) fn leaves(layout: Option<&Layout>) -> Option<u32> {
    layout.map(Shape::leaves)
}

fn op_text(op: Op) -> &'static str {
    match op {
        Op::EmbedAdd => "the sum of embeddings",
        Op::EmbedStats => "mean and deviation of the embeddings",
        Op::Embed => "the embeddings",
        Op::AttentionStats => "mean and deviation before attention",
        Op::AttentionInput => "the input of attention",
        Op::QuantQkv => "the quantized input of attention",
        Op::Query => "the queries",
        Op::Key => "the keys",
        Op::Value => "the values",
        Op::NormQuery => "the normed queries",
        Op::NormKey => "the normed keys",
        Op::RotateQuery => "the rotated queries",
        Op::RotateKey => "the rotated keys",
        Op::QuantQuery => "the quantized queries",
        Op::QuantKey => "the quantized keys",
        Op::QuantValue => "the quantized values",
        Op::Scores => "the attention scores",
        Op::Maxima => "the largest scores of blocks",
        Op::Exps => "the attention's exponentials",
        Op::Totals => "the attention's totals",
        Op::ValueScales => "the scales of values",
        Op::QuantWeights => "the quantized attention weights",
        Op::ValuesTransposed => "the columns of values",
        Op::Partials => "the attention of blocks",
        Op::Attention => "the attention",
        Op::QuantOutput => "the quantized attention",
        Op::Output => "the attention's output",
        Op::AttentionAdd => "the attention added to the state",
        Op::AttentionSum => "the state after attention",
        Op::MlpStats => "the deviation before the inner layer",
        Op::MlpInput => "the input of the inner layer",
        Op::QuantMlp => "the quantized input of the inner layer",
        Op::Gate => "the gate",
        Op::Up => "the inner layer",
        Op::Activation => "the activation function",
        Op::QuantDown => "the quantized activations",
        Op::Down => "the product back to the state",
        Op::Add => "the sum with the state",
        Op::Stats => "mean and deviation of the sum",
        Op::Sum => "the result",
        Op::StatesTransposed => "the columns of states",
        Op::Mean => "the mean vector",
        Op::Pool => "the vector",
        Op::FinalStats => "the deviation of the last state",
        Op::FinalInput => "the last state, normalised,",
        Op::FinalQuant => "the last state, quantized,",
        Op::Logits => "the logits",
        Op::Record => "what is recorded",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use surety_models::known;
    use surety_types::model::Operation;

    use super::*;

    #[test]
    fn a_quantized_number_of_two_bytes_is_named_by_the_byte() {
        let manifest = known::all_minilm_l6_v2_exact().manifest;
        let facts = TaskFacts {
            family: manifest.family,
            operation: Operation::Embed,
            input: Default::default(),
            input_bytes: 12,
            units_max: 1,
            stop: Default::default(),
            units: 1,
            output: Default::default(),
        };
        let layout = Layout::new(&manifest.exact.unwrap().architecture, facts).unwrap();
        let plan = layout.plan(1, 3).unwrap();
        let step = (0..plan.steps()).find(|step| plan.rows_of(*step).unwrap().quantized == Some(768));
        let named = |cell, byte| {
            let value = if byte {
                CellValue::Byte(0)
            } else {
                CellValue::Word([0; 4])
            };
            let cell = Cell {
                leaf: 1,
                length: 3,
                step: step.unwrap(),
                row: 2,
                cell,
                value,
            };
            cell_text(Some(&layout), &cell)
        };
        let what = "row 2 of the quantized input of attention of layer 0, item 0";
        assert_eq!(named(0, true), format!("the low byte of number 0 of {what}"));
        assert_eq!(named(767, true), format!("the high byte of number 383 of {what}"));
        assert_eq!(named(769, false), format!("scale 1 of {what}"));
    }
}
