//! A continuation's text, piece by piece.

/// What a decoder writes for bytes that are no character, or not yet.
const INCOMPLETE: char = char::REPLACEMENT_CHARACTER;

/// Tokens that a character may take to complete. What is not one by then never will be.
const PENDING_MAX: usize = 8;

/// Gives the text that each token adds, in whole characters.
#[derive(Clone, Debug, Default)]
pub struct TextStream {
    tokens: Vec<u32>,
    /// Tokens from here on are decoded: those before the next one can matter to how it reads.
    context: usize,
    /// Tokens from here on have not been told.
    told: usize,
}

impl TextStream {
    /// What `token` adds, where `decode` gives the text of some ids; empty while a character is not complete.
    ///
    /// # Errors
    /// Those of `decode`.
    pub fn push<E>(&mut self, token: u32, decode: impl Fn(&[u32]) -> Result<String, E>) -> Result<String, E> {
        self.tokens.push(token);
        let told = self.tokens.get(self.context..self.told).unwrap_or_default();
        let all = self.tokens.get(self.context..).unwrap_or_default();
        let (told, all) = (decode(told)?, decode(all)?);
        let pending = self.tokens.len() - self.told;
        if all.ends_with(INCOMPLETE) && pending < PENDING_MAX {
            return Ok(String::new());
        }
        self.context = self.told;
        self.told = self.tokens.len();
        Ok(all.strip_prefix(&told).unwrap_or_default().to_owned())
    }
}
