//! The contents of input files: rows as CSV and JSON Lines, and words, with all that readers have to
//! bear: other orders of columns, quotes, blank lines, line ends of both kinds or none at the end.

use std::fmt::Write as _;

use super::stream::Stream;
use crate::scenario::Input;

const NAMES: [&str; 6] = ["source", "split", "offset", "key", "value", "rows"];

/// One to three files of rows in `directory`.
pub fn rows(draws: &mut Stream, directory: &str, source: u64, json: bool) -> Vec<Input> {
    let files = draws.between(1, 3);
    let keys = draws.one_of(&[1, 5, 1000]);
    let file = |split| {
        let count = draws.one_of(&[0, 1, 4, 30]);
        let text = table(draws, source, split, count, keys, json);
        let extension = if json { "jsonl" } else { "csv" };
        Input { path: format!("{directory}/{split}.{extension}"), text, repeat: 1 }
    };
    (0..files).map(file).collect()
}

fn table(draws: &mut Stream, source: u64, split: u32, count: u64, keys: u64, json: bool) -> String {
    let end = draws.one_of(&["\n", "\r\n"]);
    let turned = draws.below(6) as usize;
    let column = |n: usize| NAMES[(n + turned) % 6];
    let more = draws.one_in(3);
    let mut text = String::new();
    if draws.one_in(8) && !json {
        text.push('\u{feff}');
    }
    if !json {
        let header: Vec<&str> = (0..6).map(column).collect();
        let _ = write!(text, "{}{}{end}", header.join(","), if more { ",note" } else { "" });
    }
    for offset in 0..count {
        let value = draws.below(2000).cast_signed() - 1000;
        let key = draws.below(keys);
        let field = |n: usize| match column(n) {
            "source" => source.to_string(),
            "split" => split.to_string(),
            "offset" => offset.to_string(),
            "key" => key.to_string(),
            "value" => value.to_string(),
            _ => "1".to_owned(),
        };
        if json {
            let members: Vec<String> = (0..6).map(|n| format!("\"{}\": {}", column(n), field(n))).collect();
            let note = if more { ",\"note\":\"x\"" } else { "" };
            let _ = write!(text, "{{{}{note}}}", members.join(","));
        } else {
            let quoted = draws.one_in(4);
            let quote = |field: String| if quoted { format!("\"{field}\"") } else { field };
            let fields: Vec<String> = (0..6).map(|n| quote(field(n))).collect();
            let _ = write!(text, "{}{}", fields.join(","), if more { ",\"a, \"\"b\"\"\"" } else { "" });
        }
        let is_last = offset + 1 == count;
        if !is_last || !draws.one_in(2) {
            text.push_str(end);
        }
        if draws.one_in(10) && !is_last {
            text.push_str(end);
        }
    }
    text
}

/// One to three files of words in `directory`.
pub fn words(draws: &mut Stream, directory: &str) -> Vec<Input> {
    const WORDS: [&str; 8] = ["tyger", "Burning", "bright,", "in", "the", "forests", "of", "Über-2"];
    let files = draws.between(1, 3);
    let file = |number| {
        let mut text = String::new();
        for _ in 0..draws.one_of(&[0, 1, 10, 40]) {
            for _ in 0..draws.below(8) {
                text.push_str(draws.one_of(&WORDS));
                text.push(' ');
            }
            text.push_str(draws.one_of(&["\n", "\r\n"]));
        }
        text.push_str(draws.one_of(&["", "the end"]));
        Input { path: format!("{directory}/{number}.txt"), text, repeat: draws.one_of(&[1, 1, 5]) }
    };
    (0..files).map(file).collect()
}
