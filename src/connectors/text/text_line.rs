//! Lines as they are.

use super::{LineFormat, LineParser, LineSource};

/// A line is a `String`.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextLineFormat;

/// The lines of text files, empty ones too (Flink's `TextLineInputFormat`).
///
/// ```
/// # use revenant::api::Program;
/// # use revenant::connectors::TextLineSource;
/// # use revenant::runtime::MiniCluster;
/// let input = std::env::temp_dir().join(format!("revenant-lines-{}", std::process::id()));
/// std::fs::create_dir_all(&input)?;
/// std::fs::write(input.join("poem.txt"), "Once upon\r\n\na midnight dreary")?;
/// let program = Program::new().register("lines", "Reads lines.", |env, _| {
///     let lines = env.from_source("lines", TextLineSource::new(["poem.txt"]).split_bytes(8));
///     lines.set_parallelism(1).collect("lines");
///     Ok(())
/// });
/// let result = MiniCluster::new(program).input(&input).run("lines")?;
/// assert_eq!(result.collected::<String>("lines")?, ["Once upon", "", "a midnight dreary"]);
/// # std::fs::remove_dir_all(&input)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type TextLineSource = LineSource<TextLineFormat>;

impl TextLineSource {
    /// `paths` are files and directories below the input directory, one as `["visits"]`; `[""]` is all of
    /// it. There are no patterns: a directory is read whole, but for hidden files.
    pub fn new<P: Into<String>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self::with_format(paths, TextLineFormat)
    }
}

impl LineFormat for TextLineFormat {
    type Record = String;

    fn parser(&self, _header: Option<&[u8]>) -> Result<impl LineParser<String>, String> {
        Ok(|line: &[u8]| {
            let text = str::from_utf8(line).map_err(|error| format!("the line is not UTF-8: {error}"))?;
            Ok(Some(text.to_owned()))
        })
    }
}
