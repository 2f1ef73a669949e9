use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::connectors::NumberSequenceSource;

/// A directory that must be empty again.
struct Directory(WorkingDirectory);

impl Directory {
    fn new() -> Self {
        Self(WorkingDirectory::temporary(&std::env::temp_dir()).unwrap())
    }

    fn entries(&self) -> Vec<PathBuf> {
        fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

fn cluster() -> MiniCluster {
    MiniCluster::new(Program::new().register("numbers", "Collects numbers.", |env, _| {
        env.from_source("numbers", NumberSequenceSource::new(0, 10, 2)).collect("numbers");
        Ok(())
    }))
}

/// A cluster whose only job does `job` with each of ten numbers.
fn doing(job: impl Fn(i64) + Clone + Send + Sync + 'static) -> MiniCluster {
    MiniCluster::new(Program::new().register("doing", "Does something.", move |env, _| {
        let numbers = env.from_source("numbers", NumberSequenceSource::new(0, 10, 2));
        numbers.map(job.clone()).name("Doing").collect("done");
        Ok(())
    }))
}

fn refused(cluster: &MiniCluster, job: &str) -> String {
    match cluster.run(job) {
        Err(JobExecutionError::Refused(reason)) => reason,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it ran"),
    }
}

#[test]
fn what_cannot_run_is_refused_before_anything_is_begun() {
    let directory = Directory::new();
    let cluster = cluster().temporary_directory(directory.0.path());
    assert!(refused(&cluster, "number").contains("did you mean 'numbers'?"));
    for count in [0, 257] {
        let error = refused(&cluster.clone().task_managers(count), "numbers");
        assert!(error.contains(&format!("{count} TaskManagers are none or too many")), "{error}");
    }
    let services = cluster.clone().shuffle_services(1);
    assert!(refused(&services, "numbers").contains("without shuffle.service = external"));
    let external = cluster.clone().set("shuffle.service", "external").unwrap();
    assert!(refused(&external.clone().shuffle_services(0), "numbers").contains("needs a shuffle service"));
    assert!(
        refused(&external.shuffle_services(257), "numbers").contains("257 shuffle services are too many")
    );
    let pipelined = cluster.clone().set("execution.batch-shuffle-mode", "ALL_EXCHANGES_PIPELINED").unwrap();
    assert!(refused(&pipelined, "numbers").contains("set it to ALL_EXCHANGES_BLOCKING"));
    let same = cluster.clone().input(directory.0.path()).output(directory.0.path());
    assert!(refused(&same, "numbers").contains("the same directory"));
    let missing = cluster.input(directory.0.path().join("missing"));
    assert!(refused(&missing, "numbers").contains("missing: No such file"));
    assert_eq!(directory.entries(), [] as [&Path; 0]);
}

#[test]
fn an_unknown_option_is_refused_with_the_one_that_was_meant() {
    let error = cluster().set("taskmanager.numberOfTaskSlot", "2").err().unwrap();
    assert!(error.to_string().contains("did you mean 'taskmanager.numberOfTaskSlots'?"), "{error}");
}

#[test]
fn nothing_is_left_but_a_result_that_is_held() {
    let directory = Directory::new();
    let result = cluster().temporary_directory(directory.0.path()).run("numbers").unwrap();
    assert_eq!(directory.entries(), [result.output()]);
    assert_eq!(result.files().unwrap().len(), 2);
    assert!(!result.output().join(".pending").exists());
    drop(result);
    assert_eq!(directory.entries(), [] as [&Path; 0]);
}

#[test]
fn nothing_is_left_of_a_job_that_fails() {
    let directory = Directory::new();
    let cluster = doing(|number| assert_ne!(number, 7)).temporary_directory(directory.0.path());
    assert!(matches!(cluster.run("doing"), Err(JobExecutionError::Failed { .. })));
    assert_eq!(directory.entries(), [] as [&Path; 0]);
}

#[tokio::test]
async fn a_run_that_is_given_up_leaves_nothing() {
    let directory = Directory::new();
    let begun = Arc::new(AtomicBool::new(false));
    let begins = Arc::clone(&begun);
    let cluster = doing(move |_| {
        begins.store(true, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(20));
    });
    let cluster = cluster.temporary_directory(directory.0.path());
    let until_begun = async {
        while !begun.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        biased;
        () = until_begun => {}
        _ = cluster.execute("doing") => panic!("it ended before it was begun"),
    }
    // Time enough for the tasks to end and to write what they would.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(directory.entries(), [] as [&Path; 0]);
}

#[test]
fn a_job_manager_that_cannot_commit_is_started_again_and_given_up_at_last() {
    let directory = Directory::new();
    let output = directory.0.path().join("output");
    let in_the_way = output.join("collect");
    let cluster = doing(move |_| fs::write(&in_the_way, b"").unwrap()).output(&output);
    let error = match cluster.run("doing") {
        Err(error @ JobExecutionError::Cluster { .. }) => error.to_string(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was committed"),
    };
    assert!(error.contains("job-manager ended 6 times, at last with: the commit cannot go on"), "{error}");
}

#[tokio::test]
async fn a_cluster_runs_inside_of_a_runtime_too() {
    let result = cluster().run("numbers").unwrap();
    assert_eq!(result.collected::<i64>("numbers").unwrap().len(), 10);
    let spawned = tokio::spawn(async { cluster().execute("numbers").await });
    let result = spawned.await.unwrap().unwrap();
    assert_eq!(result.collected::<i64>("numbers").unwrap().len(), 10);
}
