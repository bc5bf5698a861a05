//! What a client wants computed: from flags to an input blob, and what it will cost in units.

use std::{fs, path::Path};

use surety_client::text::{Input, TextInputError};
use surety_models::tokens::{ITEMS_MAX, LinesFault, TextCodec, lines};
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
    /// A prompt to go on from.
    Generate {
        /// The prompt.
        prompt: String,
        /// How it is continued.
        settings: Settings,
    },
}

/// An input blob, and what it costs.
#[derive(Debug)]
pub(super) struct Encoded {
    /// The input blob.
    pub(super) input: Bytes,
    /// Units to pay for.
    pub(super) units_max: u32,
}

/// Reads what is to be computed. What is wrong with it without the model's tokenizer is found here.
///
/// # Errors
/// When a file cannot be read, or the text is not what the operation takes.
pub(super) fn read(args: &SpecArgs) -> Result<Work> {
    match (&args.file, &args.prompt, &args.prompt_file) {
        (Some(file), ..) => embed(file, args.units_max),
        (_, Some(prompt), _) => generate(args, prompt.clone()),
        (.., Some(file)) => generate(args, prompt_from(file)?),
        // The parser asks for one of them.
        (None, None, None) => Err(CliError::Usage("nothing is to be computed".into())),
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

fn generate(args: &SpecArgs, prompt: String) -> Result<Work> {
    let flags = &args.generate;
    let settings = Settings {
        max_tokens: flags.max_tokens.unwrap_or(MAX_TOKENS),
        temperature_milli: flags.temperature.unwrap_or(0),
        top_k: flags.top_k.unwrap_or(0),
        top_p_milli: flags.top_p.unwrap_or(TOP_P_MILLI_MAX),
        seed: flags.seed.unwrap_or(0),
    };
    settings.check().map_err(TextInputError::from)?;
    if prompt.is_empty() {
        return Err(TextInputError::from(InputFault::Empty).into());
    }
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
    pub(super) fn encode(&self, codec: &TextCodec, said: Option<u32>) -> Result<Encoded> {
        let Input { blob, work } = match self {
            Self::Embed(text) => Input::items(codec, text)?,
            Self::Generate { prompt, settings } => Input::prompt(codec, prompt, settings)?,
        };
        let units_max = match self {
            Self::Embed(_) => work.units_max,
            Self::Generate { .. } => units(work.units_max, said)?,
        };
        Ok(Encoded {
            input: blob.into(),
            units_max,
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
        assert_eq!((prompt.as_str(), settings), ("Call me", expected));
    }

    #[test]
    fn a_prompt_may_come_from_a_file_as_it_is() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "Zwölf\n").unwrap();
        let path = file.path().to_str().unwrap();
        let Work::Generate { prompt, settings } = work(&["--prompt-file", path]).unwrap() else {
            panic!("it is to be generated");
        };
        assert_eq!((prompt.as_str(), settings.max_tokens), ("Zwölf\n", MAX_TOKENS));
        fs::write(file.path(), b"a\xff").unwrap();
        let error = work(&["--prompt-file", path]).unwrap_err();
        assert!(error.to_string().contains("not UTF-8 from byte 1 on"), "{error}");
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
    fn what_was_said_to_be_paid_must_be_enough() {
        assert_eq!(units(13, None).unwrap(), 13);
        assert_eq!(units(13, Some(20)).unwrap(), 20);
        assert!(matches!(units(13, Some(12)), Err(CliError::Usage(_))));
    }
}
