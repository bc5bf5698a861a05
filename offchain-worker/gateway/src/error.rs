//! Refusals, in OpenAI's shape.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{ledger::LedgerError, upstream::UpstreamError};

/// After so long a batch may be over.
const BATCH_SECONDS: u64 = 30;

/// A refusal, as it is told.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Refusal {
    error: RefusalDetail,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RefusalDetail {
    /// For people: what is wrong, and what to do.
    message: String,
    /// By which clients choose their exceptions.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Which field, where it is one.
    param: Option<String>,
    /// For programs.
    code: &'static str,
}

/// Why a request is not answered.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub status: StatusCode,
    pub kind: &'static str,
    pub code: &'static str,
    pub param: Option<String>,
    pub message: String,
    pub retry_after: Option<u64>,
}

impl ApiError {
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        let kind = match status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_client_error() => "invalid_request_error",
            _ => "server_error",
        };
        Self {
            status,
            kind,
            code,
            param: None,
            message: message.into(),
            retry_after: None,
        }
    }

    pub fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            param: Some(param.into()),
            ..Self::new(StatusCode::BAD_REQUEST, "invalid_value", message)
        }
    }

    pub fn unsupported(param: impl Into<String>) -> Self {
        let param = param.into();
        Self {
            message: format!("{param} is not offered by this gateway: leave it out"),
            param: Some(param),
            ..Self::new(StatusCode::BAD_REQUEST, "unsupported_parameter", "")
        }
    }

    pub fn no_model(name: &str) -> Self {
        Self {
            param: Some("model".into()),
            ..Self::new(
                StatusCode::NOT_FOUND,
                "model_not_found",
                format!("the model {name:?} is not offered here for this: see /v1/models"),
            )
        }
    }

    pub fn busy() -> Self {
        Self {
            retry_after: Some(1),
            ..Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                "this gateway is busy: try again in a moment",
            )
        }
    }

    pub fn body(&self) -> Refusal {
        Refusal {
            error: RefusalDetail {
                message: self.message.clone(),
                kind: self.kind,
                param: self.param.clone(),
                code: self.code,
            },
        }
    }
}

impl From<UpstreamError> for ApiError {
    fn from(error: UpstreamError) -> Self {
        let code = match error {
            UpstreamError::NoProvider => "no_provider",
            UpstreamError::Busy => "busy",
            UpstreamError::Failed { .. } => "provider_failed",
            UpstreamError::Exhausted => "channel_exhausted",
            UpstreamError::Uncovered => "not_covered",
        };
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, error.to_string())
    }
}

impl From<LedgerError> for ApiError {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::OverCap { .. } => Self {
                kind: "insufficient_quota",
                ..Self::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    "insufficient_quota",
                    error.to_string(),
                )
            },
            LedgerError::NoFile => Self::new(StatusCode::NOT_FOUND, "file_not_found", error.to_string()),
            LedgerError::NoBatch => Self::new(StatusCode::NOT_FOUND, "batch_not_found", error.to_string()),
            LedgerError::Over(_) => Self::new(StatusCode::CONFLICT, "batch_over", error.to_string()),
            LedgerError::OpenOfKey => Self {
                retry_after: Some(BATCH_SECONDS),
                ..Self::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    "rate_limit_exceeded",
                    error.to_string(),
                )
            },
            LedgerError::Open => Self {
                retry_after: Some(BATCH_SECONDS),
                ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", error.to_string())
            },
            LedgerError::Full(_) => Self::new(StatusCode::BAD_REQUEST, "full", error.to_string()),
            LedgerError::NoKey => Self::new(StatusCode::UNAUTHORIZED, "invalid_api_key", error.to_string()),
            error => {
                tracing::error!(%error, "the gateway's ledger cannot be used");
                Self::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "ledger",
                    "the gateway cannot keep its books now: its operator finds the reason in the log",
                )
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        if let Some(seconds) = self.retry_after {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
