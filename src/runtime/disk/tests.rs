use super::*;

/// A disk on real files, removed at the end of the test.
struct Bench {
    root: PathBuf,
    disk: Disk,
}

impl Bench {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("revenant-disk-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let disk =
            Disk::new(BTreeMap::from([(Volume::Local, root.join("local")), (Volume::Ha, root.join("ha"))]));
        disk.prepare().unwrap();
        Self { root, disk }
    }

    fn run(&self, action: DiskOp) -> DiskResult {
        self.disk.perform(Volume::Local, &action)
    }

    fn create(&self, path: &str, bytes: &'static [u8]) {
        self.run(DiskOp::CreateNew { path: path.to_owned() }).unwrap();
        self.append(path, bytes).unwrap();
    }

    fn append(&self, path: &str, bytes: &'static [u8]) -> DiskResult {
        self.run(DiskOp::Append { path: path.to_owned(), bytes: bytes.into() })
    }

    fn read(&self, path: &str, offset: u64, length: u64) -> Vec<u8> {
        match self.run(DiskOp::ReadRange { path: path.to_owned(), offset, length }) {
            Ok(DiskOutput::Data(bytes)) => bytes.to_vec(),
            other => panic!("{other:?}"),
        }
    }

    fn list(&self, path: &str) -> Vec<(String, u64)> {
        match self.run(DiskOp::List { path: path.to_owned() }) {
            Ok(DiskOutput::Entries(entries)) => entries.into_iter().map(|e| (e.path, e.length)).collect(),
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn failure(result: DiskResult) -> DiskErrorKind {
    result.expect_err("must fail").kind
}

#[test]
fn a_new_file_gets_its_parents_and_is_made_once() {
    let bench = Bench::new("create");
    bench.create("a/b/c", b"one");
    assert_eq!(
        failure(bench.run(DiskOp::CreateNew { path: "a/b/c".to_owned() })),
        DiskErrorKind::AlreadyExists
    );
    bench.append("a/b/c", b"two").unwrap();
    assert_eq!(bench.read("a/b/c", 0, 100), b"onetwo");
    assert_eq!(failure(bench.append("a/b/d", b"x")), DiskErrorKind::NotFound);
}

#[test]
fn a_range_is_cut_at_the_end_of_the_file() {
    let bench = Bench::new("range");
    bench.create("f", b"0123456789");
    assert_eq!(bench.read("f", 2, 3), b"234");
    assert_eq!(bench.read("f", 8, u64::MAX), b"89");
    assert_eq!(bench.read("f", 10, 5), b"");
    assert_eq!(bench.read("f", 99, 5), b"");
    let missing = DiskOp::ReadRange { path: "g".to_owned(), offset: 0, length: 1 };
    assert_eq!(failure(bench.run(missing)), DiskErrorKind::NotFound);
}

#[test]
fn a_list_has_all_files_below_by_path_and_none_for_a_missing_directory() {
    let bench = Bench::new("list");
    for path in ["d/z", "d/a/2", "d/a-b", "e"] {
        bench.create(path, b"xy");
    }
    let names = |path| bench.list(path).into_iter().map(|(path, _)| path).collect::<Vec<_>>();
    assert_eq!(names("d"), ["d/a-b", "d/a/2", "d/z"]);
    assert_eq!(names(""), ["d/a-b", "d/a/2", "d/z", "e"]);
    assert_eq!(bench.list("e-not"), []);
    assert_eq!(bench.list("d/a"), [("d/a/2".to_owned(), 2)]);
    assert_eq!(bench.list("d/a/2"), [("d/a/2".to_owned(), 2)], "a file lists itself");
    assert_eq!(bench.list("d/a/2/3"), []);
}

#[test]
fn what_is_no_file_and_leads_nowhere_is_no_empty_file() {
    use std::os::unix::{fs::symlink, net::UnixListener};
    let bench = Bench::new("list-others");
    bench.create("links/good", b"xy");
    symlink("good", bench.root.join("local/links/link")).unwrap();
    symlink("gone", bench.root.join("local/links/.hidden")).unwrap();
    assert_eq!(bench.list("links").len(), 2);
    symlink("gone", bench.root.join("local/links/broken")).unwrap();
    let listed = |path: &str| bench.run(DiskOp::List { path: path.to_owned() }).unwrap_err().message;
    assert!(listed("links").ends_with("links/broken is a link that leads nowhere"), "{}", listed("links"));
    let _socket = UnixListener::bind(bench.root.join("local/socket")).unwrap();
    assert!(listed("socket").ends_with("socket is neither a file nor a directory"), "{}", listed("socket"));
}

#[test]
fn a_rename_replaces_and_readers_see_the_new_bytes() {
    let bench = Bench::new("rename");
    bench.create("old", b"old");
    bench.create("new", b"new");
    assert_eq!(bench.read("old", 0, 9), b"old");
    bench.run(DiskOp::Rename { from: "new".to_owned(), to: "old".to_owned() }).unwrap();
    assert_eq!(bench.read("old", 0, 9), b"new");
    assert_eq!(bench.list(""), [("old".to_owned(), 3)]);
    let gone = DiskOp::Rename { from: "new".to_owned(), to: "x".to_owned() };
    assert_eq!(failure(bench.run(gone)), DiskErrorKind::NotFound);
}

#[test]
fn deleting_is_final_and_deleting_nothing_succeeds() {
    let bench = Bench::new("delete");
    bench.create("f", b"x");
    for _ in 0..2 {
        bench.run(DiskOp::Delete { path: "f".to_owned() }).unwrap();
    }
    assert_eq!(failure(bench.append("f", b"x")), DiskErrorKind::NotFound);
}

#[test]
fn syncing_works_for_files_and_directories_that_exist() {
    let bench = Bench::new("sync");
    bench.create("a/f", b"x");
    bench.run(DiskOp::Sync { path: "a/f".to_owned() }).unwrap();
    bench.run(DiskOp::SyncDirectory { path: "a".to_owned() }).unwrap();
    bench.run(DiskOp::SyncDirectory { path: String::new() }).unwrap();
    bench.run(DiskOp::Close { path: "a/f".to_owned() }).unwrap();
    assert_eq!(failure(bench.run(DiskOp::Sync { path: "a/g".to_owned() })), DiskErrorKind::NotFound);
    assert_eq!(failure(bench.run(DiskOp::SyncDirectory { path: "b".to_owned() })), DiskErrorKind::NotFound);
}

#[test]
fn no_path_leaves_its_volume() {
    let bench = Bench::new("traversal");
    fs::write(bench.root.join("secret"), b"s").unwrap();
    for path in ["../secret", "a/../../secret", "/etc/passwd", ".", "a//b", "", "a\\b"] {
        let result = bench.run(DiskOp::ReadRange { path: path.to_owned(), offset: 0, length: 1 });
        assert_eq!(failure(result), DiskErrorKind::Other, "{path}");
        assert!(bench.run(DiskOp::CreateNew { path: path.to_owned() }).is_err(), "{path}");
    }
    let other = DiskOp::List { path: String::new() };
    assert_eq!(bench.disk.perform(Volume::Output, &other).unwrap_err().kind, DiskErrorKind::Other);
}

#[test]
fn more_files_than_handles_can_be_used() {
    let bench = Bench::new("handles");
    for n in 0..HANDLES_MAX + 20 {
        bench.create(&format!("f{n}"), b"a");
    }
    for n in 0..HANDLES_MAX + 20 {
        bench.append(&format!("f{n}"), b"b").unwrap();
        assert_eq!(bench.read(&format!("f{n}"), 0, 9), b"ab");
    }
    assert!(bench.disk.handles().open.len() <= HANDLES_MAX);
}

#[test]
fn a_full_disk_is_told_as_full() {
    assert_eq!(kind(&io::Error::from_raw_os_error(28)), DiskErrorKind::Full);
}
