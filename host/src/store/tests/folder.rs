//! What may lie where the store should be.

use std::fs;

use super::*;

fn refusal(path: &Path) -> Error {
    match Store::open(path) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error,
    }
}

fn filled(path: &Path) {
    let store = Store::open(path).unwrap();
    store.commit_blocking(ops([put("k", "v")])).unwrap();
    close(store);
}

fn close(store: Store) {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(store.close()).unwrap();
}

#[test]
fn a_missing_folder_is_made_with_its_parents() {
    let (_dir, path) = room();
    filled(&path.join("deeper/still"));
}

#[test]
fn a_file_is_refused() {
    let (_dir, path) = room();
    fs::write(&path, "text").unwrap();
    assert!(matches!(refusal(&path), Error::NotAFolder { .. }));
    assert!(matches!(refusal(&path.join("below")), Error::NotAFolder { .. }));
    assert_eq!(fs::read(&path).unwrap(), b"text");
}

#[test]
fn a_folder_of_somebody_else_is_refused_and_untouched() {
    for files in [&["notes.txt"][..], &["db"], &["db", "notes.txt"], &["conf", "passwd"]] {
        let (_dir, path) = room();
        fs::create_dir(&path).unwrap();
        for file in files {
            fs::write(path.join(file), "precious").unwrap();
        }
        let error = refusal(&path);
        assert!(matches!(error, Error::Foreign { .. }), "{error}");
        assert_eq!(fs::read_dir(&path).unwrap().count(), files.len());
        for file in files {
            assert_eq!(fs::read(path.join(file)).unwrap(), b"precious");
        }
    }
}

#[test]
fn a_sled_database_of_another_program_is_refused() {
    let fill: [fn(&sled::Db); 2] = [
        |db| drop(db.insert("theirs", "row").unwrap()),
        |db| drop(db.open_tree("theirs").unwrap().insert("a", "row").unwrap()),
    ];
    for fill in fill {
        let (_dir, path) = room();
        let db = sled::Config::new().path(&path).segment_size(8 << 20).open().unwrap();
        fill(&db);
        db.flush().unwrap();
        drop(db);
        assert!(matches!(refusal(&path), Error::Foreign { .. }));
    }
    let (_dir, path) = room();
    drop(sled::open(&path).unwrap());
    assert!(matches!(refusal(&path), Error::OtherFormat { .. }), "other segments");
}

#[test]
fn an_interrupted_creation_goes_on() {
    let (_dir, path) = room();
    fs::create_dir_all(path.join("blobs")).unwrap();
    fs::create_dir(path.join("lost+found")).unwrap();
    fs::write(path.join("conf"), "").unwrap();
    fs::write(path.join("db"), "").unwrap();
    filled(&path);
}

#[test]
fn another_format_is_named() {
    let (_dir, path) = room();
    let store = Store::open(&path).unwrap();
    store.shared.with_engine(|engine| Ok(engine.db.insert(layout::FORMAT_KEY, "9").unwrap())).unwrap();
    close(store);
    let error = refusal(&path);
    assert!(matches!(&error, Error::OtherFormat { found, .. } if found == "9"), "{error}");
}

#[test]
fn a_store_in_use_is_locked() {
    let (_dir, path) = room();
    let store = Store::open(&path).unwrap();
    assert!(matches!(refusal(&path), Error::Locked { .. }));
    close(store);
    filled(&path);
}

#[test]
fn half_written_snapshots_are_removed() {
    let (_dir, path) = room();
    filled(&path);
    for name in ["snap.7FFFFFFFFFFFFFFF.generating", "snap.7FFFFFFFFFFFFFFE.tmp1"] {
        fs::write(path.join(name), "half").unwrap();
    }
    let store = Store::open(&path).unwrap();
    assert_eq!(store.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
}

#[test]
fn damage_is_an_error_that_says_how_to_come_back() {
    let (_dir, path) = room();
    filled(&path);
    fs::write(path.join("snap.7FFFFFFFFFFFFFFF"), "not a snapshot at all").unwrap();
    let error = refusal(&path);
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("botyard store import"));
}

#[test]
fn what_the_system_says_becomes_what_to_do() {
    use std::io::ErrorKind;
    let text = |kind: ErrorKind| Error::io(Path::new("data"), kind.into()).to_string();
    assert!(text(ErrorKind::StorageFull).contains("free some space"));
    assert!(text(ErrorKind::ReadOnlyFilesystem).contains("write access"));
    assert!(text(ErrorKind::PermissionDenied).contains("write access"));
}
