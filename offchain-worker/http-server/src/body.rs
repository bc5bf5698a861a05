//! Reading a request's body before anything else is taken up for it.

use std::time::Duration;

use axum::{
    body::{Body, to_bytes},
    extract::Request,
};

/// For a body to come.
const BODY_TIME: Duration = Duration::from_secs(10);

/// Why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFault {
    /// It is longer than it may be, or broke off.
    NotWhole,
    /// It did not come in [`BODY_TIME`].
    TooSlow,
}

/// The request with all of its body, of so many bytes at most. Whoever sends slowly takes no place meanwhile
/// from those whose requests are answered.
///
/// # Errors
/// [`BodyFault`].
pub async fn read_body(request: Request, bytes_max: usize) -> Result<Request, BodyFault> {
    read_within(request, bytes_max, BODY_TIME).await
}

async fn read_within(request: Request, bytes_max: usize, time: Duration) -> Result<Request, BodyFault> {
    let (head, body) = request.into_parts();
    let read = tokio::time::timeout(time, to_bytes(body, bytes_max)).await;
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
