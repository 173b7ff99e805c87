//! One record as one gzip member (RFC 1952): deflated, or stored when its body is packed already.
//!
//! A page that arrived gzipped is worth no second deflate: it would cost 300 µs and gain nothing. Its record goes into
//! *stored* deflate blocks (RFC 1951 section 3.2.4), which costs a copy and a CRC, and every reader takes it.

use std::cell::RefCell;
use std::io::{self, Read, Write};

use libdeflater::{CompressionLvl, Compressor};

/// Records up to this many bytes are deflated in one call by libdeflate, which needs input and output whole in memory;
/// longer ones stream through zlib, so that a large body is not held a second and third time.
pub const WHOLE_LIMIT: usize = 1 << 20;

/// libdeflate's level: 20 % smaller than zlib's first at the same speed; level 3 costs 40 % more time for 3 % of size.
/// (Its `fastest()` is 0, which deflates nothing.)
const LEVEL: i32 = 1;

/// The zlib level for records over [`WHOLE_LIMIT`]: about the size that libdeflate's [`LEVEL`] gives.
const STREAM_LEVEL: u32 = 2;

/// Bytes of a record that are read at a time when it is deflated as it is read.
const WINDOW: usize = 64 * 1024;

/// The longest stored block in bytes: its length field has 16 bits.
const STORED_BLOCK: usize = 65_535;

/// Header of a member: gzip, deflate, no flags, no time, no hint, system unknown.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// Bytes of a member around its deflate data: header and CRC-32 with length.
const FRAME: usize = HEADER.len() + 8;

/// What a thread keeps between records, so that none of it is allocated per record: libdeflate's tables and two
/// buffers, each at most a little over [`WHOLE_LIMIT`].
struct Scratch {
    compressor: Compressor,
    plain: Vec<u8>,
    packed: Vec<u8>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch {
        compressor: Compressor::new(CompressionLvl::new(LEVEL).unwrap_or_default()),
        plain: Vec::new(),
        packed: Vec::new(),
    });
}

/// The parts, one after another, deflated into one gzip member.
#[must_use]
pub fn deflated(parts: &[&[u8]]) -> Vec<u8> {
    if parts.iter().map(|part| part.len()).sum::<usize>() > WHOLE_LIMIT {
        return streamed(parts);
    }
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.plain.clear();
        for part in parts {
            scratch.plain.extend_from_slice(part);
        }
        let bound = scratch.compressor.gzip_compress_bound(scratch.plain.len());
        if scratch.packed.len() < bound {
            scratch.packed.resize(bound, 0);
        }
        match scratch.compressor.gzip_compress(&scratch.plain, &mut scratch.packed) {
            Ok(length) => scratch.packed.get(..length).unwrap_or_default().to_vec(),
            // the bound is a promise of libdeflate; were it broken, the record is still written whole
            Err(_) => stored(parts),
        }
    })
}

/// As [`deflated`], with nothing but zlib's window beside the output.
fn streamed(parts: &[&[u8]]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(STREAM_LEVEL));
    let done = parts
        .iter()
        .try_for_each(|part| encoder.write_all(part))
        .and_then(|()| encoder.finish());
    // writing into memory does not fail; were it to, the record is still written whole
    done.unwrap_or_else(|_| stored(parts))
}

/// A record that is read as it is needed, as one gzip member into `out`: what [`deflated`] and [`stored`] do, with one
/// window of it in memory.
///
/// # Errors
/// If `record` cannot be read or `out` written.
pub fn write<W: Write>(mut record: impl Read, packed: bool, out: W) -> io::Result<W> {
    if packed {
        return write_stored(record, out);
    }
    let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::new(STREAM_LEVEL));
    let mut window = vec![0; WINDOW];
    loop {
        let read = fill(&mut record, &mut window)?;
        if read.is_empty() {
            return encoder.finish();
        }
        encoder.write_all(read)?;
    }
}

fn write_stored<W: Write>(mut record: impl Read, mut out: W) -> io::Result<W> {
    let mut window = vec![0; STORED_BLOCK];
    let mut crc = crc32fast::Hasher::new();
    let mut length = 0_usize;
    out.write_all(&HEADER)?;
    loop {
        let block = fill(&mut record, &mut window)?;
        let last = block.is_empty();
        crc.update(block);
        length = length.wrapping_add(block.len());
        out.write_all(&stored_head(block.len(), last))?;
        out.write_all(block)?;
        if last {
            out.write_all(&crc.finalize().to_le_bytes())?;
            out.write_all(&size_field(length))?;
            return Ok(out);
        }
    }
}

/// Reads until the window is full or nothing is left.
fn fill<'w>(record: &mut impl Read, window: &'w mut [u8]) -> io::Result<&'w [u8]> {
    let mut filled = 0;
    loop {
        let read = match record.read(window.get_mut(filled..).unwrap_or_default()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        filled += read;
        if read == 0 {
            return Ok(window.get(..filled).unwrap_or_default());
        }
    }
}

/// The parts, one after another, as stored blocks of one gzip member.
#[must_use]
pub fn stored(parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let blocks: usize = parts.iter().map(|part| part.len().div_ceil(STORED_BLOCK)).sum();
    let mut member = Vec::with_capacity(FRAME + length + 5 * (blocks + 1));
    let mut crc = crc32fast::Hasher::new();
    member.extend_from_slice(&HEADER);
    for block in parts.iter().flat_map(|part| part.chunks(STORED_BLOCK)) {
        crc.update(block);
        stored_block(&mut member, block, false);
    }
    stored_block(&mut member, &[], true);
    member.extend_from_slice(&crc.finalize().to_le_bytes());
    member.extend_from_slice(&size_field(length));
    member
}

fn stored_block(member: &mut Vec<u8>, block: &[u8], last: bool) {
    member.extend_from_slice(&stored_head(block.len(), last));
    member.extend_from_slice(block);
}

/// What stands before the bytes of a stored block.
fn stored_head(length: usize, last: bool) -> [u8; 5] {
    #[expect(clippy::cast_possible_truncation, reason = "a block has at most STORED_BLOCK bytes")]
    let [[a, b], [c, d]] = [(length as u16).to_le_bytes(), (!(length as u16)).to_le_bytes()];
    [u8::from(last), a, b, c, d]
}

/// The last field of a member.
fn size_field(length: usize) -> [u8; 4] {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "ISIZE is the length modulo 2^32 (RFC 1952 section 2.3.1)"
    )]
    (length as u32).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use proptest::prelude::*;

    use super::*;

    /// What a reader of one member gets, and how many bytes of the input the member has.
    fn unpack(bytes: &[u8]) -> (Vec<u8>, usize) {
        let mut rest = bytes;
        let mut plain = Vec::new();
        flate2::bufread::GzDecoder::new(&mut rest)
            .read_to_end(&mut plain)
            .unwrap();
        (plain, bytes.len() - rest.len())
    }

    #[test]
    fn a_record_at_and_over_each_limit_comes_back_whole() {
        for length in [
            0,
            1,
            STORED_BLOCK - 1,
            STORED_BLOCK,
            STORED_BLOCK + 1,
            WHOLE_LIMIT,
            WHOLE_LIMIT + 1,
        ] {
            let body: Vec<u8> = (0..length).map(|i| u8::try_from(i * i % 251).unwrap()).collect();
            let written = |packed| write(body.as_slice(), packed, Vec::new()).unwrap();
            assert!(written(true) == stored(&[&body]), "{length}");
            for member in [deflated(&[&body]), stored(&[&body]), written(false)] {
                assert_eq!(unpack(&member), (body.clone(), member.len()), "{length}");
            }
        }
    }

    #[test]
    fn up_to_the_limit_a_record_is_deflated() {
        let body = b"the same line again\n".repeat(1_000);
        assert!(deflated(&[&body]).len() < body.len() / 20);
    }

    #[test]
    fn over_the_limit_a_record_is_still_deflated() {
        let body = b"the same line again\n".repeat(WHOLE_LIMIT / 10);
        assert!(deflated(&[&body]).len() < body.len() / 20);
    }

    #[test]
    fn what_cannot_be_deflated_grows_by_little() {
        let mut state = 1_u64;
        let noise: Vec<u8> = (0..100_000)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                state.to_be_bytes()[0]
            })
            .collect();
        assert!(deflated(&[&noise]).len() < noise.len() + 100);
        assert!(stored(&[&noise]).len() < noise.len() + 100);
    }

    #[test]
    fn a_small_record_after_a_large_one_has_none_of_its_bytes() {
        let large = vec![b'x'; 200_000];
        assert_eq!(unpack(&deflated(&[&large])).0, large);
        assert_eq!(unpack(&deflated(&[b"small"])).0, b"small");
    }

    proptest! {
        #[test]
        fn parts_come_back_joined_and_the_member_ends_where_it_says(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..5),
            after in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            for mut member in [deflated(&slices), stored(&slices), streamed(&slices)] {
                let length = member.len();
                member.extend_from_slice(&after);
                prop_assert_eq!(unpack(&member), (parts.concat(), length));
            }
        }
    }
}
