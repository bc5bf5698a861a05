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
    /// Takes a request.
    pub fn request(&self, key: &Key) -> Result<(), ApiError> {
        self.in_minute(key, |minute| {
            let (requests, most) = (minute.requests.saturating_add(1), key.terms.requests_per_minute);
            if requests > most {
                return Err(("requests", most));
            }
            minute.requests = requests;
            Ok(())
        })
    }

    /// Takes so many tokens at most, of a request that was taken.
    pub fn tokens(&self, key: &Key, tokens: u32) -> Result<Left, ApiError> {
        self.in_minute(key, |minute| {
            let (tokens, most) = (minute.tokens.saturating_add(tokens), key.terms.tokens_per_minute);
            if tokens > most {
                return Err(("tokens", most));
            }
            minute.tokens = tokens;
            let requests = key.terms.requests_per_minute;
            Ok(Left {
                requests: (requests, requests.saturating_sub(minute.requests)),
                tokens: (most, most.saturating_sub(tokens)),
                seconds: minute.seconds_left(),
            })
        })
    }

    fn in_minute<T>(
        &self,
        key: &Key,
        take: impl FnOnce(&mut Minute) -> Result<T, (&'static str, u32)>,
    ) -> Result<T, ApiError> {
        let mut minutes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if minutes.len() >= KEYS_MAX {
            minutes.retain(|_, minute| minute.began.elapsed() < MINUTE);
        }
        let minute = minutes.entry(key.id.clone()).or_insert_with(Minute::new);
        if minute.began.elapsed() >= MINUTE {
            *minute = Minute::new();
        }
        take(&mut *minute).map_err(|(what, most)| {
            let seconds = minute.seconds_left();
            let told = format!("this key has {most} {what} a minute: try again in {seconds} s");
            ApiError {
                retry_after: Some(seconds),
                ..ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded", told)
            }
        })
    }
}

impl Minute {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            requests: 0,
            tokens: 0,
        }
    }

    fn seconds_left(&self) -> u64 {
        MINUTE
            .saturating_sub(self.began.elapsed())
            .as_secs()
            .saturating_add(1)
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
