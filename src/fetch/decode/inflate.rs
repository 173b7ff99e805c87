//! gzip (RFC 1952), zlib (RFC 1950) and raw DEFLATE (RFC 1951).
//!
//! A small gzip body of one member, which is nearly every one, is inflated in one step by libdeflate (half the time of a
//! streaming decoder). Everything else, and everything odd, goes the streaming way, which keeps what came before a
//! fault and stops at the cap without having unpacked more.

use std::cell::RefCell;
use std::io;

use flate2::{Decompress, FlushDecompress, Status};
use libdeflater::Decompressor;

use super::stream::{Input, Out, Source};
use super::{Ending, SCRATCH};

/// How a member of a gzip stream begins: the signature and the only method there is.
const MEMBER: [u8; 3] = [0x1f, 0x8b, 8];
/// CRC-32 and size that close a member, bytes.
const TRAILER: usize = 8;
/// DEFLATE cannot make more than this of one byte, so a larger size in a trailer is a lie.
const MAX_RATIO: usize = 1_032;

thread_local! {
    /// One decoder a thread: it holds tables of 11 KB that are costly to set up per body.
    static WHOLE: RefCell<Decompressor> = RefCell::new(Decompressor::new());
}

/// `None` if the body is no gzip stream. What follows the last member is ignored (padding, stray line ends).
pub(super) fn gzip(source: Source<'_>, out: &mut Out<'_>) -> io::Result<Option<Ending>> {
    if let Source::Slice(body) = source
        && let Some(bytes) = single_member(body, out.cap())
    {
        out.give(bytes)?;
        return Ok(Some(Ending::Whole));
    }
    let mut input = source.open();
    let mut member = member_start(&mut input)?;
    if member == MemberStart::None {
        return Ok(None);
    }
    let mut inflater = Decompress::new(false);
    let mut scratch = vec![0; SCRATCH];
    loop {
        match member {
            MemberStart::None => return Ok(Some(Ending::Whole)),
            MemberStart::Cut => return Ok(Some(Ending::Cut)),
            MemberStart::Whole => {}
        }
        let mut crc = crc32fast::Hasher::new();
        let ending = inflate(&mut inflater, &mut input, &mut scratch, out, |piece| crc.update(piece))?;
        if ending != Ending::Whole {
            return Ok(Some(ending));
        }
        let Some([a, b, c, d, ..]) = input.array::<TRAILER>()? else {
            return Ok(Some(Ending::Cut));
        };
        if u32::from_le_bytes([a, b, c, d]) != crc.finalize() {
            return Ok(Some(Ending::Broken));
        }
        inflater.reset(false);
        member = member_start(&mut input)?;
    }
}

/// `None` if the body does not begin like a zlib stream, or begins so by chance.
pub(super) fn zlib(source: Source<'_>, out: &mut Out<'_>) -> io::Result<Option<Ending>> {
    let mut input = source.open();
    let [cmf, flags, ..] = *input.peek(2)? else {
        return Ok(None);
    };
    let header = u16::from_be_bytes([cmf, flags]);
    if cmf & 0x0f != 8 || cmf >> 4 > 7 || flags & 0x20 != 0 || header % 31 != 0 {
        return Ok(None);
    }
    let mut scratch = vec![0; SCRATCH];
    let ending = inflate(&mut Decompress::new(true), &mut input, &mut scratch, out, |_| {})?;
    Ok((ending != Ending::Broken || out.len() > 0).then_some(ending))
}

/// DEFLATE without a frame. It has no signature: the caller judges whether it was one.
pub(super) fn raw(source: Source<'_>, out: &mut Out<'_>) -> io::Result<Ending> {
    let mut input = source.open();
    let mut scratch = vec![0; SCRATCH];
    let ending = inflate(&mut Decompress::new(false), &mut input, &mut scratch, out, |_| {})?;
    Ok(if ending == Ending::Whole && input.taken() < source.len() / 2 {
        Ending::Early
    } else {
        ending
    })
}

/// Runs one stream to its end, its fault or the cap.
fn inflate(
    inflater: &mut Decompress,
    input: &mut Input<'_>,
    scratch: &mut [u8],
    out: &mut Out<'_>,
    mut seen: impl FnMut(&[u8]),
) -> io::Result<Ending> {
    loop {
        let (in_before, out_before) = (inflater.total_in(), inflater.total_out());
        let step = inflater.decompress(input.peek(1)?, scratch, FlushDecompress::None);
        let eaten = usize::try_from(inflater.total_in() - in_before).unwrap_or(0);
        let made = usize::try_from(inflater.total_out() - out_before).unwrap_or(0);
        input.consume(eaten);
        let piece = scratch.get(..made).unwrap_or_default();
        seen(piece);
        if !out.put(piece)? {
            return Ok(Ending::Full);
        }
        match step {
            Ok(Status::StreamEnd) => return Ok(Ending::Whole),
            Ok(Status::Ok | Status::BufError) if eaten == 0 && made == 0 => return Ok(Ending::Cut),
            Ok(Status::Ok | Status::BufError) => {}
            Err(_) => return Ok(Ending::Broken),
        }
    }
}

/// The whole body in one step, if it is one member that tells its size truly and ends the body. The size is the
/// trailer's, so room is asked for once; a second signature anywhere sends the body the streaming way, because
/// libdeflate reads one member and does not say where it ended.
fn single_member(body: &[u8], cap: u64) -> Option<Vec<u8>> {
    if !body.starts_with(&MEMBER) {
        return None;
    }
    let size = u32::from_le_bytes(*body.last_chunk::<4>()?) as usize;
    if size as u64 > cap || size > body.len().saturating_mul(MAX_RATIO) {
        return None;
    }
    if memchr::memmem::find(body.get(1..)?, &MEMBER).is_some() {
        return None;
    }
    let mut out = vec![0; size];
    let written = WHOLE
        .with_borrow_mut(|decoder| decoder.gzip_decompress(body, &mut out))
        .ok()?;
    (written == size).then_some(out)
}

/// How a member begins.
#[derive(PartialEq, Eq)]
enum MemberStart {
    /// Its header is read, its data comes next.
    Whole,
    /// It is a member, but its header is cut.
    Cut,
    /// This is no member.
    None,
}

/// Reads a member's header (RFC 1952 section 2.3).
fn member_start(input: &mut Input<'_>) -> io::Result<MemberStart> {
    const HEADER_CRC: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    const RESERVED: u8 = 0xe0;

    let start = input.peek(MEMBER.len() + 1)?;
    let flags = match start.strip_prefix(&MEMBER) {
        None if start.len() > 1 && MEMBER.starts_with(start) => return Ok(MemberStart::Cut),
        None => return Ok(MemberStart::None),
        Some([]) => return Ok(MemberStart::Cut),
        Some([flags, ..]) => *flags,
    };
    if flags & RESERVED != 0 {
        return Ok(MemberStart::None);
    }
    let mut whole = input.skip(10)?;
    if whole && flags & EXTRA != 0 {
        whole = match input.array::<2>()? {
            Some(length) => input.skip(usize::from(u16::from_le_bytes(length)))?,
            None => false,
        };
    }
    for text in [NAME, COMMENT] {
        if whole && flags & text != 0 {
            whole = input.skip_behind(0)?;
        }
    }
    if whole && flags & HEADER_CRC != 0 {
        whole = input.skip(2)?;
    }
    Ok(if whole { MemberStart::Whole } else { MemberStart::Cut })
}
