//! Where the lines come from: files, standard input, and what is packed in them.

use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, IsTerminal, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Bytes of a packed file that are read at once.
const PACKED_BYTES: usize = 256 << 10;
/// How much longer a packed list is than its file, for a guess.
const PACKED_RATIO: u64 = 6;
/// How files begin that are packed: gzip (RFC 1952), Zstandard (RFC 8878) and its skippable frames, whose first byte
/// varies in its lower half.
const GZIP: [u8; 2] = [0x1F, 0x8B];
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
const ZSTD_SKIPPABLE: [u8; 3] = [0x2A, 0x4D, 0x18];

/// A file or standard input, before it is read.
#[derive(Debug)]
pub(super) struct Input {
    path: Option<PathBuf>,
    name: String,
    /// Bytes, if it is a file that stays as it is.
    size: Option<u64>,
}

/// Gives the bytes of an input, unpacked.
pub(super) trait Reader {
    /// Reads at least one byte, and more as long as none has to be waited for; 0 is the end.
    ///
    /// # Errors
    /// If it cannot be read, or what is packed is damaged.
    fn read_block(&mut self, buffer: &mut [u8]) -> io::Result<usize>;
    /// Does somebody write it while it is read? Then what it gave must not lie about.
    fn is_live(&self) -> bool;
}

/// Looks at every input before the first line is written.
///
/// # Errors
/// What cannot be read, or is the output too, each with its name.
pub(super) fn survey(files: &[PathBuf], output: &File) -> Result<Vec<Input>, String> {
    let standard = [PathBuf::from("-")];
    let files = if files.is_empty() { &standard } else { files };
    let output = output.metadata().ok().filter(fs::Metadata::is_file);
    let (mut inputs, mut wrong) = (Vec::new(), Vec::new());
    for path in files {
        match Input::look(path, output.as_ref()) {
            Ok(input) => inputs.push(input),
            Err(error) => wrong.push(format!("{}: {error}", path.display())),
        }
    }
    if wrong.is_empty() {
        Ok(inputs)
    } else {
        Err(wrong.join("\n"))
    }
}

/// Bytes of all inputs, if all are files.
pub(super) fn total_bytes(inputs: &[Input]) -> Option<u64> {
    inputs.iter().map(|input| input.size).sum()
}

/// About how many lines the inputs have, if all are files. `mean` is the length of a line in bytes.
pub(super) fn guess_lines(inputs: &[Input], mean: usize) -> Option<u64> {
    let bytes: Option<u64> = inputs.iter().map(Input::unpacked_size).sum();
    let lines = bytes? / mean as u64;
    // a tenth more, so that a wrong guess does not make a second layer
    Some(lines + lines / 10 + 1000)
}

impl Input {
    fn look(path: &Path, output: Option<&fs::Metadata>) -> io::Result<Self> {
        let (named, found) = if path.as_os_str() == "-" {
            (None, standard_input()?.metadata()?)
        } else {
            (Some(path.to_owned()), fs::metadata(path)?)
        };
        if found.is_dir() {
            return Err(io::Error::other("is a folder, no list of lines"));
        }
        if output.is_some_and(|output| (output.dev(), output.ino()) == (found.dev(), found.ino())) {
            return Err(io::Error::other("is the output too; write to another file"));
        }
        // a named pipe must be opened once only
        if found.is_file()
            && let Some(path) = &named
        {
            File::open(path)?;
        }
        Ok(Self {
            name: named
                .as_deref()
                .map_or_else(|| "standard input".to_owned(), |path| path.display().to_string()),
            path: named,
            size: found.is_file().then_some(found.len()),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn unpacked_size(&self) -> Option<u64> {
        let size = self.size?;
        let mut head = [0; 4];
        let packed = self.path.as_deref().is_some_and(|path| {
            let read = File::open(path).and_then(|mut file| file.read(&mut head)).unwrap_or(0);
            matches!(
                packing(head.get(..read).unwrap_or_default()),
                Packing::Gzip | Packing::Zstd
            )
        });
        Some(if packed {
            size.saturating_mul(PACKED_RATIO)
        } else {
            size
        })
    }

    /// Opens it, and unpacks what is packed, whatever its name is.
    ///
    /// # Errors
    /// If it cannot be opened or read.
    pub(super) fn open(&self) -> io::Result<Box<dyn Reader>> {
        let mut file = match &self.path {
            Some(path) => File::open(path)?,
            None => standard_input()?,
        };
        let live = self.size.is_none();
        let head = read_head(&mut file)?;
        Ok(match packing(&head) {
            Packing::Gzip => {
                let input = BufReader::with_capacity(PACKED_BYTES, Cursor::new(head).chain(file));
                Box::new(Packed {
                    input: flate2::bufread::MultiGzDecoder::new(input),
                    live,
                })
            }
            Packing::Zstd => {
                let input = BufReader::with_capacity(PACKED_BYTES, Cursor::new(head).chain(file));
                Box::new(Packed {
                    input: zstd::stream::read::Decoder::with_buffer(input)?,
                    live,
                })
            }
            Packing::Plain | Packing::Open => Box::new(Plain { head, file, live }),
        })
    }
}

/// Standard input without a buffer of its own.
fn standard_input() -> io::Result<File> {
    let own: OwnedFd = io::stdin().as_fd().try_clone_to_owned()?;
    Ok(File::from(own))
}

/// How bytes are packed, by how they begin.
#[derive(Debug, PartialEq, Eq)]
enum Packing {
    Plain,
    Gzip,
    Zstd,
    /// Too short to tell.
    Open,
}

fn packing(head: &[u8]) -> Packing {
    let (first, rest) = head.split_at(head.len().min(1));
    let skippable = first.iter().all(|byte| byte & 0xF0 == 0x50);
    if head.starts_with(&GZIP) {
        Packing::Gzip
    } else if head.starts_with(&ZSTD) || skippable && rest.starts_with(&ZSTD_SKIPPABLE) {
        Packing::Zstd
    } else if GZIP.starts_with(head) || ZSTD.starts_with(head) || skippable && ZSTD_SKIPPABLE.starts_with(rest) {
        Packing::Open
    } else {
        Packing::Plain
    }
}

/// Reads as little as tells how the input is packed: who types a line must not wait for a second one.
fn read_head(file: &mut File) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut piece = [0; ZSTD.len()];
    while packing(&head) == Packing::Open {
        let free = piece.get_mut(head.len()..).unwrap_or_default();
        match file.read(free) {
            Ok(0) => break,
            Ok(read) => head.extend_from_slice(free.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(head)
}

/// An input that is not packed.
struct Plain {
    head: Vec<u8>,
    file: File,
    live: bool,
}

impl Plain {
    /// Is there something to read, without a wait?
    fn is_ready(&self) -> bool {
        let mut asked = [PollFd::new(&self.file, PollFlags::IN)];
        !self.live || poll(&mut asked, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

impl Reader for Plain {
    fn read_block(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let from_head = self.head.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(self.head.drain(..from_head)) {
            *to = from;
        }
        let mut filled = from_head;
        while filled < buffer.len() && (filled == 0 || self.is_ready()) {
            match self.file.read(buffer.get_mut(filled..).unwrap_or_default()) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // what was read first is given first; the error comes again
                Err(_) if filled > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn is_live(&self) -> bool {
        self.live || self.file.is_terminal()
    }
}

/// An input that is unpacked while it is read.
struct Packed<R> {
    input: R,
    live: bool,
}

impl<R: Read> Reader for Packed<R> {
    fn read_block(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input
            .read(buffer)
            .map_err(|error| io::Error::new(error.kind(), format!("cannot be unpacked: {error}")))
    }

    fn is_live(&self) -> bool {
        self.live
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_told_by_the_first_bytes() {
        for (head, expected) in [
            (&b"http"[..], Packing::Plain),
            (b"", Packing::Open),
            (b"\x1F", Packing::Open),
            (b"\x1F\x8B", Packing::Gzip),
            (b"\x1F\x8C", Packing::Plain),
            (b"\x28\xB5\x2F", Packing::Open),
            (b"\x28\xB5\x2F\xFD", Packing::Zstd),
            (b"P", Packing::Open),
            (b"Pa", Packing::Plain),
            (b"\x5A\x2A\x4D\x18", Packing::Zstd),
            (b"(x", Packing::Plain),
        ] {
            assert_eq!(packing(head), expected, "{head:?}");
        }
    }
}
