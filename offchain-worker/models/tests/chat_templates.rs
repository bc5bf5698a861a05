//! Conversations by the templates of published models, against what `transformers` makes of them
//! (`golden/chat/generate.py`); and nobody's words are ever read as a special token.

#![allow(clippy::unwrap_used)]

use std::{collections::BTreeSet, env, fs, path::PathBuf};

use proptest::prelude::*;
use serde::Deserialize;
use surety_models::{
    chat::{ChatFault, Here, Message, RenderFault},
    tokens::{EncodedChat, TextCodec, TextFiles, text_form},
};
use surety_types::model::{ModelFamily, SpecialIds, TextForm};

const MODELS: [&str; 9] = [
    "chatml", "llama2", "llama3", "llama3.2", "mistral", "phi3", "qwen2.5", "qwen3", "zephyr",
];

#[derive(Deserialize)]
struct Expected {
    unix_seconds: u64,
    stop: Vec<u32>,
    /// The ids that nobody's words may become.
    controls: BTreeSet<u32>,
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    messages: Vec<Message>,
    text: Option<String>,
    /// Where nobody writes special tokens.
    ids: Option<Vec<u32>>,
    /// Where somebody does: the template's own.
    controls: Option<Vec<u32>>,
    /// What the template says instead.
    refused: Option<String>,
}

struct Model {
    codec: TextCodec,
    expected: Expected,
    tokenizer: serde_json::Value,
}

impl Model {
    fn new(name: &str) -> Self {
        let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap())
            .join("tests/golden/chat")
            .join(name);
        let read = |file: &str| fs::read(folder.join(file)).unwrap();
        let expected: Expected = serde_json::from_slice(&read("expected.json")).unwrap();
        let mut files = TextFiles {
            family: ModelFamily::Llama,
            form: TextForm {
                stop: SpecialIds::try_from(expected.stop.clone()).unwrap(),
                ..TextForm::default()
            },
            tokenizer: read("tokenizer.json"),
            config: read("config.json"),
            template: Some(read("chat_template.jinja")),
        };
        files.form = text_form(&files).unwrap();
        Self {
            codec: TextCodec::new(&files).unwrap(),
            expected,
            tokenizer: serde_json::from_slice(&files.tokenizer).unwrap(),
        }
    }

    fn encode(&self, messages: &[Message]) -> Result<EncodedChat, ChatFault> {
        self.codec
            .encode_chat(messages, self.expected.unix_seconds, &Here)
    }

    fn controls(&self, ids: &[u32]) -> Vec<u32> {
        let controls = ids.iter().filter(|id| self.expected.controls.contains(id));
        controls.copied().collect()
    }

    /// The text of each token that the tokenizer calls special.
    fn special(&self) -> Vec<String> {
        let added = self.tokenizer["added_tokens"].as_array().unwrap().iter();
        let special = added.filter(|token| token["special"].as_bool().unwrap());
        special
            .map(|token| token["content"].as_str().unwrap().into())
            .collect()
    }
}

fn user(words: &str) -> Message {
    Message::new("user", words)
}

#[test]
fn conversations_are_the_texts_and_ids_that_their_authors_code_gives() {
    for name in MODELS {
        let model = Model::new(name);
        let (mut read, mut refused) = (0, 0);
        for item in model.expected.items.iter().filter(|item| item.controls.is_none()) {
            let made = model.encode(&item.messages);
            if let Some(reason) = &item.refused {
                assert_eq!(made, Err(RenderFault::Refused(reason.clone()).into()), "{name}");
                refused += 1;
                continue;
            }
            let made = made.unwrap();
            assert_eq!(Some(&made.text), item.text.as_ref(), "{name}");
            assert_eq!(Some(&made.ids), item.ids.as_ref(), "{name}: {:?}", made.text);
            read += 1;
        }
        assert!(read >= 5 && read + refused == 8, "{name}: {read} and {refused}");
    }
}

#[test]
fn what_somebody_writes_is_text_and_leaves_the_template_its_special_tokens() {
    for name in MODELS {
        let model = Model::new(name);
        let hostile: Vec<_> = model
            .expected
            .items
            .iter()
            .filter(|item| item.controls.is_some())
            .collect();
        assert_eq!(hostile.len(), 3);
        for item in hostile {
            let made = model.encode(&item.messages).unwrap();
            assert_eq!(Some(&made.text), item.text.as_ref(), "{name}");
            assert_eq!(
                Some(&model.controls(&made.ids)),
                item.controls.as_ref(),
                "{name}: {:?}",
                made.text
            );
        }
    }
}

#[test]
fn an_answer_is_shown_without_the_token_that_ended_it() {
    for name in MODELS {
        let model = Model::new(name);
        let words = model.codec.encode("It is b.").unwrap();
        let ended = [&words[..], &model.expected.stop].concat();
        assert_eq!(model.codec.decode(&ended), model.codec.decode(&words), "{name}");
        assert_eq!(model.codec.decode(&ended).unwrap().trim(), "It is b.", "{name}");
    }
}

#[test]
fn words_with_code_points_that_stand_for_no_character_are_refused_or_carried_and_never_special() {
    for name in MODELS {
        let model = Model::new(name);
        for mark in ['\u{FDD0}', '\u{FDD1}'] {
            let refused = model.encode(&[user(&format!("{mark}0{mark}"))]);
            assert_eq!(refused, Err(ChatFault::NoCharacter(mark.into())));
        }
        let plain = model.encode(&[user("x")]).unwrap();
        for odd in [
            "\u{FDD2}",
            "\u{FFFF}",
            "\u{0}",
            "\u{200B}</s>",
            "\u{10FFFF}<|im_end|>",
        ] {
            let made = model.encode(&[user(odd)]).unwrap();
            assert_eq!(
                model.controls(&made.ids),
                model.controls(&plain.ids),
                "{name}: {odd:?}"
            );
            assert!(made.text.contains(odd), "{name}: {odd:?}");
        }
    }
}

/// Words of whole special tokens, parts of them, and what templates trim and split at.
fn hostile_words(special: Vec<String>) -> impl Strategy<Value = String> {
    let parts = special.iter().flat_map(|token| {
        let half = token.len() / 2;
        [
            token.clone(),
            token.to_uppercase(),
            token[..half].into(),
            token[half..].into(),
            token[1..].into(),
        ]
    });
    let odd = [
        " ", "\n", "<", "|", ">", "[", "]", "system", "▁", "é", "\u{FFFE}", "'", "\\", "{{", "%}",
    ];
    let parts: Vec<String> = parts.chain(odd.map(String::from)).collect();
    proptest::collection::vec(proptest::sample::select(parts), 0..12).prop_map(|parts| parts.concat())
}

#[test]
fn no_words_of_a_user_or_an_assistant_become_a_special_token_of_any_model() {
    for name in MODELS {
        let model = Model::new(name);
        let said = |one: &str, other: &str, last: &str| {
            let messages = [user(one), Message::new("assistant", other), user(last)];
            model.encode(&messages).unwrap()
        };
        let expected = model.controls(&said("x", "x", "x").ids);
        let words = || hostile_words(model.special());
        proptest!(ProptestConfig::with_cases(100), |(one in words(), other in words(), last in words())| {
            let made = said(&one, &other, &last);
            prop_assert_eq!(model.controls(&made.ids), expected.clone(), "{}: {:?}", name, made.text);
        });
    }
}
