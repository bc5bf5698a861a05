//! A continuation's text, piece by piece.

use surety_models::tokens::Prompts;

/// What a decoder writes for bytes that are no character, or not yet.
const INCOMPLETE: char = char::REPLACEMENT_CHARACTER;

/// Tokens that a character may take to complete. What is not one by then never will be.
const PENDING_MAX: usize = 8;

/// Gives the text that each token adds, in whole characters.
pub(super) struct TextStream<'a> {
    prompts: &'a Prompts,
    tokens: Vec<u32>,
    /// Tokens from here on are decoded: those before the next one can matter to how it reads.
    context: usize,
    /// Tokens from here on have not been told.
    told: usize,
}

impl<'a> TextStream<'a> {
    pub(super) fn new(prompts: &'a Prompts) -> Self {
        Self {
            prompts,
            tokens: Vec::new(),
            context: 0,
            told: 0,
        }
    }

    /// What `token` adds; empty while a character is not complete, unless it is the `last`.
    pub(super) fn push(&mut self, token: u32, last: bool) -> Result<String, String> {
        self.tokens.push(token);
        let told = self.tokens.get(self.context..self.told).unwrap_or_default();
        let all = self.tokens.get(self.context..).unwrap_or_default();
        let (told, all) = (self.prompts.decode(told)?, self.prompts.decode(all)?);
        let pending = self.tokens.len() - self.told;
        if all.ends_with(INCOMPLETE) && !last && pending < PENDING_MAX {
            return Ok(String::new());
        }
        self.context = self.told;
        self.told = self.tokens.len();
        Ok(all.strip_prefix(&told).unwrap_or_default().to_owned())
    }
}
