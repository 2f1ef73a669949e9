//! The thread of one actor: takes events from its mailbox and its timers, one at a time, and
//! carries out the effects in their order. A panic of the actor ends the process with its message.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::actor::{Actor, Effect, Event, ExitStatus, Outbox};
use crate::ids::{ActorId, Address};

use super::process::Shared;
use super::recording::{Origin, Recorder, Step};
use super::timers::Timers;

/// What lies in a mailbox.
pub enum Envelope {
    Event(Event),
    /// From another process: holds one of the mailbox's places for such messages.
    Remote(Event, OwnedSemaphorePermit),
    /// Wakes the actor up, so that it sees that it is stopped.
    Wake,
}

/// The side of an actor that others hold.
#[derive(Clone)]
pub struct Mailbox {
    pub sender: Sender<Envelope>,
    /// Set once: no event reaches the actor any more.
    pub stopped: Arc<AtomicBool>,
    /// Places for messages from other processes. Of its own, so that an actor that is busy with one
    /// thing takes no room from the others.
    pub room: Arc<Semaphore>,
}

impl Mailbox {
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        let _ = self.sender.send(Envelope::Wake);
    }
}

/// Runs an actor until it is stopped or the process ends.
pub fn run(
    shared: &Arc<Shared>,
    origin: Origin,
    mailbox: Mailbox,
    envelopes: Receiver<Envelope>,
    make: impl FnOnce() -> Option<Box<dyn Actor>>,
) {
    let id = origin.actor;
    let span = tracing::info_span!("actor", process = %shared.boot.process, actor = %id);
    let _entered = span.enter();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let Some(actor) = make() else { return };
        let recorder = shared.record.as_ref().and_then(|directory| begin_recording(directory, &origin));
        let thread =
            ActorThread { shared, id, mailbox: mailbox.clone(), recorder, timers: Timers::default() };
        thread.run(actor, envelopes);
    }));
    if let Err(panic) = outcome {
        let text = panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned());
        shared.exit(ExitStatus::Failure(format!("actor {id} panicked: {text}")));
    }
    shared.forget(id, &mailbox);
}

fn begin_recording(directory: &std::path::Path, origin: &Origin) -> Option<Recorder> {
    Recorder::begin(directory, origin)
        .inspect_err(|error| tracing::error!("cannot record into {}: {error}", directory.display()))
        .ok()
}

struct ActorThread<'a> {
    shared: &'a Arc<Shared>,
    id: ActorId,
    mailbox: Mailbox,
    recorder: Option<Recorder>,
    timers: Timers,
}

impl ActorThread<'_> {
    fn run(mut self, mut actor: Box<dyn Actor>, envelopes: Receiver<Envelope>) {
        let mut out = Outbox::new();
        let mut event = Some(Event::Start);
        while !self.mailbox.stopped.load(Ordering::SeqCst) {
            let Some(next) = event.take() else {
                match self.wait(&envelopes) {
                    Some(Envelope::Event(next)) => event = Some(next),
                    Some(Envelope::Remote(next, _permit)) => event = Some(next),
                    Some(Envelope::Wake) => {}
                    None => return,
                }
                continue;
            };
            self.handle(actor.as_mut(), next, &mut out);
        }
        self.flush();
    }

    fn handle(&mut self, actor: &mut dyn Actor, event: Event, out: &mut Outbox) {
        let now = self.shared.now();
        let recorded = self.recorder.is_some().then(|| event.clone());
        tracing::trace!(%now, ?event);
        actor.handle(now, event, out);
        let effects = out.take();
        if let (Some(recorder), Some(event)) = (&mut self.recorder, recorded) {
            let step = Step { now, event, effects: effects.clone() };
            if let Err(error) = recorder.step(&step) {
                tracing::error!("the recording ends here: {error}");
                self.recorder = None;
            }
        }
        for effect in effects {
            let last = matches!(effect, Effect::Exit(_));
            self.perform(effect);
            if last {
                // A process that ended does nothing more, as in the simulator.
                break;
            }
        }
    }

    /// The next thing to do: a due timer before the mailbox.
    fn wait(&mut self, envelopes: &Receiver<Envelope>) -> Option<Envelope> {
        let now = self.shared.now();
        if let Some(timer) = self.timers.pop_due(now) {
            return Some(Envelope::Event(Event::Timer(timer)));
        }
        if let Ok(envelope) = envelopes.try_recv() {
            return Some(envelope);
        }
        self.flush();
        match self.timers.next() {
            None => envelopes.recv().ok(),
            Some(at) => match envelopes.recv_timeout(at.since(now)) {
                Ok(envelope) => Some(envelope),
                Err(RecvTimeoutError::Timeout) => Some(Envelope::Wake),
                Err(RecvTimeoutError::Disconnected) => None,
            },
        }
    }

    fn flush(&mut self) {
        if let Some(recorder) = &mut self.recorder
            && let Err(error) = recorder.flush()
        {
            tracing::error!("the recording ends here: {error}");
            self.recorder = None;
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Send { to, message } => {
                let from = Address::new(self.shared.boot.process, self.id);
                self.shared.send(from, to, message);
            }
            Effect::SetTimer { timer, at } => self.timers.set(timer, at),
            Effect::CancelTimer { timer } => self.timers.cancel(timer),
            Effect::Disk { op, volume, action, purpose: _ } => {
                let sender = self.mailbox.sender.clone();
                let done = move |result| drop(sender.send(Envelope::Event(Event::Disk { op, result })));
                self.shared.disk.submit(volume, action, Box::new(done));
            }
            Effect::Spawn(task) => self.shared.spawn_task(*task),
            Effect::Stop(actor) => self.shared.stop(actor),
            Effect::Note(note) => self.shared.note(self.id, &note),
            Effect::Exit(status) => {
                self.flush();
                self.shared.exit(status);
            }
        }
    }
}
