//! `word-count`: the lines of text files cut into splits, their words by hash of the word, and how often
//! each occurs, in the order of the words' encodings.

use std::collections::BTreeMap;

use bytes::Bytes;
use revenant::config::JobArguments;
use revenant::ids::IntermediateDataSetId;

use super::exchange::DataSet;
use super::line_items::{argument, csv, part};
use super::rows::Rows;
use super::{Files, ReferenceJob, Shape, Witness};
use crate::scenario::Input;

const HEADER: &str = "word,count";

#[derive(Debug)]
pub struct WordCount {
    /// The words of the lines that begin in each split.
    splits: Vec<Vec<String>>,
    shape: Shape,
    output: String,
    whole: Rows,
}

impl WordCount {
    /// Also says how many splits the source has.
    pub fn new(job: &JobArguments, inputs: &[Input], shape: &mut Shape) -> Result<Self, String> {
        let ([Some(count), None], [_]) = (&mut shape.splits[..], &shape.cuts[..]) else {
            return Err("the job does not have a source, an exchange and a count".to_owned());
        };
        let input: String = argument(job, "input", String::new())?;
        let split_bytes = argument(job, "split-bytes", 64 << 20)?;
        let mut splits = Vec::new();
        for file in Input::below(inputs, &input) {
            splits.extend(cut(&file.content(), split_bytes));
        }
        *count = splits.len() as u32;
        let mut whole = Rows::default();
        for line in lines(splits.iter().flatten().map(String::as_str))? {
            whole.add(format!("{line}\n").as_bytes());
        }
        let output = argument(job, "output", job.name.clone())?;
        Ok(Self { splits, shape: shape.clone(), output, whole })
    }

    fn of_splits(&self, splits: &[u32]) -> Result<Vec<&str>, String> {
        let mut words = Vec::new();
        for &split in splits {
            let found =
                self.splits.get(split as usize).ok_or_else(|| format!("there is no split {split}"))?;
            words.extend(found.iter().map(String::as_str));
        }
        Ok(words)
    }
}

/// A file in splits of so many bytes: the words of the lines that begin in each.
fn cut(text: &str, split_bytes: usize) -> Vec<Vec<String>> {
    let mut splits = vec![Vec::new(); text.len().div_ceil(split_bytes)];
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let words = &mut splits[offset / split_bytes];
        let mut word = String::new();
        for character in line.chars() {
            if character.is_alphanumeric() {
                word.extend(character.to_lowercase());
            } else if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
        }
        if !word.is_empty() {
            words.push(word);
        }
        offset += line.len();
    }
    splits
}

/// What a subtask writes that gets these words.
fn lines<'a>(words: impl Iterator<Item = &'a str>) -> Result<Vec<String>, String> {
    let mut counts: BTreeMap<Vec<u8>, (&str, u64)> = BTreeMap::new();
    for word in words {
        let key = postcard::to_stdvec(word).map_err(|error| format!("a word: {error}"))?;
        counts.entry(key).or_insert((word, 0)).1 += 1;
    }
    Ok(counts.into_values().map(|(word, count)| format!("{word},{count}")).collect())
}

impl ReferenceJob for WordCount {
    fn outputs(&self, witness: &Witness) -> Result<Files, String> {
        let [source, count] = witness.vertices.as_slice() else {
            return Err("the job does not have two vertices".to_owned());
        };
        let read: Result<Vec<_>, String> =
            source.splits.iter().map(|splits| self.of_splits(splits)).collect();
        let read = read?;
        let cut = self.shape.subpartitions(IntermediateDataSetId(0), read.len() as u32);
        let counted = DataSet::by_hash(&read, cut, |word| *word)?.read_all(&count.inputs, 0)?;
        let file = |(subtask, words): (usize, Vec<&str>)| {
            Ok((part(&self.output, subtask), csv(HEADER, lines(words.into_iter())?)))
        };
        counted.into_iter().enumerate().map(file).collect()
    }

    fn whole(&self, files: &BTreeMap<String, Bytes>) -> Result<(), String> {
        let found = Rows::of_csv(files);
        if found == self.whole {
            return Ok(());
        }
        let (found, expected) = (found.count, self.whole.count);
        Err(format!("the output is not the count of all words ({found} words, {expected} expected)"))
    }
}

#[cfg(test)]
mod tests {
    use revenant::message::IndexRange;

    use super::*;
    use crate::reference::{Cut, VertexWitness};

    fn job() -> WordCount {
        let arguments = [("input", "in"), ("split-bytes", "8")];
        let arguments = arguments.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let job = JobArguments { name: "word-count".to_owned(), arguments };
        let input =
            |path: &str, text: &str| Input { path: path.to_owned(), text: text.to_owned(), repeat: 1 };
        let inputs = [input("in/b", "To be, or\nnot to be"), input("in/a", "be\n"), input("in/_b", "no")];
        let mut shape = Shape { splits: vec![Some(0), None], cuts: vec![Cut::AllToAll(2)] };
        let job = WordCount::new(&job, &inputs, &mut shape).unwrap();
        assert_eq!(shape.splits, [Some(4), None]);
        job
    }

    fn outputs(splits: &[u32]) -> BTreeMap<String, Bytes> {
        let range = |index| vec![(IndexRange::new(0, 0), IndexRange::new(index, index))];
        let source = VertexWitness { inputs: vec![vec![]], splits: vec![splits.to_vec()] };
        let count = VertexWitness { inputs: vec![range(0), range(1)], splits: vec![vec![], vec![]] };
        let files = job().outputs(&Witness { vertices: vec![source, count] }).unwrap();
        files.into_iter().map(|(path, bytes)| (path, Bytes::from(bytes))).collect()
    }

    #[test]
    fn a_split_has_the_words_of_the_lines_that_begin_in_it() {
        assert_eq!(job().splits, [vec!["be"], vec!["to", "be", "or"], vec!["not", "to", "be"], vec![]]);
    }

    #[test]
    fn every_split_once_counts_all_words_and_nothing_else_does() {
        let files = outputs(&[0, 3, 2, 1]);
        job().whole(&files).unwrap();
        let mut rows: Vec<String> = Vec::new();
        for file in files.values() {
            rows.extend(String::from_utf8(file.to_vec()).unwrap().lines().skip(1).map(ToOwned::to_owned));
        }
        rows.sort();
        assert_eq!(rows, ["be,3", "not,1", "or,1", "to,2"]);
        job().whole(&outputs(&[0, 2, 3])).unwrap_err();
        job().whole(&outputs(&[0, 0, 1, 2, 3])).unwrap_err();
    }

    #[test]
    fn words_come_in_the_order_of_their_encodings() {
        let words = ["abc", "b", "aa", "b"];
        assert_eq!(lines(words.into_iter()).unwrap(), ["b,2", "aa,1", "abc,1"]);
    }
}
