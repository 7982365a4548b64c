//! Out and in again, and the check.

use std::fs;

use super::*;

fn filled(path: &Path) -> Store {
    let store = Store::open(path).unwrap();
    store.commit_blocking(ops([put("a", "1"), put("b", large(3)), append("n"), put("\u{7f}", [0, 0xff])])).unwrap();
    store
}

fn everything(store: &Store) -> Vec<(Bytes, Bytes)> {
    store.range(b"", &[0xff], usize::MAX).unwrap()
}

#[test]
fn an_export_comes_back_whole() {
    let (dir, path) = room();
    let store = filled(&path);
    let file = dir.path().join("export.jsonl");
    fs::write(&file, "an older one").unwrap();
    assert_eq!(store.export_to(&file).unwrap(), 4);

    let copy = dir.path().join("copy");
    fs::create_dir(&copy).unwrap();
    let input = std::io::BufReader::new(fs::File::open(&file).unwrap());
    assert_eq!(Store::import(&copy, input).unwrap(), 4);
    let imported = Store::open(&copy).unwrap();
    assert_eq!(everything(&imported), everything(&store));
    let next = imported.commit_blocking(ops([append("n")])).unwrap().numbers[0];
    assert_eq!(rows::number_of(&imported.last_key(b"n", b"o").unwrap().unwrap()), Some(next), "numbers go on");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "nothing unfinished is left");
}

#[test]
fn a_cut_or_changed_export_makes_nothing() {
    let (dir, path) = room();
    let mut export = Vec::new();
    filled(&path).export(&mut export).unwrap();
    let export = String::from_utf8(export).unwrap();
    let lines: Vec<&str> = export.lines().collect();
    let mut broken: Vec<(String, u64)> = (0..lines.len()).map(|n| (lines[..n].join("\n"), n as u64 + 1)).collect();
    broken.push((export.replacen("\"k\":\"61\"", "\"k\":\"6\"", 1), 2));
    broken.push((export.replacen("\"k\":\"61\"", "\"k\":\"0061\"", 1), 2));
    broken.push(([&lines[..2], &lines[3..]].concat().join("\n"), 5));
    for (text, at) in broken {
        let copy = dir.path().join("copy");
        let error = Store::import(&copy, text.as_bytes()).unwrap_err();
        assert!(matches!(error, Error::BadExport { line, .. } if line == at), "{error}, not line {at}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only the first store is there");
    }
    let newer = export.replacen("\"botyard_store\":1", "\"botyard_store\":2", 1);
    assert!(matches!(Store::import(&dir.path().join("copy"), newer.as_bytes()), Err(Error::OtherFormat { .. })));
    assert!(matches!(Store::import(&path, export.as_bytes()), Err(Error::NotEmpty { .. })));
}

#[test]
fn an_export_shows_one_moment() {
    let (_dir, path) = room();
    let store = Store::open(&path).unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..300u32 {
                let value = n.to_be_bytes();
                store.commit_blocking(ops([put("a", value), put("m", value), put("z", value)])).unwrap();
            }
        });
        while !writer.is_finished() {
            let mut export = Vec::new();
            store.export(&mut export).unwrap();
            let export = String::from_utf8(export).unwrap();
            let values: Vec<&str> = export.lines().filter_map(|line| line.split("\"v\":").nth(1)).collect();
            assert!(values.windows(2).all(|pair| pair[0] == pair[1]), "{values:?}");
        }
    });
}

#[test]
fn a_check_counts_and_finds_damage() {
    let (_dir, path) = room();
    let store = filled(&path);
    let check = store.check().unwrap();
    assert_eq!((check.rows, &check.problems), (4, &Vec::new()));
    assert_eq!(check.kinds.into_iter().collect::<Vec<_>>(), [(b'a', 1), (b'b', 1), (b'n', 1), (0x7f, 1)]);
    assert!(check.bytes > 200_000);

    store
        .shared
        .with_engine(|engine| {
            let chunk = engine.db.scan_prefix("~").keys().nth(1).unwrap().unwrap();
            engine.db.remove(chunk).unwrap();
            engine.db.insert(layout::chunk_key(b"a", 9, 0), "lost").unwrap();
            engine.db.insert("c", &[77]).unwrap();
            Ok(())
        })
        .unwrap();
    let problems = store.check().unwrap().problems;
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(matches!(store.get(b"b"), Err(Error::Corrupt { .. })));
    assert!(matches!(store.get(b"c"), Err(Error::Corrupt { .. })));
}
