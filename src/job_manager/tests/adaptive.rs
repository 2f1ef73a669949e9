//! What is decided when a vertex is initialized. The job is a source of two splits, read over a hash
//! exchange by a vertex that forwards to a sink; the sink also reads the source over a rescale. No
//! parallelism is set.

use super::*;
use crate::message::TaskDeploymentDescriptor;
use crate::scheduler::InputRanges;

const MIDDLE: JobVertexId = JobVertexId(1);
const END: JobVertexId = JobVertexId(2);
const HASH: IntermediateDataSetId = IntermediateDataSetId(0);
const FORWARD: IntermediateDataSetId = IntermediateDataSetId(1);
const RESCALE: IntermediateDataSetId = IntermediateDataSetId(2);

fn undecided() -> Arc<JobGraph> {
    let vertex = |id, source: Option<Arc<dyn SplitEnumeratorFactory>>, inputs, outputs| JobVertex {
        id,
        name: format!("{id}"),
        parallelism: None,
        max_parallelism: None,
        inputs,
        outputs,
        source,
        uids: vec![],
        determinacy: Determinacy::Indeterminate,
        recovery_obstacles: vec![],
        body: Arc::new(Nothing),
    };
    let edge =
        |data_set, producer, consumer, partitioner| JobEdge { data_set, producer, consumer, partitioner };
    Arc::new(JobGraph {
        name: "undecided".to_owned(),
        options: vec![],
        vertices: vec![
            vertex(SOURCE, Some(Arc::new(TwoSplits)), vec![], vec![HASH, RESCALE]),
            vertex(MIDDLE, None, vec![HASH], vec![FORWARD]),
            vertex(END, None, vec![FORWARD, RESCALE], vec![]),
        ],
        edges: vec![
            edge(HASH, SOURCE, MIDDLE, Partitioner::Hash),
            edge(FORWARD, MIDDLE, END, Partitioner::Forward),
            edge(RESCALE, SOURCE, END, Partitioner::Rescale),
        ],
        fingerprint: 1,
    })
}

/// A leader of the undecided job: up to 4 subtasks that read 100 bytes each.
fn fixture(options: &[(&str, &str)]) -> Fixture {
    let mut fixture = Fixture::new(options);
    let mut boot = fixture.master.boot.clone();
    for (option, value) in [("max-parallelism", "4"), ("avg-data-volume-per-task", "100 b")] {
        let key = format!("execution.batch.adaptive.auto-parallelism.{option}");
        boot.config.set(&key, value).unwrap();
    }
    let record = JobRecord::clone(&fixture.master.record);
    fixture.master = JobMaster::with_graph(&boot, record, undecided());
    fixture.lead(vec![]);
    fixture.register(TM1, 1, vec![]);
    fixture.register(TM2, 2, vec![]);
    fixture
}

/// The attempt ends with partitions of these bytes, by output and subpartition.
fn finish(fixture: &mut Fixture, attempt: ExecutionAttemptId, bytes: &[&[u64]]) {
    let outputs = fixture.master.execution.graph.vertex(attempt.subtask.vertex).outputs.clone();
    let partitions = outputs.into_iter().zip(bytes).map(|(data_set, bytes)| PartitionWithMetrics {
        partition: ResultPartitionId { data_set, producer: attempt },
        subpartition_bytes: bytes.to_vec(),
    });
    let state = TaskState::Finished {
        partitions: partitions.collect(),
        committables: vec![],
        metrics: IoMetrics::default(),
        accumulators: [].into(),
    };
    fixture.state(attempt, state);
}

fn decided(fixture: &Fixture, of: JobVertexId) -> Vec<InputRanges> {
    let decisions = fixture.recorded().into_iter().filter_map(|event| match event {
        JobEvent::ExecutionJobVertexInitialized { vertex, inputs, .. } if vertex == of => Some(inputs),
        _ => None,
    });
    decisions.last().unwrap()
}

fn task(fixture: &Fixture, attempt: ExecutionAttemptId) -> TaskDeploymentDescriptor {
    let tasks = fixture.sent(|_, message| match message {
        Message::SubmitTask(message) if message.task.attempt == attempt => Some((*message.task).clone()),
        _ => None,
    });
    tasks.into_iter().next().unwrap()
}

#[test]
fn a_vertex_is_cut_by_the_bytes_of_its_producers_and_those_it_forwards_to_follow() {
    let mut fixture = fixture(&[]);
    let source = |subtask| attempt(SOURCE, subtask, NOW);
    let outputs = task(&fixture, source(0)).outputs;
    assert_eq!(outputs.iter().map(|output| output.subpartitions).collect::<Vec<_>>(), [4, 2]);
    finish(&mut fixture, source(0), &[&[60, 30, 50, 100], &[1000, 1000]]);
    finish(&mut fixture, source(1), &[&[40, 20, 0, 0], &[1000, 1000]]);
    let range = IndexRange::new;
    let both = range(0, 1);
    let expected = [(0, 0), (1, 2), (3, 3)].map(|(from, to)| vec![(both, range(from, to))]);
    assert_eq!(decided(&fixture, MIDDLE), expected);

    for subtask in 0..3 {
        finish(&mut fixture, attempt(MIDDLE, subtask, NOW), &[&[1]]);
    }
    let rescaled = [(range(0, 0), range(0, 0)), (range(0, 0), range(1, 1)), (range(1, 1), both)];
    let expected = (0..).zip(rescaled).map(|(i, rescaled)| vec![(range(i, i), range(0, 0)), rescaled]);
    assert_eq!(decided(&fixture, END), expected.collect::<Vec<_>>());
    let inputs = task(&fixture, attempt(END, 1, NOW)).inputs;
    let read =
        inputs.iter().map(|gate| gate.partitions.iter().map(|found| found.partition.producer).collect());
    let read: Vec<Vec<_>> = read.collect();
    assert_eq!(read, [[attempt(MIDDLE, 1, NOW)], [source(0)]]);
}

#[test]
fn a_source_that_says_no_parallelism_has_a_subtask_for_each_split_up_to_the_default() {
    for (limit, subtasks) in [("0", 2), ("1", 1), ("3", 2)] {
        let key = "execution.batch.adaptive.auto-parallelism.default-source-parallelism";
        let fixture = fixture(&[(key, limit)]);
        assert_eq!(decided(&fixture, SOURCE).len(), subtasks, "at most {limit}");
    }
}

#[test]
fn b47_a_decision_is_by_the_bytes_of_the_finishes_that_count_when_it_is_taken() {
    let options = [("restart-strategy.type", "fixed-delay"), ("restart-strategy.fixed-delay.delay", "0 s")];
    let mut fixture = fixture(&options);
    let first = attempt(SOURCE, 0, NOW);
    finish(&mut fixture, first, &[&[900, 900, 900, 900], &[0, 0]]);
    // Its TaskManager comes back as a new process, without the partition.
    fixture.register(TM1, 9, vec![]);
    finish(&mut fixture, ExecutionAttemptId { number: 2, ..first }, &[&[10, 0, 0, 0], &[0, 0]]);
    finish(&mut fixture, attempt(SOURCE, 1, NOW), &[&[10, 10, 10, 10], &[0, 0]]);
    assert_eq!(decided(&fixture, MIDDLE).len(), 1);
}

/// Partition 0 of the source has two readers, partition 1 has one.
#[test]
fn a_rescaled_partition_is_released_when_its_own_few_consumers_are_finished() {
    let mut fixture = fixture(&[]);
    let source = |subtask| attempt(SOURCE, subtask, NOW);
    finish(&mut fixture, source(0), &[&[100, 100, 100, 0], &[0, 0]]);
    finish(&mut fixture, source(1), &[&[0, 0, 0, 0], &[0, 0]]);
    for subtask in 0..3 {
        finish(&mut fixture, attempt(MIDDLE, subtask, NOW), &[&[1]]);
    }
    fixture.durable();
    fixture.effects.clear();
    let rescaled = |subtask| ResultPartitionId { data_set: RESCALE, producer: source(subtask) };
    let forwarded =
        |subtask| ResultPartitionId { data_set: FORWARD, producer: attempt(MIDDLE, subtask, NOW) };
    for (subtask, expected) in
        [(1, vec![forwarded(1)]), (0, vec![forwarded(0), rescaled(0)]), (2, vec![forwarded(2), rescaled(1)])]
    {
        finish(&mut fixture, attempt(END, subtask, NOW), &[]);
        fixture.durable();
        let mut released = fixture.released();
        released.sort_unstable();
        assert_eq!(released, expected);
        fixture
            .effects
            .retain(|effect| matches!(effect, Effect::Send { message: Message::WriteJobEvent(_), .. }));
    }
}
