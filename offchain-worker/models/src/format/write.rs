//! Writing the exact form.

use std::io::{self, Write};

use surety_exact::groups;

use super::{FORMAT, FORMAT_KEY, Part, Parts};
use crate::weights::Quanta;

/// Enough for a few rows at a time.
const CHUNK: usize = 64 * 1024;

/// Values of one tensor.
#[derive(Clone, Copy)]
enum Values<'a> {
    Whole(&'a [surety_exact::Turns]),
    Real(&'a [f32]),
    Quantized(&'a Quanta),
}

impl Values<'_> {
    /// Type, and bytes of one element.
    fn dtype(&self) -> (&'static str, usize) {
        match self {
            Self::Whole(_) => ("U64", 8),
            Self::Real(_) => ("F32", 4),
            Self::Quantized(Quanta::Int8(_)) => ("I8", 1),
            Self::Quantized(Quanta::Int12(_)) => ("I16", 2),
        }
    }

    fn bytes(&self) -> usize {
        let count = match self {
            Self::Whole(values) => values.len(),
            Self::Real(values) => values.len(),
            Self::Quantized(values) => values.len(),
        };
        count * self.dtype().1
    }

    fn write(&self, into: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Whole(values) => chunks(values, into, |value| value.0.to_le_bytes()),
            Self::Real(values) => chunks(values, into, |value| value.to_le_bytes()),
            Self::Quantized(Quanta::Int8(values)) => chunks(values, into, |value| value.to_le_bytes()),
            Self::Quantized(Quanta::Int12(values)) => chunks(values, into, |value| value.to_le_bytes()),
        }
    }
}

fn chunks<T, const N: usize>(
    values: &[T],
    into: &mut impl Write,
    bytes: impl Fn(&T) -> [u8; N],
) -> io::Result<()> {
    for chunk in values.chunks(CHUNK) {
        let chunk: Vec<u8> = chunk.iter().flat_map(&bytes).collect();
        into.write_all(&chunk)?;
    }
    Ok(())
}

struct Tensor<'a> {
    name: String,
    shape: Vec<usize>,
    values: Values<'a>,
}

/// Writes a model file: the same bytes for the same parts, wherever and whenever.
///
/// # Errors
/// Those of the writer.
pub fn write(parts: &Parts<'_>, into: &mut impl Write) -> io::Result<()> {
    let mut tensors: Vec<Tensor<'_>> = parts
        .iter()
        .flat_map(|(name, part)| tensors(name, part))
        .collect();
    tensors.sort_by(|a, b| {
        let size = |tensor: &Tensor<'_>| std::cmp::Reverse(tensor.values.dtype().1);
        (size(a), &a.name).cmp(&(size(b), &b.name))
    });
    let mut header = format!("{{\"__metadata__\":{{\"{FORMAT_KEY}\":\"{FORMAT}\"}}");
    let mut offset = 0;
    for Tensor { name, shape, values } in &tensors {
        let (start, end) = (offset, offset + values.bytes());
        let dtype = values.dtype().0;
        // Names are made of the architecture's words and numbers: nothing to escape. A list prints as JSON
        // has it.
        header.push_str(&format!(
            ",\"{name}\":{{\"dtype\":\"{dtype}\",\"shape\":{shape:?},\"data_offsets\":[{start},{end}]}}"
        ));
        offset = end;
    }
    header.push('}');
    // Data begins at a multiple of 8 bytes.
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    into.write_all(&(header.len() as u64).to_le_bytes())?;
    into.write_all(header.as_bytes())?;
    for tensor in &tensors {
        tensor.values.write(into)?;
    }
    Ok(())
}

fn tensors<'a>(name: &str, part: Part<'a>) -> Vec<Tensor<'a>> {
    let tensor = |name: String, shape: &[usize], values| Tensor {
        name,
        shape: shape.to_vec(),
        values,
    };
    let rows = |rows: usize, width: usize, q: &'a Quanta, scales: &'a [f32]| {
        vec![
            tensor(format!("{name}.q"), &[rows, width], Values::Quantized(q)),
            tensor(
                format!("{name}.scales"),
                &[rows, groups(width)],
                Values::Real(scales),
            ),
        ]
    };
    match part {
        Part::Table(table) => rows(table.rows, table.width, &table.q, &table.scales),
        Part::Linear(linear) => {
            let mut tensors = rows(linear.outputs, linear.inputs, &linear.q, &linear.scales);
            if let Some(bias) = &linear.bias {
                tensors.push(tensor(
                    format!("{name}.bias"),
                    &[linear.outputs],
                    Values::Real(bias),
                ));
            }
            tensors
        }
        Part::Vector(values) => vec![tensor(name.into(), &[values.len()], Values::Real(values))],
        Part::Turns(turns) => vec![tensor(name.into(), &[turns.len()], Values::Whole(turns))],
    }
}
