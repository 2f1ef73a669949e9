//! What a job's output must be: a sequential interpreter of each registered job that reads the table
//! itself and cuts, deals and sorts by code of its own. It never imports the engine's operators,
//! scheduler, partitioners or connectors; it shares with the engine only ids and the job graph's
//! shape.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use revenant::config::{Configuration, JobArguments};
use revenant::graph::JobGraph;
use revenant::ids::JobVertexId;

use crate::scenario::Input;

mod by_ship_date;
mod dataflow;
mod exchange;
mod line_items;
mod lineage;
mod rows;
mod shape;
mod table;
mod totals;
mod witness;
mod word_count;

use by_ship_date::ByShipDate;
use dataflow::Dataflow;
use line_items::LineItems;
use totals::TotalsOfTable;
use word_count::WordCount;

pub use lineage::{Lineage, Lineages, Made, Place, ReadAt, RecordId, Step};
pub use shape::{Cut, Shape};
pub use witness::{VertexWitness, Witness};

/// Bytes of the output files, by path.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The meaning of one job.
pub trait ReferenceJob: Send + Sync {
    /// Every output file of a run with this witness, with its exact bytes; or why no such run can be.
    fn outputs(&self, witness: &Witness) -> Result<Files, String>;

    /// The job's sums over all subtasks, whatever the witness.
    fn accumulators(&self) -> BTreeMap<String, i64> {
        BTreeMap::new()
    }

    /// Whether the files are an output of the whole table, whatever the witness; or what is wrong.
    fn whole(&self, files: &BTreeMap<String, Bytes>) -> Result<(), String>;

    /// Whether the files that sorts were written to are in order, whatever the witness; or what is wrong.
    fn in_order(&self, _files: &BTreeMap<String, Bytes>) -> Result<(), String> {
        Ok(())
    }

    /// What the records of a vertex can be counted by.
    fn counting(&self, _vertex: JobVertexId) -> Counting {
        Counting::default()
    }

    /// What the rows of outputs are made of, if they say so.
    fn lineages(&self) -> Option<&dyn Lineages> {
        None
    }
}

/// What the counts of a vertex's subtasks may be, besides as many out as they make of what is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counting {
    /// A result may come of no record at all, as the count of them.
    pub of_nothing: bool,
    /// It may know its result before it has read everything.
    pub ends_early: bool,
    /// It writes files besides what it emits, and counts both.
    pub writes: bool,
}

/// Whether the lines of each file rise by a key. Lines that have none, as headers, do not matter.
pub fn in_order<'a, K: Ord>(
    files: impl Iterator<Item = (&'a String, &'a Bytes)>,
    key: impl Fn(&str) -> Option<K>,
) -> Result<(), String> {
    for (path, bytes) in files {
        let text = str::from_utf8(bytes).map_err(|error| format!("{path}: {error}"))?;
        let lines: Vec<(K, &str)> = text.lines().filter_map(|line| Some((key(line)?, line))).collect();
        if let Some([(_, before), (_, after)]) = lines.array_windows().find(|[a, b]| a.0 > b.0) {
            return Err(format!("{path} is out of order: '{after}' comes after '{before}'"));
        }
    }
    Ok(())
}

/// How many witnesses' outputs are kept. Most runs of a scenario have one of few witnesses.
const KEPT: usize = 256;

/// The reference of a scenario, shared by all of its runs.
pub struct Reference {
    shape: Shape,
    job: Box<dyn ReferenceJob>,
    known: Mutex<BTreeMap<Witness, Arc<Files>>>,
}

impl Reference {
    /// The reference of a registered job, given the files on the input volume.
    pub fn new(
        graph: &JobGraph,
        job: &JobArguments,
        config: &Configuration,
        inputs: &[Input],
    ) -> Result<Self, String> {
        let mut shape = Shape::of(graph, graph.configured(config).max_parallelism);
        let meaning: Box<dyn ReferenceJob> = match job.name.as_str() {
            "lineitem-by-ship-date" => Box::new(ByShipDate::new(LineItems::of(job)?, &shape)?),
            "lineitem-totals" => Box::new(TotalsOfTable::new(LineItems::of(job)?)),
            "word-count" => Box::new(WordCount::new(job, inputs, &mut shape)?),
            "dataflow" => Box::new(Dataflow::new(job, graph, inputs, &mut shape)?),
            name => return Err(format!("there is no reference of the job '{name}'")),
        };
        Ok(Self::with_job(shape, meaning))
    }

    pub fn with_job(shape: Shape, job: Box<dyn ReferenceJob>) -> Self {
        Self { shape, job, known: Mutex::default() }
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// See [`ReferenceJob::outputs`].
    pub fn outputs(&self, witness: &Witness) -> Result<Arc<Files>, String> {
        let known = || self.known.lock().expect("nothing panics under this lock");
        if let Some(files) = known().get(witness) {
            return Ok(Arc::clone(files));
        }
        let files = Arc::new(self.job.outputs(witness)?);
        let mut known = known();
        if known.len() < KEPT {
            known.insert(witness.clone(), Arc::clone(&files));
        }
        Ok(files)
    }

    /// See [`ReferenceJob::accumulators`].
    pub fn accumulators(&self) -> BTreeMap<String, i64> {
        self.job.accumulators()
    }

    /// See [`ReferenceJob::whole`].
    pub fn whole(&self, files: &BTreeMap<String, Bytes>) -> Result<(), String> {
        self.job.whole(files)
    }

    /// See [`ReferenceJob::in_order`].
    pub fn in_order(&self, files: &BTreeMap<String, Bytes>) -> Result<(), String> {
        self.job.in_order(files)
    }

    /// See [`ReferenceJob::counting`].
    pub fn counting(&self, vertex: JobVertexId) -> Counting {
        self.job.counting(vertex)
    }

    /// See [`ReferenceJob::lineages`].
    pub fn lineages(&self) -> Option<&dyn Lineages> {
        self.job.lineages()
    }
}
