//! States that this version has not written, or can't read: taken over, given back, or kept aside.
//!
//! A state of another version is handed to `migrate`, in an instance with memory and processor time of its own, under the
//! deadline of the run. If that fails, the state is kept aside and reads as none: a user with an old state must not be locked
//! out. The same becomes of one that the plugin says it can't read. While a version is on trial, each state that it takes
//! over or can't use is kept beside, as the version before it left it: that one goes on from there if the trial ends badly. So
//! there is such a copy only for as long as it is what should come back.

use super::super::api::{Host, Run, put_state, read_state};
use super::super::bindings::botyard::types::types::{self as wire, State};
use super::super::meter::Meter;
use super::super::version::Context;
use super::super::{Limit, Outbound, Plugin};
use super::{Guard, Invocation, RunError, Standing, Verdict, finish, guests_words};
use crate::store::rows::fsm::{StateRow, aside_key, before_key, key};
use crate::store::{self, Savepoint, Tx};
use std::sync::Arc;

/// Why the version before the one on trial is no help.
const NOT_ITS_OWN: &str = "the version before the one on trial can't be asked, since it does not know the state that the \
                           conversation is in";

/// What a version makes of a state that is not its own, or that it may not be able to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tried {
    /// It goes on with it.
    Taken,
    /// It does not, and says why.
    Refused(String),
}

impl Plugin {
    /// Sees to it that the conversation's state is one of this version, or none: what routing by states rests on. Nothing
    /// is left behind where it fails; another attempt may go well then.
    pub async fn take_over(
        &self,
        invocation: &Invocation,
        tx: Tx,
        outbound: Arc<dyn Outbound>,
    ) -> (Tx, Result<(), RunError>) {
        let _place = self.engine.place().await;
        let start = tx.savepoint();
        let meter = Arc::new(Meter::new(invocation.budget(&self.context.limits).cpu));
        let http = self.engine.http();
        let host = Host::running(Arc::clone(&self.context), meter, http, invocation, tx, outbound);
        let (host, result) = self.take_over_state(host, invocation.standing).await;
        let mut tx = host.run.expect("a host that was made for a run has one").tx;
        if result.is_err() {
            tx.roll_back(start);
        }
        (tx, result)
    }

    /// The same within a run.
    pub(super) async fn take_over_state(&self, mut host: Host, standing: Standing) -> (Host, Result<(), RunError>) {
        let version = self.context.state_version;
        if version == 0 {
            return (host, Ok(()));
        }
        if self.is_retired() {
            return match self.is_settled(run_of(&mut host)) {
                Ok(true) => (host, Ok(())),
                Ok(false) => (host, Err(RunError::Superseded)),
                Err(error) => (host, Err(RunError::Host(error.to_string()))),
            };
        }
        let (state, copy) = match what_there_is(run_of(&mut host), &self.context, standing) {
            Ok(WhatThereIs::Settled) => return (host, Ok(())),
            Ok(WhatThereIs::Others { state, copy }) => (state, copy),
            Err(error) => return (host, Err(RunError::Host(error.to_string()))),
        };
        let keeps = standing == Standing::OnTrial && copy.is_none();
        let mut problem = None;
        // The copy second: what was said since is lost with it.
        let beside = copy.clone().filter(|copy| state.as_ref().is_ok_and(|state| state.version != copy.version));
        let tries = [state.as_ref().ok().cloned(), beside];
        for row in tries.into_iter().flatten() {
            let before = run_of(&mut host).tx.savepoint();
            let old = State { name: row.name.clone(), version: row.version, bytes: row.bytes.clone() };
            let (after, migrated) = self.migrate(host, old).await;
            host = after;
            let run = run_of(&mut host);
            match migrated.map(|answer| answer.and_then(|new| self.check_migrated(new))) {
                Ok(Ok(State { name, version, bytes })) => {
                    put_state(run, &self.context, &StateRow { name, version, expires: row.expires, bytes });
                    let kept = before_key(run.bot, &self.name, &run.conversation);
                    if keeps {
                        run.tx.put(kept, row.encode());
                    } else if copy.is_some() && standing != Standing::OnTrial {
                        run.tx.delete(kept);
                    }
                    return (host, Ok(()));
                }
                // Another attempt may well go better: nothing is said about the state.
                Err(error @ (RunError::OutOfTime(_) | RunError::Host(_))) => return (host, Err(error)),
                Ok(Err(text)) => problem = problem.or(Some(guests_words(text))),
                Err(error) => problem = problem.or(Some(error.to_string())),
            }
            run.tx.roll_back(before);
        }
        if standing == Standing::Asked {
            return (host, Err(RunError::Host(NOT_ITS_OWN.to_owned())));
        }
        let problem = problem.or(state.err()).unwrap_or_default();
        let aside = set_aside(&mut host, standing, &problem);
        (host, aside)
    }

    /// Whether there is nothing to take over.
    fn is_settled(&self, run: &mut Run) -> Result<bool, store::Error> {
        let conversation = run.conversation;
        let state = read_state(run, &self.name, &conversation)?;
        Ok(state.is_none_or(|state| state.is_ok_and(|row| row.version == self.context.state_version)))
    }

    /// After a run that could not read its state: it is made again without, or with the one that comes back in its place.
    /// `start` is where the writes of the run begin.
    pub(super) async fn without_state(
        &self,
        mut host: Host,
        invocation: &Invocation,
        start: &mut Savepoint,
    ) -> (Host, Result<Verdict, RunError>) {
        let run = run_of(&mut host);
        let problem = guests_words(run.unreadable.take().unwrap_or_default());
        run.tx.roll_back(*start);
        if let wire::Event::Expired(state) = &invocation.event {
            keep_ended(&mut host, state, &problem);
            return (host, Ok(Verdict::Done));
        }
        let seen_to = match invocation.standing {
            Standing::OnTrial => set_aside(&mut host, Standing::OnTrial, &problem),
            Standing::Asked => Err(RunError::Host(NOT_ITS_OWN.to_owned())),
            Standing::Serves => match take_copy(run_of(&mut host), &self.context) {
                Ok(Some(copy)) => {
                    put_state(run_of(&mut host), &self.context, &copy);
                    Ok(())
                }
                Ok(None) => set_aside(&mut host, Standing::Serves, &problem),
                Err(error) => Err(RunError::Host(error.to_string())),
            },
        };
        if let Err(error) = seen_to {
            return (host, Err(error));
        }
        *start = run_of(&mut host).tx.savepoint();
        self.handle(host, invocation, invocation.event.clone()).await
    }

    /// The end of a state, which reads as none already: it comes with the event, as one of this version.
    pub(super) async fn handle_expired(
        &self,
        mut host: Host,
        invocation: &Invocation,
        state: &State,
    ) -> (Host, Result<Verdict, RunError>) {
        let version = self.context.state_version;
        if state.version == version {
            return self.handle(host, invocation, invocation.event.clone()).await;
        }
        if self.is_retired() {
            return (host, Err(RunError::Superseded));
        }
        match take_copy(run_of(&mut host), &self.context) {
            Ok(None) => {}
            Ok(Some(StateRow { name, version, bytes, .. })) => {
                return self.handle(host, invocation, wire::Event::Expired(State { name, version, bytes })).await;
            }
            Err(error) => return (host, Err(RunError::Host(error.to_string()))),
        }
        let (mut host, problem) = match self.migrate(host, state.clone()).await {
            (host, Ok(Ok(new))) => return self.handle(host, invocation, wire::Event::Expired(new)).await,
            (host, Ok(Err(problem))) => (host, guests_words(problem)),
            (host, Err(error @ (RunError::OutOfTime(_) | RunError::Host(_)))) => return (host, Err(error)),
            (host, Err(error)) => (host, error.to_string()),
        };
        keep_ended(&mut host, state, &problem);
        (host, Ok(Verdict::Done))
    }

    /// A state as `migrate` must answer it.
    fn check_migrated(&self, new: State) -> Result<State, String> {
        let size = new.name.len() + new.bytes.len();
        if new.version != self.context.state_version {
            return Err(format!("it became version {} instead of {}", new.version, self.context.state_version));
        }
        if size as u64 > self.context.limits.state {
            return Err(format!("it grew to {size} bytes: {}", Limit::State.hit(&self.name)));
        }
        Ok(new)
    }

    async fn migrate(&self, host: Host, old: State) -> (Host, Result<Result<State, String>, RunError>) {
        let (code, mut store) = (self.code.clone(), self.engine.store(host));
        let guard = Guard::of(&store);
        let migrated = self.in_turn(Arc::clone(&guard.meter), async move {
            let work = async {
                let guest = code.instantiate_async(&mut store).await?;
                guest.botyard_plugin_handler().call_migrate(&mut store, &old).await
            };
            let answer = guard.watch(work).await;
            finish(store, answer)
        });
        migrated.await
    }

    /// Tries what would become of a state, without anything coming of it: of one that this version has not written, or
    /// whether it reads one of its own.
    ///
    /// # Errors
    /// When the plugin crashes over it.
    pub async fn try_state(&self, old: &StateRow) -> Result<Tried, RunError> {
        let meter = Arc::new(Meter::new(self.context.limits.cpu));
        let host = Host::describing(Arc::clone(&self.context), meter, self.engine.http());
        let old = State { name: old.name.clone(), version: old.version, bytes: old.bytes.clone() };
        let (_, migrated) = self.migrate(host, old).await;
        let checked = migrated?.and_then(|new| self.check_migrated(new));
        Ok(checked.map_or_else(|why| Tried::Refused(guests_words(why)), |_| Tried::Taken))
    }
}

fn run_of(host: &mut Host) -> &mut Run {
    host.run.as_mut().expect("a host that was made for a run has one")
}

/// What is stored of a conversation, as far as something is to be done about it.
enum WhatThereIs {
    /// A state of this version by now, or none.
    Settled,
    /// A state of another version, or one whose row can't be read; and the one that is kept beside it.
    Others { state: Result<StateRow, String>, copy: Option<StateRow> },
}

/// Looks, and puts a state back that was this version's own before a trial.
fn what_there_is(run: &mut Run, context: &Context, standing: Standing) -> Result<WhatThereIs, store::Error> {
    let conversation = run.conversation;
    let state = read_state(run, &context.name, &conversation)?;
    let state = match state {
        Some(Ok(row)) if row.version == context.state_version => return Ok(WhatThereIs::Settled),
        // What it could not use once is for the version before it.
        None if standing == Standing::OnTrial => return Ok(WhatThereIs::Settled),
        state => state,
    };
    if standing != Standing::OnTrial
        && let Some(copy) = take_copy(run, context)?
    {
        tracing::info!(plugin = %context.name, "a state goes on as it was before the trial of a version that was rolled back");
        let aside = aside_key(run.bot, &context.name, &conversation);
        if run.tx.get(&aside)?.is_some_and(|aside| aside == copy.encode()) {
            run.tx.delete(aside);
        }
        put_state(run, context, &copy);
        return Ok(WhatThereIs::Settled);
    }
    let Some(state) = state else { return Ok(WhatThereIs::Settled) };
    let copy = run.tx.get(&before_key(run.bot, &context.name, &conversation))?;
    let copy = copy.and_then(|copy| StateRow::decode(&copy).ok());
    Ok(WhatThereIs::Others { state: state.map_err(|error| error.to_string()), copy })
}

/// The state that this version wrote before a later one took it over on trial; it is not kept beside any longer.
fn take_copy(run: &mut Run, context: &Context) -> Result<Option<StateRow>, store::Error> {
    let kept = before_key(run.bot, &context.name, &run.conversation);
    let copy = run.tx.get(&kept)?.and_then(|copy| StateRow::decode(&copy).ok());
    let copy = copy.filter(|copy| copy.version == context.state_version);
    if copy.is_some() {
        run.tx.delete(kept);
    }
    Ok(copy)
}

/// Moves a state that can't be used to where it is kept for later, untouched.
pub(super) fn set_aside(host: &mut Host, standing: Standing, problem: &str) -> Result<(), RunError> {
    let plugin = &host.context.name;
    let run = host.run.as_mut().expect("a host that was made for a run has one");
    tracing::warn!(%plugin, problem, "a state can't be used; it is kept aside");
    let failed = |error: store::Error| RunError::Host(error.to_string());
    let state = key(run.bot, plugin, &run.conversation);
    let Some(old) = run.tx.get(&state).map_err(failed)? else { return Ok(()) };
    let kept = before_key(run.bot, plugin, &run.conversation);
    if standing == Standing::OnTrial && run.tx.get(&kept).map_err(failed)?.is_none() {
        run.tx.put(kept, old.to_vec());
    }
    run.tx.put(aside_key(run.bot, plugin, &run.conversation), old.to_vec());
    run.tx.delete(state);
    Ok(())
}

/// Keeps a state aside that has ended, and of whose end the plugin can't be told.
pub(super) fn keep_ended(host: &mut Host, state: &State, problem: &str) {
    let plugin = host.context.name.clone();
    let run = run_of(host);
    tracing::warn!(%plugin, problem, "an expired state can't be used; it is kept aside");
    let State { name, version, bytes } = state.clone();
    let row = StateRow { name, version, expires: 0, bytes };
    run.tx.put(aside_key(run.bot, &plugin, &run.conversation), row.encode());
}
