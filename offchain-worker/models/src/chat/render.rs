//! Rendering a template, with what those expect that are written for `transformers`.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

use minijinja::{Environment, Error, ErrorKind, Value, syntax::SyntaxConfig};
use serde::{Deserialize, Serialize};

use super::{Message, date, json, marks};

/// Longest template, in bytes. Published ones have up to some ten thousand.
const TEMPLATE_BYTES_MAX: usize = 64 << 10;
/// Longest text that comes of one, in bytes, marks included.
pub(super) const TEXT_BYTES_MAX: usize = 8 << 20;
/// What a template may do: an instruction, or 64 bytes that it makes or looks at, are one. A hundred would do
/// for each message.
const FUEL: u64 = 1_000_000;
/// How deep loops and macros may be nested when they run; a macro counts for several.
const DEPTH_MAX: usize = 100;
/// Longest message of a template or of the template library that is passed on, in characters.
const WORDS_MAX: usize = 500;

/// What a template is told beside the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Special tokens as text, by what templates call them: `bos_token`, `eos_token`.
    pub tokens: BTreeMap<String, String>,
    /// Seconds since 1970: some templates name the day.
    pub unix_seconds: u64,
}

/// A template, and what it is to be rendered with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The template.
    pub template: String,
    /// The conversation.
    pub messages: Vec<Message>,
    /// What else there is to know.
    pub facts: Facts,
}

/// Why a template makes no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum RenderFault {
    /// The template is none.
    #[error("the model's chat template cannot be read ({0}): give it a plain prompt, or use another model")]
    Malformed(String),
    /// The template refuses the conversation, in its own words.
    #[error("the model's chat template refuses the conversation: {0}")]
    Refused(String),
    /// The template works without end, or takes too much memory.
    #[error(
        "the model's chat template takes more time or memory than any conversation needs, and was stopped: use \
         another model"
    )]
    OutOfBounds,
    /// Its text is too long.
    #[error("the model's chat template makes a text of {0} bytes, but at most {TEXT_BYTES_MAX} are taken")]
    TooMuchText(usize),
    /// The template fails.
    #[error("the model's chat template fails on the conversation: {0}")]
    Failed(String),
    /// It could not be rendered here.
    #[error("no process could be started for the model's chat template: {0}")]
    NoProcess(String),
}

/// The text that a template makes of a conversation.
///
/// # Errors
/// [`RenderFault`]. Some hostile templates end the process, or never end: see [`super::OwnProcess`].
pub fn render(job: &Job) -> Result<String, RenderFault> {
    check(&job.template)?;
    // The library was not written for hostile files.
    let text = catch_unwind(AssertUnwindSafe(|| rendered(job)))
        .unwrap_or_else(|_| Err(RenderFault::Failed("the template library panicked".into())))?;
    match text.len() {
        len if len > TEXT_BYTES_MAX => Err(RenderFault::TooMuchText(len)),
        _ => Ok(text),
    }
}

/// Refuses what is no template at a glance.
///
/// # Errors
/// [`RenderFault::Malformed`].
pub(crate) fn check(template: &str) -> Result<(), RenderFault> {
    if template.len() > TEMPLATE_BYTES_MAX {
        let reason = format!(
            "it has {} bytes, but at most {TEMPLATE_BYTES_MAX} are taken",
            template.len()
        );
        return Err(RenderFault::Malformed(reason));
    }
    if template.contains(marks::is_mark) {
        let reason = "there are code points in it that stand for no character";
        return Err(RenderFault::Malformed(reason.into()));
    }
    Ok(())
}

fn rendered(job: &Job) -> Result<String, RenderFault> {
    let environment = environment(job.facts.unix_seconds);
    let source = without_generation_tags(&job.template);
    let template = environment.template_from_str(&source);
    let template = template.map_err(|error| RenderFault::Malformed(words(&error)))?;
    // There are none, and `transformers` says so, too.
    let absent = ["tools", "documents"].map(|name| (name.to_owned(), Value::from(())));
    let tokens = &job.facts.tokens;
    let mut context: BTreeMap<String, Value> = absent.into();
    context.insert("messages".into(), job.messages.iter().map(value).collect());
    context.insert("add_generation_prompt".into(), true.into());
    context.extend(
        tokens
            .iter()
            .map(|(name, text)| (name.clone(), text.as_str().into())),
    );
    template.render(Value::from_pairs(context)).map_err(fault)
}

fn value(message: &Message) -> Value {
    let Message { role, content } = message;
    Value::from_pairs([("role", role.as_str()), ("content", content.as_str())])
}

/// What templates expect to find: blocks that leave no blank lines, loops that can be left, methods of
/// Python's strings and lists, and a few functions.
fn environment(unix_seconds: u64) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(DEPTH_MAX);
    if let Ok(syntax) = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()
    {
        environment.set_syntax(syntax);
    }
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_filter("tojson", json::to_json);
    environment.add_function("raise_exception", |reason: String| -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, "raised").with_source(Raised(reason)))
    });
    environment.add_function("strftime_now", move |format: &str| {
        date::formatted(unix_seconds, format)
            .map_err(|reason| Error::new(ErrorKind::InvalidOperation, reason))
    });
    environment
}

/// `{% generation %}` marks for trainers what the model says, and is a tag of `transformers` alone.
fn without_generation_tags(template: &str) -> String {
    let mut source = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, tag)) = rest.split_once("{%") {
        source.push_str(before);
        source.push_str("{%");
        let (inner, after) = tag.split_once("%}").unwrap_or((tag, ""));
        let word = inner.trim_matches(['-', '+']).trim();
        let (word, known) = match word {
            "generation" => (word, "if true"),
            "endgeneration" => (word, "endif"),
            _ => {
                rest = tag;
                continue;
            }
        };
        source.push_str(&inner.replacen(word, known, 1));
        source.push_str("%}");
        rest = after;
    }
    source.push_str(rest);
    source
}

/// A template said so itself.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Raised(String);

fn fault(error: Error) -> RenderFault {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(this) = cause {
        if let Some(Raised(reason)) = this.downcast_ref() {
            return RenderFault::Refused(one_line(reason));
        }
        if this
            .downcast_ref()
            .is_some_and(|error: &Error| error.kind() == ErrorKind::OutOfFuel)
        {
            return RenderFault::OutOfBounds;
        }
        cause = this.source();
    }
    RenderFault::Failed(words(&error))
}

/// What the library says, in one line.
fn words(error: &Error) -> String {
    one_line(&error.to_string())
}

/// Another's words, without what could steer a terminal.
fn one_line(text: &str) -> String {
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let shown = text.chars().filter(|c| !marks::is_mark(*c));
    shown.map(printable).take(WORDS_MAX).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn made(template: &str) -> Result<String, RenderFault> {
        let tokens = [("bos_token".to_owned(), "<s>".to_owned())];
        render(&Job {
            template: template.into(),
            messages: vec![Message::new("user", "hi")],
            facts: Facts {
                tokens: tokens.into(),
                unix_seconds: 951_782_400,
            },
        })
    }

    #[test]
    fn what_costs_too_much_fuel_or_depth_ends_in_an_error_that_says_so() {
        for endless in [
            "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
            "{% set n = namespace(x='x') %}{% for i in range(64) %}{% set n.x = n.x + n.x %}{% endfor %}{{ n.x }}",
            "{{ 'x' * 1000000000 }}",
            "{{ ('x' * 60000) | replace('x', 'y' * 60000) | length }}",
        ] {
            assert_eq!(made(endless), Err(RenderFault::OutOfBounds), "{endless}");
        }
        for failing in [
            "{% for i in range(10**9) %}{% endfor %}",
            "{{ ([1] * 10000000000) ~ '' }}",
            "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
            "{{ nothing() }}",
        ] {
            let fault = made(failing).unwrap_err();
            assert!(matches!(fault, RenderFault::Failed(_)), "{failing}: {fault}");
        }
        let much = "{% for i in range(90) %}{{ 'x' * 100000 }}{% endfor %}";
        assert_eq!(made(much), Err(RenderFault::TooMuchText(9_000_000)));
    }

    #[test]
    fn what_is_no_template_is_not_rendered() {
        let nested = format!("{{{{ {}1{} }}}}", "(".repeat(10_000), ")".repeat(10_000));
        let long = "x".repeat(TEMPLATE_BYTES_MAX + 1);
        let reaching_out = "{% include '/etc/passwd' %}";
        for malformed in [
            "{% for %}",
            "{{ messages",
            "{%",
            &nested,
            &long,
            reaching_out,
            "\u{FDD0}",
        ] {
            let fault = made(malformed).unwrap_err();
            assert!(
                matches!(fault, RenderFault::Malformed(_)),
                "{malformed:.50}: {fault}"
            );
        }
    }

    #[test]
    fn a_template_refuses_in_its_own_words() {
        let refused = made("{{ raise_exception('roles must\nalternate \\u001b[2J') }}").unwrap_err();
        assert!(matches!(&refused, RenderFault::Refused(words) if words.starts_with("roles must alternate")));
        assert!(!refused.to_string().contains(char::is_control), "{refused}");
        let within = "{% macro f() %}{{ raise_exception('no') }}{% endmacro %}{{ f() }}";
        assert_eq!(made(within), Err(RenderFault::Refused("no".into())));
    }

    #[test]
    fn templates_find_what_they_are_written_for() {
        for (template, text) in [
            ("{{ strftime_now('%d %b %Y') }}", "29 Feb 2000"),
            (
                "{{ {'a': [1, 'ü'], 'b': none} | tojson }}",
                r#"{"a": [1, "ü"], "b": null}"#,
            ),
            ("{{ [1] | tojson(indent=2) }}", "[\n  1\n]"),
            ("{{ ' a b '.strip().split(' ')[1].upper() }}", "B"),
            (
                "{% for i in range(9) %}{% if i > 1 %}{% break %}{% endif %}{{ i }}{% endfor %}",
                "01",
            ),
            (
                "{% if tools is none and not (x is defined) %}{{ bos_token }}{% endif %}\n",
                "<s>",
            ),
            ("{% if true %}\n  {% set a = 1 %}\n{{ a }}\n{% endif %}", "1\n"),
            (
                "{{ messages[0].role }}{{ messages[-1]['role'] }}{{ messages | length }}{{ eos_token }}",
                "useruser1",
            ),
            ("{{ messages[0].tool_calls is defined }}", "False"),
            (
                "{% if true %}\n{%- generation %}\n{{ 1 }}\n{% endgeneration %}\n{% endif %}",
                "1\n",
            ),
        ] {
            assert_eq!(made(template).as_deref(), Ok(text), "{template}");
        }
    }
}
