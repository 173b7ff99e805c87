//! Brotli (RFC 7932) and Zstandard (RFC 8878), each within the window that the Web allows.

use std::io;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::stream::{Out, Source};
use super::{Ending, SCRATCH};

/// RFC 9659: a zstd content coding must not ask for more than 8 MiB of window.
const ZSTD_WINDOW_LOG: u32 = 23;

/// Brotli has no signature: the caller judges whether it was one. The large-window extension is refused (16 MiB is
/// the most that RFC 7932 knows).
pub(super) fn brotli(source: Source<'_>, out: &mut Out<'_>) -> io::Result<Ending> {
    let mut input = source.open();
    let mut state = BrotliState::new_strict(
        StandardAlloc::default(),
        StandardAlloc::default(),
        StandardAlloc::default(),
    );
    let mut scratch = vec![0; SCRATCH];
    let mut total = 0;
    loop {
        let chunk = input.peek(1)?;
        let (mut available_in, mut input_at, there) = (chunk.len(), 0, chunk.len());
        let (mut available_out, mut written) = (scratch.len(), 0);
        let result = BrotliDecompressStream(
            &mut available_in,
            &mut input_at,
            chunk,
            &mut available_out,
            &mut written,
            &mut scratch,
            &mut total,
            &mut state,
        );
        input.consume(input_at);
        if !out.put(scratch.get(..written).unwrap_or_default())? {
            return Ok(Ending::Full);
        }
        return Ok(match result {
            BrotliResult::NeedsMoreOutput => continue,
            BrotliResult::NeedsMoreInput if there > 0 => continue,
            BrotliResult::ResultSuccess if input.taken() < source.len() / 2 => Ending::Early,
            BrotliResult::ResultSuccess => Ending::Whole,
            BrotliResult::NeedsMoreInput => Ending::Cut,
            BrotliResult::ResultFailure => Ending::Broken,
        });
    }
}

/// `None` if the body does not begin like a zstd frame. Frames that follow each other are read whole; what follows the
/// last is ignored.
pub(super) fn zstd(source: Source<'_>, out: &mut Out<'_>) -> io::Result<Option<Ending>> {
    let mut input = source.open();
    if !frame_begins(input.peek(4)?) {
        return Ok(None);
    }
    let Ok(mut decoder) = Decoder::new() else {
        return Ok(Some(Ending::Broken));
    };
    if decoder
        .set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG))
        .is_err()
    {
        return Ok(Some(Ending::Broken));
    }
    let mut scratch = vec![0; SCRATCH];
    loop {
        let mut chunk = InBuffer::around(input.peek(1)?);
        let mut piece = OutBuffer::around(scratch.as_mut_slice());
        let step = decoder.run(&mut chunk, &mut piece);
        let (eaten, made) = (chunk.pos(), piece.pos());
        input.consume(eaten);
        if !out.put(scratch.get(..made).unwrap_or_default())? {
            return Ok(Some(Ending::Full));
        }
        match step {
            Err(_) => return Ok(Some(Ending::Broken)),
            Ok(0) if !frame_begins(input.peek(4)?) => return Ok(Some(Ending::Whole)),
            Ok(0) => {}
            Ok(_) if eaten == 0 && made == 0 => return Ok(Some(Ending::Cut)),
            Ok(_) => {}
        }
    }
}

/// A frame's signature, or that of a skippable frame (RFC 8878 sections 3.1.1 and 3.1.2).
fn frame_begins(input: &[u8]) -> bool {
    matches!(
        input,
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]
    )
}
