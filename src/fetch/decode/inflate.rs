//! gzip (RFC 1952), zlib (RFC 1950) and raw DEFLATE (RFC 1951).
//!
//! A gzip body of one member, which is nearly every one, is inflated in one step by libdeflate (half the time of a
//! streaming decoder). Everything else, and everything odd, goes the streaming way, which keeps what came before a
//! fault and stops at the cap without having unpacked more.

use std::cell::RefCell;

use flate2::{Decompress, FlushDecompress, Status};
use libdeflater::Decompressor;

use super::{Ending, Stream, make_room};

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
pub(super) fn gzip(body: &[u8], cap: usize) -> Option<Stream> {
    let first = member_start(body)?;
    if let Some(bytes) = single_member(body, cap) {
        return Some(Stream {
            bytes,
            ending: Ending::Whole,
        });
    }
    let mut inflater = Decompress::new(false);
    let mut bytes = Vec::new();
    let mut rest = body;
    let mut start = Some(first);
    while let Some(header) = start {
        let MemberStart::At(data) = header else {
            return Some(Stream {
                bytes,
                ending: Ending::Cut,
            });
        };
        let before = bytes.len();
        let (ending, used) = inflate(&mut inflater, rest.get(data..).unwrap_or_default(), &mut bytes, cap);
        if ending != Ending::Whole {
            return Some(Stream { bytes, ending });
        }
        let Some((trailer, after)) = rest.get(data + used..).and_then(|r| r.split_at_checked(TRAILER)) else {
            return Some(Stream {
                bytes,
                ending: Ending::Cut,
            });
        };
        if trailer.get(..4) != Some(&crc32fast::hash(bytes.get(before..).unwrap_or_default()).to_le_bytes()) {
            return Some(Stream {
                bytes,
                ending: Ending::Broken,
            });
        }
        inflater.reset(false);
        rest = after;
        start = member_start(rest);
    }
    Some(Stream {
        bytes,
        ending: Ending::Whole,
    })
}

/// `None` if the body does not begin like a zlib stream, or begins so by chance.
pub(super) fn zlib(body: &[u8], cap: usize) -> Option<Stream> {
    let [cmf, flags, ..] = body else { return None };
    let header = u16::from_be_bytes([*cmf, *flags]);
    if cmf & 0x0f != 8 || cmf >> 4 > 7 || flags & 0x20 != 0 || header % 31 != 0 {
        return None;
    }
    let mut bytes = Vec::new();
    let (ending, _) = inflate(&mut Decompress::new(true), body, &mut bytes, cap);
    (ending != Ending::Broken || !bytes.is_empty()).then_some(Stream { bytes, ending })
}

/// DEFLATE without a frame. It has no signature: the caller judges whether it was one.
pub(super) fn raw(body: &[u8], cap: usize) -> Stream {
    let mut bytes = Vec::new();
    let (ending, used) = inflate(&mut Decompress::new(false), body, &mut bytes, cap);
    let ending = if ending == Ending::Whole && used < body.len() / 2 {
        Ending::Early
    } else {
        ending
    };
    Stream { bytes, ending }
}

/// Runs one stream to its end, its fault or the cap. Gives the ending and the bytes of input used.
fn inflate(inflater: &mut Decompress, input: &[u8], out: &mut Vec<u8>, cap: usize) -> (Ending, usize) {
    let mut used = 0;
    loop {
        if out.len() > cap {
            return (Ending::Full, used);
        }
        if out.len() == out.capacity() {
            make_room(out, cap);
        }
        let (in_before, out_before) = (inflater.total_in(), out.len());
        let step = inflater.decompress_vec(input.get(used..).unwrap_or_default(), out, FlushDecompress::None);
        let eaten = usize::try_from(inflater.total_in() - in_before).unwrap_or(0);
        used += eaten;
        match step {
            Ok(Status::StreamEnd) if out.len() > cap => return (Ending::Full, used),
            Ok(Status::StreamEnd) => return (Ending::Whole, used),
            Ok(Status::Ok | Status::BufError) if eaten == 0 && out.len() == out_before => return (Ending::Cut, used),
            Ok(Status::Ok | Status::BufError) => {}
            Err(_) => return (Ending::Broken, used),
        }
    }
}

/// The whole body in one step, if it is one member that tells its size truly and ends the body. The size is the
/// trailer's, so room is asked for once; a second signature anywhere sends the body the streaming way, because
/// libdeflate reads one member and does not say where it ended.
fn single_member(body: &[u8], cap: usize) -> Option<Vec<u8>> {
    let size = u32::from_le_bytes(*body.last_chunk::<4>()?) as usize;
    if size > cap || size > body.len().saturating_mul(MAX_RATIO) {
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

/// Where a member's data begins.
enum MemberStart {
    At(usize),
    /// It is a member, but its header is cut.
    Cut,
}

/// Reads a member's header (RFC 1952 section 2.3). `None` if this is no member.
fn member_start(input: &[u8]) -> Option<MemberStart> {
    const HEADER_CRC: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    const RESERVED: u8 = 0xe0;

    if !input.starts_with(&MEMBER) {
        return (input.len() > 1 && MEMBER.starts_with(input)).then_some(MemberStart::Cut);
    }
    let Some(flags) = input.get(3).copied() else {
        return Some(MemberStart::Cut);
    };
    if flags & RESERVED != 0 {
        return None;
    }
    let after_header = || -> Option<usize> {
        let mut at = 10;
        if flags & EXTRA != 0 {
            let length = input.get(at..)?.first_chunk::<2>()?;
            at += 2 + usize::from(u16::from_le_bytes(*length));
        }
        for text in [NAME, COMMENT] {
            if flags & text != 0 {
                at += memchr::memchr(0, input.get(at..)?)? + 1;
            }
        }
        if flags & HEADER_CRC != 0 {
            at += 2;
        }
        (at <= input.len()).then_some(at)
    };
    Some(after_header().map_or(MemberStart::Cut, MemberStart::At))
}
