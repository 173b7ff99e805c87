//! A body of any size in little memory: small ones are bytes, large ones a file without a name.
//!
//! [`Sink`] takes what comes and decides: up to [`SPOOL_ABOVE`] bytes stay in memory as long as all bodies together
//! stay within [`BODIES_IN_MEMORY`]; beyond either a body goes on in a file of the [`Spool`]. Nobody waits for room, so
//! no two bodies can wait for each other.

mod spool;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;

use spool::Charge;
pub use spool::{BODIES_IN_MEMORY, Spool};

/// A body longer than this goes to a file, bytes.
pub const SPOOL_ABOVE: usize = 1 << 20;
/// Bytes written to a file together; a body on its way to one holds no more.
const WRITE_AT: usize = 32 * 1024;
/// Room made ahead on a word of how much will come, bytes at most: a word costs the server nothing.
const MAX_ROOM_AHEAD: usize = 64 * 1024;
/// Least room made for a body, bytes.
const LEAST_ROOM: usize = 4 * 1024;
/// Bytes of a file that are read at a time.
const PIECE: usize = 128 * 1024;

/// Bytes that came, or were made, in memory or in a file without a name. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Body {
    place: Place,
    /// Gives room back when the last clone is gone.
    _held: Option<Arc<Charge>>,
}

#[derive(Debug, Clone)]
enum Place {
    Memory(Bytes),
    File { file: Arc<File>, len: u64 },
}

impl Default for Place {
    fn default() -> Self {
        Self::Memory(Bytes::new())
    }
}

impl Body {
    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.place {
            Place::Memory(bytes) => bytes.len() as u64,
            Place::File { len, .. } => *len,
        }
    }

    /// Is there nothing in it?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, if they are in memory.
    #[must_use]
    pub fn in_memory(&self) -> Option<&[u8]> {
        match &self.place {
            Place::Memory(bytes) => Some(bytes),
            Place::File { .. } => None,
        }
    }

    /// Reads from the start. Any number of readers may read at once.
    #[must_use]
    pub fn reader(&self) -> Reader<'_> {
        Reader { body: self, at: 0 }
    }

    /// The first bytes, at most `most`.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn start(&self, most: usize) -> io::Result<Cow<'_, [u8]>> {
        if let Some(bytes) = self.in_memory() {
            return Ok(Cow::Borrowed(bytes.get(..most).unwrap_or(bytes)));
        }
        let room = usize::try_from(self.len()).map_or(most, |len| len.min(most));
        let mut start = Vec::with_capacity(room);
        self.reader().take(most as u64).read_to_end(&mut start)?;
        Ok(Cow::Owned(start))
    }

    /// Hands over all bytes in order, in pieces of at most 128 KiB if they are in a file. The outer result is that of
    /// reading, the inner one what `each` gave.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn pieces<E>(&self, mut each: impl FnMut(&[u8]) -> Result<(), E>) -> io::Result<Result<(), E>> {
        if let Some(bytes) = self.in_memory() {
            return Ok(each(bytes));
        }
        let mut piece = vec![0; PIECE];
        let mut reader = self.reader();
        loop {
            let read = reader.read(&mut piece)?;
            if read == 0 {
                return Ok(Ok(()));
            }
            let done = each(piece.get(..read).unwrap_or_default());
            if done.is_err() {
                return Ok(done);
            }
        }
    }

    /// All bytes in memory, however many: for tests and for bodies known to be small.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn bytes(&self) -> io::Result<Bytes> {
        if let Place::Memory(bytes) = &self.place {
            return Ok(bytes.clone());
        }
        let mut all = Vec::new();
        self.reader().read_to_end(&mut all)?;
        Ok(all.into())
    }
}

/// Bytes that are in memory already and count against no bound.
impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

/// As from a `Vec`.
impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self {
            place: Place::Memory(bytes),
            _held: None,
        }
    }
}

/// Reads a body from its start, at a place of its own.
#[derive(Debug)]
pub struct Reader<'a> {
    body: &'a Body,
    at: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = match &self.body.place {
            Place::Memory(bytes) => {
                let rest = usize::try_from(self.at).ok().and_then(|at| bytes.get(at..));
                rest.unwrap_or_default().read(into)?
            }
            Place::File { file, len } => {
                let left = usize::try_from(len - self.at).unwrap_or(usize::MAX);
                let wanted = into.len().min(left);
                let read = file.read_at(into.get_mut(..wanted).unwrap_or_default(), self.at)?;
                if read == 0 && wanted > 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                read
            }
        };
        self.at += read as u64;
        Ok(read)
    }
}

/// Takes a body piece by piece.
///
/// Two ways lead in: [`Sink::take`] for the network, which never writes on a thread of the runtime, and
/// [`io::Write`] for work that is on a thread of its own.
#[derive(Debug)]
pub struct Sink {
    spool: Arc<Spool>,
    /// The whole body, or what is not written yet.
    buffer: Vec<u8>,
    /// For the buffer, as long as the whole body is in it.
    charge: Charge,
    file: Option<Arc<File>>,
    /// Bytes in the file.
    written: u64,
}

impl Sink {
    /// A sink for a body of which `expected` bytes are announced.
    #[must_use]
    pub fn new(spool: &Arc<Spool>, expected: Option<u64>) -> Self {
        let room = usize::try_from(expected.unwrap_or(0)).map_or(MAX_ROOM_AHEAD, |room| room.min(MAX_ROOM_AHEAD));
        let mut charge = spool.charge();
        let room = if charge.grow(room) { room } else { 0 };
        Self {
            spool: Arc::clone(spool),
            buffer: Vec::with_capacity(room),
            charge,
            file: None,
            written: 0,
        }
    }

    /// Bytes taken so far.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Was nothing taken yet?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// If the file cannot be made or written; the sink must not be used afterwards.
    pub async fn take(&mut self, piece: &[u8]) -> io::Result<()> {
        if self.has_room(piece.len()) {
            self.buffer.extend_from_slice(piece);
            return Ok(());
        }
        let mut rest = piece;
        while !rest.is_empty() {
            if self.buffer.len() >= WRITE_AT {
                self.write_elsewhere().await?;
            }
            rest = self.fill(rest);
        }
        Ok(())
    }

    /// The whole body.
    ///
    /// # Errors
    /// As [`Sink::take`].
    pub async fn finish(mut self) -> io::Result<Body> {
        if self.fits() {
            return Ok(self.into_memory());
        }
        self.write_elsewhere().await?;
        Ok(self.into_file())
    }

    /// As [`Sink::finish`], on this thread.
    ///
    /// # Errors
    /// As [`Sink::take`].
    pub fn close(mut self) -> io::Result<Body> {
        if self.fits() {
            return Ok(self.into_memory());
        }
        self.write_here()?;
        Ok(self.into_file())
    }

    /// Bytes that are in memory already, as a body that counts against the bound, or goes to a file if that is reached.
    ///
    /// # Errors
    /// As [`Sink::take`].
    pub fn kept(spool: &Arc<Spool>, bytes: Vec<u8>) -> io::Result<Body> {
        let sink = Self {
            spool: Arc::clone(spool),
            buffer: bytes,
            charge: spool.charge(),
            file: None,
            written: 0,
        };
        sink.close()
    }

    /// Makes room for a piece in memory; false if the body is one for a file.
    fn has_room(&mut self, piece: usize) -> bool {
        let len = self.buffer.len() + piece;
        if self.file.is_some() || len > SPOOL_ABOVE {
            return false;
        }
        if len <= self.charge.bytes() {
            return true;
        }
        let room = len.max(self.charge.bytes() * 2).clamp(LEAST_ROOM, SPOOL_ABOVE);
        if !self.charge.grow(room - self.charge.bytes()) {
            return false;
        }
        self.buffer.reserve_exact(room - self.buffer.len());
        true
    }

    /// Takes what fits before the next write, and gives back what does not. The buffer never grows beyond
    /// [`WRITE_AT`] here: while many bodies wait for the disk, each would hold twice what it has to.
    fn fill<'p>(&mut self, piece: &'p [u8]) -> &'p [u8] {
        let room = WRITE_AT.saturating_sub(self.buffer.len());
        let (part, rest) = piece.split_at(room.min(piece.len()));
        self.buffer.reserve_exact(part.len());
        self.buffer.extend_from_slice(part);
        rest
    }

    /// Is the body small, and in memory within the bound? Room that was not there before may be there at the end.
    fn fits(&mut self) -> bool {
        let more = self.buffer.capacity().saturating_sub(self.charge.bytes());
        self.file.is_none() && self.buffer.len() <= SPOOL_ABOVE && self.charge.grow(more)
    }

    fn into_memory(self) -> Body {
        Body {
            place: Place::Memory(self.buffer.into()),
            _held: Some(Arc::new(self.charge)),
        }
    }

    fn into_file(self) -> Body {
        match self.file {
            Some(file) => Body {
                place: Place::File {
                    file,
                    len: self.written,
                },
                _held: None,
            },
            None => Body::default(),
        }
    }

    fn write_here(&mut self) -> io::Result<()> {
        let file = open(&mut self.file, &self.spool)?;
        file.write_all_at(&self.buffer, self.written)?;
        self.wrote();
        Ok(())
    }

    /// On a thread that may wait for the disk. So many write at once, and none waits for anything but the disk.
    async fn write_elsewhere(&mut self) -> io::Result<()> {
        let (spool, buffer, at) = (Arc::clone(&self.spool), std::mem::take(&mut self.buffer), self.written);
        let mut file = self.file.take();
        let turn = self.spool.writers.acquire().await.map_err(io::Error::other)?;
        let task = tokio::task::spawn_blocking(move || {
            let done = open(&mut file, &spool)?.write_all_at(&buffer, at);
            done.map(|()| (file, buffer))
        });
        let (file, buffer) = task.await.map_err(io::Error::other)??;
        drop(turn);
        (self.file, self.buffer) = (file, buffer);
        self.wrote();
        Ok(())
    }

    fn wrote(&mut self) {
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        self.buffer.shrink_to(WRITE_AT);
        self.charge.give_back();
    }
}

fn open<'f>(file: &'f mut Option<Arc<File>>, spool: &Spool) -> io::Result<&'f File> {
    let open = match file.take() {
        Some(open) => open,
        None => Arc::new(spool.file()?),
    };
    Ok(file.insert(open))
}

impl Write for Sink {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.has_room(piece.len()) {
            self.buffer.extend_from_slice(piece);
            return Ok(piece.len());
        }
        if piece.len() >= WRITE_AT {
            // as it is, behind what came before
            self.write_here()?;
            let part = piece.get(..PIECE).unwrap_or(piece);
            open(&mut self.file, &self.spool)?.write_all_at(part, self.written)?;
            self.written += part.len() as u64;
            return Ok(part.len());
        }
        if self.buffer.len() >= WRITE_AT {
            self.write_here()?;
        }
        let rest = self.fill(piece).len();
        Ok(piece.len() - rest)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn noise(len: usize) -> Vec<u8> {
        (0..len).map(|i| u8::try_from(i * i % 251).unwrap()).collect()
    }

    /// The same pieces by both ways.
    fn sunk(spool: &Arc<Spool>, pieces: &[&[u8]]) -> [Body; 2] {
        let expected = pieces.iter().map(|piece| piece.len() as u64).sum();
        let mut here = Sink::new(spool, None);
        for piece in pieces {
            here.write_all(piece).unwrap();
        }
        assert_eq!(here.len(), expected);
        let here = here.close().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let elsewhere = runtime.block_on(async {
            let mut sink = Sink::new(spool, Some(expected));
            for piece in pieces {
                sink.take(piece).await.unwrap();
            }
            assert_eq!(sink.len(), expected);
            sink.finish().await.unwrap()
        });
        [here, elsewhere]
    }

    #[test]
    fn a_body_over_the_limit_goes_to_a_file_and_one_at_it_does_not() {
        let home = tempfile::tempdir().unwrap();
        let spool = Spool::open(home.path()).unwrap();
        for (len, in_memory) in [(0, true), (1, true), (SPOOL_ABOVE, true), (SPOOL_ABOVE + 1, false)] {
            let all = noise(len);
            for piece in [1_000_000_000, 70_000, 997] {
                let pieces: Vec<&[u8]> = all.chunks(piece).collect();
                for body in sunk(&spool, &pieces) {
                    assert_eq!(body.in_memory().is_some(), in_memory, "{len} in {piece}");
                    assert_eq!((body.len(), body.is_empty()), (len as u64, len == 0));
                    assert!(body.bytes().unwrap() == all);
                    assert!(*body.start(10).unwrap() == all[..len.min(10)]);
                }
            }
        }
        assert_eq!(spool.in_memory(), 0, "all room came back");
    }

    #[test]
    fn bodies_in_memory_are_bounded_together_and_none_waits() {
        let home = tempfile::tempdir().unwrap();
        let spool = Spool::open(home.path()).unwrap();
        let all = noise(SPOOL_ABOVE);
        let pieces: Vec<&[u8]> = all.chunks(50_000).collect();
        let bodies: Vec<Body> = (0..BODIES_IN_MEMORY / SPOOL_ABOVE)
            .flat_map(|_| sunk(&spool, &pieces))
            .collect();
        assert!(spool.in_memory() <= BODIES_IN_MEMORY);
        let in_memory = bodies.iter().filter(|body| body.in_memory().is_some()).count();
        assert!(
            in_memory > 20 && in_memory <= bodies.len() / 2,
            "{in_memory} of {}",
            bodies.len()
        );
        let small = sunk(&spool, &[b"a page"]);
        for body in small.iter().chain(&bodies) {
            let whole = if body.len() == 6 { b"a page" } else { &all[..] };
            assert!(body.bytes().unwrap() == whole);
        }
        let clone = bodies.first().unwrap().clone();
        drop((bodies, small));
        assert!(spool.in_memory() >= SPOOL_ABOVE, "the clone still holds its bytes");
        drop(clone);
        assert_eq!(spool.in_memory(), 0);
        assert!(sunk(&spool, &pieces)[0].in_memory().is_some(), "room is there again");
    }

    #[test]
    fn many_readers_read_one_file_at_once() {
        let home = tempfile::tempdir().unwrap();
        let spool = Spool::with_room(home.path(), 0).unwrap();
        let all = noise(300_000);
        let [body, _] = sunk(&spool, &[&all]);
        assert!(body.in_memory().is_none(), "no room in memory at all");
        let (mut first, mut second) = (body.reader(), body.reader());
        let mut half = vec![0; 150_000];
        first.read_exact(&mut half).unwrap();
        assert!(half == all[..150_000]);
        second.read_exact(&mut half).unwrap();
        assert!(half == all[..150_000]);
        first.read_exact(&mut half).unwrap();
        assert!(half == all[150_000..]);
        assert_eq!(first.read(&mut half).unwrap(), 0);
        let mut joined = Vec::new();
        let stop = body.pieces(|piece| {
            joined.extend_from_slice(piece);
            if joined.len() > PIECE { Err("enough") } else { Ok(()) }
        });
        assert_eq!((stop.unwrap(), joined.len()), (Err("enough"), 2 * PIECE));
    }

    #[test]
    fn a_file_that_cannot_be_made_is_an_error_of_both_ways() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("spool");
        let spool = Spool::open(&folder).unwrap();
        std::fs::remove_dir(&folder).unwrap();
        let large = vec![0; SPOOL_ABOVE + 1];
        assert!(Sink::new(&spool, None).write_all(&large).is_err());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let taken = runtime.block_on(async { Sink::new(&spool, None).take(&large).await });
        assert!(taken.is_err());
    }

    proptest! {
        #[test]
        fn any_pieces_come_back_joined(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..90_000), 0..6),
            room in 0..400_000_usize,
        ) {
            let home = tempfile::tempdir().unwrap();
            let spool = Spool::with_room(home.path(), room).unwrap();
            let slices: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            for body in sunk(&spool, &slices) {
                prop_assert!(spool.in_memory() <= room);
                prop_assert_eq!(&body.bytes().unwrap()[..], &pieces.concat()[..]);
            }
        }
    }
}
