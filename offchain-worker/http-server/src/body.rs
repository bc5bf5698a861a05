//! Reading a request's body before anything else is taken up for it.

use std::time::Duration;

use axum::{
    body::{Body, to_bytes},
    extract::Request,
};
use futures::StreamExt;
use tokio::time::{Instant, timeout};

/// For a body to come.
const BODY_TIME: Duration = Duration::from_secs(10);

/// Why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFault {
    /// It is longer than it may be, or broke off.
    NotWhole,
    /// It did not come in [`BODY_TIME`], or at its [`Pace`].
    TooSlow,
}

/// How fast a long body has to come: whoever sends less has no time for it.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Until then nothing has to be there.
    pub start: Duration,
    /// So many bytes that are there give a second more.
    pub bytes_per_second: u32,
    /// Until then all of it has to be there.
    pub longest: Duration,
}

impl Pace {
    /// How long a body may have taken of which so many bytes are there.
    fn time(&self, bytes: usize) -> Duration {
        let millis = (bytes as u64).saturating_mul(1000);
        let more = millis.checked_div(u64::from(self.bytes_per_second));
        let more = Duration::from_millis(more.unwrap_or(0));
        self.start.saturating_add(more).min(self.longest)
    }
}

/// The request with all of its body, of so many bytes at most. Whoever sends slowly takes no place meanwhile
/// from those whose requests are answered.
///
/// # Errors
/// [`BodyFault`].
pub async fn read_body(request: Request, bytes_max: usize) -> Result<Request, BodyFault> {
    read_within(request, bytes_max, BODY_TIME).await
}

/// A body that may be long, of so many bytes at most. It takes as long as it comes at its pace.
///
/// # Errors
/// [`BodyFault`].
pub async fn read_at_pace(request: Request, bytes_max: usize, pace: Pace) -> Result<Vec<u8>, BodyFault> {
    let mut body = request.into_body().into_data_stream();
    let (begun, mut read) = (Instant::now(), Vec::new());
    loop {
        let left = pace.time(read.len()).saturating_sub(begun.elapsed());
        let next = timeout(left, body.next()).await.map_err(|_| BodyFault::TooSlow)?;
        let Some(bytes) = next else { return Ok(read) };
        let bytes = bytes.map_err(|_| BodyFault::NotWhole)?;
        if read.len().saturating_add(bytes.len()) > bytes_max {
            return Err(BodyFault::NotWhole);
        }
        read.extend_from_slice(&bytes);
    }
}

async fn read_within(request: Request, bytes_max: usize, time: Duration) -> Result<Request, BodyFault> {
    let (head, body) = request.into_parts();
    let read = timeout(time, to_bytes(body, bytes_max)).await;
    let body = read
        .map_err(|_| BodyFault::TooSlow)?
        .map_err(|_| BodyFault::NotWhole)?;
    Ok(Request::from_parts(head, Body::from(body)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::{
        pin::Pin,
        task::{Context, Poll},
    };

    use hyper::body::{Bytes, Frame};
    use tokio::time::{Sleep, sleep};

    use super::*;

    /// A body that never comes.
    struct Stalled;

    impl hyper::body::Body for Stalled {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
            Poll::Pending
        }
    }

    /// A body that comes, but for its end, which is there after a while.
    struct Late(Option<Bytes>, Pin<Box<Sleep>>);

    impl hyper::body::Body for Late {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
            match self.0.take() {
                Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                None => self.1.as_mut().poll(context).map(|()| None),
            }
        }
    }

    #[tokio::test]
    async fn a_long_body_has_as_much_time_as_its_bytes_give_it_and_no_more() {
        const LONG: Duration = Duration::from_secs(60);
        let [start, late] = [50, 150].map(Duration::from_millis);
        let read = async |bytes: &'static str, late, longest| {
            let body = Late(Some(Bytes::from(bytes)), Box::pin(sleep(late)));
            let pace = Pace {
                start,
                bytes_per_second: 1,
                longest,
            };
            read_at_pace(Request::new(Body::new(body)), 3, pace).await
        };
        assert_eq!(read("abc", late, LONG).await.as_deref(), Ok(&b"abc"[..]));
        assert_eq!(read("", LONG, LONG).await, Err(BodyFault::TooSlow));
        // However much came.
        assert_eq!(read("abc", LONG, late).await, Err(BodyFault::TooSlow));
        assert_eq!(read("abcd", late, LONG).await, Err(BodyFault::NotWhole));
    }

    #[tokio::test]
    async fn a_body_is_read_whole_or_not_at_all() {
        let read = async |body, max| {
            let request = Request::new(body);
            let read = read_within(request, max, Duration::from_millis(100)).await?;
            Ok(to_bytes(read.into_body(), 99).await.unwrap())
        };
        assert_eq!(read(Body::from("abc"), 3).await, Ok(Bytes::from("abc")));
        assert_eq!(read(Body::from("abc"), 2).await, Err(BodyFault::NotWhole));
        assert_eq!(read(Body::new(Stalled), 3).await, Err(BodyFault::TooSlow));
    }
}
