//! Items of `Embed` in a text: one a line.
//!
//! Lines end in LF or CRLF. A line of white space only holds no item.

/// Longest text, in bytes.
pub const TEXT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most items in one input.
pub const ITEMS_MAX: u32 = 100_000;

/// Longest item, in bytes of UTF-8. A tokenizer has to read all of a line to cut it to some hundred tokens.
pub const ITEM_BYTES_MAX: usize = 32 * 1024;

/// What is wrong with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinesFault {
    /// Over [`TEXT_BYTES_MAX`].
    #[error("{bytes} bytes, but at most {TEXT_BYTES_MAX} are taken")]
    TooLarge {
        /// Bytes that the text has.
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
}

/// The items of a text, at most `max`.
///
/// # Errors
/// [`LinesFault`], the first that is found.
pub fn lines(input: &[u8], max: u32) -> Result<Vec<&str>, LinesFault> {
    if input.len() > TEXT_BYTES_MAX {
        return Err(LinesFault::TooLarge { bytes: input.len() });
    }
    let text = std::str::from_utf8(input).map_err(|error| LinesFault::NotUtf8 {
        at: error.valid_up_to(),
    })?;
    let max = max.min(ITEMS_MAX);
    let mut items = Vec::new();
    for (line, item) in text.lines().filter(|line| !line.trim().is_empty()).zip(0..) {
        if item == max {
            return Err(LinesFault::TooManyItems { max });
        }
        if line.len() > ITEM_BYTES_MAX {
            return Err(LinesFault::ItemTooLong {
                item,
                bytes: line.len(),
            });
        }
        items.push(line);
    }
    if items.is_empty() {
        return Err(LinesFault::NoItems);
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_item_a_line_and_empty_lines_hold_none() {
        let input = "first\r\n\n  \t\n second line \nthird".as_bytes();
        assert_eq!(lines(input, 9), Ok(vec!["first", " second line ", "third"]));
    }

    #[test]
    fn a_text_needs_an_item() {
        for input in ["", "\n", " \r\n\u{a0}\n"] {
            assert_eq!(lines(input.as_bytes(), 9), Err(LinesFault::NoItems), "{input:?}");
        }
    }

    #[test]
    fn text_that_is_not_utf8_is_refused_with_its_place() {
        assert_eq!(lines(b"good\nb\xffd", 9), Err(LinesFault::NotUtf8 { at: 6 }));
    }

    #[test]
    fn no_more_items_than_are_paid_for() {
        assert_eq!(lines(b"a\nb\nc", 3), Ok(vec!["a", "b", "c"]));
        assert_eq!(lines(b"a\nb\nc", 2), Err(LinesFault::TooManyItems { max: 2 }));
        assert_eq!(lines(b"a", 0), Err(LinesFault::TooManyItems { max: 0 }));
        let most = "x\n".repeat(ITEMS_MAX as usize);
        assert_eq!(
            lines(most.as_bytes(), u32::MAX).map(|items| items.len()),
            Ok(ITEMS_MAX as usize)
        );
        let over = most + "x";
        assert_eq!(
            lines(over.as_bytes(), u32::MAX),
            Err(LinesFault::TooManyItems { max: ITEMS_MAX })
        );
    }

    #[test]
    fn an_overlong_item_is_refused_with_its_index() {
        let input = format!("fine\n\n{}", "y".repeat(ITEM_BYTES_MAX));
        assert!(lines(input.as_bytes(), 9).is_ok());
        let input = input + "y";
        let bytes = ITEM_BYTES_MAX + 1;
        assert_eq!(
            lines(input.as_bytes(), 9),
            Err(LinesFault::ItemTooLong { item: 1, bytes })
        );
    }

    #[test]
    fn an_oversized_input_is_refused_before_it_is_read() {
        let bytes = TEXT_BYTES_MAX + 1;
        assert_eq!(lines(&vec![b'z'; bytes], 9), Err(LinesFault::TooLarge { bytes }));
    }
}
