//! How much a key may ask in a minute.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, HeaderValue, StatusCode};

use crate::{error::ApiError, ledger::Key};

/// Keys whose minutes are remembered.
const KEYS_MAX: usize = 10_001;
const MINUTE: Duration = Duration::from_secs(60);

struct Minute {
    began: Instant,
    requests: u32,
    tokens: u32,
}

/// What each key has asked in its minute.
#[derive(Default)]
pub(crate) struct Rates(Mutex<HashMap<String, Minute>>);

/// What is left of a minute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    requests: (u32, u32),
    tokens: (u32, u32),
    seconds: u64,
}

impl Rates {
    /// Takes a request of so many tokens at most.
    pub fn take(&self, key: &Key, tokens: u32) -> Result<Left, ApiError> {
        let mut minutes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if minutes.len() >= KEYS_MAX {
            minutes.retain(|_, minute| now.duration_since(minute.began) < MINUTE);
        }
        let fresh = Minute {
            began: now,
            requests: 0,
            tokens: 0,
        };
        let minute = minutes.entry(key.id.clone()).or_insert(fresh);
        if now.duration_since(minute.began) >= MINUTE {
            (minute.began, minute.requests, minute.tokens) = (now, 0, 0);
        }
        let (requests, all) = (
            minute.requests.saturating_add(1),
            minute.tokens.saturating_add(tokens),
        );
        let seconds = MINUTE
            .saturating_sub(now.duration_since(minute.began))
            .as_secs()
            .saturating_add(1);
        let terms = key.terms;
        let over = match () {
            () if requests > terms.requests_per_minute => Some(("requests", terms.requests_per_minute)),
            () if all > terms.tokens_per_minute => Some(("tokens", terms.tokens_per_minute)),
            () => None,
        };
        if let Some((what, most)) = over {
            let told = format!("this key has {most} {what} a minute: try again in {seconds} s");
            let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded", told);
            return Err(ApiError {
                retry_after: Some(seconds),
                ..error
            });
        }
        (minute.requests, minute.tokens) = (requests, all);
        Ok(Left {
            requests: (
                terms.requests_per_minute,
                terms.requests_per_minute.saturating_sub(requests),
            ),
            tokens: (
                terms.tokens_per_minute,
                terms.tokens_per_minute.saturating_sub(all),
            ),
            seconds,
        })
    }
}

impl Left {
    /// As OpenAI's headers.
    pub fn write(&self, headers: &mut HeaderMap) {
        for (name, value) in [
            ("x-ratelimit-limit-requests", self.requests.0),
            ("x-ratelimit-remaining-requests", self.requests.1),
            ("x-ratelimit-limit-tokens", self.tokens.0),
            ("x-ratelimit-remaining-tokens", self.tokens.1),
        ] {
            headers.insert(name, HeaderValue::from(value));
        }
        if let Ok(reset) = HeaderValue::from_str(&format!("{}s", self.seconds)) {
            headers.insert("x-ratelimit-reset-requests", reset.clone());
            headers.insert("x-ratelimit-reset-tokens", reset);
        }
    }
}
