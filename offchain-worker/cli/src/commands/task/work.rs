//! What a client wants computed: from flags to an input blob, and what it will cost in units.

use std::{fs, path::Path};

use surety_engine::{
    generation::{Request, RequestError},
    input,
};
use surety_models::{ModelStore, PromptSize, prompt_size};
use surety_network::Bytes;
use surety_types::model::Operation;

use crate::{
    args::SubmitArgs,
    error::{CliError, Result},
    models,
};

/// Tokens to add when nothing was said.
const MAX_TOKENS: u32 = 128;

/// Tokens that a tokenizer may add to a prompt by itself, and then some. What is not used is not paid.
const TOKENS_BESIDE: u32 = 8;

/// An operation on an input.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) operation: Operation,
    /// The input blob.
    pub(super) input: Bytes,
    /// Most units to pay for.
    pub(super) units_max: u32,
}

/// Reads what is to be computed. Whatever is wrong with it is found here, before anything is paid for.
///
/// # Errors
/// When a file cannot be read, or the input is not what the operation takes.
pub(super) fn read(args: &SubmitArgs, store: &ModelStore) -> Result<Work> {
    match (&args.file, &args.prompt, &args.prompt_file) {
        (Some(file), ..) => embed(file, args.units_max),
        (_, Some(prompt), _) => generate(args, prompt.clone(), store),
        (.., Some(file)) => generate(args, prompt_from(file)?, store),
        // The parser asks for one of them.
        (None, None, None) => Err(CliError::Usage("nothing is to be computed".into())),
    }
}

fn embed(file: &Path, units_max: Option<u32>) -> Result<Work> {
    let text = fs::read(file).map_err(CliError::file(file))?;
    let items = input::items(&text, units_max.unwrap_or(u32::MAX)).map_err(|source| CliError::Input {
        path: file.to_owned(),
        source,
    })?;
    let units =
        u32::try_from(items.len()).map_err(|_| CliError::Internal("more items than are counted".into()))?;
    Ok(Work {
        operation: Operation::Embed,
        input: text.into(),
        units_max: units_max.unwrap_or(units),
    })
}

fn prompt_from(file: &Path) -> Result<String> {
    let bytes = fs::read(file).map_err(CliError::file(file))?;
    String::from_utf8(bytes).map_err(|error| CliError::Input {
        path: file.to_owned(),
        source: surety_engine::InputError::NotUtf8 {
            at: error.utf8_error().valid_up_to(),
        },
    })
}

fn generate(args: &SubmitArgs, prompt: String, store: &ModelStore) -> Result<Work> {
    let flags = &args.generate;
    let request = Request {
        prompt,
        max_tokens: flags.max_tokens.unwrap_or(MAX_TOKENS),
        temperature_milli: flags.temperature.unwrap_or(0),
        top_k: flags.top_k.unwrap_or(0),
        top_p_milli: flags.top_p.unwrap_or(1000),
        seed: flags.seed.unwrap_or(0),
    };
    if request.prompt.is_empty() {
        return Err(RequestError::NoTokens.into());
    }
    let input = request.encode();
    // As a provider will read it.
    let request = Request::decode(&input)?;
    let units_max = units(&request, size_here(store, &args.model, &request), args.units_max)?;
    Ok(Work {
        operation: Operation::Generate,
        input: input.into(),
        units_max,
    })
}

/// The prompt's size, where the model's files are here and sound. Without them a client can post all the
/// same.
fn size_here(store: &ModelStore, model: &str, request: &Request) -> Option<PromptSize> {
    let manifest = models::local(store, model).ok()?;
    let stored = store.find(manifest.id()).ok()?;
    let size = prompt_size(&stored, &request.prompt);
    size.inspect_err(|e| tracing::warn!(error = %e, "the prompt's tokens cannot be counted here"))
        .ok()
        .flatten()
}

/// Most units that the request can come to, or what was said if that can be enough.
fn units(request: &Request, size: Option<PromptSize>, said: Option<u32>) -> Result<u32> {
    let max_tokens = request.max_tokens;
    if let Some(size) = size {
        let prompt = size.tokens;
        if prompt == 0 {
            return Err(RequestError::NoTokens.into());
        }
        let all = prompt.saturating_add(max_tokens);
        if let Some(context) = size.context.filter(|context| all > *context) {
            return Err(RequestError::ContextExceeded {
                prompt,
                max_tokens,
                context,
            }
            .into());
        }
        if let Some(units_max) = said.filter(|said| all > *said) {
            return Err(RequestError::Unpaid {
                prompt,
                max_tokens,
                units_max,
            }
            .into());
        }
    }
    // A token takes at least one byte of the prompt.
    let bytes = u32::try_from(request.prompt.len()).unwrap_or(u32::MAX);
    let bound = size
        .map_or(bytes, |size| size.tokens)
        .saturating_add(max_tokens)
        .saturating_add(TOKENS_BESIDE);
    Ok(said.unwrap_or(bound))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command, TaskCommand};

    fn parse(flags: &[&str]) -> std::result::Result<SubmitArgs, clap::Error> {
        let line = ["surety", "task", "submit", "--model", "m", "--cap", "1"];
        match Cli::try_parse_from(line.iter().chain(flags))?.command {
            Command::Task(TaskCommand::Submit(args)) => Ok(*args),
            other => panic!("{other:?}"),
        }
    }

    fn work(flags: &[&str]) -> Result<Work> {
        let dir = tempfile::tempdir().unwrap();
        read(&parse(flags).unwrap(), &ModelStore::new(dir.path()))
    }

    #[test]
    fn an_input_with_more_units_than_are_paid_for_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "a\n\nb\n").unwrap();
        let path = file.path().to_str().unwrap();
        assert_eq!(work(&["--file", path, "--out", "o"]).unwrap().units_max, 2);
        let few = work(&["--file", path, "--out", "o", "--units-max", "1"]);
        assert!(matches!(few, Err(CliError::Input { .. })));
    }

    #[test]
    fn flags_become_the_request_that_a_provider_reads() {
        let flags = "--max-tokens 9 --temperature 0.8 --top-k 40 --top-p 0.95 --seed 7";
        let flags: Vec<&str> = ["--prompt", "Call me"]
            .into_iter()
            .chain(flags.split(' '))
            .collect();
        let made = work(&flags).unwrap();
        assert_eq!(made.operation, Operation::Generate);
        let request = Request {
            prompt: "Call me".into(),
            max_tokens: 9,
            temperature_milli: 800,
            top_k: 40,
            top_p_milli: 950,
            seed: 7,
        };
        assert_eq!(Request::decode(&made.input), Ok(request));
        assert_eq!(made.units_max, 7 + 9 + TOKENS_BESIDE, "a byte is a token at most");
    }

    #[test]
    fn a_prompt_may_come_from_a_file_as_it_is() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "Zwölf\n").unwrap();
        let path = file.path().to_str().unwrap();
        let request = Request::decode(&work(&["--prompt-file", path]).unwrap().input).unwrap();
        assert_eq!(
            (request.prompt.as_str(), request.max_tokens),
            ("Zwölf\n", MAX_TOKENS)
        );
        fs::write(file.path(), b"a\xff").unwrap();
        let error = work(&["--prompt-file", path]).unwrap_err();
        assert!(error.to_string().contains("not UTF-8 from byte 1 on"), "{error}");
    }

    #[test]
    fn what_no_provider_could_use_is_refused_before_it_is_paid_for() {
        let refused = |flags: &[&str]| match work(flags).unwrap_err() {
            CliError::Request(fault) => fault,
            other => panic!("{other}"),
        };
        assert_eq!(refused(&["--prompt", ""]), RequestError::NoTokens);
        let field = |fault| match fault {
            RequestError::OutOfRange { field, .. } => field,
            other => panic!("{other}"),
        };
        for wrong in ["0", "4097"] {
            assert_eq!(
                field(refused(&["--prompt", "p", "--max-tokens", wrong])),
                "max_tokens"
            );
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(
            file.path(),
            "p".repeat(surety_engine::generation::REQUEST_BYTES_MAX),
        )
        .unwrap();
        let path = file.path().to_str().unwrap();
        assert!(matches!(
            refused(&["--prompt-file", path]),
            RequestError::TooLarge { .. }
        ));
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
    fn with_the_model_at_hand_the_bound_is_near_and_the_context_known() {
        let request = Request::decode(br#"{"prompt":"a longer prompt","max_tokens":10}"#).unwrap();
        let size = |tokens, context| Some(PromptSize { tokens, context });
        assert_eq!(
            units(&request, size(3, Some(64)), None).unwrap(),
            13 + TOKENS_BESIDE
        );
        assert_eq!(units(&request, size(3, None), Some(13)).unwrap(), 13);
        let fault = |size, said| match units(&request, size, said).unwrap_err() {
            CliError::Request(fault) => fault,
            other => panic!("{other}"),
        };
        assert!(matches!(
            fault(size(55, Some(64)), None),
            RequestError::ContextExceeded { prompt: 55, .. }
        ));
        assert!(matches!(
            fault(size(3, None), Some(12)),
            RequestError::Unpaid { .. }
        ));
        assert_eq!(fault(size(0, None), None), RequestError::NoTokens);
    }
}
