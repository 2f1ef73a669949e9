//! Job event store as a crash left it → a new leader: whatever became of the files, the leader opens the
//! store. What it reads is what one of the earlier leaders had read or written up to some moment, or else
//! it says that the log is damaged and reads nothing. If only bytes and names are gone that were never
//! synced, it reads all that was reported durable. The leader after it reads the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use arbitrary::{Arbitrary, Unstructured};
use bytes::Bytes;
use revenant::actor::{Actor, Boot, Effect, Event, Outbox, Time, TimerId};
use revenant::config::Configuration;
use revenant::disk::{DirectoryEntry, DiskError, DiskErrorKind, DiskOp, DiskOutput, DiskResult, Volume};
use revenant::ids::{
    Address, ExecutionAttemptId, ExecutionVertexId, FencingToken, JobVertexId, ProcessId, SessionId,
};
use revenant::job_event::{Finish, JobEvent, JobEventWriter, Replay};
use revenant::message::{FlushJobEvents, IoMetrics, Message, OpenJobEventStore, WriteJobEvent};
use revenant::note::Note;

/// The life of a store.
#[derive(Arbitrary, Debug)]
pub struct CrashImage {
    /// Only what was not synced is damaged.
    is_crash: bool,
    leaders: Vec<Leader>,
    damages: Vec<(u8, Damage)>,
}

/// What one leader does with it, and after how many disk operations it dies; one that is not so many is
/// replaced when it has done all.
#[derive(Arbitrary, Debug)]
struct Leader {
    dies_after: u8,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Reset,
    Finished {
        vertex: u8,
        subtask: u8,
    },
    Initialized {
        vertex: u8,
        parallelism: u8,
    },
    Discarded {
        length: u8,
    },
    Base {
        length: u8,
    },
    /// The next event ends its file.
    Cut,
    Flush,
    /// All timers fire.
    Wait,
    /// So many disk operations later, one fails.
    Fail {
        later: u8,
    },
}

/// What became of a file.
#[derive(Arbitrary, Debug)]
enum Damage {
    Cut { at: u16 },
    Zeros { from: u16, length: u16 },
    Flipped { at: u16, mask: u8 },
    Longer { bytes: [u8; 5] },
    Missing,
}

const LEADERS_MAX: usize = 5;
const STEPS_MAX: usize = 40;
const DAMAGES_MAX: usize = 8;
const FINGERPRINT: u64 = 0x5eed;

/// What the leader after the crash made of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// There was nothing to read.
    Nothing,
    Events,
    Damage,
}

pub fn read(bytes: &[u8]) -> Option<CrashImage> {
    CrashImage::arbitrary_take_rest(Unstructured::new(bytes)).ok()
}

pub fn check(image: &CrashImage) -> Recovered {
    let mut files = Files::default();
    let mut lives = Vec::new();
    let mut token = 0;
    for leader in image.leaders.iter().take(LEADERS_MAX) {
        token += 1;
        let mut life = Life::new(token, files);
        life.live(leader);
        assert!(life.history.as_ref().is_none_or(|history| history.damage.is_none()), "{life:?}");
        files = std::mem::take(&mut life.files);
        lives.push(life);
    }
    for (file, damage) in image.damages.iter().take(DAMAGES_MAX) {
        files.damage(usize::from(*file), damage, image.is_crash);
    }

    let mut next = Life::new(token + 1, files);
    next.open();
    let found = next.history.clone().expect("a store on a disk that works opens");
    if let Some(damage) = &found.damage {
        assert!(!image.is_crash, "no crash does that: {damage}");
        assert!(found.events.is_empty() && !damage.is_empty());
    } else {
        let found: Vec<&JobEvent> = found.events.iter().collect();
        let allowed = if image.is_crash { since_durable(&lives) } else { ever(&lives) };
        assert!(allowed.contains(&found), "{found:?}\nis none of\n{allowed:#?}\nin\n{image:?}");
    }

    let more = next.write(&Step::Reset, false);
    next.flush();
    let mut last = Life::new(token + 2, next.files);
    last.open();
    let after = last.history.expect("a store on a disk that works opens");
    let expected: Vec<JobEvent> = found.events.iter().cloned().chain([more]).collect();
    assert_eq!((&after.events, &after.damage), (&expected, &None), "behind {found:?}");
    match (&found.damage, found.events.is_empty()) {
        (Some(_), _) => Recovered::Damage,
        (None, true) => Recovered::Nothing,
        (None, false) => Recovered::Events,
    }
}

/// All that could ever be read.
fn ever(lives: &[Life]) -> Vec<Vec<&JobEvent>> {
    [Vec::new()].into_iter().chain(lives.iter().flat_map(|life| life.moments(0))).collect()
}

/// All that can be read if what is durable stays.
fn since_durable(lives: &[Life]) -> Vec<Vec<&JobEvent>> {
    match lives.iter().rfind(|life| life.history.is_some()) {
        Some(life) => life.moments(life.durable).collect(),
        None => vec![Vec::new()],
    }
}

/// What the leader knows of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Store {
    Works,
    Failed,
    WantsBase,
}

/// A leader's writer of the store, and what it was told and told.
#[derive(Debug)]
struct Life {
    token: FencingToken,
    writer: JobEventWriter,
    files: Files,
    timers: BTreeMap<TimerId, Time>,
    now: Time,
    /// What it read when it opened the store.
    history: Option<Arc<Replay>>,
    /// What the writer has taken, in order.
    taken: Vec<JobEvent>,
    /// The sequences of these.
    sequences: Vec<u64>,
    /// How many of them are durable.
    durable: usize,
    next_sequence: u64,
    store: Store,
    /// What is given to the writer at present.
    given: Option<JobEvent>,
}

impl Life {
    fn new(token: u64, mut files: Files) -> Self {
        files.left = None;
        files.fails_in = None;
        let boot = Boot {
            process: ProcessId::JOB_MANAGER,
            session: SessionId(token),
            config: Configuration::default(),
            volumes: vec![Volume::Ha],
        };
        Self {
            token: FencingToken(token),
            writer: JobEventWriter::new(&boot),
            files,
            timers: BTreeMap::new(),
            now: Time(token * 1_000_000_000_000),
            history: None,
            taken: Vec::new(),
            sequences: Vec::new(),
            durable: 0,
            next_sequence: 1,
            store: Store::Failed,
            given: None,
        }
    }

    fn live(&mut self, leader: &Leader) {
        self.files.left = Some(u32::from(leader.dies_after));
        let mut steps = leader.steps.iter().take(STEPS_MAX).peekable();
        if let Some(Step::Fail { later }) = steps.next_if(|step| matches!(step, Step::Fail { .. })) {
            self.files.fails_in = Some(u32::from(*later));
        }
        self.open();
        let mut cut = false;
        for step in steps {
            match step {
                Step::Cut => cut = true,
                Step::Flush => self.flush(),
                Step::Wait => self.wait(),
                Step::Fail { later } => self.files.fails_in = Some(u32::from(*later)),
                _ if self.store == Store::Failed => {}
                _ if self.store == Store::WantsBase && !matches!(step, Step::Base { .. }) => {}
                _ => drop(self.write(step, std::mem::take(&mut cut))),
            }
        }
    }

    fn open(&mut self) {
        self.tell(OpenJobEventStore { token: self.token, fingerprint: FINGERPRINT });
    }

    fn flush(&mut self) {
        self.tell(FlushJobEvents {});
    }

    /// Has the event of a step written.
    fn write(&mut self, step: &Step, cut: bool) -> JobEvent {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let event = self.event(step, sequence);
        self.store = Store::Works;
        self.given = Some(event.clone());
        self.tell(WriteJobEvent { sequence, event: Arc::new(event.clone()), cut });
        event
    }

    /// No two are the same.
    fn event(&self, step: &Step, sequence: u64) -> JobEvent {
        let vertex = |vertex: u8| JobVertexId(u32::from(vertex % 4));
        let unique = (self.token.0 << 16 | sequence) as u32;
        match *step {
            Step::Finished { vertex: of, subtask } => JobEvent::ExecutionVertexFinished {
                finish: Finish {
                    attempt: ExecutionAttemptId {
                        subtask: ExecutionVertexId::new(vertex(of), u32::from(subtask)),
                        epoch: self.token,
                        number: unique,
                    },
                    location: ProcessId::TaskManager(1),
                    partitions: Vec::new(),
                    committables: Vec::new(),
                    metrics: IoMetrics::default(),
                    accumulators: BTreeMap::new(),
                },
                coordinators: Vec::new(),
            },
            Step::Initialized { vertex: of, parallelism } => JobEvent::ExecutionJobVertexInitialized {
                vertex: vertex(of),
                parallelism: unique,
                inputs: vec![Vec::new(); usize::from(parallelism)],
            },
            Step::Discarded { length } => {
                JobEvent::HistoryDiscarded { reason: format!("{unique}{}", "x".repeat(length.into())) }
            }
            Step::Base { length } => JobEvent::BaseRecorded {
                initialized: vec![(JobVertexId(unique), vec![Vec::new(); usize::from(length)])],
                finished: Vec::new(),
                coordinators: Vec::new(),
            },
            _ => JobEvent::ExecutionVertexReset {
                subtasks: vec![ExecutionVertexId::new(JobVertexId(0), unique)],
            },
        }
    }

    fn wait(&mut self) {
        for (timer, at) in std::mem::take(&mut self.timers) {
            self.now = self.now.max(at);
            self.run(Event::Timer(timer));
        }
    }

    fn tell(&mut self, message: impl Into<Message>) {
        self.run(Event::Message { from: Address::MASTER, message: message.into() });
    }

    /// Carries out what the writer asks for until nothing is left but timers.
    fn run(&mut self, event: Event) {
        let mut events = std::collections::VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let mut out = Outbox::new();
            self.writer.handle(self.now, event, &mut out);
            assert_eq!(self.writer.contradiction(), None);
            for effect in out.take() {
                match effect {
                    Effect::Disk { op, action, .. } => {
                        if let Some(result) = self.files.perform(action) {
                            events.push_back(Event::Disk { op, result });
                        }
                    }
                    Effect::Send { message, .. } => self.hear(message),
                    Effect::SetTimer { timer, at } => drop(self.timers.insert(timer, at)),
                    Effect::CancelTimer { timer } => drop(self.timers.remove(&timer)),
                    Effect::Note(Note::EventBuffered { sequence, .. }) => {
                        self.taken.extend(self.given.take());
                        self.sequences.push(sequence);
                    }
                    _ => {}
                }
            }
        }
        self.given = None;
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::JobEventStoreOpened(opened) => {
                assert!(self.history.replace(opened.replay).is_none(), "the store opens once");
                self.store = Store::Works;
            }
            Message::JobEventStoreFailed(_) => self.store = Store::Failed,
            Message::JobEventStoreRecovered(_) => self.store = Store::WantsBase,
            Message::JobEventsDurable(durable) => {
                let all = self.sequences.iter().take_while(|&&sequence| sequence <= durable.sequence);
                self.durable = all.count();
            }
            _ => {}
        }
    }

    /// What counted at each moment of its life from when `from` of its events were written.
    fn moments(&self, from: usize) -> impl Iterator<Item = Vec<&JobEvent>> {
        let read = self.history.as_ref().map(|history| &history.events);
        read.into_iter().flat_map(move |read| {
            (from..=self.taken.len()).map(move |written| {
                let all: Vec<&JobEvent> = read.iter().chain(&self.taken[..written]).collect();
                // What lies before a base does not count.
                let base = all.iter().rposition(|event| matches!(event, JobEvent::BaseRecorded { .. }));
                all[base.unwrap_or(0)..].to_vec()
            })
        })
    }
}

/// The volume.
#[derive(Debug, Default)]
struct Files {
    all: BTreeMap<String, File>,
    /// How many operations are left before the process dies.
    left: Option<u32>,
    /// How many operations are well before one that fails.
    fails_in: Option<u32>,
}

#[derive(Debug, Default)]
struct File {
    bytes: Vec<u8>,
    /// How many of its bytes are.
    synced: usize,
    name_is_synced: bool,
}

impl Files {
    /// Nothing comes back to a process that is dead.
    fn perform(&mut self, action: DiskOp) -> Option<DiskResult> {
        let is_dying = self.left == Some(0);
        if !is_dying {
            self.left = self.left.map(|left| left - 1);
        } else if let DiskOp::Append { path, bytes } = &action {
            // Of what is under way, a part may be done. The process asks for nothing behind it.
            self.append(path, &bytes[..bytes.len() / 2]);
        }
        if is_dying {
            return None;
        }
        let fails = self.fails_in == Some(0);
        self.fails_in = self.fails_in.and_then(|left| left.checked_sub(1));
        if !fails {
            return Some(Ok(self.apply(action)));
        }
        let (operation, path) = (action.kind().to_owned(), action.path().to_owned());
        if let DiskOp::Append { path, bytes } = &action {
            self.append(path, &bytes[..bytes.len() / 3]);
        }
        let message = "no space left".to_owned();
        let error = DiskError { kind: DiskErrorKind::Full, operation, volume: Volume::Ha, path, message };
        Some(Err(error))
    }

    fn append(&mut self, path: &str, bytes: &[u8]) {
        self.all.get_mut(path).expect("the file was created").bytes.extend_from_slice(bytes);
    }

    fn apply(&mut self, action: DiskOp) -> DiskOutput {
        match action {
            DiskOp::List { .. } => {
                let entry = |(path, file): (&String, &File)| DirectoryEntry {
                    path: path.clone(),
                    length: file.bytes.len() as u64,
                };
                return DiskOutput::Entries(self.all.iter().map(entry).collect());
            }
            DiskOp::ReadRange { path, .. } => {
                return DiskOutput::Data(Bytes::copy_from_slice(&self.all[&path].bytes));
            }
            DiskOp::CreateNew { path } => {
                assert!(self.all.insert(path, File::default()).is_none(), "the file is new");
            }
            DiskOp::Append { path, bytes } => self.append(&path, &bytes),
            DiskOp::Sync { path } => {
                let file = self.all.get_mut(&path).expect("the file was created");
                file.synced = file.bytes.len();
            }
            DiskOp::SyncDirectory { .. } => {
                self.all.values_mut().for_each(|file| file.name_is_synced = true);
            }
            _ => {}
        }
        DiskOutput::Done
    }

    /// With `spare_synced`, only what a crash of the machine may take is touched.
    fn damage(&mut self, which: usize, damage: &Damage, spare_synced: bool) {
        let count = self.all.len().max(1);
        let Some((path, file)) = self.all.iter_mut().nth(which % count) else { return };
        let from = if spare_synced { file.synced } else { 0 };
        let unsafe_bytes = file.bytes.len() - from;
        // Where in the part that may be touched.
        let place = |at: u16| from + usize::from(at) % unsafe_bytes.max(1);
        match *damage {
            Damage::Cut { at } => file.bytes.truncate(place(at)),
            Damage::Zeros { from, length } => {
                let from = place(from);
                // A crash leaves zeros at the end only.
                let end = if spare_synced { usize::MAX } else { from + usize::from(length) };
                let end = end.min(file.bytes.len());
                file.bytes[from.min(end)..end].fill(0);
            }
            Damage::Flipped { at, mask } if !spare_synced => {
                if let Some(byte) = file.bytes.get_mut(place(at)) {
                    *byte ^= mask;
                }
            }
            Damage::Longer { bytes } if !spare_synced => file.bytes.extend_from_slice(&bytes),
            Damage::Missing if !(spare_synced && file.name_is_synced) => {
                let path = path.clone();
                self.all.remove(&path);
            }
            _ => {}
        }
    }
}
