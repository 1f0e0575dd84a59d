//! Why a request is answered with an error.

use lsp_server::{ErrorCode, ResponseError};

use crate::position::PastEnd;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("{0}")]
    InvalidParams(String),
    /// The request is fine, but cannot be done; the text is for a person.
    #[error("{0}")]
    Failed(String),
    #[error("the request was cancelled")]
    Cancelled,
    #[error("the document changed meanwhile")]
    Modified,
    #[error("{0}")]
    Internal(String),
}

impl From<PastEnd> for Fault {
    fn from(fault: PastEnd) -> Self {
        Self::InvalidParams(fault.to_string())
    }
}

impl From<Fault> for ResponseError {
    fn from(fault: Fault) -> Self {
        let code = match &fault {
            Fault::InvalidParams(_) => ErrorCode::InvalidParams,
            Fault::Failed(_) => ErrorCode::RequestFailed,
            Fault::Cancelled => ErrorCode::RequestCanceled,
            Fault::Modified => ErrorCode::ContentModified,
            Fault::Internal(_) => ErrorCode::InternalError,
        };
        Self {
            code: code as i32,
            message: fault.to_string(),
            data: None,
        }
    }
}
