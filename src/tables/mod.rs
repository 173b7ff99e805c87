//! Files of JSON lines as Parquet, for tools that read columns. Holds `parquet`.
//!
//! A table is made anew from the whole file of lines at the end of a crawl, beside the one before it, and then takes its
//! place: killed in between, the old one stands, and the next end makes it again.

mod column;

use std::io::{self, BufRead, BufReader, Write};
use std::sync::Arc;

use parquet::basic::{Compression, Repetition, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use serde_json::{Map, Value};

pub use column::{Column, Kind};

use crate::disk::{Append, Disk};
use column::Cells;

/// Rows of one group: what is in memory at once, at most.
pub const GROUP_ROWS: usize = 100_000;
/// Text of one group, bytes, after which it is written.
pub const GROUP_BYTES: usize = 16 << 20;

/// Writes the rows of `from` (JSON lines, `packed` in zstd frames or plain) as the table `to`,
/// and tells how many there are; `None` if there is no such file. A value that is not of its column's kind is written as
/// far as it can be: a text for a list of one, a number as text.
///
/// # Errors
/// If a file cannot be read or written, or a line is no object.
pub fn convert(disk: &dyn Disk, from: &str, packed: bool, to: &str, columns: &[Column]) -> io::Result<Option<u64>> {
    let Some(file) = disk.read(from)? else {
        return Ok(None);
    };
    let mut lines: Box<dyn BufRead> = if packed {
        Box::new(BufReader::new(zstd::Decoder::new(file)?))
    } else {
        Box::new(BufReader::new(file))
    };
    let beside = format!("{to}.tmp");
    disk.remove(&beside)?;
    let mut table = Table::new(File(disk.append(&beside)?), columns)?;
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        let row: Map<String, Value> = serde_json::from_slice(&line)?;
        table.push(&row)?;
        line.clear();
    }
    let rows = table.finish()?;
    disk.rename(&beside, to)?;
    Ok(Some(rows))
}

/// A file of the disk as the writer of a table wants it.
struct File(Box<dyn Append>);

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A table while it is written.
struct Table {
    writer: SerializedFileWriter<File>,
    cells: Vec<Cells>,
    rows: usize,
    all: u64,
}

impl Table {
    fn new(file: File, columns: &[Column]) -> io::Result<Self> {
        let fields = columns.iter().map(Column::field).collect::<Result<Vec<_>, _>>();
        let schema = Type::group_type_builder("row")
            .with_repetition(Repetition::REQUIRED)
            .with_fields(fields.map_err(wrong)?)
            .build()
            .map_err(wrong)?;
        let settings = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(concat!("crawler ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(settings)).map_err(wrong)?;
        Ok(Self {
            writer,
            cells: columns.iter().map(Cells::of).collect(),
            rows: 0,
            all: 0,
        })
    }

    fn push(&mut self, row: &Map<String, Value>) -> io::Result<()> {
        let mut bytes = 0;
        for cells in &mut self.cells {
            cells.push(row);
            bytes += cells.bytes();
        }
        self.rows += 1;
        self.all += 1;
        if self.rows >= GROUP_ROWS || bytes >= GROUP_BYTES {
            self.write_group()?;
        }
        Ok(())
    }

    fn write_group(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group().map_err(wrong)?;
        for cells in &mut self.cells {
            let column = group.next_column().map_err(wrong)?;
            let mut column =
                column.ok_or_else(|| io::Error::other("the table has fewer columns than it began with"))?;
            cells.write(&mut column).map_err(wrong)?;
            column.close().map_err(wrong)?;
        }
        group.close().map_err(wrong)?;
        self.rows = 0;
        Ok(())
    }

    fn finish(mut self) -> io::Result<u64> {
        self.write_group()?;
        let mut file = self.writer.into_inner().map_err(wrong)?;
        file.0.sync()?;
        Ok(self.all)
    }
}

/// The cause if it is the system's, so that a full disk stays one.
fn wrong(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;
    use crate::disk::Memory;

    fn columns() -> Vec<Column> {
        vec![
            Column::new("a", &["a"], Kind::Text),
            Column::new("n", &["m", "n"], Kind::Number),
            Column::new("l", &["l"], Kind::Texts),
            Column::new("b", &["b"], Kind::Flag),
        ]
    }

    fn table(disk: &Memory, text: &str) -> (Vec<String>, usize) {
        disk.append("t.jsonl").unwrap().append(text.as_bytes()).unwrap();
        let rows = convert(disk, "t.jsonl", false, "t.parquet", &columns()).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(disk.bytes("t.parquet").unwrap())).unwrap();
        let read: Vec<String> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap().to_string())
            .collect();
        assert_eq!(rows, Some(read.len() as u64));
        (read, reader.num_row_groups())
    }

    #[test]
    fn values_of_every_kind_are_read_back() {
        let disk = Memory::default();
        disk.append("t.parquet.tmp").unwrap().append(b"left by a kill").unwrap();
        let (rows, _) = table(
            &disk,
            "{\"a\": \"x\", \"m\": {\"n\": 7}, \"l\": [\"1\", \"2\"], \"b\": true}\n{}\n{\"l\": [], \"a\": 5}\n\
             {\"l\": \"one\", \"a\": [\"first\", \"x\"], \"b\": false, \"other\": 1}\n",
        );
        assert_eq!(
            rows,
            [
                "{a: \"x\", n: 7, l: [\"1\", \"2\"], b: true}",
                "{a: null, n: null, l: null, b: null}",
                "{a: \"5\", n: null, l: [], b: null}",
                "{a: \"first\", n: null, l: [\"one\"], b: false}",
            ]
        );
        assert_eq!(disk.bytes("t.parquet.tmp"), None);
    }

    #[test]
    fn groups_are_bounded_by_rows_and_by_bytes() {
        let many = "{}\n".repeat(GROUP_ROWS + 1);
        assert_eq!(table(&Memory::default(), &many).1, 2);
        let row = format!("{{\"a\": \"{}\"}}\n", "x".repeat(GROUP_BYTES / 4));
        assert_eq!(table(&Memory::default(), &row.repeat(9)).1, 3);
    }

    #[test]
    fn what_is_no_table_is_told() {
        let disk = Memory::default();
        assert_eq!(convert(&disk, "none", true, "t", &columns()).unwrap(), None);
        disk.append("bad").unwrap().append(b"[1]\n").unwrap();
        assert!(convert(&disk, "bad", false, "t", &columns()).is_err());
        assert_eq!(disk.bytes("t"), None);
    }
}
