//! What a person chooses.

use std::{fmt, str::FromStr};

/// What exact models are to run on: `auto`, `cpu`, or `cuda:N[,M…]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The first CUDA device, or the processor where none can be used.
    Auto,
    /// The processor.
    #[default]
    Cpu,
    /// CUDA devices, by their numbers from 0, or nothing.
    Cuda(Vec<usize>),
}

/// A text that chooses nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no device: say auto, cpu, or cuda:N for one and cuda:N,M for several, each once, such as cuda:0,1"
)]
pub struct ChoiceError(String);

impl FromStr for Choice {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            _ => numbers(text)
                .map(Self::Cuda)
                .ok_or_else(|| ChoiceError(text.to_owned())),
        }
    }
}

/// The numbers of `cuda:N,M`, each of them once.
fn numbers(text: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for number in text.strip_prefix("cuda:")?.split(',') {
        let number = number.parse().ok()?;
        if numbers.contains(&number) {
            return None;
        }
        numbers.push(number);
    }
    Some(numbers)
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(numbers) => {
                let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
                write!(f, "cuda:{}", numbers.join(","))
            }
        }
    }
}
