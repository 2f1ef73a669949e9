//! The progress bar: on a terminal only, on standard error, so that the report on standard output
//! is the same with and without it.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

pub fn bar(count: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(count as u64);
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {per_sec}, {eta} left {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// Of a search, which ends with its time or its cases: how it gets on is in the message.
pub fn search_bar(budget: Duration) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(budget.as_secs().max(1));
    let style = ProgressStyle::with_template("{elapsed_precise} of {len} s {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
