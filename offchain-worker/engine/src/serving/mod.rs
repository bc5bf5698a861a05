//! Continuous batching: one decoder, many generations at once, which join and leave between steps.
//!
//! - A [`Batcher`] runs the steps: in each of them every generation that can go on has its turn, and the
//!   weights are read once for all ([`Server`] is a thread that does so for ever);
//! - a [`Handle`] takes requests, or refuses them with a reason ([`Refusal`]);
//! - a [`TokenStream`] gives a reader its tokens, and in the end what it may claim of them.
//!
//! Tokens, trace and claim are those of [`Engine::run`](crate::Engine::run), bit by bit, whatever else is in
//! the steps: `docs/adr/0039-continuous-batching.md`. What a device has computed is passed on once some of it
//! was held against the processor: `docs/adr/0047-answers-from-a-device.md`.
//!
//! ```no_run
//! # async fn example(engine: std::sync::Arc<dyn surety_engine::Engine>, job: surety_engine::Job)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! use surety_engine::serving::{ClientKey, Limits, Server};
//!
//! let decoder = engine.decoder().ok_or("this model generates nothing")?;
//! let server = Server::start(decoder, Limits::default(), 4)?;
//! let mut stream = server.handle().submit(ClientKey([1; 32]), &job)?;
//! while let Some(token) = stream.next().await {
//!     println!("{token}");
//! }
//! println!("{:?}", stream.finish().await?.outcome);
//! # Ok(())
//! # }
//! ```

mod admission;
mod batcher;
mod looks;
mod prefix;
mod server;
mod share;
mod stream;

use std::sync::Arc;

pub use admission::Load;
pub use batcher::Batcher;
pub use server::Server;
pub use stream::{End, Ended, TokenStream};

use crate::{engine::Job, error::EngineError, exact::ExactLlama};
use admission::{Admission, Waiting};

/// Whom a request is for: a channel, or an account. Clients take turns, however many requests each has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientKey(pub [u8; 32]);

/// How much a batcher takes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory for keys and values, and for traces, of all that runs, in bytes. What steps work in comes on
    /// top of it, which grows with `step_rows`, and what waits.
    pub bytes_max: u64,
    /// The same for what runs of one client: what it leaves is for others, and no client's requests alone
    /// can keep them waiting.
    pub client_bytes_max: u64,
    /// Memory for prefixes that may come again, in bytes; 0 to keep none.
    pub prefix_bytes_max: u64,
    /// Tokens that go through the model in one step, of all generations together. A step takes as long as
    /// they do, and everybody's next token a step.
    pub step_rows: usize,
    /// Tokens of a generation that its reader has not taken: with so many it waits for the reader.
    pub ahead_max: usize,
    /// Requests that may wait for memory.
    pub waiting_max: usize,
    /// The same of one client.
    pub client_waiting_max: usize,
    /// Where a device computes: of the generations that go on, how many are held against the processor each
    /// time that something is passed on. Those whose first tokens are passed on then come on top of it.
    pub looked_at: usize,
    /// The same of those whose first tokens are held back, at least one: the others wait for the next time.
    pub new_looked_at: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes_max: 4 << 30,
            client_bytes_max: 2 << 30,
            prefix_bytes_max: 1 << 30,
            // As many as a prompt's pieces have when it is alone: a token of a single generation waits no
            // longer for them than it does there.
            step_rows: 64,
            // What is not paid in the end is at most so many tokens' work.
            ahead_max: 16,
            waiting_max: 64,
            client_waiting_max: 16,
            // A device that errs for all is found out by any. More keep everybody waiting longer.
            looked_at: 1,
            // The processor computes 16 rows of each at most, and nobody of them hears anything before it has
            // looked at all.
            new_looked_at: 4,
        }
    }
}

/// Why a request was not taken. None of it has been computed.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Too many requests wait already.
    #[error("{limit} requests are waiting already: try again later")]
    Busy {
        /// Most that may wait.
        limit: usize,
    },
    /// Too many requests of this client wait already.
    #[error("{limit} requests of this client are waiting already: ask again when one of them has ended")]
    ClientBusy {
        /// Most that may wait.
        limit: usize,
    },
    /// It would never have the memory that it takes.
    #[error("the request takes {needs} bytes of memory, and a request may have {has}: ask for fewer tokens")]
    TooLarge {
        /// Bytes that it takes.
        needs: u64,
        /// Bytes that there are for a request.
        has: u64,
    },
    /// Nothing is taken any more.
    #[error("the server is shutting down")]
    Closed,
    /// No engine takes such a job.
    #[error(transparent)]
    Job(#[from] EngineError),
}

/// Takes requests for a [`Batcher`].
#[derive(Clone)]
pub struct Handle {
    decoder: Arc<ExactLlama>,
    admission: Arc<Admission>,
}

impl Handle {
    /// Asks for a generation. It begins once there is memory for all of it: after what waited before of the
    /// same client, and at most one request of each other client.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn submit(&self, client: ClientKey, job: &Job) -> Result<TokenStream, Refusal> {
        let request = self.decoder.request(job)?;
        let (reader, stream) = stream::pair(self.admission.clone());
        self.admission.submit(Waiting {
            client,
            request,
            reader,
        })?;
        Ok(stream)
    }

    /// How much there is to do.
    pub fn load(&self) -> Load {
        self.admission.load()
    }

    /// Whether the batcher waits for a device that does not answer, for longer than work takes. What is asked
    /// for now would wait, too.
    pub fn is_stuck(&self) -> bool {
        self.decoder.may_wait(self.admission.busy_for())
    }

    /// Whether what begins now is computed on a device.
    pub fn is_on_device(&self) -> bool {
        self.decoder.is_on_device()
    }
}
