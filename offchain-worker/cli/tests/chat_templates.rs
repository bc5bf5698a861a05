//! Hostile chat templates against the real binary, which renders them in a process of its own.
#![allow(clippy::unwrap_used, missing_docs)]

use std::time::{Duration, Instant};

use surety_models::chat::{Facts, Here, Job, Message, OwnProcess, RenderFault, Renderer};

const SURETY: &str = env!("CARGO_BIN_EXE_surety");

fn job(template: &str, content: &str) -> Job {
    Job {
        template: template.into(),
        messages: vec![Message::new("system", "S"), Message::new("user", content)],
        facts: Facts {
            tokens: [("bos_token".to_owned(), "<s>".to_owned())].into(),
            unix_seconds: 951_782_400,
        },
    }
}

fn own_process() -> OwnProcess {
    OwnProcess::new(SURETY, &["render-chat-template"])
}

/// Lists of lists: each holds the one before it twice.
fn doubled(then: &str) -> String {
    format!(
        "{{% set n = namespace(x=[1], y=[1]) %}}{{% for i in range(60) %}}{{% set n.x = [n.x, n.x] %}}\
         {{% set n.y = [n.y, n.y] %}}{{% endfor %}}{then}"
    )
}

#[test]
fn a_template_that_fuel_does_not_stop_ends_its_own_process_and_nothing_else() {
    for (limit, hostile) in [
        ("memory, by text", doubled("{{ (n.x ~ '') | length }}")),
        ("memory, by JSON", doubled("{{ n.x | tojson | length }}")),
        ("time", doubled("{{ n.x == n.y }}")),
        (
            "stack",
            "{% set n = namespace() %}{% set n.x = n %}{{ n }}".into(),
        ),
        (
            "fuel",
            "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}".into(),
        ),
    ] {
        let begun = Instant::now();
        let made = own_process().render(&job(&hostile, "hi"));
        assert_eq!(made, Err(RenderFault::OutOfBounds), "{limit}");
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{limit}: {:?}",
            begun.elapsed()
        );
    }
}

#[test]
fn a_process_of_its_own_makes_the_text_that_would_be_made_here() {
    for (template, content) in [
        (
            "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content | trim }}\n{% endfor %}",
            " Zoë\u{FDD0} ",
        ),
        (
            "{{ strftime_now('%Y') }}{{ raise_exception('no ' ~ messages[1].content) }}",
            "more",
        ),
        ("{% if %}", ""),
        ("{{ messages[1].content }}", &"long ".repeat(200_000)),
    ] {
        let job = job(template, content);
        assert_eq!(own_process().render(&job), Here.render(&job), "{template}");
    }
}

#[test]
fn what_cannot_be_started_or_is_no_surety_is_said_to_be_no_process() {
    for (program, argument) in [
        ("/nowhere/surety", "render-chat-template"),
        (SURETY, "render-nothing"),
    ] {
        let made = OwnProcess::new(program, &[argument]).render(&job("x", "hi"));
        assert!(
            matches!(made, Err(RenderFault::NoProcess(_))),
            "{program}: {made:?}"
        );
    }
}
