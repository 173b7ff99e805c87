//! The hot loops: test-and-set and test of a batch over the raw words.
//!
//! The same source is compiled three times, for AVX-512, AVX2 and the baseline, and chosen once when a filter is made: a
//! line is then one vector register and a key one shift, test and or. While one key is worked on, the lines of the keys
//! behind it are on their way from memory.

use super::lines::Line;
use crate::hash::Fingerprint;

/// Lines on their way from memory: 64 to 128 is where the memory of the machines we measured is used up.
const AHEAD: usize = 96;

/// What the processor can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// Whatever the target guarantees.
    Baseline,
    /// 256-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512-bit vectors: a line in one register.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// All levels this processor has, best first.
    pub(super) fn available() -> Vec<Self> {
        let mut levels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                levels.push(Self::Avx512);
            }
            if is_x86_feature_detected!("avx2") {
                levels.push(Self::Avx2);
            }
        }
        levels.push(Self::Baseline);
        levels
    }

    /// The best level of this processor.
    pub(super) fn best() -> Self {
        Self::available().first().copied().unwrap_or(Self::Baseline)
    }
}

/// Writes a loop's three compiled forms and the function that picks one.
macro_rules! compiled {
    ($(#[$doc:meta])* $name:ident, $body:ident, ($($arg:ident: $type:ty),*) -> $result:ty) => {
        $(#[$doc])*
        pub(super) fn $name(level: Level, two: bool, $($arg: $type),*) -> $result {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f")]
            fn avx512<const TWO: bool>($($arg: $type),*) -> $result {
                $body::<TWO>($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn avx2<const TWO: bool>($($arg: $type),*) -> $result {
                $body::<TWO>($($arg),*)
            }
            match (level, two) {
                (Level::Baseline, false) => $body::<false>($($arg),*),
                (Level::Baseline, true) => $body::<true>($($arg),*),
                #[cfg(target_arch = "x86_64")]
                #[expect(unsafe_code, reason = "code for a feature that only some processors have")]
                // SAFETY: a `Level` above the baseline comes from `Level::available`, which asked the processor.
                (Level::Avx2, two) => unsafe {
                    if two { avx2::<true>($($arg),*) } else { avx2::<false>($($arg),*) }
                },
                #[cfg(target_arch = "x86_64")]
                #[expect(unsafe_code, reason = "code for a feature that only some processors have")]
                // SAFETY: as above.
                (Level::Avx512, two) => unsafe {
                    if two { avx512::<true>($($arg),*) } else { avx512::<false>($($arg),*) }
                },
            }
        }
    };
}

compiled!(
    /// Sets every key's bits and tells in `new` which keys lacked one. Returns how many bits went from 0 to 1.
    insert, insert_body, (lines: &mut [Line], keys: &[Fingerprint], new: &mut [bool]) -> u64
);

compiled!(
    /// Sets `seen[i]` where all bits of `keys[i]` are set, and leaves the others as they are.
    contains, contains_body, (lines: &[Line], keys: &[Fingerprint], seen: &mut [bool]) -> ()
);

#[expect(
    clippy::inline_always,
    reason = "the body must take on the features of the function it stands in"
)]
#[inline(always)]
#[expect(clippy::indexing_slicing, reason = "place < lines.len()")]
fn insert_body<const TWO: bool>(lines: &mut [Line], keys: &[Fingerprint], new: &mut [bool]) -> u64 {
    for key in keys.iter().take(AHEAD) {
        prefetch(&lines[place(*key, lines.len())]);
    }
    let mut set = [0_u64; 8];
    for (i, (key, new)) in keys.iter().zip(new).enumerate() {
        if let Some(coming) = keys.get(i + AHEAD) {
            prefetch(&lines[place(*coming, lines.len())]);
        }
        let pattern = pattern::<TWO>(*key);
        let at = place(*key, lines.len());
        let line = &mut lines[at];
        let mut lacking = [0; 8];
        for ((lacking, word), pattern) in lacking.iter_mut().zip(line.iter_mut()).zip(pattern) {
            *lacking = pattern & !*word;
            *word |= pattern;
        }
        for (set, lacking) in set.iter_mut().zip(lacking) {
            *set += u64::from(lacking != 0);
            if TWO {
                *set += u64::from(lacking & lacking.wrapping_sub(1) != 0);
            }
        }
        *new = lacking.iter().fold(0, |any, word| any | word) != 0;
    }
    set.iter().sum()
}

#[expect(
    clippy::inline_always,
    reason = "the body must take on the features of the function it stands in"
)]
#[inline(always)]
#[expect(clippy::indexing_slicing, reason = "place < lines.len()")]
fn contains_body<const TWO: bool>(lines: &[Line], keys: &[Fingerprint], seen: &mut [bool]) {
    for key in keys.iter().take(AHEAD) {
        prefetch(&lines[place(*key, lines.len())]);
    }
    for (i, (key, seen)) in keys.iter().zip(seen).enumerate() {
        if let Some(coming) = keys.get(i + AHEAD) {
            prefetch(&lines[place(*coming, lines.len())]);
        }
        let line = &lines[place(*key, lines.len())];
        let lacking = line
            .iter()
            .zip(pattern::<TWO>(*key))
            .fold(0, |any, (word, pattern)| any | (pattern & !word));
        *seen |= lacking == 0;
    }
}

/// Changes one word in the line of each key, with as many lines on their way as may help.
#[expect(clippy::indexing_slicing, reason = "place < lines.len()")]
pub(super) fn bump(lines: &mut [Line], keys: &[Fingerprint]) {
    const FAR: usize = 128;
    for key in keys.iter().take(FAR) {
        prefetch(&lines[place(*key, lines.len())]);
    }
    for (i, key) in keys.iter().enumerate() {
        if let Some(coming) = keys.get(i + FAR) {
            prefetch(&lines[place(*coming, lines.len())]);
        }
        let at = place(*key, lines.len());
        lines[at][0] = lines[at][0].wrapping_add(key.low);
    }
}

/// The key's line: the high bits of `high`, whatever the number of lines.
#[expect(clippy::inline_always, reason = "part of a hot loop")]
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "less than `lines`")]
fn place(key: Fingerprint, lines: usize) -> usize {
    ((u128::from(key.high) * lines as u128) >> 64) as usize
}

/// The key's bits: in word `i` the one that bits `6i..6i+6` of `low` name. The second bit of each word comes from the 16
/// bits of `low` that are left and the lower half of `high`, which has no part in the line (there are at most 2^32).
/// So place, first and second bits never share a bit of the fingerprint.
#[expect(clippy::inline_always, reason = "part of a hot loop")]
#[inline(always)]
fn pattern<const TWO: bool>(key: Fingerprint) -> Line {
    let second = key.low >> 48 | key.high << 16;
    let mut pattern = [0; 8];
    for (i, word) in (0_u32..).zip(&mut pattern) {
        *word = 1 << (key.low >> (6 * i) & 63);
        if TWO {
            *word |= 1 << (second >> (6 * i) & 63);
        }
    }
    pattern
}

/// Starts to fetch a line from memory, into the second cache: more of them can be on their way than into the first, which
/// holds one filling line in 16 buffers or fewer (measured: 1.3 times the inserts a second).
#[inline(always)]
pub(super) fn prefetch(line: &Line) {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "prefetch is declared unsafe")]
    // SAFETY: a prefetch changes nothing that a program can see, and the address is that of a live line.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(line).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn print(high: u64, low: u64) -> Fingerprint {
        Fingerprint { high, low }
    }

    #[test]
    fn the_line_is_in_range_and_spread_evenly() {
        assert_eq!(place(print(0, 0), 10), 0);
        assert_eq!(place(print(u64::MAX, 0), 10), 9);
        assert_eq!(place(print(1 << 63, 0), 10), 5);
    }

    #[test]
    fn the_layout_is_what_the_file_format_says() {
        let low = (0..8).fold(0, |low, i| low | (10 + i) << (6 * i));
        assert_eq!(pattern::<false>(print(0, low)), std::array::from_fn(|i| 1 << (10 + i)));
        let second = (0..8_u64).fold(0, |bits, i| bits | (40 + i) << (6 * i));
        let key = print(second >> 16, low | second << 48);
        assert_eq!(
            pattern::<true>(key),
            std::array::from_fn(|i| 1 << (10 + i) | 1 << (40 + i))
        );
    }

    proptest! {
        #[test]
        fn every_level_gives_the_same_bits_and_answers(
            keys in proptest::collection::vec((any::<u64>(), any::<u64>()), 0..400),
            count in 1_usize..40,
            two: bool,
        ) {
            let keys: Vec<_> = keys.into_iter().map(|(high, low)| print(high, low)).collect();
            let run = |level| {
                let mut lines = vec![[0; 8]; count];
                let mut new = vec![false; keys.len()];
                let set = insert(level, two, &mut lines, &keys, &mut new);
                let mut seen = vec![false; keys.len()];
                contains(level, two, &lines, &keys, &mut seen);
                (lines, new, seen, set)
            };
            let plain = run(Level::Baseline);
            prop_assert!(plain.2.iter().all(|seen| *seen));
            let ones: u32 = plain.0.as_flattened().iter().map(|word| word.count_ones()).sum();
            prop_assert_eq!(plain.3, u64::from(ones));
            for level in Level::available() {
                prop_assert_eq!(&run(level), &plain);
            }
        }
    }
}
