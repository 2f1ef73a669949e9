//! A linear model of each partition, averaged into one: what FLIP-380 wants full-window partitions for.
//! Each partition fits its own rows by least squares, in one pass and in constant memory; only the models
//! travel.
//!
//! ```console
//! $ cargo run --release --example linear_model_per_partition -- --rows 1000000 --partitions 4
//! ```
//!
//! The rows are made of their number: y = 2 + 3 a − b and noise from −0.25 to 0.25. Prints the model of
//! each partition and their average, and the root of the mean square error on rows that none has seen;
//! that of the truth itself is 0.144.

use std::num::NonZeroU32;
use std::process::exit;

use clap::Parser;
use revenant::api::{FunctionError, Out, Records, SplitAssignment, StreamExecutionEnvironment};
use revenant::connectors::NumberSequenceSource;
use revenant::runtime::JobExecutionError;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// A linear model of made-up rows, averaged from those of their partitions.
#[derive(Clone, Debug, Parser)]
pub struct Arguments {
    #[arg(long, default_value = "100000")]
    rows: NonZeroU32,
    /// Partitions with a model each: neighbouring rows, as many in each.
    #[arg(long, default_value = "4")]
    partitions: NonZeroU32,
}

/// 1, a and b.
pub type Weights = [f64; 3];

/// An observation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    pub x: Weights,
    pub y: f64,
}

impl Row {
    /// The same for the same number.
    pub fn numbered(number: i64) -> Self {
        let bits = xxh3_64(&number.to_le_bytes());
        let fraction = |shift: u32| (bits >> shift & 0xffff) as f64 / f64::from(1 << 16);
        let (a, b, noise) = (fraction(0), fraction(16), (fraction(32) - 0.5) / 2.0);
        Self { x: [1.0, a, b], y: 2.0 + 3.0 * a - b + noise }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// How many it was fitted to.
    pub rows: f64,
    pub weights: Weights,
}

impl Model {
    pub fn predict(&self, x: &Weights) -> f64 {
        self.weights.iter().zip(x).map(|(weight, x)| weight * x).sum()
    }

    /// Each counts by its rows.
    fn average(self, other: Self) -> Self {
        let rows = self.rows + other.rows;
        let mean = |i: usize| (self.weights[i] * self.rows + other.weights[i] * other.rows) / rows;
        Self { rows, weights: [mean(0), mean(1), mean(2)] }
    }
}

pub fn describe(env: &mut StreamExecutionEnvironment, arguments: &Arguments) {
    let partitions = arguments.partitions.get();
    let numbers = NumberSequenceSource::new(0, arguments.rows.get().into(), partitions);
    let models = env
        .from_source("numbers", numbers.assigned(SplitAssignment::Static))
        .set_parallelism(partitions)
        .map(Row::numbered)
        .full_window_partition()
        .map_partition(least_squares)
        .name("LeastSquares");
    models.collect("of-each-partition");
    models.full_window_partition().reduce(Model::average).set_parallelism(1).collect("average");
}

/// The model of a partition; none if its rows are too few or too much alike.
async fn least_squares(records: &mut Records<Row>, out: &Out<Model>) -> Result<(), FunctionError> {
    let (mut rows, mut equations) = (0.0, [[0.0; 4]; 3]);
    while let Some(Row { x, y }) = records.next().await {
        rows += 1.0;
        for (equation, factor) in equations.iter_mut().zip(x) {
            let terms = x.into_iter().chain([y]);
            equation.iter_mut().zip(terms).for_each(|(sum, term)| *sum += factor * term);
        }
    }
    if let Some(weights) = solve(equations) {
        out.collect(Model { rows, weights }).await;
    }
    Ok(())
}

/// Gaussian elimination; the last column is the right-hand side. None if the equations do not say enough:
/// a pivot that is nothing but rounding.
fn solve(mut equations: [[f64; 4]; 3]) -> Option<Weights> {
    let rounding = 1e-12 * equations.iter().flatten().fold(0.0, |max: f64, term| max.max(term.abs()));
    for i in 0..3 {
        let pivot = (i..3).max_by(|&a, &b| equations[a][i].abs().total_cmp(&equations[b][i].abs()))?;
        equations.swap(i, pivot);
        if equations[i][i].abs() <= rounding {
            return None;
        }
        let row = equations[i].map(|term| term / equations[i][i]);
        for (j, other) in equations.iter_mut().enumerate() {
            let factor = other[i];
            if j == i {
                *other = row;
            } else {
                other.iter_mut().zip(row).for_each(|(term, of_row)| *term -= factor * of_row);
            }
        }
    }
    Some(equations.map(|equation| equation[3]))
}

/// What the job found.
pub struct Fitted {
    pub of_each_partition: Vec<Model>,
    /// None where no partition has a model.
    pub average: Option<Model>,
}

pub fn run(arguments: Arguments) -> Result<Fitted, JobExecutionError> {
    let result = revenant::runtime::run(move |env| {
        describe(env, &arguments);
        Ok(())
    })?;
    let average = result.collected("average")?.pop();
    Ok(Fitted { of_each_partition: result.collected("of-each-partition")?, average })
}

fn main() {
    let fitted = run(Arguments::parse()).unwrap_or_else(|error| {
        eprintln!("{error}");
        exit(1)
    });
    let unseen: Vec<Row> = (-1000..0).map(Row::numbered).collect();
    let print = |who: &str, model: &Model| {
        let squares: f64 = unseen.iter().map(|row| (model.predict(&row.x) - row.y).powi(2)).sum();
        let [constant, a, b] = model.weights;
        println!("{who:9}  y = {constant:.4} {a:+.4} a {b:+.4} b   error {:.4}", (squares / 1000.0).sqrt());
    };
    for model in &fitted.of_each_partition {
        print("partition", model);
    }
    match &fitted.average {
        Some(model) => print("average", model),
        None => println!("the rows are too few for a model"),
    }
}
