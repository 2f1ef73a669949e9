//! A task driven by hand: fake bodies, no runtime, no disk.

mod bench;
mod endings;
mod exchange;
mod inputs;
mod outputs;
mod pushes;
