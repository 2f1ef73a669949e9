//! The table at the end: of each pair, the medians and the median of the ratios of neighbouring runs.

use std::fmt;
use std::time::Duration;

#[derive(Default)]
pub struct Ratios {
    pairs: Vec<Pair>,
}

struct Pair {
    name: [String; 3],
    /// The engine's and the plain loop's.
    spent: Vec<(Duration, Duration)>,
}

impl Ratios {
    pub fn add(&mut self, group: &str, operator: &str, record: &str, engine: Duration, plain: Duration) {
        let name = [group, operator, record].map(str::to_owned);
        match self.pairs.iter_mut().find(|pair| pair.name == name) {
            Some(pair) => pair.spent.push((engine, plain)),
            None => self.pairs.push(Pair { name, spent: vec![(engine, plain)] }),
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

impl fmt::Display for Ratios {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| | operator | records | engine | plain | ratio |\n|---|---|---|---|---|---|")?;
        for Pair { name: [group, operator, record], spent } in &self.pairs {
            let engine = median(spent.iter().map(|(engine, _)| engine.as_secs_f64()));
            let plain = median(spent.iter().map(|(_, plain)| plain.as_secs_f64()));
            let ratio =
                median(spent.iter().map(|(engine, plain)| engine.as_secs_f64() / plain.as_secs_f64()));
            let (engine, plain) = (engine * 1e3, plain * 1e3);
            writeln!(f, "| {group} | {operator} | {record} | {engine:.0} ms | {plain:.0} ms | {ratio:.2} |")?;
        }
        Ok(())
    }
}
