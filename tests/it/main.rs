//! The `revenant` program as its users run it: real processes, real sockets, real files.

mod harness;
mod recovery;
mod usage;
