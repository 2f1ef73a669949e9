//! The tables of TPC-H, generated: one split for each part of a table, as dbgen cuts it. Columns are those
//! of the specification without their prefix (`l_` and so on), with the values of dbgen; the comment
//! columns are left out. Money is in hundredths.

use std::fmt;
use std::marker::PhantomData;

use crate::api::FunctionError;
use crate::coordinator::SplitAssignment;
use crate::operators::Out;

use super::{Source, SourceReaderContext};

mod customer;
mod line_item;
mod nation;
mod order;
mod part;
mod part_supp;
mod region;
mod supplier;
mod table;
#[cfg(test)]
mod tests;

pub use customer::Customer;
pub use line_item::LineItem;
pub use nation::Nation;
pub use order::Order;
pub use part::Part;
pub use part_supp::PartSupp;
pub use region::Region;
pub use supplier::Supplier;
pub use table::TpchTable;

use table::{Piece, Text};

/// A table at a scale factor, in `parts` splits. REGION and NATION are the same at every scale factor,
/// and one split.
///
/// ```
/// # use revenant::connectors::TpchSource;
/// # use revenant::connectors::tpch::Region;
/// # use revenant::runtime::run;
/// let result = run(|env| {
///     let regions = env.from_source("regions", TpchSource::<Region>::new(0.01, 4));
///     regions.map(|region| region.name).collect("names");
///     Ok(())
/// })?;
/// let names = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];
/// assert_eq!(result.collected::<String>("names")?, names);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TpchSource<T> {
    scale_factor: f64,
    parts: u32,
    assignment: SplitAssignment,
    table: PhantomData<fn() -> T>,
}

/// The largest table.
pub type TpchLineItemSource = TpchSource<LineItem>;

impl<T> TpchSource<T> {
    /// Below, the table of suppliers would be empty.
    pub const MIN_SCALE_FACTOR: f64 = 0.0001;
    pub const MAX_SCALE_FACTOR: f64 = 1000.0;
    pub const MAX_PARTS: u32 = 10_000;

    /// At scale factor 1, LINEITEM has about 6 million rows. Values out of range are moved into it:
    /// [`Self::MIN_SCALE_FACTOR`] to [`Self::MAX_SCALE_FACTOR`], 1 to [`Self::MAX_PARTS`].
    pub const fn new(scale_factor: f64, parts: u32) -> Self {
        let scale_factor = if scale_factor >= Self::MIN_SCALE_FACTOR {
            scale_factor.min(Self::MAX_SCALE_FACTOR)
        } else {
            Self::MIN_SCALE_FACTOR
        };
        let parts = if parts == 0 {
            1
        } else if parts > Self::MAX_PARTS {
            Self::MAX_PARTS
        } else {
            parts
        };
        Self { scale_factor, parts, assignment: SplitAssignment::Dynamic, table: PhantomData }
    }

    /// The same table, with its splits given to readers in this way.
    #[must_use]
    pub const fn assigned(self, assignment: SplitAssignment) -> Self {
        Self { assignment, ..self }
    }
}

impl<T: TpchTable> TpchSource<T> {
    fn part_count(&self) -> u32 {
        if T::SCALES { self.parts } else { 1 }
    }

    fn piece(&self, part: u32) -> Piece {
        let count = self.part_count().cast_signed();
        Piece { scale_factor: self.scale_factor, number: part.cast_signed(), count }
    }
}

impl<T: TpchTable> Source for TpchSource<T> {
    type Record = T;
    /// The part, from 1.
    type Split = u32;

    fn splits(&self) -> Vec<u32> {
        (1..=self.part_count()).collect()
    }

    fn assignment(&self) -> SplitAssignment {
        self.assignment
    }

    async fn read(&self, part: u32, _: &SourceReaderContext, out: &Out<T>) -> Result<(), FunctionError> {
        let parts = self.part_count();
        if part == 0 || part > parts {
            return Err(format!("there is no part {part} of {parts} of {}", T::NAME).into());
        }
        for row in T::rows(self.piece(part), Text::standard()) {
            out.collect(row).await;
        }
        Ok(())
    }
}

impl<T> Clone for TpchSource<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for TpchSource<T> {}

impl<T: TpchTable> fmt::Debug for TpchSource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TpchSource")
            .field("table", &T::NAME)
            .field("scale_factor", &self.scale_factor)
            .field("parts", &self.part_count())
            .field("assignment", &self.assignment)
            .finish()
    }
}
