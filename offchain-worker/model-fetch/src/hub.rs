//! The model hub: one HTTP request a file, resumed by range.

use std::{io::ErrorKind, path::Path, thread, time::Duration};

use ureq::{
    Agent, Body, Timeout,
    http::{HeaderMap, HeaderName, Response, StatusCode, header},
};
use url::{Host, Url};

use super::{
    FetchEvent, FetchOptions, OnEvent,
    error::FetchError,
    file::{Received, Wanted, receive},
    hash::FileHash,
    missing,
    token::Token,
};
use surety_models::{KnownModel, ModelFile};

/// Attempts that bring no new byte, one after the other, before the source is given up.
const FRUITLESS_MAX: u32 = 3;

/// First pause before another attempt; each fruitless one doubles it.
const PAUSE: Duration = Duration::from_millis(250);

/// The hub itself needs two: to a repository's new name, and to where its large files are.
const REDIRECTS_MAX: u32 = 8;

/// Of the commit's id.
const COMMIT_DIGITS: usize = 40;

/// What the hub says of a file, whoever has its bytes.
const REPO_COMMIT: HeaderName = HeaderName::from_static("x-repo-commit");
const LINKED_ETAG: HeaderName = HeaderName::from_static("x-linked-etag");
const LINKED_SIZE: HeaderName = HeaderName::from_static("x-linked-size");

/// Fetches those of these files that are not there yet.
pub(super) fn fetch(
    model: &KnownModel,
    files: &[ModelFile],
    options: &FetchOptions,
    staging: &Path,
    on_event: OnEvent<'_>,
) -> Result<(), FetchError> {
    let (repository, revision) = model.hub;
    let hub = Hub::new(options, repository)?;
    for wanted in missing(model, files, staging)? {
        hub.download(revision, &wanted, on_event)?;
    }
    Ok(())
}

/// A repository on the hub, and who asks for it.
pub(super) struct Hub {
    agent: Agent,
    repository: String,
    /// The repository's own.
    page: Url,
    token: Option<Token>,
}

/// What the hub says of a file before it is asked for its bytes.
pub(super) struct Facts {
    /// The revision's commit.
    pub(super) commit: String,
    pub(super) bytes: u64,
    pub(super) hash: FileHash,
}

#[derive(Clone, Copy, PartialEq)]
enum Ask {
    /// What the hub itself says of a file.
    Facts,
    /// Its bytes from one on up to another, or to its end, wherever the hub has them.
    Bytes { from: u64, until: Option<u64> },
}

impl Ask {
    /// The `Range` header, in which the last byte counts.
    fn range(self) -> Option<String> {
        match self {
            Self::Facts | Self::Bytes { from: 0, until: None } => None,
            Self::Bytes { from, until: None } => Some(format!("bytes={from}-")),
            Self::Bytes {
                from,
                until: Some(until),
            } => Some(format!("bytes={from}-{}", until.saturating_sub(1))),
        }
    }
}

impl Hub {
    /// Asks without a token.
    pub(super) fn new(options: &FetchOptions, repository: &str) -> Result<Self, FetchError> {
        let agent = Agent::config_builder()
            .timeout_resolve(Some(options.connect_timeout))
            .timeout_connect(Some(options.connect_timeout))
            .timeout_recv_response(Some(options.stall_timeout))
            .timeout_per_read(Some(options.stall_timeout))
            .http_status_as_error(false)
            // They are followed here, where it is known who may see the token.
            .max_redirects(0)
            // Ranges count the bytes that are sent: no compression.
            .accept_encoding("identity")
            .build()
            .into();
        let page = format!("{}/{repository}", options.hub_url.trim_end_matches('/'));
        let page = Url::parse(&page).ok();
        let page = page.filter(|page| ["http", "https"].contains(&page.scheme()));
        Ok(Self {
            agent,
            repository: repository.into(),
            page: page.ok_or_else(|| FetchError::HubUrl(options.hub_url.clone()))?,
            token: None,
        })
    }

    /// Asks with a token, which nobody between here and the hub must be able to read.
    pub(super) fn with_token(self, token: Token) -> Result<Self, FetchError> {
        let is_here = match self.page.host() {
            Some(Host::Ipv4(host)) => host.is_loopback(),
            Some(Host::Ipv6(host)) => host.is_loopback(),
            _ => false,
        };
        if self.page.scheme() != "https" && !is_here {
            return Err(FetchError::InsecureHub {
                page: self.page.to_string(),
            });
        }
        let token = Some(token);
        Ok(Self { token, ..self })
    }

    pub(super) fn repository(&self) -> &str {
        &self.repository
    }

    /// What is said where a file that must be there is not.
    pub(super) fn missing(&self, revision: &str, file: &str) -> FetchError {
        FetchError::Missing {
            file: file.into(),
            repository: self.repository.clone(),
            revision: revision.into(),
        }
    }

    /// Where a file of a revision is.
    fn url(&self, revision: &str, file: &str) -> Result<Url, FetchError> {
        let url = format!("{}/resolve/{revision}/{file}", self.page);
        Url::parse(&url).map_err(|_| FetchError::HubUrl(url))
    }

    /// What the hub says of a file; nothing where the repository has none of that name.
    pub(super) fn facts(
        &self,
        revision: &str,
        file: &str,
        on_event: OnEvent<'_>,
    ) -> Result<Option<Facts>, FetchError> {
        let url = self.url(revision, file)?;
        let look = |_: OnEvent<'_>| {
            let response = self.ask(&url, Ask::Facts)?;
            let status = response.status();
            match status.as_u16() {
                404 => Ok(None),
                200..400 => match facts(response.headers(), status.is_success()) {
                    Some(facts) => Ok(Some(facts)),
                    None => Err(FetchError::NoHash { url: url.to_string() }),
                },
                status => Err(refused(&url, status)),
            }
        };
        persistently(file, on_event, || 0, look)
    }

    /// Brings a file, and compares its hash.
    pub(super) fn download(
        &self,
        revision: &str,
        wanted: &Wanted,
        on_event: OnEvent<'_>,
    ) -> Result<(), FetchError> {
        self.complete(revision, wanted, wanted.part_bytes() > 0, on_event)
    }

    /// The same of a file that this run may have begun. `resumed` says whether an earlier one had.
    pub(super) fn complete(
        &self,
        revision: &str,
        wanted: &Wanted,
        resumed: bool,
        on_event: OnEvent<'_>,
    ) -> Result<(), FetchError> {
        let url = self.url(revision, &wanted.name)?;
        self.lengthen(&url, wanted, wanted.bytes, on_event)?;
        match wanted.settle() {
            // What an earlier run has left may be at fault, not this server.
            Err(FetchError::WrongHash { .. }) if resumed => {
                self.lengthen(&url, wanted, wanted.bytes, on_event)?;
                wanted.settle()
            }
            settled => settled,
        }
    }

    /// Brings the first so many bytes of a file, or all that it has. They are compared with nothing.
    pub(super) fn begin(
        &self,
        revision: &str,
        wanted: &Wanted,
        bytes: u64,
        on_event: OnEvent<'_>,
    ) -> Result<(), FetchError> {
        let url = self.url(revision, &wanted.name)?;
        self.lengthen(&url, wanted, bytes.min(wanted.bytes), on_event)
    }

    /// Asks until that many bytes are there, as long as every few attempts bring some.
    fn lengthen(
        &self,
        url: &Url,
        wanted: &Wanted,
        until: u64,
        on_event: OnEvent<'_>,
    ) -> Result<(), FetchError> {
        let attempt = |on_event: OnEvent<'_>| {
            if wanted.part_bytes() > wanted.bytes {
                wanted.discard();
            }
            match wanted.part_bytes() {
                there if there > 0 && there >= until => Ok(()),
                there => self.attempt(url, wanted, (there, until), on_event),
            }
        };
        persistently(&wanted.name, on_event, || wanted.part_bytes(), attempt)
    }

    /// One request for the bytes from `before` on.
    fn attempt(
        &self,
        url: &Url,
        wanted: &Wanted,
        (before, until): (u64, u64),
        on_event: OnEvent<'_>,
    ) -> Result<(), FetchError> {
        let broken = |reason| FetchError::Connection {
            url: url.to_string(),
            reason,
        };
        let end = (until < wanted.bytes).then_some(until);
        let response = self.ask(
            url,
            Ask::Bytes {
                from: before,
                until: end,
            },
        )?;
        let is_part = response.status() == StatusCode::PARTIAL_CONTENT;
        let start = match response.status().as_u16() {
            // The whole file, whether a range was asked for or not.
            200 => 0,
            206 if range_start(&response) == Some(before) => before,
            // Another range than the one asked for, or none that exists: what is here does not fit to the
            // file there.
            206 | 416 => {
                wanted.discard();
                return Err(broken(format!("the server gives no bytes from {before} on")));
            }
            status => return Err(refused(url, status)),
        };
        if let Some(length) = response.body().content_length() {
            let announced = start.saturating_add(length);
            // Who does not know of ends sends the rest, too.
            let is_right = announced == wanted.bytes || is_part && Some(announced) == end;
            if !is_right {
                return Err(wanted.wrong_size(announced));
            }
        }
        let part = wanted.open_part(start > 0)?;
        let body = response.into_body().into_reader();
        match receive(wanted, body, part, (start, until), on_event) {
            Ok(Received::All) => Ok(()),
            Ok(Received::CutOff(reason)) => Err(broken(reason)),
            Err(error) => {
                if matches!(error, FetchError::WrongSize { .. }) {
                    wanted.discard();
                }
                Err(error)
            }
        }
    }

    /// One request. Whoever a redirect leads to is not shown the token, nor is the hub when it comes back
    /// from there; for what the hub says of a file nobody else is asked. Errors name the hub's address alone:
    /// that of the bytes may be signed for whoever has the token.
    fn ask(&self, url: &Url, what: Ask) -> Result<Response<Body>, FetchError> {
        let (mut at, mut at_hub) = (url.clone(), true);
        for _ in 0..=REDIRECTS_MAX {
            let mut request = match what {
                Ask::Facts => self.agent.head(at.as_str()),
                Ask::Bytes { .. } => self.agent.get(at.as_str()),
            };
            if let Some(range) = what.range() {
                request = request.header(header::RANGE, range);
            }
            if let Some(token) = self.token.as_ref().filter(|_| at_hub) {
                request = request.header(header::AUTHORIZATION, token.header().clone());
            }
            let response = request.call().map_err(|error| failure(url, &error))?;
            match response.status().as_u16() {
                301 | 302 | 303 | 307 | 308 => {}
                401 | 403 if at_hub => {
                    return Err(FetchError::Gated {
                        repository: self.repository.clone(),
                        page: self.page.to_string(),
                        with_token: self.token.is_some(),
                    });
                }
                _ => return Ok(response),
            }
            let target = response.headers().get(header::LOCATION);
            let next = target.and_then(|target| at.join(target.to_str().ok()?).ok());
            let next = next.filter(|next| next.scheme() == "https" || next.scheme() == at.scheme());
            let next = next.ok_or_else(|| FetchError::Redirect { url: url.to_string() })?;
            at_hub &= next.origin() == at.origin();
            if what == Ask::Facts && !at_hub {
                return Ok(response);
            }
            at = next;
        }
        Err(FetchError::Redirect { url: url.to_string() })
    }
}

/// Repeats what fails by the network, as long as every few attempts `gain` something.
fn persistently<T>(
    file: &str,
    on_event: OnEvent<'_>,
    gain: impl Fn() -> u64,
    mut attempt: impl FnMut(OnEvent<'_>) -> Result<T, FetchError>,
) -> Result<T, FetchError> {
    let mut fruitless = 0;
    loop {
        let before = gain();
        let error = match attempt(on_event) {
            Err(error) if error.is_passing() => error,
            done => return done,
        };
        fruitless = if gain() > before { 0 } else { fruitless + 1 };
        if fruitless == FRUITLESS_MAX {
            return Err(error);
        }
        on_event(FetchEvent::Resuming {
            file: file.into(),
            reason: error.to_string(),
        });
        thread::sleep(PAUSE * 2u32.saturating_pow(fruitless));
    }
}

/// What a response of the hub says of a file. Its length is that of the body only where there is one.
fn facts(headers: &HeaderMap, has_body: bool) -> Option<Facts> {
    let text = |name: &HeaderName| headers.get(name)?.to_str().ok();
    let linked = |own: &HeaderName, body: &HeaderName| text(own).or_else(|| text(body).filter(|_| has_body));
    let is_commit =
        |text: &&str| text.len() == COMMIT_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some(Facts {
        commit: text(&REPO_COMMIT).filter(is_commit)?.to_ascii_lowercase(),
        bytes: linked(&LINKED_SIZE, &header::CONTENT_LENGTH)?.parse().ok()?,
        hash: FileHash::from_etag(linked(&LINKED_ETAG, &header::ETAG)?)?,
    })
}

/// First byte of the range in `Content-Range: bytes FIRST-LAST/TOTAL`.
fn range_start(response: &Response<Body>) -> Option<u64> {
    let value = response.headers().get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (first, _) = value.strip_prefix("bytes ")?.split_once('-')?;
    first.parse().ok()
}

fn refused(url: &Url, status: u16) -> FetchError {
    FetchError::Status {
        url: url.to_string(),
        status,
    }
}

fn failure(url: &Url, error: &ureq::Error) -> FetchError {
    let (url, reason) = (url.to_string(), error.to_string());
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
