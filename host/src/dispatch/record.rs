//! Takes notes of what plugins are given and of what they do, for whoever listens.
//!
//! Without listeners nothing is noted. A note goes out when its event is settled: what was made again because somebody
//! else had changed what it read is told once. Nobody waits for a listener that is slow: it is told how many notes it has
//! lost. What a listener is given are lines, with the secrets taken out.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::effects::Effects;
use super::note::{Note, Ran};
use super::routes::Version;
use super::run::Context;
use crate::config::redaction::redact;
use crate::domain::PluginName;
use crate::plugin::{Invocation, RunReport, Tape};
use crate::store::{Savepoint, Tx};

/// Lines that wait for a listener.
const WAITING: usize = 64;
/// Bytes of a line.
const LONGEST: usize = 1 << 20;

/// A line of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The first one: of which form the others are, and which host has made them.
    Recording {
        /// The form.
        form: u32,
        /// The host's version.
        host: String,
    },
    /// A run.
    Note(Box<Note>),
    /// So many runs are not here: they were too large, or came too fast.
    Lost(u64),
}

/// The form of recordings that this host makes and reads.
pub const FORM: u32 = 1;

/// Takes the notes. Clones share everything.
#[derive(Clone, Default)]
pub struct Recorder(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// How many there are, to be asked about each run.
    n_listeners: AtomicUsize,
    listeners: Mutex<Vec<Listener>>,
    /// Notes of events that are not settled yet.
    pending: Mutex<HashMap<u64, Vec<Note>>>,
}

struct Listener {
    plugin: Option<PluginName>,
    lines: mpsc::Sender<Arc<str>>,
    lost: Arc<AtomicU64>,
}

/// What a listener hears.
pub struct Notes {
    lines: mpsc::Receiver<Arc<str>>,
    lost: Arc<AtomicU64>,
    next: Option<Arc<str>>,
}

impl Notes {
    /// The next line, without its end; none when the host stops.
    pub async fn next(&mut self) -> Option<Arc<str>> {
        if let Some(next) = self.next.take() {
            return Some(next);
        }
        let line = self.lines.recv().await;
        match self.lost.swap(0, Relaxed) {
            0 => line,
            lost => {
                self.next = line;
                Some(write(&Line::Lost(lost)))
            }
        }
    }
}

/// A line in writing.
#[must_use]
pub fn write(line: &Line) -> Arc<str> {
    let text = serde_json::to_string(line).expect("its keys are texts");
    redact(&text).into()
}

impl Recorder {
    /// Notes from now on: of one plugin, or of all.
    #[must_use]
    pub fn listen(&self, plugin: Option<PluginName>) -> Notes {
        let (sender, lines) = mpsc::channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let mut listeners = self.listeners();
        listeners.push(Listener { plugin, lines: sender, lost: lost.clone() });
        self.0.n_listeners.store(listeners.len(), Relaxed);
        Notes { lines, lost, next: None }
    }

    /// Ends all listening.
    pub(super) fn close(&self) {
        self.listeners().clear();
        self.0.n_listeners.store(0, Relaxed);
    }

    /// Whether somebody wants to hear of a plugin's runs.
    pub(super) fn wants(&self, plugin: &PluginName) -> bool {
        self.is_on()
            && self.listeners().iter().any(|listener| listener.plugin.as_ref().is_none_or(|wanted| wanted == plugin))
    }

    /// Whether somebody wants to hear of any run.
    pub(super) fn is_on(&self) -> bool {
        self.0.n_listeners.load(Relaxed) > 0
    }

    /// Keeps a note until its event is settled.
    pub(super) fn add(&self, note: Note) {
        self.pending().entry(note.event).or_default().push(note);
    }

    /// The notes of an event, which nobody else gets.
    pub(super) fn take(&self, event: u64) -> Vec<Note> {
        self.pending().remove(&event).unwrap_or_default()
    }

    /// Tells of an event that is committed, or that failed at this attempt.
    pub(super) fn settle(&self, event: u64, failed: Option<&str>) {
        // Taken in any case: the last listener may have left meanwhile.
        let notes = self.take(event);
        if !self.is_on() {
            return;
        }
        for note in notes {
            let note = Note { failed: failed.map(str::to_owned), ..note };
            let plugin = note.plugin.clone();
            let line = (note.weight() <= LONGEST).then(|| write(&Line::Note(Box::new(note))));
            self.tell(&plugin, line.filter(|line| line.len() <= LONGEST));
        }
    }

    fn tell(&self, plugin: &PluginName, line: Option<Arc<str>>) {
        let mut listeners = self.listeners();
        listeners.retain(|listener| {
            if listener.plugin.as_ref().is_some_and(|wanted| wanted != plugin) {
                return !listener.lines.is_closed();
            }
            let told = line.clone().map(|line| listener.lines.try_send(line));
            if !matches!(told, Some(Ok(()))) {
                listener.lost.fetch_add(1, Relaxed);
            }
            !listener.lines.is_closed()
        });
        self.0.n_listeners.store(listeners.len(), Relaxed);
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<u64, Vec<Note>>> {
        self.0.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How things were before a run.
pub(super) struct Before {
    place: Savepoint,
    /// The languages that were chosen, which it may change.
    languages: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Context {
    /// A transaction of which it is known afterwards what its runs, and what was decided before them, have read.
    pub(super) fn begin_tx(&self) -> Tx {
        let mut tx = Tx::new(&self.store);
        if self.recorder.is_on() {
            tx.keep_peeked();
        }
        tx
    }

    /// What is to be known of a run before it begins.
    pub(super) fn before(&self, invocation: &Invocation, tx: &Tx) -> Before {
        let languages = invocation.tape.as_ref().map(|_| invocation.listener.rows(tx, self.bot));
        // If the store can't be read, the run will say so.
        Before { place: tx.savepoint(), languages: languages.and_then(Result::ok).unwrap_or_default() }
    }

    /// What a run is to be answered from, or written down on.
    pub(super) fn tape(&self, plugin: &PluginName, observes: bool) -> Option<Tape> {
        match self.played.load_full() {
            Some(played) if played.observes == observes => Some(Tape::playing(played.asked.clone())),
            Some(_) => Some(Tape::playing(Vec::new())),
            None => self.recorder.wants(plugin).then(Tape::default),
        }
    }

    /// Takes a note of a run that has ended, if somebody wants it.
    pub(super) fn take_note(
        &self,
        invocation: &mut Invocation,
        Version { plugin, .. }: &Version,
        observes: bool,
        Before { place, languages }: Before,
        report: &RunReport,
        recovered: Option<String>,
    ) {
        let Some(tape) = invocation.tape.take() else { return };
        let languages = languages.iter().map(|(key, row)| (&key[..], &row[..]));
        // Read for good goes before peeked at.
        let peeked = report.tx.peeked();
        let peeked = peeked.iter().map(|(key, row)| (&key[..], &row[..]));
        let seen: BTreeMap<&[u8], &[u8]> = peeked.chain(report.tx.seen()).chain(languages).collect();
        let ops = report.tx.written_since(place);
        let known = |key: &[u8]| seen.get(key).map(|row| row.to_vec());
        let (bot, conversation, now) = (invocation.bot, &invocation.conversation, invocation.now);
        let ran = Ran {
            asked: tape.recorded(),
            verdict: (&report.result).into(),
            recovered,
            effects: Effects::of(&ops, bot, &plugin.name, conversation, now, known),
            cpu: u64::try_from(report.cpu.as_micros()).unwrap_or(u64::MAX),
        };
        let rows = seen.iter().map(|(key, row)| (*key, *row));
        if let Some(note) = Note::of(invocation, plugin, observes, rows, ran) {
            self.recorder.add(note);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::redaction::hide;
    use crate::dispatch::note::tests::note;
    use crate::plugin::Content;

    use super::super::note::What;

    fn line(text: &str) -> Line {
        serde_json::from_str(text).unwrap()
    }

    #[tokio::test]
    async fn a_run_is_told_when_its_event_is_settled_to_those_who_want_it() {
        let recorder = Recorder::default();
        let (tea, coffee) = (PluginName::new("tea"), PluginName::new("coffee"));
        assert!(!recorder.wants(&tea));
        let (mut all, mut one) = (recorder.listen(None), recorder.listen(Some(tea.clone())));
        assert!(recorder.wants(&tea) && recorder.wants(&coffee));
        for plugin in ["coffee", "tea"] {
            recorder.add(note(1, plugin));
        }
        // Of a run that is made again nothing is told.
        recorder.add(note(2, "tea"));
        recorder.take(2);
        recorder.settle(2, None);
        recorder.settle(1, Some("no"));
        let failed = |plugin| Line::Note(Box::new(Note { failed: Some("no".to_owned()), ..note(1, plugin) }));
        assert_eq!(line(&all.next().await.unwrap()), failed("coffee"));
        assert_eq!(line(&all.next().await.unwrap()), failed("tea"));
        assert_eq!(line(&one.next().await.unwrap()), failed("tea"));
        drop(all);
        recorder.add(note(3, "coffee"));
        recorder.settle(3, None);
        assert!(recorder.wants(&tea) && !recorder.wants(&coffee), "who has gone is forgotten");
        recorder.close();
        assert_eq!(one.next().await, None);
        assert!(!recorder.wants(&tea));
    }

    #[tokio::test]
    async fn a_listener_that_is_slow_loses_runs_and_is_told_how_many() {
        let recorder = Recorder::default();
        let mut notes = recorder.listen(None);
        let tell = |event, what| {
            recorder.add(Note { what, ..note(event, "tea") });
            recorder.settle(event, None);
        };
        let small = || What::Update(Content::of(b"{}"));
        tell(0, What::Update(Content::of(&vec![b'x'; LONGEST + 1])));
        for event in 1..=WAITING as u64 + 5 {
            tell(event, small());
        }
        assert_eq!(line(&notes.next().await.unwrap()), Line::Lost(6));
        for event in 1..=WAITING as u64 {
            assert!(matches!(line(&notes.next().await.unwrap()), Line::Note(note) if note.event == event));
        }
    }

    #[test]
    fn a_line_has_no_secrets_and_no_breaks() {
        hide("never-to-be\"written");
        let text = "a never-to-be\"written\nb";
        let what = What::Update(Content::of(serde_json::json!({ "text": text }).to_string().as_bytes()));
        let written = write(&Line::Note(Box::new(Note { what, version: text.to_owned(), ..note(1, "tea") })));
        assert!(!written.contains("never-to-be") && !written.contains('\n'), "{written}");
        assert!(matches!(line(&written), Line::Note(_)));
    }
}
