//! gzip undone by its content, in pieces: a `.xml.gz` may come as it is, unpacked on the way, or packed twice.

use std::io::Write;

use flate2::write::MultiGzDecoder;

/// How a gzip stream of DEFLATE begins.
const SIGNATURE: [u8; 3] = [0x1f, 0x8b, 8];
/// Layers that are undone, one on top of the other.
const MAX_LAYERS: usize = 2;

/// Takes what comes, gives what is in it, at most so many bytes.
#[derive(Debug)]
pub(super) struct Unpack {
    layers: [Layer; MAX_LAYERS],
}

impl Unpack {
    pub(super) fn new(cap: u64) -> Self {
        Self {
            layers: [Layer::new(cap), Layer::new(cap)],
        }
    }

    /// `out` says whether it wants more.
    pub(super) fn feed(&mut self, piece: &[u8], out: &mut dyn FnMut(&[u8]) -> bool) {
        let [outer, inner] = &mut self.layers;
        outer.feed(piece, &mut |bytes| inner.feed(bytes, out));
    }

    pub(super) fn finish(&mut self, out: &mut dyn FnMut(&[u8]) -> bool) {
        let [outer, inner] = &mut self.layers;
        outer.finish(&mut |bytes| inner.feed(bytes, out));
        inner.finish(out);
    }

    /// The cap was reached.
    pub(super) fn is_full(&self) -> bool {
        self.layers.iter().any(|layer| layer.full)
    }

    /// A stream broke or ended early.
    pub(super) fn is_broken(&self) -> bool {
        self.layers.iter().any(|layer| matches!(layer.state, State::Broken))
    }
}

#[derive(Debug)]
struct Layer {
    state: State,
    /// Bytes it may still give.
    left: u64,
    /// There were more than it may give.
    full: bool,
}

#[derive(Debug)]
enum State {
    /// Too few bytes so far to tell.
    Look(Vec<u8>),
    Plain,
    Packed(Box<MultiGzDecoder<Vec<u8>>>),
    Broken,
}

impl Layer {
    fn new(cap: u64) -> Self {
        Self {
            state: State::Look(Vec::new()),
            left: cap,
            full: false,
        }
    }

    fn feed(&mut self, piece: &[u8], out: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        match &mut self.state {
            State::Look(head) => {
                head.extend_from_slice(piece);
                if head.len() < SIGNATURE.len() && SIGNATURE.starts_with(head) {
                    return true;
                }
                let head = std::mem::take(head);
                self.state = if head.starts_with(&SIGNATURE) {
                    State::Packed(Box::new(MultiGzDecoder::new(Vec::new())))
                } else {
                    State::Plain
                };
                self.feed(&head, out)
            }
            State::Plain => give(piece, &mut self.left, &mut self.full, out),
            State::Packed(decoder) => {
                let mut rest = piece;
                while !rest.is_empty() {
                    // one step at a time, so that a bomb's output never piles up
                    let step = decoder.write(rest);
                    let made = std::mem::take(decoder.get_mut());
                    if !give(&made, &mut self.left, &mut self.full, out) {
                        return false;
                    }
                    match step {
                        Ok(used) if used > 0 || !made.is_empty() => rest = rest.get(used..).unwrap_or_default(),
                        // what follows the last member is padding or garbage; what came before it counts
                        Ok(_) => {
                            self.state = State::Broken;
                            return true;
                        }
                        Err(_) => {
                            // it still holds what it made before the fault, and gives that before it fails again
                            let _ = decoder.write(rest);
                            let made = std::mem::take(decoder.get_mut());
                            let wanted = give(&made, &mut self.left, &mut self.full, out);
                            // a fault behind all that is wanted is none
                            if wanted {
                                self.state = State::Broken;
                            }
                            return wanted;
                        }
                    }
                }
                true
            }
            State::Broken => true,
        }
    }

    fn finish(&mut self, out: &mut dyn FnMut(&[u8]) -> bool) {
        match &mut self.state {
            State::Look(head) => {
                let head = std::mem::take(head);
                give(&head, &mut self.left, &mut self.full, out);
            }
            State::Packed(decoder) => {
                let whole = decoder.try_finish();
                let made = std::mem::take(decoder.get_mut());
                let wanted = give(&made, &mut self.left, &mut self.full, out);
                if whole.is_err() && wanted {
                    self.state = State::Broken;
                }
            }
            State::Plain | State::Broken => {}
        }
    }
}

/// Hands on what the cap allows; `false`: no more is wanted.
fn give(bytes: &[u8], left: &mut u64, full: &mut bool, out: &mut dyn FnMut(&[u8]) -> bool) -> bool {
    if bytes.is_empty() {
        return !*full;
    }
    let len = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
    *left -= len as u64;
    *full |= len < bytes.len();
    let wanted = len == 0 || out(bytes.get(..len).unwrap_or_default());
    wanted && !*full
}
