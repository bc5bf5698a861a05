//! `/v1/chat/completions` and `/v1/completions`, whole or as a stream.

use std::{convert::Infallible, sync::Arc};

use axum::{
    Json,
    body::Body,
    extract::{Request, State},
    http::header,
    response::{IntoResponse, Response},
};
use futures::stream;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

use crate::{
    answer::{ChatChunk, ChatCompletion, Head, TextCompletion, receipt_id},
    api::{Answer, Priced, Shared, blocking, broke, key_of, label, now, open, whole_body},
    drive::{Event, Job, drive},
    error::ApiError,
    ledger::{Key, OpenCall},
    models::offered,
    places::Place,
    prompt::encoded,
    request::{ChatRequest, Generate, TextRequest},
    upstream::GenerationAsk,
};

/// Parts of an answer that wait for a client to read them.
const EVENTS_MAX: usize = 4;

/// Answer a conversation
///
/// What is asked and answered leaves this gateway as ids of tokens, which the provider that answers reads,
/// and auditors of it.
#[utoipa::path(
    post,
    path = "/v1/chat/completions",
    operation_id = "createChatCompletion",
    tag = "answers",
    request_body = ChatRequest,
    responses((
        status = 200,
        description = "The answer; with `stream` its parts, each as an event, and `[DONE]`.",
        content((ChatCompletion = "application/json"), (ChatChunk = "text/event-stream")),
        headers(
            ("x-surety-receipt" = String, description = "The id of its receipt: `/v1/receipts/{id}`"),
            ("x-surety-verdict" = String, description = "What has become of that by now"),
            ("x-surety-privacy" = String, description = "Who reads what is asked and answered"),
            ("x-ratelimit-remaining-requests" = u32, description = "Of this minute"),
            ("x-ratelimit-remaining-tokens" = u32, description = "Of this minute"),
        )
    ))
)]
pub(crate) async fn chat(State(shared): State<Arc<Shared>>, request: Request) -> Answer {
    generate(shared, request, true).await
}

/// Continue a text
///
/// What is asked and answered leaves this gateway as ids of tokens, which the provider that answers reads,
/// and auditors of it.
#[utoipa::path(
    post,
    path = "/v1/completions",
    operation_id = "createCompletion",
    tag = "answers",
    request_body = TextRequest,
    responses((
        status = 200,
        description = "The continuation; with `stream` its parts, each as an event, and `[DONE]`. Headers are \
                       those of `/v1/chat/completions`.",
        content((TextCompletion = "application/json"), (TextCompletion = "text/event-stream"))
    ))
)]
pub(crate) async fn completions(State(shared): State<Arc<Shared>>, request: Request) -> Answer {
    generate(shared, request, false).await
}

async fn generate(shared: Arc<Shared>, request: Request, is_chat: bool) -> Answer {
    let key = key_of(&shared, request.headers()).await?;
    shared.take_request(&key)?;
    let body = whole_body(request).await?;
    let asked = match is_chat {
        true => Generate::chat(&body)?,
        false => Generate::completion(&body)?,
    };
    let (model, text) = offered(&shared, &asked.model, true)?;
    let place = shared.place(&key).await?;
    let (coder, prompt) = (text.clone(), asked.prompt);
    let made = blocking(move || encoded(prompt, asked.settings, &*coder)).await??;
    let (units, prompt_tokens, settings) = (made.units_max(), made.prompt_tokens(), made.settings);
    let left = shared.take_tokens(&key, units)?;
    let priced = Priced {
        model: model.name,
        generates: true,
        units,
    };
    let price_max = priced.now(&shared, &[])?;
    let (name, stops, prompt) = (priced.model.clone(), asked.stops, made.ids);
    let job = move |call: OpenCall, priced: Priced| Job {
        call: call.number,
        ask: GenerationAsk {
            call: call.journal_id,
            model: priced.model.clone(),
            prompt,
            settings,
            price_max,
        },
        priced,
        text,
        stops,
    };
    let (call, mut events) = begin(shared, (key, place), (priced, price_max), job).await?;
    let head = Head {
        is_chat,
        receipt: receipt_id(call),
        model: name,
        created: now(),
        seed: settings.seed,
        prompt_tokens,
    };
    // The first word decides whether there is an answer at all: until then a refusal has a status of its own.
    let first = events.recv().await.ok_or_else(broke)?;
    let mut response = match asked.stream {
        true => match first {
            Event::Failed(error) => return Err(error),
            first => streamed(head.clone(), first, events, asked.include_usage),
        },
        false => collected(&head, first, events).await?,
    };
    label(response.headers_mut(), &head.receipt, &left);
    Ok(response)
}

/// Opens a call, and has it driven: on its own from the reservation on, so that a client that hangs up at any
/// time leaves no call open. Its number, and what its client is told.
async fn begin(
    shared: Arc<Shared>,
    (key, place): (Key, Place),
    (priced, most): (Priced, u128),
    job: impl FnOnce(OpenCall, Priced) -> Job + Send + 'static,
) -> Result<(u64, mpsc::Receiver<Event>), ApiError> {
    let (tell, events) = mpsc::channel(EVENTS_MAX);
    let (opened, number) = oneshot::channel();
    tokio::spawn(async move {
        match open(&shared, &key, &priced.model, most).await {
            Ok(call) => {
                opened.send(Ok(call.number)).ok();
                drive(shared, job(call, priced), tell).await;
            }
            Err(error) => {
                opened.send(Err(error)).ok();
            }
        }
        drop(place);
    });
    let number = number.await.map_err(|_| broke())??;
    Ok((number, events))
}

async fn collected(head: &Head, first: Event, mut events: mpsc::Receiver<Event>) -> Answer {
    let (mut text, mut ids, mut next) = (String::new(), Vec::new(), first);
    loop {
        match next {
            Event::Delta { text: more, ids: new } => {
                text.push_str(&more);
                ids.extend(new);
            }
            Event::Failed(error) => return Err(error),
            Event::End { finish, tokens } => {
                return Ok(Json(head.answer(&text, &ids, finish, tokens)).into_response());
            }
        }
        next = events.recv().await.ok_or_else(broke)?;
    }
}

fn streamed(head: Head, first: Event, events: mpsc::Receiver<Event>, include_usage: bool) -> Response {
    let parts = stream::unfold((Some(first), events, false), move |(first, mut events, over)| {
        let head = head.clone();
        async move {
            if over {
                return None;
            }
            let next = match first {
                Some(first) => first,
                None => events.recv().await.unwrap_or_else(|| Event::Failed(broke())),
            };
            let (text, over) = match next {
                Event::Delta { text, ids } => {
                    (data(&head.chunk(Some(&text), None, &ids, include_usage)), false)
                }
                Event::Failed(error) => (data(&error.body()), true),
                Event::End { finish, tokens } => {
                    let mut last = data(&head.chunk(None, Some(finish), &[], include_usage));
                    if include_usage {
                        last.push_str(&data(&head.usage_chunk(tokens)));
                    }
                    last.push_str("data: [DONE]\n\n");
                    (last, true)
                }
            };
            Some((Ok::<_, Infallible>(text), (None, events, over)))
        }
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, Body::from_stream(parts)).into_response()
}

fn data(value: &impl Serialize) -> String {
    match serde_json::to_string(value) {
        Ok(value) => format!("data: {value}\n\n"),
        Err(error) => {
            tracing::error!(%error, "a part of an answer cannot be written");
            String::new()
        }
    }
}
