//! Following a generation while providers make it.
//!
//! Any of them will do: the tier is exact, so all stream the same tokens. One that dies, lies or stands still
//! costs a retry with another, which is read from the beginning and compared.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use surety_chain_client::{AccountId, Chain, When, short};
use surety_network::{DataPlane, PeerError, StreamEnd, StreamPage};
use surety_types::{TaskId, multiaddr::Endpoint};
use tokio::sync::watch;

use crate::transcript::Transcript;

/// How patient a reader is.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Between two rounds through all providers.
    pub pause: Duration,
    /// A provider that has nothing new for so long is left for another.
    pub standstill: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            pause: Duration::from_millis(500),
            // A slow machine makes a token in much less.
            standstill: Duration::from_secs(30),
        }
    }
}

/// Reads the stream of a task from whichever provider has it.
pub struct Reader {
    /// The chain, which knows where providers are.
    pub chain: Arc<dyn Chain>,
    /// The way to them.
    pub plane: Arc<dyn DataPlane>,
    /// Task id.
    pub task: TaskId,
    /// Most tokens that there can be: what the client pays for.
    pub tokens_max: usize,
    /// When the task was posted, where that is known.
    pub posted: Option<Instant>,
    /// Who is at work.
    pub members: watch::Receiver<Vec<AccountId>>,
    /// What was read goes there.
    pub transcript: Arc<Mutex<Transcript>>,
    /// When it turns to another.
    pub patience: Patience,
}

/// Why a provider is left for another.
enum Left {
    /// It has not begun.
    NotYet,
    /// Asking again later may help.
    ForNow(String),
    /// It lies.
    ForGood(String),
    /// Said so itself.
    Failed(String),
}

/// What is known of providers.
#[derive(Default)]
struct Known {
    /// Whose tokens were read last.
    current: Option<AccountId>,
    liars: BTreeSet<AccountId>,
    /// How often each was left: whoever fails most is asked last.
    failures: BTreeMap<AccountId, u32>,
    /// What was said of whom, so that it is said once.
    said: BTreeMap<AccountId, String>,
}

impl Reader {
    /// Reads until one provider's stream is complete, or nobody wants to know any more.
    pub async fn read(mut self) {
        let mut known = Known::default();
        loop {
            let mut members = self.members.borrow_and_update().clone();
            members.retain(|member| !known.liars.contains(member));
            members.sort_by_key(|member| known.failures.get(member).copied());
            for member in members {
                match self.read_from(&member, &mut known).await {
                    Ok(()) => return,
                    Err(left) => self.leave(&member, left, &mut known),
                }
            }
            // Providers may have changed, or be about to start.
            tokio::time::sleep(self.patience.pause).await;
        }
    }

    fn transcript(&self) -> MutexGuard<'_, Transcript> {
        self.transcript.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leave(&self, member: &AccountId, left: Left, known: &mut Known) {
        let who = short(member);
        let text = match left {
            Left::NotYet => return,
            Left::Failed(reason) => {
                self.transcript().cannot(&who, &reason);
                return;
            }
            Left::ForNow(reason) => format!("no tokens from {who}: {reason}; asking another"),
            Left::ForGood(reason) => {
                known.liars.insert(member.clone());
                format!("{who} is not asked again: {reason}")
            }
        };
        let failures = known.failures.entry(member.clone()).or_default();
        *failures = failures.saturating_add(1);
        // Only what changes something for who reads is said: not that somebody has not begun yet.
        let was_read = known.current.as_ref() == Some(member) || known.liars.contains(member);
        if was_read && known.said.insert(member.clone(), text.clone()).as_ref() != Some(&text) {
            self.transcript().notice(&text);
        }
    }

    /// Reads one provider's stream to its end.
    async fn read_from(&self, member: &AccountId, known: &mut Known) -> Result<(), Left> {
        let endpoints = self.endpoints(member).await?;
        // Another's stream is compared from its beginning.
        let mut at = if known.current.as_ref() == Some(member) {
            self.transcript().tokens().len()
        } else {
            0
        };
        let mut news = Instant::now();
        loop {
            let page = self.page(&endpoints, at).await?;
            if at.saturating_add(page.tokens.len()) > self.tokens_max {
                let text = format!("it streams more than the {} tokens that can be", self.tokens_max);
                return Err(Left::ForGood(text));
            }
            if !page.tokens.is_empty() {
                news = Instant::now();
            }
            for token in page.tokens {
                self.take(at, token, member, known);
                at += 1;
            }
            match page.end {
                Some(StreamEnd::Complete) => {
                    self.end(at, member);
                    return Ok(());
                }
                Some(StreamEnd::Failed { reason }) => return Err(Left::Failed(reason)),
                Some(StreamEnd::Stopped) => return Err(Left::ForNow("it has stopped".into())),
                None if news.elapsed() >= self.patience.standstill => {
                    let seconds = news.elapsed().as_secs();
                    return Err(Left::ForNow(format!("nothing new for {seconds} s")));
                }
                None => {}
            }
        }
    }

    async fn endpoints(&self, member: &AccountId) -> Result<Vec<Endpoint>, Left> {
        match self.chain.provider(When::Best, member).await {
            Ok(Some(record)) => Ok(record.endpoints.to_vec()),
            Ok(None) => Err(Left::ForNow("is no longer registered".into())),
            Err(e) => Err(Left::ForNow(e.to_string())),
        }
    }

    /// The next page, from whichever of a provider's addresses answers.
    async fn page(&self, endpoints: &[Endpoint], at: usize) -> Result<StreamPage, Left> {
        let from = u32::try_from(at).unwrap_or(u32::MAX);
        let mut left = Left::ForNow("has no address".into());
        for endpoint in endpoints {
            match self.plane.read_stream(self.task, endpoint, from).await {
                Ok(page) => return Ok(page),
                Err(PeerError::NotFound) => left = Left::NotYet,
                Err(fault @ PeerError::Protocol(_)) => left = Left::ForGood(fault.to_string()),
                Err(fault) => left = Left::ForNow(fault.to_string()),
            }
        }
        Err(left)
    }

    /// A stream is complete with `at` tokens. There must not be more than that from another.
    fn end(&self, at: usize, member: &AccountId) {
        let mut transcript = self.transcript();
        if transcript.tokens().len() > at {
            let reason = format!("{} streams no more than {at} tokens", short(member));
            transcript.restart(at, &reason);
        }
    }

    /// Takes in token `at` of a provider's stream: new, known already, or another than before.
    fn take(&self, at: usize, token: u32, member: &AccountId, known: &mut Known) {
        let mut transcript = self.transcript();
        let seconds = self.posted.map(|posted| posted.elapsed().as_secs_f64());
        match transcript.tokens().get(at) {
            Some(told) if *told == token => return,
            Some(_) => {
                let before = known.current.as_ref().map_or_else(String::new, short);
                let reason = format!(
                    "{} streams another text than {before} did, from token {at} on",
                    short(member)
                );
                transcript.restart(at, &reason);
            }
            None => {}
        }
        known.current = Some(member.clone());
        transcript.push(token, seconds);
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
