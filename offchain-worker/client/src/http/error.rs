//! Why a request is refused.

use axum::{
    Json,
    extract::rejection::{BytesRejection, JsonRejection, QueryRejection},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use surety_chain_client::ChainError;
use surety_models::chat::{ChatFault, RenderFault};
use surety_network::PlaneError;
use surety_types::{TaskId, input::InputFault, limits::INPUT_BYTES_MAX};

use super::BODY_BYTES_MAX;
use crate::{error::ClientError, text::TextInputError};

/// Why a request is refused. Its body says so as `{"error": {"code": .., "message": ..}}`.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// An origin is not `scheme://host[:port]`.
    #[error("{0:?} is no origin: write it as a browser sends it, for example http://localhost:5173")]
    BadOrigin(String),
    /// A page that may not use this.
    #[error("pages of {0} may not use this server: --allow-origin names those that may")]
    ForeignOrigin(String),
    /// There is nothing here.
    #[error("there is no such route; those that there are: docs/guides/dapp.md")]
    NoSuchRoute,
    /// The body is not what is asked for.
    #[error("{0}")]
    BadRequest(String),
    /// The body is larger than what any input is made of.
    #[error("a request has at most {BODY_BYTES_MAX} bytes")]
    BodyTooLarge,
    /// No task could be posted with it.
    #[error(
        "the input has {bytes} bytes, and the chain takes {INPUT_BYTES_MAX} at most: make several tasks of it"
    )]
    InputTooLarge {
        /// Its size.
        bytes: usize,
    },
    /// A model is unknown, or its tokenizer is not here.
    #[error("{0}")]
    UnknownModel(String),
    /// A text is no input of the model.
    #[error(transparent)]
    Text(#[from] TextInputError),
    /// So many inputs wait for their tasks.
    #[error("{0} inputs are kept already, each for an hour: post the tasks for some of them first")]
    TooMany(usize),
    /// Nobody could fetch the input.
    #[error("this server has no address that providers reach: start it with --listen or --external")]
    Unreachable,
    /// The chain knows no such task.
    #[error("the chain knows no task {0}")]
    UnknownTask(TaskId),
    /// Somebody else's task.
    #[error("task {0} was posted by another account")]
    NotTheClient(TaskId),
    /// The client's name, and somebody else's key; or it signed for something else.
    #[error("this is no signature of task {0}'s client over the message that its ticket route gives")]
    BadSignature(TaskId),
    /// Too few providers have committed to a result, or that is not final yet.
    #[error("task {0} has no result yet, or will have none: ask again when its results are audited")]
    NoResult(TaskId),
    /// No provider served it.
    #[error("no provider of task {task} served its output:{reasons}")]
    NotServed {
        /// The task.
        task: TaskId,
        /// What each did instead.
        reasons: String,
    },
    /// The chain cannot be asked.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The input cannot be kept.
    #[error(transparent)]
    Plane(#[from] PlaneError),
    /// What is kept cannot be listed.
    #[error(transparent)]
    List(#[from] ClientError),
    /// A computation here failed.
    #[error("{0}")]
    Internal(String),
}

impl HttpError {
    const fn kind(&self) -> (StatusCode, &'static str) {
        match self {
            Self::BadOrigin(_) => (StatusCode::INTERNAL_SERVER_ERROR, "bad_origin"),
            Self::ForeignOrigin(_) => (StatusCode::FORBIDDEN, "foreign_origin"),
            Self::NoSuchRoute => (StatusCode::NOT_FOUND, "no_such_route"),
            Self::BadRequest(_) => (StatusCode::BAD_REQUEST, "bad_request"),
            Self::BodyTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large"),
            Self::InputTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "input_too_large"),
            Self::UnknownModel(_) => (StatusCode::NOT_FOUND, "unknown_model"),
            Self::Text(TextInputError::Input(InputFault::TooLarge)) => {
                (StatusCode::PAYLOAD_TOO_LARGE, "input_too_large")
            }
            Self::Text(TextInputError::Chat(ChatFault::NoTemplate)) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "no_chat_template")
            }
            Self::Text(TextInputError::Chat(ChatFault::Template(RenderFault::NoProcess(_)))) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "internal")
            }
            Self::Text(_) => (StatusCode::UNPROCESSABLE_ENTITY, "bad_text"),
            Self::TooMany(_) => (StatusCode::SERVICE_UNAVAILABLE, "too_many"),
            Self::Unreachable => (StatusCode::SERVICE_UNAVAILABLE, "unreachable"),
            Self::UnknownTask(_) => (StatusCode::NOT_FOUND, "unknown_task"),
            Self::NotTheClient(_) => (StatusCode::FORBIDDEN, "not_the_client"),
            Self::BadSignature(_) => (StatusCode::FORBIDDEN, "bad_signature"),
            Self::NoResult(_) => (StatusCode::CONFLICT, "no_result"),
            Self::NotServed { .. } => (StatusCode::BAD_GATEWAY, "not_served"),
            Self::Chain(_) => (StatusCode::BAD_GATEWAY, "chain"),
            Self::Plane(_) | Self::List(_) => (StatusCode::INSUFFICIENT_STORAGE, "not_kept"),
            Self::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        }
    }
}

impl From<JsonRejection> for HttpError {
    fn from(rejection: JsonRejection) -> Self {
        match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Self::BodyTooLarge,
            _ => Self::BadRequest(rejection.body_text()),
        }
    }
}

impl From<BytesRejection> for HttpError {
    fn from(rejection: BytesRejection) -> Self {
        match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Self::BodyTooLarge,
            _ => Self::BadRequest(rejection.body_text()),
        }
    }
}

impl From<QueryRejection> for HttpError {
    fn from(rejection: QueryRejection) -> Self {
        Self::BadRequest(rejection.body_text())
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let (status, code) = self.kind();
        let body = serde_json::json!({ "error": { "code": code, "message": self.to_string() } });
        (status, Json(body)).into_response()
    }
}
