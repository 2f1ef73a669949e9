//! The simulator against toy actors: what must hold of every run, whatever the engine does.

mod crash;
mod determinism;
mod disturb;
mod ending;
mod network;
mod scenario;
mod toy;
