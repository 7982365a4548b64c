//! The sender as plugins see it: direct calls, with errors in the plugin API's words.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::Sender;
use crate::domain::PluginName;
use crate::files::{Fetched, Files};
use crate::plugin::{Attachment, CallError, Outbound};
use crate::telegram::{Error, Refusal};

impl Outbound for Sender {
    fn call(
        &self,
        plugin: &PluginName,
        method: &str,
        params: String,
        deadline: Duration,
    ) -> BoxFuture<'_, Result<String, CallError>> {
        let (plugin, method) = (plugin.clone(), method.to_owned());
        Box::pin(async move {
            Sender::call(self, &plugin, &method, params, deadline).await.map_err(|error| call_error(&error))
        })
    }

    fn files(&self) -> Option<&Files> {
        self.shared.uploads.as_ref().map(|uploads| &uploads.files)
    }

    fn call_with_files(
        &self,
        plugin: &PluginName,
        method: &str,
        params: String,
        files: Vec<Attachment>,
        deadline: Duration,
    ) -> BoxFuture<'_, Result<String, CallError>> {
        let (plugin, method) = (plugin.clone(), method.to_owned());
        Box::pin(async move {
            let call = Sender::call_with_files(self, &plugin, &method, params, files, deadline);
            call.await.map_err(|error| call_error(&error))
        })
    }

    fn fetch(&self, file_id: String, limit: u64, deadline: Duration) -> BoxFuture<'_, Result<Arc<Fetched>, CallError>> {
        Box::pin(Sender::fetch(self, file_id, limit, deadline))
    }

    fn keep_acting(&self, params: String) -> BoxFuture<'static, ()> {
        Box::pin(self.clone().act_on(params))
    }
}

pub(super) fn call_error(error: &Error) -> CallError {
    match error {
        Error::Refused { code, description, .. } => {
            let kind = error.refusal().unwrap_or(Refusal::Call);
            CallError::Refused { code: *code, description: description.clone(), kind }
        }
        Error::Unauthorized { code, description, .. } => {
            CallError::Refused { code: *code, description: description.clone(), kind: Refusal::Call }
        }
        Error::Conflict { description, .. } => {
            CallError::Refused { code: 409, description: description.clone(), kind: Refusal::Call }
        }
        Error::Flooded { retry_after, .. } => CallError::Flooded(*retry_after),
        Error::Unreachable { .. } => CallError::Unreachable(error.to_string()),
        // Telegram words its own trouble as an answer, but nothing says whether the call went through before.
        Error::ServerError { .. }
        | Error::BadAnswer { .. }
        | Error::UnknownOutcome { .. }
        | Error::ResultLost { .. } => CallError::UnknownOutcome(error.to_string()),
    }
}
