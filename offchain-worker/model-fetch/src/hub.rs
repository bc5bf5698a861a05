//! The model hub: one HTTP request a file, resumed by range.

use std::{io::ErrorKind, path::Path, thread, time::Duration};

use ureq::{
    Agent, Body, Timeout,
    http::{Response, header},
};

use super::{
    FetchEvent, FetchOptions, OnEvent,
    error::FetchError,
    file::{Received, Wanted, receive},
    missing,
};
use surety_models::{KnownModel, ModelFile};

/// Attempts that bring no new byte, one after the other, before the source is given up.
const FRUITLESS_MAX: u32 = 3;

/// First pause before another attempt; each fruitless one doubles it.
const PAUSE: Duration = Duration::from_millis(250);

/// Fetches those of these files that are not there yet.
pub(super) fn fetch(
    model: &KnownModel,
    files: &[ModelFile],
    options: &FetchOptions,
    staging: &Path,
    on_event: OnEvent<'_>,
) -> Result<(), FetchError> {
    let agent = agent(options);
    let (repository, revision) = model.hub;
    for wanted in missing(model, files, staging)? {
        let url = url(options, repository, revision, &wanted.name);
        download(&agent, &url, &wanted, on_event)?;
    }
    Ok(())
}

pub(super) fn agent(options: &FetchOptions) -> Agent {
    Agent::config_builder()
        .timeout_resolve(Some(options.connect_timeout))
        .timeout_connect(Some(options.connect_timeout))
        .timeout_recv_response(Some(options.stall_timeout))
        .timeout_per_read(Some(options.stall_timeout))
        .http_status_as_error(false)
        // Ranges count the bytes that are sent: no compression.
        .accept_encoding("identity")
        .build()
        .into()
}

pub(super) fn url(options: &FetchOptions, repository: &str, revision: &str, file: &str) -> String {
    let hub = options.hub_url.trim_end_matches('/');
    format!("{hub}/{repository}/resolve/{revision}/{file}")
}

/// How long a file is, by the server. Not believed: no byte more than that is taken.
pub(super) fn length(agent: &Agent, url: &str) -> Result<u64, FetchError> {
    let response = agent.head(url).call().map_err(|error| failure(url, &error))?;
    match response.status().as_u16() {
        200 => {}
        status => {
            return Err(FetchError::Status {
                url: url.into(),
                status,
            });
        }
    }
    let length = response.headers().get(header::CONTENT_LENGTH);
    length
        .and_then(|length| length.to_str().ok()?.parse().ok())
        .ok_or_else(|| FetchError::UnknownLength { url: url.into() })
}

pub(super) fn download(
    agent: &Agent,
    url: &str,
    wanted: &Wanted,
    on_event: OnEvent<'_>,
) -> Result<(), FetchError> {
    let resumed = wanted.part_bytes() > 0;
    complete_part(agent, url, wanted, on_event)?;
    match wanted.settle() {
        // What an earlier run has left may be at fault, not this server.
        Err(FetchError::WrongHash { .. }) if resumed => {
            complete_part(agent, url, wanted, on_event)?;
            wanted.settle()
        }
        settled => settled,
    }
}

/// Asks until all bytes are there, as long as every few attempts bring some.
fn complete_part(agent: &Agent, url: &str, wanted: &Wanted, on_event: OnEvent<'_>) -> Result<(), FetchError> {
    let mut fruitless = 0;
    loop {
        if wanted.part_bytes() > wanted.bytes {
            wanted.discard();
        }
        let before = wanted.part_bytes();
        if before == wanted.bytes {
            return Ok(());
        }
        let error = match attempt(agent, url, wanted, before, on_event) {
            Ok(()) => return Ok(()),
            Err(error) if is_passing(&error) => error,
            Err(error) => return Err(error),
        };
        fruitless = if wanted.part_bytes() > before {
            0
        } else {
            fruitless + 1
        };
        if fruitless == FRUITLESS_MAX {
            return Err(error);
        }
        on_event(FetchEvent::Resuming {
            file: wanted.name.clone(),
            reason: error.to_string(),
        });
        thread::sleep(PAUSE * 2u32.saturating_pow(fruitless));
    }
}

/// One request for the bytes from `before` on.
fn attempt(
    agent: &Agent,
    url: &str,
    wanted: &Wanted,
    before: u64,
    on_event: OnEvent<'_>,
) -> Result<(), FetchError> {
    let mut request = agent.get(url);
    if before > 0 {
        request = request.header(header::RANGE, format!("bytes={before}-"));
    }
    let response = request.call().map_err(|error| failure(url, &error))?;
    let start = match response.status().as_u16() {
        // The whole file, whether a range was asked for or not.
        200 => 0,
        206 if range_start(&response) == Some(before) => before,
        // Another range than the one asked for, or none that exists: what is here does not fit to the file
        // there.
        206 | 416 => {
            wanted.discard();
            return Err(FetchError::Connection {
                url: url.into(),
                reason: format!("the server gives no bytes from {before} on"),
            });
        }
        status => {
            return Err(FetchError::Status {
                url: url.into(),
                status,
            });
        }
    };
    if let Some(length) = response.body().content_length() {
        let announced = start.saturating_add(length);
        if announced != wanted.bytes {
            return Err(wanted.wrong_size(announced));
        }
    }
    let part = wanted.open_part(start > 0)?;
    match receive(wanted, response.into_body().into_reader(), part, start, on_event) {
        Ok(Received::All) => Ok(()),
        Ok(Received::CutOff(reason)) => Err(FetchError::Connection {
            url: url.into(),
            reason,
        }),
        Err(error) => {
            if matches!(error, FetchError::WrongSize { .. }) {
                wanted.discard();
            }
            Err(error)
        }
    }
}

/// First byte of the range in `Content-Range: bytes FIRST-LAST/TOTAL`.
fn range_start(response: &Response<Body>) -> Option<u64> {
    let value = response.headers().get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (first, _) = value.strip_prefix("bytes ")?.split_once('-')?;
    first.parse().ok()
}

fn failure(url: &str, error: &ureq::Error) -> FetchError {
    let (url, reason) = (url.into(), error.to_string());
    let broke = match error {
        ureq::Error::Io(error) => matches!(
            error.kind(),
            ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
                | ErrorKind::UnexpectedEof
                | ErrorKind::TimedOut
        ),
        ureq::Error::Timeout(timeout) => !matches!(timeout, Timeout::Resolve | Timeout::Connect),
        ureq::Error::Protocol(_) => true,
        _ => false,
    };
    if broke {
        FetchError::Connection { url, reason }
    } else {
        FetchError::Unreachable { url, reason }
    }
}

/// Whether asking again may help.
fn is_passing(error: &FetchError) -> bool {
    match error {
        FetchError::Connection { .. } => true,
        FetchError::Status { status, .. } => *status == 429 || *status >= 500,
        _ => false,
    }
}
