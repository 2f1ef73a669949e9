//! The tables beside what dbgen writes, whole and in parts.

use std::collections::BTreeSet;
use std::fmt::Debug;

use tpchgen::generators::LineItemGenerator;

use super::*;

trait Table: TpchTable + Debug + PartialEq {}

impl<T: TpchTable + Debug + PartialEq> Table for T {}

fn rows<T: Table>(source: TpchSource<T>, part: u32, text: &Text) -> Vec<T> {
    T::rows(source.piece(part), text).collect()
}

fn whole<T: Table>(scale_factor: f64) -> Vec<T> {
    rows(TpchSource::new(scale_factor, 1), 1, Text::standard())
}

fn first_row_of_scale_factor_1<T: Table>() -> T {
    T::rows(TpchSource::<T>::new(1.0, 100).piece(1), Text::standard()).next().unwrap()
}

/// The rows that every listing of dbgen's output begins with.
#[test]
fn the_first_rows_of_scale_factor_1_are_those_of_dbgen() {
    let region = Region { regionkey: 0, name: "AFRICA".to_owned() };
    assert_eq!(first_row_of_scale_factor_1::<Region>(), region);
    let nation = Nation { nationkey: 0, name: "ALGERIA".to_owned(), regionkey: 0 };
    assert_eq!(first_row_of_scale_factor_1::<Nation>(), nation);
    let supplier = Supplier {
        suppkey: 1,
        name: "Supplier#000000001".to_owned(),
        address: " N kD4on9OM Ipw3,gf0JBoQDd7tgrzrddZ".to_owned(),
        nationkey: 17,
        phone: "27-918-335-1736".to_owned(),
        acctbal: 575_594,
    };
    assert_eq!(first_row_of_scale_factor_1::<Supplier>(), supplier);
    let customer = Customer {
        custkey: 1,
        name: "Customer#000000001".to_owned(),
        address: "IVhzIApeRb ot,c,E".to_owned(),
        nationkey: 15,
        phone: "25-989-741-2988".to_owned(),
        acctbal: 71_156,
        mktsegment: "BUILDING".to_owned(),
    };
    assert_eq!(first_row_of_scale_factor_1::<Customer>(), customer);
    let part = Part {
        partkey: 1,
        name: "goldenrod lavender spring chocolate lace".to_owned(),
        mfgr: "Manufacturer#1".to_owned(),
        brand: "Brand#13".to_owned(),
        r#type: "PROMO BURNISHED COPPER".to_owned(),
        size: 7,
        container: "JUMBO PKG".to_owned(),
        retailprice: 90_100,
    };
    assert_eq!(first_row_of_scale_factor_1::<Part>(), part);
    let part_supp = PartSupp { partkey: 1, suppkey: 2, availqty: 3325, supplycost: 77_164 };
    assert_eq!(first_row_of_scale_factor_1::<PartSupp>(), part_supp);
    let order = Order {
        orderkey: 1,
        custkey: 36_901,
        orderstatus: 'O',
        totalprice: 17_366_547,
        orderdate: "1996-01-02".parse().unwrap(),
        orderpriority: "5-LOW".to_owned(),
        clerk: "Clerk#000000951".to_owned(),
        shippriority: 0,
    };
    assert_eq!(first_row_of_scale_factor_1::<Order>(), order);
    let line_item = LineItem {
        orderkey: 1,
        partkey: 155_190,
        suppkey: 7706,
        linenumber: 1,
        quantity: 17,
        extendedprice: 2_116_823,
        discount: 4,
        tax: 2,
        returnflag: 'N',
        linestatus: 'O',
        shipdate: "1996-03-13".parse().unwrap(),
        commitdate: "1996-02-12".parse().unwrap(),
        receiptdate: "1996-03-22".parse().unwrap(),
        shipinstruct: "DELIVER IN PERSON".to_owned(),
        shipmode: "TRUCK".to_owned(),
    };
    assert_eq!(first_row_of_scale_factor_1::<LineItem>(), line_item);
}

#[test]
fn the_tables_have_the_sizes_of_the_specification() {
    assert_eq!(whole::<Region>(0.01).len(), 5);
    assert_eq!(whole::<Nation>(0.01).len(), 25);
    assert_eq!(whole::<Supplier>(0.01).len(), 100);
    assert_eq!(whole::<Customer>(0.01).len(), 1500);
    assert_eq!(whole::<Part>(0.01).len(), 2000);
    assert_eq!(whole::<PartSupp>(0.01).len(), 8000);
    assert_eq!(whole::<Order>(0.01).len(), 15_000);
    assert!(whole::<LineItem>(0.01).len().abs_diff(60_000) < 600);
}

#[test]
fn the_parts_of_a_table_are_the_table() {
    fn check<T: Table>() {
        let source = TpchSource::<T>::new(0.001, 7);
        let text = Text::standard();
        let parts: Vec<T> = source.splits().into_iter().flat_map(|part| rows(source, part, text)).collect();
        assert_eq!(parts, whole(0.001), "{}", T::NAME);
    }
    check::<Region>();
    check::<Nation>();
    check::<Supplier>();
    check::<Customer>();
    check::<Part>();
    check::<PartSupp>();
    check::<Order>();
    check::<LineItem>();
}

#[test]
fn splits_go_to_whoever_asks_unless_it_is_said_who_reads_which() {
    let table = TpchSource::<Order>::new(0.01, 3);
    assert_eq!(table.assignment(), SplitAssignment::Dynamic);
    assert_eq!(table.assigned(SplitAssignment::Static).assignment(), SplitAssignment::Static);
}

#[test]
fn a_table_that_does_not_grow_is_one_split() {
    assert_eq!(TpchSource::<Region>::new(1.0, 10).splits(), [1]);
    assert_eq!(TpchSource::<Nation>::new(1.0, 10).splits(), [1]);
    assert_eq!(TpchSource::<Supplier>::new(1.0, 3).splits(), [1, 2, 3]);
}

#[test]
fn no_column_depends_on_the_size_of_the_text_pool() {
    fn check<T: Table>(scale_factor: f64) {
        let source = TpchSource::<T>::new(scale_factor, 3);
        let part = source.part_count().min(2);
        let small = rows(source, part, Text::standard());
        for bytes in [1 << 20, 300] {
            assert_eq!(rows(source, part, &Text::with_pool(bytes)), small, "{} of {bytes}", T::NAME);
        }
    }
    check::<Region>(0.01);
    check::<Nation>(0.01);
    // Has suppliers whose comments get a complaint or a praise, which draws more.
    check::<Supplier>(1.0);
    check::<Customer>(0.01);
    check::<Part>(0.01);
    check::<PartSupp>(0.01);
    check::<Order>(0.01);
    check::<LineItem>(0.01);
}

#[test]
fn keys_name_rows_of_the_other_tables() {
    let suppliers = whole::<Supplier>(0.001);
    assert!(whole::<Nation>(0.001).iter().all(|nation| (0..5).contains(&nation.regionkey)));
    assert!(suppliers.iter().all(|supplier| (0..25).contains(&supplier.nationkey)));
    let (suppliers, parts) =
        (suppliers.len().cast_signed() as i64, whole::<Part>(0.001).len().cast_signed() as i64);
    for row in whole::<PartSupp>(0.001) {
        assert!((1..=suppliers).contains(&row.suppkey) && (1..=parts).contains(&row.partkey));
    }
    let orders = whole::<Order>(0.001);
    let keys: BTreeSet<i64> = orders.iter().map(|order| order.orderkey).collect();
    assert_eq!(whole::<LineItem>(0.001).iter().map(|item| item.orderkey).collect::<BTreeSet<_>>(), keys);
    let customers = whole::<Customer>(0.001).len().cast_signed() as i64;
    assert!(orders.iter().all(|order| (1..=customers).contains(&order.custkey)));
}

/// Takes seconds: the default pool has 300 MB.
#[test]
#[ignore = "slow: makes the text pool of 300 MB"]
fn the_columns_are_those_of_the_default_generator() {
    let default: Vec<LineItem> = LineItemGenerator::new(0.001, 1, 1).iter().map(LineItem::from).collect();
    assert_eq!(whole::<LineItem>(0.001), default);
}

#[test]
fn the_smallest_table_and_more_parts_than_orders_have_rows() {
    for parts in [1, 10_000] {
        let source = TpchLineItemSource::new(TpchLineItemSource::MIN_SCALE_FACTOR, parts);
        assert!(!rows(source, parts, Text::standard()).is_empty());
    }
}
