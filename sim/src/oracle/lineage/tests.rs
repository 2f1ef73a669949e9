//! Outputs of a source with four splits of two records and a sink behind it, spoilt by hand.

use std::sync::Arc;

use revenant::graph::JobGraph;
use revenant::jobs::registry;

use super::*;
use crate::oracle::s1_output::check;
use crate::oracle::testing::{Story, attempt, with_history_of};
use crate::oracle::witness::witness;
use crate::reference::Reference;
use crate::scenario::Scenario;

/// What rows are made of is kept as ids, or as hashes.
const KEPT: [&str; 2] = ["ids", "hash"];

const BY_HASH: &str = "o = sink a via hash";

/// Its files: `o/part-00000.csv` and `o/part-00001.csv`, of the subtasks v1.0 and v1.1.
struct Job {
    graph: Arc<JobGraph>,
    reference: Reference,
}

impl Job {
    fn new(kept: &str, behind: &str) -> Self {
        let text = format!(
            "[job]\nname = 'dataflow'\n[job.arguments]\n\
             plan = 'lineage = {kept}; a = source rows=8 splits=4; {behind}'\n\
             [config]\n'execution.batch.adaptive.auto-parallelism.max-parallelism' = 4\n"
        );
        let scenario = Scenario::parse("test", &text).unwrap();
        let graph = registry().build(&scenario.job()).unwrap();
        let reference = Reference::new(&graph, &scenario.job(), &scenario.configuration(), &[]).unwrap();
        Self { graph, reference }
    }

    fn witness(&self, story: &Story) -> Witness {
        with_history_of(&self.graph, story, |history| witness(history).unwrap())
    }

    /// The files of the story's witness.
    fn files(&self, story: &Story) -> BTreeMap<String, String> {
        let files = self.reference.outputs(&self.witness(story)).unwrap();
        files.iter().map(|(path, file)| (path.clone(), String::from_utf8(file.clone()).unwrap())).collect()
    }

    /// What S1 says of the story with these files.
    fn judge(&self, story: &Story, files: &BTreeMap<String, String>) -> Result<(), String> {
        let mut story = story.clone();
        for (path, file) in files {
            story.output(path, String::leak(file.clone()).as_bytes());
        }
        with_history_of(&self.graph, &story, |history| {
            check(history, &self.reference).map_err(|violation| violation.message)
        })
    }

    fn wrong(&self, story: &Story, files: &BTreeMap<String, String>) -> String {
        self.judge(story, files).expect_err("S1 sees nothing")
    }
}

/// The sources have read splits 0 and 1, and 2 and 3.
fn run() -> Story {
    let mut story = Story::new();
    story.run_sources().run_sinks();
    story
}

/// The file that has the record, and its line.
fn line_of(files: &BTreeMap<String, String>, record: &str) -> (String, String) {
    let columns = record.replace('.', ",") + ",";
    let mut lines = files.iter().flat_map(|(path, file)| file.lines().map(move |line| (path, line)));
    let (path, line) = lines.find(|(_, line)| line.starts_with(&columns)).unwrap();
    (path.clone(), line.to_owned())
}

#[test]
fn a_right_output_is_not_explained() {
    for kept in KEPT {
        let job = Job::new(kept, BY_HASH);
        assert_eq!(job.judge(&run(), &job.files(&run())), Ok(()));
    }
}

#[test]
fn a_lost_record_is_named_with_its_way() {
    for kept in KEPT {
        let job = Job::new(kept, BY_HASH);
        let mut files = job.files(&run());
        let (path, line) = line_of(&files, "0.2.1");
        let file = files[&path].replace(&format!("{line}\n"), "");
        files.insert(path.clone(), file);
        let message = job.wrong(&run(), &files);
        let subtask = &path["o/part-0000".len()..][..1];
        let expected = format!(
            "; lineage: record 0.2.1 is lost: {path} has it not at all and should once; \
             its way is a v0.1.e1a1 -> o v1.{subtask}.e1a1"
        );
        assert!(message.starts_with(&format!("output file {path} differs: line ")), "{message}");
        assert!(message.ends_with(&expected), "{message}");
        // A file that is not there has lost all that should be in it.
        files.remove(&path);
        let message = job.wrong(&run(), &files);
        assert!(
            message.starts_with(&format!("output file {path} is missing; lineage: record 0.")),
            "{message}"
        );
    }
}

#[test]
fn a_doubled_record_is_named_with_its_way() {
    for kept in KEPT {
        let job = Job::new(kept, BY_HASH);
        let mut files = job.files(&run());
        let (path, line) = line_of(&files, "0.1.0");
        *files.get_mut(&path).unwrap() += &[line.as_str(), "\n"].concat();
        let message = job.wrong(&run(), &files);
        let expected = format!(
            "record 0.1.0 is doubled: {path} has it 2 times and should once; its way is a v0.0.e1a1 -> o v1."
        );
        assert!(message.contains(&expected), "{message}");
    }
}

/// The first sink has read what the first attempts of the sources have left, but later ones count, which
/// have read other splits: what the sink has from them is dealt otherwise.
#[test]
fn a_stale_record_is_named_with_the_attempts_that_it_may_have_come_by() {
    let mut first = Story::new();
    first.start().finish_source(attempt(0, 0, 1, 1), &[0, 1]).finish_source(attempt(0, 1, 1, 1), &[2, 3]);
    first.init_sinks().finish_sink(attempt(1, 0, 1, 1));
    let mut later = first.clone();
    first.finish_sink(attempt(1, 1, 1, 1));
    later.finish_source(attempt(0, 0, 1, 2), &[1, 0, 3]).finish_source(attempt(0, 1, 1, 2), &[2]);
    later.finish_sink(attempt(1, 1, 1, 1));
    for kept in KEPT {
        let job = Job::new(kept, "o = sink a via rebalance");
        let (mut files, stale) = (job.files(&later), job.files(&first));
        let path = "o/part-00000.csv";
        assert_ne!(files[path], stale[path]);
        files.insert(path.to_owned(), stale[path].clone());
        let message = job.wrong(&later, &files);
        // 3.0 is dealt to subpartition 0 by the first attempt, to 2 by the second, which no first sink reads.
        let expected = format!("is stale: {path} has it once and should not; it may have come by v0.");
        assert!(message.contains(&expected), "{message}");
        assert!(message.contains("(does not count, v0.0.e1a2 does) -> v1.0.e1a1"), "{message}");
        assert!(message.contains("was also read by v0.0.e1a1 (does not count)"), "{message}");
    }
}

#[test]
fn records_at_other_places_or_in_another_order_are_told_apart() {
    for kept in KEPT {
        let job = Job::new(kept, BY_HASH);
        let mut files = job.files(&run());
        let file = files.values_mut().find(|file| file.lines().count() > 2).unwrap();
        let mut lines: Vec<&str> = file.lines().collect();
        lines[1..].reverse();
        *file = lines.join("\n") + "\n";
        let message = job.wrong(&run(), &files);
        assert!(
            message.ends_with("every record of the sources is where it should be; order or values differ")
        );
        *file_mut(&mut files) = "no rows\n".to_owned();
        let message = job.wrong(&run(), &files);
        assert!(message.contains("has no rows to explain: its first line is not"), "{message}");
    }
}

fn file_mut(files: &mut BTreeMap<String, String>) -> &mut String {
    files.values_mut().next().unwrap()
}

/// The witness itself lacks a split, or has one twice.
#[test]
fn a_split_that_nobody_read_or_two_is_named() {
    let jobs =
        KEPT.map(|kept| [BY_HASH, "b = reduce a via hash; o = sink b"].map(|behind| Job::new(kept, behind)));
    for job in jobs.as_flattened() {
        let story = |second: &[u32]| {
            let mut story = Story::new();
            story
                .start()
                .finish_source(attempt(0, 0, 1, 1), &[0, 1])
                .finish_source(attempt(0, 1, 1, 1), second);
            story.run_sinks();
            story
        };
        let judged = |story: &Story| job.wrong(story, &job.files(story));
        let message = judged(&story(&[2]));
        assert!(
            message.contains("record 0.3.0 is lost: no attempt that counts has read split 3 of source 0"),
            "{message}"
        );
        let message = judged(&story(&[2, 3, 1]));
        let expected = "record 0.1.0 is doubled: split 1 of source 0 was read by v0.0.e1a1 and v0.1.e1a1";
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_sum_of_hashes_is_told_apart_into_one_record_or_two() {
    let job = Job::new("hash", BY_HASH);
    let known = Known::new(job.reference.lineages().unwrap());
    let id = |split, offset| RecordId { source: 0, split, offset };
    let made = |ids: &[RecordId]| {
        let of = Lineage::Hash { count: ids.len() as u64, sum: hash(ids) };
        vec![Made { row: ids.len().to_string(), of }]
    };
    let (a, b, c, d) = (id(0, 0), id(1, 1), id(2, 0), id(3, 1));
    let difference = |due: &[RecordId], is: &[RecordId]| {
        let changes = known.difference(&made(due), &made(is), &[])?;
        Ok::<_, String>(changes.into_iter().collect::<Vec<_>>())
    };
    assert_eq!(difference(&[a, b, c], &[a, c]), Ok(vec![(b, -1)]));
    assert_eq!(difference(&[a, b, c], &[a, b, b, b, c]), Ok(vec![(b, 2)]));
    assert_eq!(difference(&[a, b, c], &[a, b, c, c, d]), Ok(vec![(c, 1), (d, 1)]));
    assert_eq!(difference(&[a, b, c, d], &[b, c]), Ok(vec![(a, -1), (d, -1)]));
    assert_eq!(difference(&[a, b, c], &[a, b, d]), Ok(vec![(c, -1), (d, 1)]));
    assert_eq!(difference(&[a, b, c], &[c, b, a]), Ok(vec![]));
    assert_eq!(difference(&[b], &[b, a, id(0, 1)]), Ok(vec![(a, 1), (id(0, 1), 1)]));
    // One row is told by itself, and the other then by what is left.
    let rows = |all: &[&[RecordId]]| all.iter().flat_map(|ids| made(ids)).collect::<Vec<_>>();
    let changes = known.difference(&rows(&[&[a], &[b, c]]), &rows(&[&[b, d]]), &[]).unwrap();
    assert_eq!(changes.into_iter().collect::<Vec<_>>(), [(a, -1), (c, -1), (d, 1)]);
    // All of a row that is due is known.
    let due = rows(&[&[a, b, c], &[d]]);
    let ids = [vec![a, b, c], vec![d]].map(|ids| Lineage::Ids(ids.into_iter().map(|id| (id, 1)).collect()));
    let changes = known.difference(&due, &due[1..], &ids).unwrap();
    assert_eq!(changes.into_iter().collect::<Vec<_>>(), [(a, -1), (b, -1), (c, -1)]);
    let unsolved = |due: &[RecordId], is: &[RecordId]| difference(due, is).unwrap_err();
    assert!(unsolved(&[a, b, c, d, d], &[a, d]).starts_with("3 records are missing; which ones"));
    assert!(unsolved(&[a, b], &[a, b, c, c, d]).starts_with("3 records are too many; which ones"));
    assert!(unsolved(&[a, a, b], &[c, d, d]).starts_with("several records are there in place of others"));
}
