//! Input blobs of the operation `Embed`: UTF-8, one item a line.
//!
//! Lines end in LF or CRLF. A line of white space only holds no item. The limits are part of the operation's
//! definition and no setting: whether an input is fit for use must not depend on who looks at it.

/// Longest input, in bytes.
pub const INPUT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most items in one input.
pub const ITEMS_MAX: u32 = 100_000;

/// Longest item, in bytes of UTF-8. A tokenizer has to read all of a line to truncate it to some hundred
/// tokens.
pub const ITEM_BYTES_MAX: usize = 32 * 1024;

/// What is wrong with an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// Over [`INPUT_BYTES_MAX`].
    #[error("{bytes} bytes, but at most {INPUT_BYTES_MAX} are taken")]
    TooLarge {
        /// Bytes that the input has.
        bytes: usize,
    },
    /// Not text.
    #[error("not UTF-8 from byte {at} on")]
    NotUtf8 {
        /// Where the valid part ends.
        at: usize,
    },
    /// No line holds anything.
    #[error("there is no item in it")]
    NoItems,
    /// More items than a task may have, than its client pays for, or than an output holds.
    #[error("more than {max} items")]
    TooManyItems {
        /// The lowest of these limits.
        max: u32,
    },
    /// A line over [`ITEM_BYTES_MAX`].
    #[error("item {item} has {bytes} bytes, but at most {ITEM_BYTES_MAX} are taken")]
    ItemTooLong {
        /// Index of the item, from 0.
        item: u32,
        /// Bytes that the item has.
        bytes: usize,
    },
    /// The tokenizer makes nothing of a line.
    #[error("item {item} holds no token")]
    NoTokens {
        /// Index of the item, from 0.
        item: u32,
    },
}

/// The items of an input, at most `max`.
pub fn items(input: &[u8], max: u32) -> Result<Vec<&str>, InputError> {
    if input.len() > INPUT_BYTES_MAX {
        return Err(InputError::TooLarge { bytes: input.len() });
    }
    let text = std::str::from_utf8(input).map_err(|error| InputError::NotUtf8 {
        at: error.valid_up_to(),
    })?;
    let max = max.min(ITEMS_MAX);
    let mut items = Vec::new();
    for (line, item) in text.lines().filter(|line| !line.trim().is_empty()).zip(0..) {
        if item == max {
            return Err(InputError::TooManyItems { max });
        }
        if line.len() > ITEM_BYTES_MAX {
            return Err(InputError::ItemTooLong {
                item,
                bytes: line.len(),
            });
        }
        items.push(line);
    }
    if items.is_empty() {
        return Err(InputError::NoItems);
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_item_a_line_and_empty_lines_hold_none() {
        let input = "first\r\n\n  \t\n second line \nthird".as_bytes();
        assert_eq!(items(input, 9), Ok(vec!["first", " second line ", "third"]));
    }

    #[test]
    fn an_input_needs_an_item() {
        for input in ["", "\n", " \r\n\u{a0}\n"] {
            assert_eq!(items(input.as_bytes(), 9), Err(InputError::NoItems), "{input:?}");
        }
    }

    #[test]
    fn text_that_is_not_utf8_is_refused_with_its_place() {
        assert_eq!(items(b"good\nb\xffd", 9), Err(InputError::NotUtf8 { at: 6 }));
    }

    #[test]
    fn no_more_items_than_are_paid_for() {
        assert_eq!(items(b"a\nb\nc", 3), Ok(vec!["a", "b", "c"]));
        assert_eq!(items(b"a\nb\nc", 2), Err(InputError::TooManyItems { max: 2 }));
        assert_eq!(items(b"a", 0), Err(InputError::TooManyItems { max: 0 }));
        let most = "x\n".repeat(ITEMS_MAX as usize);
        assert_eq!(
            items(most.as_bytes(), u32::MAX).map(|items| items.len()),
            Ok(ITEMS_MAX as usize)
        );
        let over = most + "x";
        assert_eq!(
            items(over.as_bytes(), u32::MAX),
            Err(InputError::TooManyItems { max: ITEMS_MAX })
        );
    }

    #[test]
    fn an_overlong_item_is_refused_with_its_index() {
        let input = format!("fine\n\n{}", "y".repeat(ITEM_BYTES_MAX));
        assert!(items(input.as_bytes(), 9).is_ok());
        let input = input + "y";
        let bytes = ITEM_BYTES_MAX + 1;
        assert_eq!(
            items(input.as_bytes(), 9),
            Err(InputError::ItemTooLong { item: 1, bytes })
        );
    }

    #[test]
    fn an_oversized_input_is_refused_before_it_is_read() {
        let bytes = INPUT_BYTES_MAX + 1;
        assert_eq!(items(&vec![b'z'; bytes], 9), Err(InputError::TooLarge { bytes }));
    }
}
