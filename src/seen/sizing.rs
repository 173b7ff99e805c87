//! How large a filter must be, and what rate follows from how full it is. Pure arithmetic.
//!
//! The textbook ([`classic`]): m = −n·ln p / (ln 2)² bits and k = m/n·ln 2 hashes. It assumes that a key's bits fall anywhere.
//!
//! Our layout keeps all bits of a key in one cache line of 8 words, one or two bits a word, so that a key costs one
//! memory access instead of k. Lines fill unevenly, and the fuller ones answer wrongly more often, so the textbook
//! would promise a rate that is not met (by 5 to 70 %). Here the size comes from the exact model instead: the number of keys
//! in a line is binomial (n keys thrown into so many lines; the Poisson sum for large n), the words of a line are
//! independent, and the rate is the mean over lines. [`lines_for`] takes the smallest size whose rate meets the target.

/// Bits in a line: one cache line of 64 bytes.
pub const LINE_BITS: u64 = 512;
/// Bytes in a line.
pub const LINE_BYTES: u64 = LINE_BITS / 8;
/// Most lines a filter may have (256 GiB). Beyond it the bits that choose the line would reach into those that choose the
/// second pattern.
pub const MAX_LINES: u64 = 1 << 32;
/// Lowest false-positive rate a user may ask for. Below it a Bloom filter is the wrong structure (52 bits a key and more).
pub const MIN_FP: f64 = 1e-6;
/// Highest false-positive rate a user may ask for.
pub const MAX_FP: f64 = 0.5;
/// A filter made for at most this many keys a line sets two bits in each word instead of one: below it 16 bits a key give
/// the lower rate (the curves cross at 21.3 bits a key, a rate of about 1.8e-4).
pub const DENSE_KEYS_PER_LINE: u64 = 24;

/// Words of a line.
const WORDS: i32 = 8;
/// Chance that one random bit of a word misses a given bit.
const MISS: f64 = 63.0 / 64.0;
/// Mean keys a line above which every answer is "seen" for all practical ends (rate above 0.9998); the sum would underflow there.
const MAX_LOAD: f64 = 700.0;
/// Terms smaller than this add nothing to a rate of 1e-12.
const NEGLIGIBLE: f64 = 1e-20;

/// Bits and hashes by the textbook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Classic {
    /// m, rounded up.
    pub bits: u64,
    /// k, rounded to the nearest, at least 1.
    pub hashes: u32,
}

/// The textbook's filter for `items` keys at rate `fp`: m = −n·ln p / (ln 2)², k = m/n·ln 2.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "both are small positive numbers; a cast saturates"
)]
pub fn classic(items: u64, fp: f64) -> Classic {
    let ln2 = std::f64::consts::LN_2;
    let bits = (-float(items) * fp.ln() / (ln2 * ln2)).ceil();
    let hashes = (bits / float(items.max(1)) * ln2).round();
    Classic {
        bits: bits as u64,
        hashes: (hashes as u32).max(1),
    }
}

/// Bits set per key in our layout: 8 (one a word), or 16 (two a word) where a filter has few keys a line.
#[must_use]
pub fn hashes(capacity: u64, lines: u64) -> u32 {
    if capacity <= lines.saturating_mul(DENSE_KEYS_PER_LINE) {
        16
    } else {
        8
    }
}

/// The smallest number of lines whose rate with `items` keys is at most `fp`; `None` if that passes [`MAX_LINES`].
#[must_use]
pub fn lines_for(items: u64, fp: f64) -> Option<u64> {
    let meets = |lines| rate(hashes(items, lines), items, lines) <= fp;
    if !meets(MAX_LINES) {
        return None;
    }
    let (mut low, mut high) = (1, MAX_LINES);
    while low < high {
        let middle = u64::midpoint(low, high);
        if meets(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}

/// The chance that a key that is not among `items` is called seen by a filter of `lines` lines that sets `hashes` bits a key.
#[must_use]
pub fn rate(hashes: u32, items: u64, lines: u64) -> f64 {
    let (items, lines) = (float(items), float(lines.max(1)));
    if items / lines > MAX_LOAD {
        return 1.0;
    }
    if lines < 2.0 {
        return line_rate(hashes, items);
    }
    // binomial: the share of lines that hold exactly j keys, from j to j + 1 by a factor
    let mut share = (items * (-1.0 / lines).ln_1p()).exp();
    let mut sum = 0.0;
    let mut j = 0.0;
    while j <= items && (share > NEGLIGIBLE || j < items / lines) {
        sum += share * line_rate(hashes, j);
        share *= (items - j) / (j + 1.0) / (lines - 1.0);
        j += 1.0;
    }
    sum
}

/// The rate that follows from the share of bits set: the fill gives the number of keys, the keys give the rate.
#[must_use]
pub fn rate_at_fill(hashes: u32, fill: f64, lines: u64) -> f64 {
    rate(hashes, keys_at_fill(hashes, fill, lines), lines)
}

/// The number of keys that sets so large a share of the bits.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of keys, never negative; a full filter saturates"
)]
pub fn keys_at_fill(hashes: u32, fill: f64, lines: u64) -> u64 {
    let hit = if hashes == 16 { 1.0 - MISS * MISS } else { 1.0 - MISS };
    let keys = (-fill).ln_1p() / (-hit / float(lines.max(1))).ln_1p();
    keys.round() as u64
}

/// The chance that a key meets only set bits in a line that holds `keys` keys.
fn line_rate(hashes: u32, keys: f64) -> f64 {
    let clear = MISS.powf(keys);
    let word = if hashes == 16 {
        // two draws a key; the two bits asked are the same one with chance 1/64
        let one_clear = clear * clear;
        let both_clear = (62.0_f64 / 64.0).powf(2.0 * keys);
        (1.0 - one_clear) / 64.0 + MISS * (1.0 - 2.0 * one_clear + both_clear)
    } else {
        1.0 - clear
    };
    word.max(0.0).powi(WORDS)
}

/// A count as a number to reckon with.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "exact up to 2^53 keys or bits, and estimates need no more"
)]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bits_per_key(items: u64, fp: f64) -> f64 {
        float(lines_for(items, fp).unwrap() * LINE_BITS) / float(items)
    }

    #[test]
    fn the_textbook_is_met() {
        assert_eq!(
            classic(1_000_000, 0.01),
            Classic {
                bits: 9_585_059,
                hashes: 7
            }
        );
        assert_eq!(
            classic(1_000_000, 0.001),
            Classic {
                bits: 14_377_588,
                hashes: 10
            }
        );
        assert_eq!(classic(1_000_000, 0.5).hashes, 1);
        assert_eq!(classic(0, 0.01), Classic { bits: 0, hashes: 1 });
    }

    #[test]
    fn one_line_a_key_costs_what_was_measured() {
        for (fp, bits) in [(0.01, 10.10), (0.001, 15.72), (1e-4, 22.9), (1e-5, 30.0), (1e-6, 39.0)] {
            let got = bits_per_key(1_000_000, fp);
            assert!((got - bits).abs() < 0.05, "{fp}: {got}");
        }
    }

    #[test]
    fn two_bits_a_word_are_taken_where_they_are_cheaper() {
        for (fp, expected) in [(0.5, 8), (0.001, 8), (2e-4, 8), (1e-4, 16), (1e-6, 16)] {
            let lines = lines_for(1_000_000, fp).unwrap();
            assert_eq!(hashes(1_000_000, lines), expected, "{fp}");
            let other = 24 - expected;
            assert!(
                rate(other, 1_000_000, lines) > fp,
                "{fp}: the other pattern would do as well"
            );
        }
    }

    #[test]
    fn the_fill_gives_the_rate_back() {
        for fp in [0.3, 0.01, 0.001, 1e-4, 1e-6] {
            let items = 1_000_000;
            let lines = lines_for(items, fp).unwrap();
            let hashes = hashes(items, lines);
            let hit = if hashes == 16 { 1.0 - MISS * MISS } else { 1.0 - MISS };
            let fill = 1.0 - (1.0 - hit / float(lines)).powf(float(items));
            let got = rate_at_fill(hashes, fill, lines);
            assert!((got / fp - 1.0).abs() < 0.002, "{fp}: {got}");
        }
        assert!((rate_at_fill(8, 1.0, 10) - 1.0).abs() < 1e-3);
        assert!(rate_at_fill(8, 0.0, 10) < 1e-12);
    }

    #[test]
    fn sizes_beyond_the_bound_are_refused() {
        assert_eq!(lines_for(1_000_000_000_000, 0.001), None);
        assert_eq!(lines_for(u64::MAX, 0.5), None);
        assert!(lines_for(100_000_000_000, 0.001).is_some());
    }

    proptest! {
        #[test]
        fn the_size_is_the_smallest_that_meets_the_target(items in 1_u64..2_000_000_000, exponent in 0.31_f64..6.0) {
            let fp = 10_f64.powf(-exponent);
            let lines = lines_for(items, fp).unwrap();
            let at = |lines| rate(hashes(items, lines), items, lines);
            prop_assert!(at(lines) <= fp);
            prop_assert!(lines == 1 || at(lines - 1) > fp);
            // beyond the granularity of a whole line the target is also not undercut
            if lines > 10_000 {
                prop_assert!(at(lines) > fp * 0.99, "{} for {fp}", at(lines));
            }
            prop_assert!(lines <= items);
        }
    }
}
