//! For which bot a task works: a label of what it counts, and, where there are several bots, a field of what it logs.
//!
//! It belongs to the task and is not inherited: whoever spawns wraps the new task in [`same`]. What is not wrapped works for
//! the host, and is counted and logged without a bot. Nothing here decides anything.

use std::sync::Arc;

use tracing::{Instrument as _, Span};

use crate::domain::BotName;

/// A bot, as it is named in what is counted and logged.
#[derive(Debug, Clone)]
pub struct Whose {
    name: Arc<str>,
    span: Span,
}

tokio::task_local! {
    static WHOSE: Whose;
}

impl Whose {
    /// `is_named`: whether log lines say so, which is of use among several.
    #[must_use]
    pub fn new(name: &BotName, is_named: bool) -> Self {
        let span = if is_named { tracing::error_span!("of", bot = %name) } else { Span::none() };
        Self { name: name.as_str().into(), span }
    }

    /// Does something for this bot.
    pub fn does<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        let span = self.span.clone();
        WHOSE.scope(self, work.instrument(span))
    }
}

/// For a task that is about to be spawned: it works for whom this one works for.
pub fn same<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let whose = WHOSE.try_with(Whose::clone).ok();
    async move {
        match whose {
            Some(whose) => whose.does(work).await,
            None => work.await,
        }
    }
}

/// For whom this task works, if it is for one bot.
#[must_use]
pub fn bot() -> Option<Arc<str>> {
    WHOSE.try_with(|whose| whose.name.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_handed_on_and_only_by_hand() {
        assert_eq!(bot(), None);
        let whose = Whose::new(&BotName::new("shop"), true);
        let (own, inherited, foreign) = whose
            .does(async {
                let inherited = tokio::spawn(same(async { bot() })).await.unwrap();
                let foreign = tokio::spawn(async { bot() }).await.unwrap();
                (bot(), inherited, foreign)
            })
            .await;
        assert_eq!((own.as_deref(), inherited.as_deref(), foreign.as_deref()), (Some("shop"), Some("shop"), None));
    }
}
