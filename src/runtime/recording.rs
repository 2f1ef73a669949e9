//! Records what an actor was told and what it answered, so that a run of real processes can be
//! replayed: the same events, fed to a fresh actor, must give the same effects. Changes nothing
//! about the run; a file that cannot be written ends the recording, not the actor.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::actor::{Actor, Boot, Effect, Event, Outbox, Time};
use crate::ids::ActorId;
use crate::message::TaskDeploymentDescriptor;

const MAGIC: &[u8; 8] = b"RVN-REC\x01";

/// From what an actor was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub boot: Boot,
    pub actor: ActorId,
    /// For the actor of a task.
    pub task: Option<TaskDeploymentDescriptor>,
}

/// One event with the effects that it had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub now: Time,
    pub event: Event,
    pub effects: Vec<Effect>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    pub origin: Origin,
    pub steps: Vec<Step>,
}

#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    #[error("cannot read recording {path}: {error}")]
    Io { path: PathBuf, error: io::Error },
    #[error("{path} is no recording of this program's version")]
    Foreign { path: PathBuf },
    #[error("recording {path} is damaged at byte {offset}")]
    Damaged { path: PathBuf, offset: usize },
}

/// The step at which a replay parted from the recording.
#[derive(Debug, thiserror::Error)]
#[error("step {step} ({event:?}) had other effects:\nrecorded {recorded:?}\nreplayed {replayed:?}")]
pub struct Mismatch {
    pub step: usize,
    pub event: Box<Event>,
    pub recorded: Vec<Effect>,
    pub replayed: Vec<Effect>,
}

/// Writes the recording of one actor.
pub struct Recorder {
    file: BufWriter<File>,
}

impl Recorder {
    /// Begins `<directory>/<process>-<session>/<actor>.rec`.
    pub fn begin(directory: &Path, origin: &Origin) -> io::Result<Self> {
        let directory = directory.join(format!("{}-{:016x}", origin.boot.process, origin.boot.session.0));
        std::fs::create_dir_all(&directory)?;
        let file = File::create_new(directory.join(format!("{}.rec", origin.actor)))?;
        let mut recorder = Self { file: BufWriter::new(file) };
        recorder.file.write_all(MAGIC)?;
        recorder.write(origin)?;
        recorder.flush()?;
        Ok(recorder)
    }

    pub fn step(&mut self, step: &Step) -> io::Result<()> {
        self.write(step)
    }

    /// Hands what is buffered to the operating system, where the end of this process cannot reach it.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    fn write(&mut self, value: &impl Serialize) -> io::Result<()> {
        let bytes = postcard::to_allocvec(value).map_err(io::Error::other)?;
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        self.file.write_all(&length.to_le_bytes())?;
        self.file.write_all(&crc32fast::hash(&bytes).to_le_bytes())?;
        self.file.write_all(&bytes)
    }
}

/// Reads a recording; a torn tail ends it.
pub fn read(path: &Path) -> Result<Recording, RecordingError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(|error| RecordingError::Io { path: path.to_owned(), error })?;
    let foreign = || RecordingError::Foreign { path: path.to_owned() };
    if !bytes.starts_with(MAGIC) {
        return Err(foreign());
    }
    let mut offset = MAGIC.len();
    let origin = next(path, &bytes, &mut offset)?.ok_or_else(foreign)?;
    let mut steps = Vec::new();
    while let Some(step) = next(path, &bytes, &mut offset)? {
        steps.push(step);
    }
    Ok(Recording { origin, steps })
}

fn next<T: for<'de> Deserialize<'de>>(
    path: &Path,
    bytes: &[u8],
    offset: &mut usize,
) -> Result<Option<T>, RecordingError> {
    let at = *offset;
    let damaged = || RecordingError::Damaged { path: path.to_owned(), offset: at };
    let rest = &bytes[at..];
    let Some((length, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    let Some((checksum, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    let Some(payload) = rest.get(..u32::from_le_bytes(*length) as usize) else { return Ok(None) };
    if crc32fast::hash(payload) != u32::from_le_bytes(*checksum) {
        return Err(damaged());
    }
    *offset = at + 8 + payload.len();
    postcard::from_bytes(payload).map(Some).map_err(|_| damaged())
}

impl Recording {
    /// Feeds the recorded events to a fresh actor, made from [`Recording::origin`].
    pub fn replay(&self, actor: &mut dyn Actor) -> Result<(), Mismatch> {
        let mut out = Outbox::new();
        for (number, step) in self.steps.iter().enumerate() {
            actor.handle(step.now, step.event.clone(), &mut out);
            let replayed = out.take();
            if replayed != step.effects {
                return Err(Mismatch {
                    step: number,
                    event: Box::new(step.event.clone()),
                    recorded: step.effects.clone(),
                    replayed,
                });
            }
        }
        Ok(())
    }
}
