#![allow(clippy::unwrap_used)]
use alloc::vec;

use super::*;

const BOUNDS: IdBounds = IdBounds {
    vocabulary: 100,
    positions: 4,
};

const SETTINGS: Settings = Settings {
    max_tokens: 2,
    temperature_milli: 700,
    top_k: 12,
    top_p_milli: 950,
    seed: 0x1234_5678_9abc,
};

fn words(input: &[u8]) -> Vec<u32> {
    let (words, _) = input.as_chunks();
    words.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

fn embed(units_max: u32, input_bytes: u32) -> Work {
    let operation = Operation::Embed;
    Work {
        operation,
        input_bytes,
        units_max,
    }
}

fn generate(units_max: u32, input_bytes: u32) -> Work {
    let operation = Operation::Generate;
    Work {
        operation,
        input_bytes,
        units_max,
    }
}

#[test]
fn items_are_a_table_and_their_ids() {
    let items = vec![vec![1, 2, 99], vec![7]];
    let input = encode_items(&items, &BOUNDS).unwrap();
    assert_eq!(words(&input), [4, 3, 7, 1, 1, 2, 99, 7]);
    let reader = InputReader::new(&input, BOUNDS);
    assert_eq!(vec![reader.item(0), reader.item(1)], items);
    assert_eq!(embed(2, input.len() as u32).check_shape(Some(4)), Ok(()));
}

#[test]
fn a_prompt_is_settings_and_its_ids() {
    let input = encode_prompt(&[5, 6], &SETTINGS, &BOUNDS).unwrap();
    assert_eq!(words(&input), [2, 700, 12, 950, 0x5678_9abc, 0x1234, 5, 6]);
    let reader = InputReader::new(&input, BOUNDS);
    assert_eq!((reader.settings(), reader.prompt()), (SETTINGS, vec![5, 6]));
    let work = generate(4, input.len() as u32);
    assert_eq!((work.prompt_tokens(), work.check_shape(Some(4))), (2, Ok(())));
    assert_eq!(reader.settings().new_tokens(work.room(4)), 2);
    assert_eq!(reader.settings().new_tokens(1), 1);
}

#[test]
fn an_honest_client_sends_nothing_that_a_model_does_not_have() {
    let fault = |items: Vec<Vec<u32>>| encode_items(&items, &BOUNDS).unwrap_err();
    assert_eq!(fault(vec![]), InputFault::Empty);
    assert_eq!(fault(vec![vec![1], vec![]]), InputFault::EmptyItem { item: 1 });
    let too_long = InputFault::ItemTooLong {
        item: 0,
        tokens: 5,
        positions: 4,
    };
    assert_eq!(fault(vec![vec![0; 5]]), too_long);
    let unknown = InputFault::UnknownToken {
        id: 100,
        vocabulary: 100,
    };
    assert_eq!(fault(vec![vec![1, 100]]), unknown);

    let fault = |prompt: &[u32], settings| encode_prompt(prompt, &settings, &BOUNDS).unwrap_err();
    assert_eq!(fault(&[], SETTINGS), InputFault::Empty);
    assert_eq!(fault(&[100], SETTINGS), unknown);
    let exceeded = InputFault::ContextExceeded {
        prompt: 3,
        max_tokens: 2,
        positions: 4,
    };
    assert_eq!(fault(&[1, 2, 3], SETTINGS), exceeded);
    for (settings, name) in [
        (
            Settings {
                max_tokens: 0,
                ..SETTINGS
            },
            "max_tokens",
        ),
        (
            Settings {
                max_tokens: 4097,
                ..SETTINGS
            },
            "max_tokens",
        ),
        (
            Settings {
                temperature_milli: 10_001,
                ..SETTINGS
            },
            "temperature_milli",
        ),
        (
            Settings {
                top_k: u32::MAX,
                ..SETTINGS
            },
            "top_k",
        ),
        (
            Settings {
                top_p_milli: 0,
                ..SETTINGS
            },
            "top_p_milli",
        ),
        (
            Settings {
                top_p_milli: 1001,
                ..SETTINGS
            },
            "top_p_milli",
        ),
    ] {
        let InputFault::OutOfRange { setting, .. } = fault(&[1], settings) else {
            panic!("{settings:?}");
        };
        assert_eq!(setting, name);
    }
}

#[test]
fn an_input_is_no_longer_than_one_demand_has_shown() {
    let bounds = IdBounds {
        vocabulary: 100,
        positions: 1 << 18,
    };
    // All but the two words of the table.
    let longest = vec![vec![
        7;
        (limits::INPUT_BYTES_MAX / WORD_BYTES - ITEM_WORDS) as usize
    ]];
    let input = encode_items(&longest, &bounds).unwrap();
    assert_eq!(input.len() as u32, limits::INPUT_BYTES_MAX);
    let longer = vec![vec![7; longest[0].len() + 1]];
    assert_eq!(encode_items(&longer, &bounds), Err(InputFault::TooLarge));
}

#[test]
fn whatever_the_words_are_they_have_one_reading() {
    let input: Vec<u8> = bytes_of([0u32, 0, u32::MAX, 9, 5, u32::MAX, 300].iter());
    let reader = InputReader::new(&input, BOUNDS);
    // No tokens are one, ids that there are not are the last, places that there are not hold 0.
    assert_eq!(reader.item(0), [0]);
    assert_eq!(reader.item(1), [0; 4]);
    assert_eq!(reader.item(2), [99, 99, 0, 0]);
    assert_eq!(reader.item(u32::MAX), [0]);
    assert_eq!(reader.prompt(), [99]);
    assert_eq!(InputReader::new(&[1, 0, 0], BOUNDS).prompt(), [0; 0]);
    assert_eq!(InputReader::new(&[], BOUNDS).settings().new_tokens(7), 1);
}

#[test]
fn the_tokens_of_items_are_counted_however_many_have_the_same_ids() {
    let items = vec![vec![1, 2, 99], vec![7]];
    let input = encode_items(&items, &BOUNDS).unwrap();
    let reader = InputReader::new(&input, BOUNDS);
    assert_eq!((reader.tokens(0), reader.tokens(1), reader.tokens(2)), (0, 3, 4));

    // A thousand times the same four ids.
    let table = [2_000, 4].repeat(1_000);
    let input = bytes_of(table.iter().chain(&[1, 2, 3, 4]));
    let reader = InputReader::new(&input, BOUNDS);
    assert_eq!((input.len(), reader.tokens(1_000)), (8_016, 4_000));
    // What is too long is cut, and what has none has one.
    let input = bytes_of([4u32, u32::MAX, 4, 0].iter());
    let reader = InputReader::new(&input, BOUNDS);
    let read: u64 = (0..3).map(|item| reader.item(item).len() as u64).sum();
    assert_eq!((reader.tokens(3), read), (6, 6));
}

#[test]
fn what_is_shown_in_a_dispute_fits_four_parts_prompt_and_answer_together() {
    // Settings and prompt, and the word before an answer.
    let parts =
        |prompt: u32, tokens: u32| ((6 + prompt) * 4).div_ceil(8_192) + ((1 + tokens) * 4).div_ceil(8_192);
    for prompt in [1, 2_042, 2_043, 4_000, 4_090, 4_091, 6_138] {
        let most = tokens_shown(prompt);
        assert!(
            parts(prompt, most) <= 4 && parts(prompt, most + 1) > 4,
            "{prompt}: {most}"
        );
        let asked = |tokens: u32| generate(prompt + tokens, (6 + prompt) * 4);
        assert!(asked(most).can_be_shown(u32::MAX));
        assert!(!asked(most + 1).can_be_shown(u32::MAX));
        // There is no more room for it.
        assert!(asked(u32::MAX - prompt).can_be_shown(prompt + most));
    }
    assert_eq!(tokens_shown(6_139), 0);
    assert_eq!(tokens_shown(u32::MAX), 0);
    assert!(embed(10_000, 1_000_000).can_be_shown(512));
}

#[test]
fn an_input_of_the_wrong_size_is_refused_by_its_size_alone() {
    assert_eq!(embed(1, 13).check_shape(None), Err(ShapeFault::Ragged));
    assert_eq!(embed(2, 20).check_shape(None), Err(ShapeFault::TooShort));
    assert_eq!(embed(2, 24).check_shape(None), Ok(()));
    assert_eq!(
        embed(u32::MAX, u32::MAX - 3).check_shape(None),
        Err(ShapeFault::TooShort)
    );
    assert_eq!(generate(9, 24).check_shape(None), Err(ShapeFault::TooShort));
    assert_eq!(generate(2, 28).check_shape(Some(2)), Ok(()));
    assert_eq!(generate(1, 28).check_shape(None), Err(ShapeFault::PromptTooLong));
    assert_eq!(
        generate(9, 32).check_shape(Some(2)),
        Err(ShapeFault::PromptTooLong)
    );
    assert_eq!(generate(9, 32).check_shape(Some(3)), Ok(()));
}
