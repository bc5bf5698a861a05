//! What an engine makes: it follows from what was asked.

use surety_channels::{End, Request};
use surety_types::{
    input::{InputReader, WORD_BYTES},
    model::Operation,
};

use crate::world::{BOUNDS, ITEM_WIDTH, STOP};

pub fn unit_bytes(operation: Operation) -> usize {
    match operation {
        Operation::Generate => WORD_BYTES as usize,
        Operation::Embed => (ITEM_WIDTH * WORD_BYTES) as usize,
    }
}

/// The text that every provider goes on with, as often as is asked for.
pub const ANSWER: &str = "Grüße aus der Höhle 🐻! ";

/// The ids of an answer of so many tokens. With the seed 7 it ends by a stop id after the text.
pub fn tokens(most: usize, seed: u64) -> Vec<u32> {
    let text = ANSWER.bytes().map(u32::from);
    match seed {
        7 => text.chain([STOP]).take(most).collect(),
        _ => text.cycle().take(most).collect(),
    }
}

/// The vector of an item.
pub fn vector(ids: &[u32]) -> Vec<f32> {
    vec![ids.len() as f32, ids[0] as f32, 0.5, -1.0]
}

/// All that follows from a request, and how it ends.
pub fn answer(request: &Request, input: &[u8]) -> (Vec<u8>, End) {
    let reader = InputReader::new(input, BOUNDS);
    match request.operation {
        Operation::Generate => {
            let settings = reader.settings();
            let most = settings.new_tokens(request.work().room(BOUNDS.positions)) as usize;
            let ids = tokens(most, settings.seed);
            let how = if ids.last() == Some(&STOP) {
                End::Stop
            } else {
                End::Length
            };
            (ids.iter().flat_map(|id| id.to_le_bytes()).collect(), how)
        }
        Operation::Embed => {
            let items = (0..request.units_max).map(|item| vector(&reader.item(item)));
            let bytes = items.flatten().flat_map(f32::to_le_bytes).collect();
            (bytes, End::Length)
        }
    }
}
