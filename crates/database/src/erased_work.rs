//! Work without its type: one type of future for all statements, so that running them is compiled once.

use std::any::Any;
use std::future::Future;

use futures_util::future::BoxFuture;
use sqlx::PgPool;

use super::error::StoreError;

pub(crate) type ErasedOutcome = Result<Box<dyn Any + Send>, StoreError>;

pub(crate) type ErasedWork = Box<dyn FnOnce(PgPool) -> BoxFuture<'static, ErasedOutcome> + Send>;

pub(crate) fn erase<T, E, F>(work: F) -> BoxFuture<'static, ErasedOutcome>
where
    T: Send + 'static,
    E: Into<StoreError>,
    F: Future<Output = Result<T, E>> + Send + 'static,
{
    Box::pin(async move { Ok(Box::new(work.await.map_err(Into::into)?) as Box<dyn Any + Send>) })
}

/// Reverses [`erase`], with the type that it was called with.
pub(crate) fn restore_type<T: 'static>(outcome: ErasedOutcome) -> Result<T, StoreError> {
    match outcome?.downcast() {
        Ok(value) => Ok(*value),
        Err(_) => unreachable!("the work returned another type than its caller expects"),
    }
}
