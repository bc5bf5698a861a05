//! Asking a faucet.

use std::time::Duration;

use serde::Deserialize;
use surety_chain_client::{AccountId, Balance, address};
use ureq::Agent;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long an answer may take: longer than a faucet tries to get its transfer into a block.
const ANSWER: Duration = Duration::from_secs(200);
/// Largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: u64 = 16 << 10;
/// Characters of a refusal that are shown.
const WORDS_MAX: usize = 300;

/// What a faucet has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// How much it says, in plancks.
    pub amount: Balance,
    /// Hash of the extrinsic, as it says.
    pub hash: String,
}

/// Why a faucet gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// It does not answer.
    #[error("the faucet at {url} does not answer: {reason}")]
    Silent {
        /// Where it was looked for.
        url: String,
        /// What happened.
        reason: String,
    },
    /// It refuses.
    #[error("the faucet at {url} gives nothing: {words}")]
    Refused {
        /// Where it is.
        url: String,
        /// Its own words.
        words: String,
    },
}

#[derive(Deserialize)]
struct Answer {
    amount: String,
    hash: String,
}

#[derive(Deserialize)]
struct Refused {
    error: Words,
}

#[derive(Deserialize)]
struct Words {
    message: String,
}

/// Asks the faucet at `url` for an account, and waits until it says that its transfer is in a block.
///
/// # Errors
/// When it does not answer, or refuses. That says nothing of whether money comes: an answer may get lost.
pub async fn ask(url: &str, account: &AccountId) -> Result<Given, AskError> {
    let (url, account) = (url.to_owned(), account.clone());
    let silent = silent(&url);
    let asked = tokio::task::spawn_blocking(move || ask_now(&url, &account));
    asked.await.map_err(|e| silent(e.to_string()))?
}

fn silent(url: &str) -> impl Fn(String) -> AskError + use<> {
    let url = url.to_owned();
    move |reason| AskError::Silent {
        url: url.clone(),
        reason,
    }
}

fn ask_now(url: &str, account: &AccountId) -> Result<Given, AskError> {
    let agent: Agent = Agent::config_builder()
        .timeout_resolve(Some(CONNECT))
        .timeout_connect(Some(CONNECT))
        .timeout_global(Some(ANSWER))
        .http_status_as_error(false)
        .build()
        .into();
    let silent = silent(url);
    let body = serde_json::json!({ "account": address(account) }).to_string();
    let mut response = agent
        .post(format!("{}/v1/claims", url.trim_end_matches('/')))
        .header("content-type", "application/json")
        .send(body)
        .map_err(|e| silent(e.to_string()))?;
    let status = response.status();
    let text = response
        .body_mut()
        .with_config()
        .limit(ANSWER_BYTES_MAX)
        .read_to_string();
    let text = text.map_err(|e| silent(e.to_string()))?;
    if !status.is_success() {
        let words = serde_json::from_str(&text).map(|refused: Refused| shown(&refused.error.message));
        return Err(AskError::Refused {
            url: url.into(),
            words: words.unwrap_or_else(|_| format!("it answers with status {}", status.as_u16())),
        });
    }
    let given = serde_json::from_str::<Answer>(&text).ok().and_then(|answer| {
        Some(Given {
            amount: answer.amount.parse().ok()?,
            hash: shown(&answer.hash),
        })
    });
    given.ok_or_else(|| silent("its answer is not a faucet's".into()))
}

/// Another's words, as far as they are shown: they steer no terminal and take no more than some lines.
fn shown(words: &str) -> String {
    words
        .chars()
        .filter(|c| !c.is_control())
        .take(WORDS_MAX)
        .collect()
}
