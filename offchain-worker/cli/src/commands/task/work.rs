//! What a client wants computed: from flags to an input blob, and what it will cost in units.

use std::{fs, path::Path};

use surety_client::text::{Input, TextInputError};
use surety_models::{
    chat::{Message, Renderer},
    tokens::{ITEMS_MAX, LinesFault, TextCodec, lines},
};
use surety_network::Bytes;
use surety_types::{
    input::{InputFault, Settings, TOP_P_MILLI_MAX},
    model::Operation,
};

use crate::{
    args::SpecArgs,
    error::{CliError, Result},
};

/// Tokens to add when nothing was said.
const MAX_TOKENS: u32 = 128;

/// What is to be computed, as text.
#[derive(Debug)]
pub(super) enum Work {
    /// Lines to embed.
    Embed(Vec<u8>),
    /// Something to go on from.
    Generate {
        /// What.
        prompt: Prompt,
        /// How it is continued.
        settings: Settings,
    },
}

/// What a model goes on from.
#[derive(Debug, PartialEq)]
pub(super) enum Prompt {
    /// A text as it is.
    Raw(String),
    /// A text as one message of a user, where the model has a chat template; else as it is.
    Text(String),
    /// A conversation.
    Chat(Vec<Message>),
}

/// An input blob, and what it costs.
#[derive(Debug)]
pub(super) struct Encoded {
    /// The input blob.
    pub(super) input: Bytes,
    /// Units to pay for.
    pub(super) units_max: u32,
    /// Whether a text has become a message.
    pub(super) asked: bool,
}

/// Reads what is to be computed. What is wrong with it without the model's tokenizer is found here.
///
/// # Errors
/// When a file cannot be read, or the text is not what the operation takes.
pub(super) fn read(args: &SpecArgs) -> Result<Work> {
    match (&args.file, &args.prompt, &args.prompt_file, &args.messages) {
        (Some(file), ..) => embed(file, args.units_max),
        (_, Some(prompt), ..) => generate(args, prompt_of(args, prompt.clone())?),
        (_, _, Some(file), _) => generate(args, prompt_of(args, prompt_from(file)?)?),
        (.., Some(file)) => generate(args, Prompt::Chat(messages_from(file)?)),
        // The parser asks for one of them.
        (None, None, None, None) => Err(CliError::Usage("nothing is to be computed".into())),
    }
}

fn embed(file: &Path, units_max: Option<u32>) -> Result<Work> {
    let text = fs::read(file).map_err(CliError::file(file))?;
    let max = units_max.unwrap_or(ITEMS_MAX);
    lines(&text, max).map_err(|source| CliError::Lines {
        path: file.to_owned(),
        source,
    })?;
    Ok(Work::Embed(text))
}

fn prompt_from(file: &Path) -> Result<String> {
    let bytes = fs::read(file).map_err(CliError::file(file))?;
    String::from_utf8(bytes).map_err(|error| CliError::Lines {
        path: file.to_owned(),
        source: LinesFault::NotUtf8 {
            at: error.utf8_error().valid_up_to(),
        },
    })
}

fn prompt_of(args: &SpecArgs, text: String) -> Result<Prompt> {
    let flags = &args.generate;
    if text.is_empty() {
        return Err(TextInputError::from(InputFault::Empty).into());
    }
    Ok(match &flags.system {
        Some(system) => Prompt::Chat(vec![Message::new("system", system), Message::new("user", text)]),
        None if flags.raw => Prompt::Raw(text),
        None => Prompt::Text(text),
    })
}

fn messages_from(file: &Path) -> Result<Vec<Message>> {
    let json = fs::read(file).map_err(CliError::file(file))?;
    serde_json::from_slice(&json).map_err(|error| {
        CliError::Usage(format!(
            "{} is no conversation ({error}): write a list of messages in JSON, such as \
             [{{\"role\": \"user\", \"content\": \"Hello\"}}]",
            file.display()
        ))
    })
}

fn generate(args: &SpecArgs, prompt: Prompt) -> Result<Work> {
    let flags = &args.generate;
    let settings = Settings {
        max_tokens: flags.max_tokens.unwrap_or(MAX_TOKENS),
        temperature_milli: flags.temperature.unwrap_or(0),
        top_k: flags.top_k.unwrap_or(0),
        top_p_milli: flags.top_p.unwrap_or(TOP_P_MILLI_MAX),
        seed: flags.seed.unwrap_or(0),
    };
    settings.check().map_err(TextInputError::from)?;
    Ok(Work::Generate { prompt, settings })
}

impl Work {
    /// What a model is asked for.
    pub(super) fn operation(&self) -> Operation {
        match self {
            Self::Embed(_) => Operation::Embed,
            Self::Generate { .. } => Operation::Generate,
        }
    }

    /// In ids, with the units that it takes; of a generation those that were `said`.
    ///
    /// # Errors
    /// When the model has no ids for it, or it is over what was said.
    pub(super) fn encode(
        &self,
        codec: &TextCodec,
        renderer: &dyn Renderer,
        said: Option<u32>,
    ) -> Result<Encoded> {
        let mut asked = false;
        let Input { blob, work } = match self {
            Self::Embed(text) => Input::items(codec, text)?,
            Self::Generate { prompt, settings } => match prompt {
                Prompt::Text(text) if codec.has_template() => {
                    asked = true;
                    Input::chat(codec, &[Message::new("user", text)], settings, renderer)?
                }
                Prompt::Raw(text) | Prompt::Text(text) => Input::prompt(codec, text, settings)?,
                Prompt::Chat(messages) => Input::chat(codec, messages, settings, renderer)?,
            },
        };
        let units_max = match self {
            Self::Embed(_) => work.units_max,
            Self::Generate { .. } => units(work.units_max, said)?,
        };
        Ok(Encoded {
            input: blob.into(),
            units_max,
            asked,
        })
    }
}

/// As many as were said, if they are enough.
fn units(needed: u32, said: Option<u32>) -> Result<u32> {
    match said {
        Some(said) if said < needed => Err(CliError::Usage(format!(
            "the prompt and what is to be added are {needed} tokens, more than the {said} of --units-max"
        ))),
        _ => Ok(said.unwrap_or(needed)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::Parser;
    use surety_client::testsuite::chat_codec;
    use surety_models::chat::Here;

    use super::*;
    use crate::args::{Cli, Command, TaskCommand};

    fn parse(flags: &[&str]) -> std::result::Result<SpecArgs, clap::Error> {
        let line = ["surety", "task", "submit", "--model", "m", "--cap", "1"];
        match Cli::try_parse_from(line.iter().chain(flags))?.command {
            Command::Task(TaskCommand::Submit(args)) => Ok(args.spec),
            other => panic!("{other:?}"),
        }
    }

    fn work(flags: &[&str]) -> Result<Work> {
        read(&parse(flags).unwrap())
    }

    #[test]
    fn a_text_with_more_lines_than_are_paid_for_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "a\n\nb\n").unwrap();
        let path = file.path().to_str().unwrap();
        let all = work(&["--file", path, "--out", "o"]).unwrap();
        assert_eq!(all.operation(), Operation::Embed);
        let few = work(&["--file", path, "--out", "o", "--units-max", "1"]);
        assert!(matches!(few, Err(CliError::Lines { .. })));
    }

    #[test]
    fn flags_become_the_settings_that_a_provider_reads() {
        let flags = "--max-tokens 9 --temperature 0.8 --top-k 40 --top-p 0.95 --seed 7";
        let flags: Vec<&str> = ["--prompt", "Call me"]
            .into_iter()
            .chain(flags.split(' '))
            .collect();
        let Work::Generate { prompt, settings } = work(&flags).unwrap() else {
            panic!("it is to be generated");
        };
        let expected = Settings {
            max_tokens: 9,
            temperature_milli: 800,
            top_k: 40,
            top_p_milli: 950,
            seed: 7,
        };
        assert_eq!((prompt, settings), (Prompt::Text("Call me".into()), expected));
    }

    #[test]
    fn a_prompt_may_come_from_a_file_as_it_is() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "Zwölf\n").unwrap();
        let path = file.path().to_str().unwrap();
        let Work::Generate { prompt, settings } = work(&["--prompt-file", path]).unwrap() else {
            panic!("it is to be generated");
        };
        assert_eq!(
            (prompt, settings.max_tokens),
            (Prompt::Text("Zwölf\n".into()), MAX_TOKENS)
        );
        fs::write(file.path(), b"a\xff").unwrap();
        let error = work(&["--prompt-file", path]).unwrap_err();
        assert!(error.to_string().contains("not UTF-8 from byte 1 on"), "{error}");
    }

    fn prompt(flags: &[&str]) -> Prompt {
        match work(flags).unwrap() {
            Work::Generate { prompt, .. } => prompt,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_prompt_is_asked_unless_it_is_raw_and_a_system_message_or_a_file_makes_a_conversation() {
        assert_eq!(prompt(&["--prompt", "p"]), Prompt::Text("p".into()));
        assert_eq!(prompt(&["--prompt", "p", "--raw"]), Prompt::Raw("p".into()));
        let told = vec![Message::new("system", "s"), Message::new("user", "p")];
        assert_eq!(
            prompt(&["--prompt", "p", "--system", "s"]),
            Prompt::Chat(told.clone())
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), serde_json::to_vec(&told).unwrap()).unwrap();
        let path = file.path().to_str().unwrap();
        assert_eq!(prompt(&["--messages", path]), Prompt::Chat(told));
        for wrong in [
            "{}",
            r#"[{"role": "user"}]"#,
            r#"[{"role": "user", "content": ["a"]}]"#,
        ] {
            fs::write(file.path(), wrong).unwrap();
            let error = work(&["--messages", path]).unwrap_err().to_string();
            assert!(
                error.contains("is no conversation") && error.contains("\"content\""),
                "{error}"
            );
        }
    }

    #[test]
    fn what_no_provider_could_use_is_refused_before_it_is_paid_for() {
        let refused = |flags: &[&str]| match work(flags).unwrap_err() {
            CliError::Text(TextInputError::Input(fault)) => fault,
            other => panic!("{other}"),
        };
        assert_eq!(refused(&["--prompt", ""]), InputFault::Empty);
        for wrong in ["0", "4097"] {
            let fault = refused(&["--prompt", "p", "--max-tokens", wrong]);
            let InputFault::OutOfRange { setting, .. } = fault else {
                panic!("{fault}");
            };
            assert_eq!(setting, "max_tokens");
        }
    }

    #[test]
    fn one_kind_of_work_at_a_time_with_flags_of_its_own() {
        for wrong in [
            &[] as &[&str],
            &["--file", "f", "--prompt", "p", "--out", "o"],
            &["--prompt", "p", "--prompt-file", "f"],
            &["--prompt", "p", "--messages", "f"],
            &["--messages", "f", "--system", "s"],
            &["--messages", "f", "--raw"],
            &["--prompt", "p", "--raw", "--system", "s"],
            &["--file", "f", "--out", "o", "--raw"],
            &["--file", "f", "--out", "o", "--max-tokens", "9"],
            &["--file", "f", "--out", "o", "--follow"],
            &["--file", "f"],
            &["--prompt", "p", "--temperature", "11"],
            &["--prompt", "p", "--top-p", "0"],
            &["--prompt", "p", "--follow", "--detach"],
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_prompt_is_asked_where_the_model_has_a_chat_template_and_it_is_said() {
        let encoded = |flags: &[&str], has_template: bool| {
            let codec = chat_codec("chatml", has_template).unwrap();
            let encoded = work(flags).unwrap().encode(&codec, &Here, None);
            encoded.map(|encoded| (encoded.input, encoded.asked))
        };
        let asked = encoded(&["--prompt", "p"], true).unwrap();
        let raw = encoded(&["--prompt", "p", "--raw"], true).unwrap();
        assert!(asked.1 && !raw.1 && asked.0.len() > raw.0.len());
        assert_eq!(encoded(&["--prompt", "p"], false).unwrap(), raw);
        let told = encoded(&["--prompt", "p", "--system", "s"], true).unwrap();
        assert!(!told.1 && told.0.len() > asked.0.len());
        let error = encoded(&["--prompt", "p", "--system", "s"], false).unwrap_err();
        assert!(error.to_string().contains("no chat template"), "{error}");
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn what_was_said_to_be_paid_must_be_enough() {
        assert_eq!(units(13, None).unwrap(), 13);
        assert_eq!(units(13, Some(20)).unwrap(), 20);
        assert!(matches!(units(13, Some(12)), Err(CliError::Usage(_))));
    }
}
