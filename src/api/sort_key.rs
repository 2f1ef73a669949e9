//! What records can be sorted by.

use std::cmp::{Ordering, Reverse};

use crate::connectors::Date;

/// A key with a total order. Numbers are compared by value, floating-point numbers by `total_cmp`
/// (-0 before 0, NaN behind infinity), strings by bytes, pairs and lists from the left, and an `Option`
/// that has nothing comes first. A type with an order of its own is wrapped in [`Ordered`].
#[diagnostic::on_unimplemented(
    message = "records cannot be sorted by `{Self}`",
    note = "right are numbers, booleans, strings, dates, options, tuples and lists of them; a type that is \
            `Ord` is wrapped: `Ordered(key)`"
)]
/// ```
/// use std::cmp::{Ordering, Reverse};
///
/// use revenant::api::SortKey;
///
/// assert_eq!((-0.0).compare(&0.0), Ordering::Less);
/// assert_eq!(f64::NAN.compare(&f64::INFINITY), Ordering::Greater);
/// assert_eq!("Z".compare(&"a"), Ordering::Less);
/// assert_eq!(None.compare(&Some(i64::MIN)), Ordering::Less);
/// // By the first, then, where these are equal, by the second from the top.
/// assert_eq!((1, Reverse("b")).compare(&(1, Reverse("a"))), Ordering::Less);
/// ```
pub trait SortKey: 'static {
    fn compare(&self, other: &Self) -> Ordering;
}

/// A key of a type that has an order of its own.
///
/// ```
/// # use revenant::api::{Order, Ordered};
/// # use revenant::runtime::run;
/// #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
/// enum Priority {
///     Low,
///     High,
/// }
///
/// let result = run(|env| {
///     let all = env.from_collection("all", [Priority::Low, Priority::High, Priority::Low]);
///     all.full_window_partition().sort_partition(|p| Ordered(*p), Order::Descending).collect("sorted");
///     Ok(())
/// })?;
/// assert_eq!(result.collected::<Priority>("sorted")?, [Priority::High, Priority::Low, Priority::Low]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ordered<K>(pub K);

impl<K: Ord + 'static> SortKey for Ordered<K> {
    fn compare(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

macro_rules! ordered {
    ($($type:ty),*) => {
        $(impl SortKey for $type {
            fn compare(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }
        })*
    };
}

ordered!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, bool, char, (), String, Date);

impl SortKey for f32 {
    fn compare(&self, other: &Self) -> Ordering {
        self.total_cmp(other)
    }
}

impl SortKey for f64 {
    fn compare(&self, other: &Self) -> Ordering {
        self.total_cmp(other)
    }
}

impl SortKey for &'static str {
    fn compare(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }
}

impl<K: SortKey> SortKey for Reverse<K> {
    fn compare(&self, other: &Self) -> Ordering {
        other.0.compare(&self.0)
    }
}

impl<K: SortKey> SortKey for Option<K> {
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Some(one), Some(other)) => one.compare(other),
            (one, other) => one.is_some().cmp(&other.is_some()),
        }
    }
}

impl<K: SortKey> SortKey for Vec<K> {
    fn compare(&self, other: &Self) -> Ordering {
        let differing = self.iter().zip(other).map(|(one, other)| one.compare(other)).find(|o| o.is_ne());
        differing.unwrap_or_else(|| self.len().cmp(&other.len()))
    }
}

macro_rules! tuples {
    ($(($($name:ident $place:tt),+))*) => {
        $(impl<$($name: SortKey),+> SortKey for ($($name,)+) {
            fn compare(&self, other: &Self) -> Ordering {
                Ordering::Equal$(.then_with(|| self.$place.compare(&other.$place)))+
            }
        })*
    };
}

tuples! { (A 0) (A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3) }

#[cfg(test)]
mod tests {
    use super::*;

    /// Each before the next.
    fn in_order<K: SortKey>(keys: &[K]) {
        for (i, one) in keys.iter().enumerate() {
            for (j, other) in keys.iter().enumerate() {
                assert_eq!(one.compare(other), i.cmp(&j), "{i} and {j}");
            }
        }
    }

    #[test]
    fn floating_point_numbers_have_a_total_order() {
        in_order(&[
            -f64::NAN,
            f64::NEG_INFINITY,
            -1.5,
            -0.0,
            0.0,
            f64::MIN_POSITIVE,
            2.0,
            f64::INFINITY,
            f64::NAN,
        ]);
        in_order(&[f32::NEG_INFINITY, -0.0, 0.0, f32::NAN]);
    }

    #[test]
    fn strings_are_compared_by_bytes() {
        in_order(&["", "Z", "a", "aa", "b", "ä", "\u{ffff}", "\u{10000}"].map(String::from));
    }

    #[test]
    fn nothing_comes_before_something_and_reverse_turns_the_order_round() {
        in_order(&[None, Some(-1), Some(3)]);
        in_order(&[Reverse(3), Reverse(1)]);
        in_order(&[Reverse(Some(1)), Reverse(None)]);
    }

    #[test]
    fn pairs_and_lists_are_compared_from_the_left() {
        in_order(&[(1, "b"), (1, "c"), (2, "a")]);
        in_order(&[vec![], vec![1], vec![1, 0], vec![2]]);
        in_order(&[Ordered([1, 2]), Ordered([2, 0])]);
    }
}
