//! From text to windows of tokens.

use std::collections::HashSet;

use rayon::prelude::*;
use tokenizers::{
    AddedToken, NormalizerWrapper, TokenizerBuilder, TokenizerImpl,
    decoders::byte_level::ByteLevel as ByteLevelDecoder,
    models::bpe::{BPE, BpeTrainerBuilder},
    pre_tokenizers::byte_level::ByteLevel,
    processors::template::TemplateProcessing,
};

use super::{TrainError, random::Random};

/// Stands before every text.
pub(super) const BEGIN: &str = "<s>";
/// Stands after every text, and ends a generation.
pub(super) const END: &str = "</s>";
/// The special tokens come first in the vocabulary.
pub(super) const BEGIN_ID: u32 = 0;
/// See [`BEGIN_ID`].
pub(super) const END_ID: u32 = 1;

pub(super) type Tokenizer =
    TokenizerImpl<BPE, NormalizerWrapper, ByteLevel, TemplateProcessing, ByteLevelDecoder>;

fn failed(error: impl std::fmt::Display) -> TrainError {
    TrainError::Tokenizer(error.to_string())
}

/// Paragraphs: what stands between empty lines.
pub(super) fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines().chain([""]) {
        if line.trim().is_empty() {
            if !lines.is_empty() {
                paragraphs.push(lines.join("\n"));
            }
            lines.clear();
        } else {
            lines.push(line.trim_end());
        }
    }
    paragraphs
}

/// Learns a byte-level vocabulary. The same text gives the same one.
pub(super) fn tokenizer(paragraphs: &[String], vocabulary: usize) -> Result<Tokenizer, TrainError> {
    let special = |token: &str| AddedToken::from(token, true);
    let mut trainer = BpeTrainerBuilder::new()
        .show_progress(false)
        .vocab_size(vocabulary)
        .min_frequency(2)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect::<HashSet<_>>())
        .special_tokens(vec![special(BEGIN), special(END)])
        .build();
    let template = TemplateProcessing::builder()
        .try_single(format!("{BEGIN} $A"))
        .map_err(failed)?
        .try_pair(format!("{BEGIN} $A {BEGIN} $B"))
        .map_err(failed)?
        .special_tokens(vec![(BEGIN, BEGIN_ID)])
        .build()
        .map_err(failed)?;
    let byte_level = ByteLevel::new(false, true, true);
    let mut tokenizer = TokenizerBuilder::new()
        .with_model(BPE::default())
        .with_normalizer(None)
        .with_pre_tokenizer(Some(byte_level))
        .with_post_processor(Some(template))
        .with_decoder(Some(byte_level))
        .build()
        .map_err(failed)?;
    tokenizer.train(&mut trainer, paragraphs.iter()).map_err(failed)?;
    Ok(tokenizer)
}

/// Paragraphs as one stream, each between a beginning and an end.
pub(super) fn stream(tokenizer: &Tokenizer, paragraphs: &[String]) -> Result<Vec<u32>, TrainError> {
    let parts: Vec<Vec<u32>> = paragraphs
        .par_iter()
        .map(|paragraph| {
            let encoding = tokenizer.encode(paragraph.as_str(), true).map_err(failed)?;
            let mut ids = encoding.get_ids().to_vec();
            ids.push(END_ID);
            Ok(ids)
        })
        .collect::<Result<_, TrainError>>()?;
    Ok(parts.concat())
}

/// Endless windows of a stream, in a random order, every token once before any comes again.
pub(super) struct Windows<'a> {
    stream: &'a [u32],
    length: usize,
    order: Vec<usize>,
    random: Random,
}

impl<'a> Windows<'a> {
    /// Windows of so many tokens; a stream that is shorter than two has none.
    pub(super) fn new(stream: &'a [u32], length: usize, random: Random) -> Option<Self> {
        (length > 0 && stream.len() >= length.saturating_mul(2)).then_some(Self {
            stream,
            length,
            order: Vec::new(),
            random,
        })
    }
}

impl<'a> Iterator for Windows<'a> {
    type Item = &'a [u32];

    fn next(&mut self) -> Option<&'a [u32]> {
        if self.order.is_empty() {
            // Cut elsewhere each time.
            let offset = self.random.below(self.length);
            let last = self.stream.len().checked_sub(self.length)?;
            self.order = (offset..=last).step_by(self.length).collect();
            self.random.shuffle(&mut self.order);
        }
        let start = self.order.pop()?;
        self.stream.get(start..start + self.length)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn empty_lines_part_paragraphs() {
        let parts = paragraphs("\n\na b\n c\r\n\r\nd\n  \n\ne");
        assert_eq!(parts, ["a b\n c", "d", "e"]);
    }

    #[test]
    fn windows_cover_the_stream_before_they_repeat() {
        let stream: Vec<u32> = (0..103).collect();
        let mut windows = Windows::new(&stream, 10, Random::new(1)).unwrap();
        let mut seen: Vec<u32> = windows.by_ref().take(9).flatten().copied().collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 90);
        assert!(windows.next().is_some());
        assert!(Windows::new(&stream[..19], 10, Random::new(1)).is_none());
    }

    #[test]
    fn the_vocabulary_is_always_the_same_and_loses_no_byte() {
        let text = ["the whale, the sea, the ship\u{2014}there she blows".to_owned()];
        let once = tokenizer(&text, 300).unwrap();
        let json = once.to_string(false).unwrap();
        for _ in 0..5 {
            assert_eq!(tokenizer(&text, 300).unwrap().to_string(false).unwrap(), json);
        }
        // As a model's files are read, with bytes that the text never had.
        let read: tokenizers::Tokenizer = json.parse().unwrap();
        let strange = "\u{1f40b} <whale>\n\t the";
        let encoding = read.encode(strange, true).unwrap();
        assert_eq!(encoding.get_ids().first(), Some(&BEGIN_ID));
        assert_eq!(read.decode(encoding.get_ids(), true).unwrap(), strange);
        assert_eq!(read.token_to_id(END), Some(END_ID));
    }
}
