use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;
use tokio::time::timeout;

use super::settle::{PATIENCE, QUIET};
use super::*;

/// A watcher on files in a folder of its own.
struct Watched {
    folder: TempDir,
    paths: watch::Sender<Vec<PathBuf>>,
    changed: mpsc::Receiver<PathBuf>,
    _stop: watch::Sender<bool>,
}

impl Watched {
    async fn start(prepare: impl FnOnce(&Path), names: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path());
        let (paths, listed) = watch::channel(names.iter().map(|name| folder.path().join(name)).collect());
        let (sender, changed) = mpsc::channel(10);
        let (stop, stopping) = watch::channel(false);
        let watcher = Watcher::begin(listed, sender).await;
        tokio::spawn(watcher.run(stopping));
        Self { folder, paths, changed, _stop: stop }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// The content of the next file that is told of, if one is within `within`.
    async fn next(&mut self, within: Duration) -> Option<String> {
        let path = timeout(within, self.changed.recv()).await.ok()?.expect("the watcher runs");
        Some(fs::read_to_string(path).unwrap())
    }

    /// The same, of a change that must be noticed by an event: well before the next regular look.
    async fn soon(&mut self) -> Option<String> {
        self.next(Duration::from_millis(1_200)).await
    }

    async fn nothing(&mut self) {
        assert_eq!(self.next(QUIET + 4 * SHORT).await, None);
    }
}

fn one(folder: &Path) {
    fs::write(folder.join("a"), "one").unwrap();
}

#[tokio::test]
async fn tells_of_new_content_once_and_of_no_other_event() {
    let mut watched = Watched::start(one, &["a"]).await;
    watched.write("a", "one");
    watched.write("b", "not watched");
    watched.nothing().await;
    watched.write("a", "two");
    assert_eq!(watched.soon().await.as_deref(), Some("two"));
    watched.nothing().await;
}

#[tokio::test]
async fn waits_for_the_end_of_a_slow_write() {
    let mut watched = Watched::start(one, &["a"]).await;
    for end in 1..=6 {
        watched.write("a", &"x".repeat(end));
        assert_eq!(watched.next(QUIET / 2).await, None);
    }
    assert_eq!(watched.soon().await.as_deref(), Some("xxxxxx"));
}

#[tokio::test]
async fn a_truncated_file_is_on_its_way() {
    let mut watched = Watched::start(one, &["a"]).await;
    watched.write("a", "");
    assert_eq!(watched.next(2 * QUIET).await, None);
    watched.write("a", "two");
    assert_eq!(watched.soon().await.as_deref(), Some("two"));
}

#[tokio::test]
async fn a_file_renamed_over_it_counts() {
    let mut watched = Watched::start(one, &["a"]).await;
    for text in ["two", "three"] {
        watched.write("new", text);
        fs::rename(watched.path("new"), watched.path("a")).unwrap();
        assert_eq!(watched.soon().await.as_deref(), Some(text));
    }
}

#[tokio::test]
async fn a_symlink_swapped_above_it_counts() {
    // As a mounted ConfigMap does it: a -> ..data/a, ..data -> v1.
    let prepare = |folder: &Path| {
        for (version, text) in [("v1", "one"), ("v2", "two")] {
            fs::create_dir(folder.join(version)).unwrap();
            fs::write(folder.join(version).join("a"), text).unwrap();
        }
        symlink("v1", folder.join("..data")).unwrap();
        symlink("..data/a", folder.join("a")).unwrap();
    };
    let mut watched = Watched::start(prepare, &["a"]).await;
    symlink("v2", watched.path("..tmp")).unwrap();
    fs::rename(watched.path("..tmp"), watched.path("..data")).unwrap();
    assert_eq!(watched.soon().await.as_deref(), Some("two"));
    // The file behind the link lies in another folder than the link.
    watched.write("v2/a", "three");
    assert_eq!(watched.soon().await.as_deref(), Some("three"));
}

#[tokio::test]
async fn a_file_that_vanishes_is_told_of_when_it_is_back_with_other_content() {
    let mut watched = Watched::start(one, &["a"]).await;
    fs::remove_file(watched.path("a")).unwrap();
    watched.nothing().await;
    watched.write("a", "one");
    watched.nothing().await;
    fs::remove_file(watched.path("a")).unwrap();
    watched.nothing().await;
    watched.write("a", "two");
    assert_eq!(watched.soon().await.as_deref(), Some("two"));
}

#[tokio::test]
async fn the_list_may_change_and_name_what_is_not_there_yet() {
    let mut watched = Watched::start(one, &["a"]).await;
    watched.paths.send(vec![watched.path("b"), watched.path("later/c")]).unwrap();
    tokio::time::sleep(SHORT).await;
    watched.write("a", "no longer watched");
    watched.write("b", "new");
    assert_eq!(watched.soon().await.as_deref(), Some("new"));
    watched.nothing().await;
    fs::create_dir(watched.path("later")).unwrap();
    watched.write("later/c", "in a new folder");
    assert_eq!(watched.soon().await.as_deref(), Some("in a new folder"));
}

#[tokio::test]
async fn what_is_there_when_its_path_is_added_is_told_of_once() {
    let mut watched = Watched::start(one, &["a"]).await;
    watched.write("b", "there already");
    watched.paths.send(vec![watched.path("a"), watched.path("b")]).unwrap();
    assert_eq!(watched.soon().await.as_deref(), Some("there already"));
    watched.nothing().await;
}

#[tokio::test(start_paused = true)]
async fn without_events_a_regular_look_finds_it() {
    let folder = tempfile::tempdir().unwrap();
    one(folder.path());
    let path = folder.path().join("a");
    let (_paths, listed) = watch::channel(vec![path.clone()]);
    let (sender, mut changed) = mpsc::channel(1);
    let woken = Arc::new(Notify::new());
    let watcher = Watcher::begin_with(listed, sender, Folders::without_events(), woken).await;
    tokio::spawn(watcher.keep_watching());
    tokio::time::sleep(SHORT).await;
    fs::write(&path, "two").unwrap();
    let begin = Instant::now();
    assert_eq!(changed.recv().await, Some(path));
    assert!(begin.elapsed() <= LONG + QUIET + 2 * SHORT, "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_change_between_begin_and_run_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    one(folder.path());
    let path = folder.path().join("a");
    let (_paths, listed) = watch::channel(vec![path.clone()]);
    let (sender, mut changed) = mpsc::channel(1);
    let (_stop, stopping) = watch::channel(false);
    let watcher = Watcher::begin(listed, sender).await;
    fs::write(&path, "two").unwrap();
    tokio::spawn(watcher.run(stopping));
    assert_eq!(timeout(2 * LONG, changed.recv()).await.expect("it is noticed"), Some(path));
}

#[tokio::test]
async fn a_folder_is_what_is_in_it() {
    let prepare = |folder: &Path| fs::create_dir(folder.join("texts")).unwrap();
    let mut watched = Watched::start(prepare, &["texts"]).await;
    let told =
        async |watched: &mut Watched| timeout(Duration::from_millis(1_200), watched.changed.recv()).await.is_ok();
    watched.write("texts/en.ftl", "a = A");
    assert!(told(&mut watched).await, "a new file");
    watched.write("texts/.en.ftl.swp", "of an editor");
    watched.write("texts/en.ftl", "a = A");
    assert!(!told(&mut watched).await);
    watched.write("texts/en.ftl", "a = B");
    assert!(told(&mut watched).await, "other content");
    watched.write("texts/en.ftl", "");
    assert!(!told(&mut watched).await, "on its way");
    watched.write("texts/en.ftl", "a = C");
    assert!(told(&mut watched).await);
    fs::remove_file(watched.path("texts/en.ftl")).unwrap();
    assert!(told(&mut watched).await, "a file that is gone");
}

/// What can be looked at and not read, also by root.
#[tokio::test(start_paused = true)]
async fn a_file_that_can_not_be_read_is_told_of_once_and_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let (sender, mut changed) = mpsc::channel(1);
    let mut files = Files { files: BTreeMap::new(), folders: Folders::without_events(), changed: sender };
    files.follow(vec![path.clone()], true).await;
    symlink("/proc/self/mem", &path).unwrap();
    let mut looks = async |files: &mut Files| {
        for _ in 0..100 {
            assert!(files.look().await.is_ok());
            tokio::time::sleep(SHORT).await;
        }
        changed.try_recv().is_ok()
    };
    assert!(looks(&mut files).await, "whoever wants it is to say that it can't be read");
    assert!(!looks(&mut files).await);
    assert!(files.is_settling(), "it is tried again");
    fs::remove_file(&path).unwrap();
    fs::write(&path, "at last").unwrap();
    assert!(looks(&mut files).await);
    assert!(!files.is_settling());
}

#[tokio::test]
async fn stops_when_told_even_while_nobody_takes_its_news() {
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> = ["a", "b"].iter().map(|name| folder.path().join(name)).collect();
    let (_paths, listed) = watch::channel(files.clone());
    let (sender, changed) = mpsc::channel(1);
    let (stop, stopping) = watch::channel(false);
    let watcher = tokio::spawn(Watcher::begin(listed, sender).await.run(stopping));
    files.iter().for_each(|path| fs::write(path, "new").unwrap());
    tokio::time::sleep(2 * QUIET).await;
    stop.send(true).unwrap();
    timeout(QUIET, watcher).await.expect("it stops").unwrap();
    drop(changed);
}

fn signature(length: u64) -> Option<Signature> {
    Some(Signature { inode: (1, 1), length, modified: (0, 0), changed: (0, 0) })
}

/// Looks at a file every `SHORT`, finding the length that `length` gives (negative: no file) at each time, and answers
/// with what there was to do and when, in milliseconds.
fn looks(until: Duration, length: impl Fn(u128) -> i64) -> Vec<(u128, Next)> {
    let begin = Instant::now();
    let at = |length: i64| u64::try_from(length).ok().and_then(signature);
    let mut settling = Settling::new(at(length(0)));
    let mut found = Vec::new();
    let mut time = Duration::ZERO;
    while time <= until {
        let millis = time.as_millis();
        match settling.observe(begin + time, at(length(millis))) {
            Next::Wait => {}
            next => found.push((millis, next)),
        }
        time += SHORT;
    }
    found
}

#[test]
fn settling_takes_its_time() {
    let until = 3 * PATIENCE;
    assert_eq!(looks(until, |_| 1), []);
    assert_eq!(looks(until, |at| if at < 100 { 1 } else { 2 }), [(300, Next::Read)]);
    assert_eq!(looks(until, |at| if at < 100 { 1 } else { -1 }), [(300, Next::Vanished)]);
    assert_eq!(looks(until, |at| if (100..250).contains(&at) { -1 } else { 1 }), [(450, Next::Read)], "remove, create");
    assert_eq!(looks(until, |at| if at < 100 { 1 } else { 0 }), [(2_100, Next::Read)], "empty");
    let growing = |at: u128| i64::try_from(at.min(4_000) / 100).unwrap();
    assert_eq!(looks(until, |at| 1 + growing(at)), [(2_100, Next::Late), (4_200, Next::Read)]);
}
