//! Brotli (RFC 7932) and Zstandard (RFC 8878), each within the window that the Web allows.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::{Ending, Stream, make_room};

/// Brotli's output buffer, bytes.
const SCRATCH: usize = 64 * 1024;
/// RFC 9659: a zstd content coding must not ask for more than 8 MiB of window.
const ZSTD_WINDOW_LOG: u32 = 23;

/// Brotli has no signature: the caller judges whether it was one. The large-window extension is refused (16 MiB is
/// the most that RFC 7932 knows).
pub(super) fn brotli(body: &[u8], cap: usize) -> Stream {
    let mut state = BrotliState::new_strict(
        StandardAlloc::default(),
        StandardAlloc::default(),
        StandardAlloc::default(),
    );
    let mut scratch = vec![0; SCRATCH];
    let mut bytes: Vec<u8> = Vec::new();
    let (mut available_in, mut input_at, mut total) = (body.len(), 0, 0);
    loop {
        let (mut available_out, mut written) = (scratch.len(), 0);
        let result = BrotliDecompressStream(
            &mut available_in,
            &mut input_at,
            body,
            &mut available_out,
            &mut written,
            &mut scratch,
            &mut total,
            &mut state,
        );
        bytes.extend_from_slice(scratch.get(..written).unwrap_or_default());
        let ending = match result {
            _ if bytes.len() > cap => Ending::Full,
            BrotliResult::NeedsMoreOutput => continue,
            BrotliResult::ResultSuccess if input_at < body.len() / 2 => Ending::Early,
            BrotliResult::ResultSuccess => Ending::Whole,
            BrotliResult::NeedsMoreInput => Ending::Cut,
            BrotliResult::ResultFailure => Ending::Broken,
        };
        return Stream { bytes, ending };
    }
}

/// `None` if the body does not begin like a zstd frame. Frames that follow each other are read whole; what follows the
/// last is ignored.
pub(super) fn zstd(body: &[u8], cap: usize) -> Option<Stream> {
    if !frame_begins(body) {
        return None;
    }
    let mut bytes = Vec::new();
    let Ok(mut decoder) = Decoder::new() else {
        return Some(Stream {
            bytes,
            ending: Ending::Broken,
        });
    };
    if decoder
        .set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG))
        .is_err()
    {
        return Some(Stream {
            bytes,
            ending: Ending::Broken,
        });
    }
    let mut input = InBuffer::around(body);
    let ending = loop {
        if bytes.len() == bytes.capacity() {
            make_room(&mut bytes, cap);
        }
        let (in_before, out_before) = (input.pos(), bytes.len());
        let mut output = OutBuffer::around_pos(&mut bytes, out_before);
        let step = decoder.run(&mut input, &mut output);
        let rest = body.get(input.pos()..).unwrap_or_default();
        match step {
            _ if bytes.len() > cap => break Ending::Full,
            Err(_) => break Ending::Broken,
            Ok(0) if !frame_begins(rest) => break Ending::Whole,
            Ok(0) => {}
            Ok(_) if input.pos() == in_before && bytes.len() == out_before => break Ending::Cut,
            Ok(_) => {}
        }
    };
    Some(Stream { bytes, ending })
}

/// A frame's signature, or that of a skippable frame (RFC 8878 sections 3.1.1 and 3.1.2).
fn frame_begins(input: &[u8]) -> bool {
    matches!(
        input,
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]
    )
}
