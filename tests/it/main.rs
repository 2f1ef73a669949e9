//! The `revenant` program as its users run it: real processes, real sockets, real files.

mod cancel;
mod documentation;
mod examples;
mod external_shuffle;
mod harness;
mod mini_cluster;
mod properties;
mod recovery;
mod usage;
