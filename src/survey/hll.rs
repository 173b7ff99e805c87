//! How many different keys were added, in 16 KiB (`HyperLogLog`; Flajolet and others, 2007).
//!
//! The estimate is the improved raw estimator of Ertl (2017, "New cardinality estimation algorithms for `HyperLogLog`
//! sketches", algorithm 6): one formula from nothing to 2^60, without tables and without the jump where others change
//! from one method to the next.

use std::io;

use super::take;
use crate::hash::Fingerprint;

/// Bits of the key that choose a register.
const PRECISION: u32 = 14;
/// Registers, a byte each.
pub const REGISTERS: usize = 1 << PRECISION;
/// Largest value of a register: leading zeros of the other 50 bits, and one.
const MOST: usize = 64 - PRECISION as usize + 1;
/// Standard error as a share: 1.04 / √registers.
pub const STANDARD_ERROR: f64 = 1.04 / 128.0;

/// The registers.
#[derive(Clone)]
pub struct Hll {
    registers: Vec<u8>,
}

impl std::fmt::Debug for Hll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Hll(about {})", self.estimate())
    }
}

impl Default for Hll {
    fn default() -> Self {
        Self {
            registers: vec![0; REGISTERS],
        }
    }
}

impl Hll {
    /// Adds a key. Adding it again changes nothing.
    pub fn add(&mut self, key: Fingerprint) {
        // the halves chosen here are not those of the filter's lines and bits, but any would do: the hash is even
        let place = key.low >> (u64::BITS - PRECISION);
        let rank = (key.low << PRECISION | 1 << (PRECISION - 1)).leading_zeros() + 1;
        let rank = u8::try_from(rank).unwrap_or(u8::MAX);
        if let Some(register) = usize::try_from(place)
            .ok()
            .and_then(|place| self.registers.get_mut(place))
        {
            *register = (*register).max(rank);
        }
    }

    /// About how many different keys were added.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "never negative; a cast saturates"
    )]
    pub fn estimate(&self) -> u64 {
        let mut histogram = [0_u32; MOST + 1];
        for register in &self.registers {
            if let Some(count) = histogram.get_mut(usize::from(*register)) {
                *count += 1;
            }
        }
        let m = f64::from(1_u32 << PRECISION);
        let share = |count: u32| f64::from(count) / m;
        let (lowest, highest) = (histogram.first().copied(), histogram.last().copied());
        let mut z = m * tau(1.0 - share(highest.unwrap_or(0)));
        for count in histogram.get(1..MOST).unwrap_or_default().iter().rev() {
            z = 0.5 * (z + f64::from(*count));
        }
        z += m * sigma(share(lowest.unwrap_or(0)));
        (m * m / (2.0 * std::f64::consts::LN_2 * z)).round() as u64
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.registers);
    }

    pub(super) fn read(rest: &mut &[u8]) -> io::Result<Self> {
        let registers = take(rest, REGISTERS)?.to_vec();
        Ok(Self { registers })
    }
}

/// x + Σ x^(2^k) · 2^(k−1), for registers that are still empty; ∞ at 1.
fn sigma(mut x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z <= before {
            return z;
        }
    }
}

/// (1 − x − Σ (1 − x^(2^−k))² · 2^−k) / 3, for registers that are full.
fn tau(mut x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z >= before {
            return z / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An even spread of keys, each once.
    fn key(n: u64, round: u64) -> Fingerprint {
        let mix = |n: u64| {
            let mut z = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ z >> 31
        };
        Fingerprint {
            high: mix(n),
            low: mix(n ^ round << 50 ^ 0xA5A5_0000_0000_0000),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
    fn error(found: u64, real: u64) -> f64 {
        (found as f64 - real as f64) / real as f64
    }

    #[test]
    fn small_counts_are_nearly_exact() {
        let mut hll = Hll::default();
        assert_eq!(hll.estimate(), 0);
        for n in 1..=1_000 {
            hll.add(key(n, 1));
            hll.add(key(n, 1));
            assert!(hll.estimate().abs_diff(n) <= 1 + n / 50, "{n}: {}", hll.estimate());
        }
    }

    #[test]
    fn the_error_is_what_is_promised_and_leans_to_no_side() {
        for (count, rounds) in [(10_000_u64, 40_u64), (50_000, 20), (200_000, 10)] {
            let (mut sum, mut squares) = (0.0, 0.0);
            for round in 0..rounds {
                let mut hll = Hll::default();
                for n in 0..count {
                    hll.add(key(n, round));
                }
                let error = error(hll.estimate(), count);
                assert!(error.abs() < 4.0 * STANDARD_ERROR, "{count}, round {round}: {error}");
                sum += error;
                squares += error * error;
            }
            #[expect(clippy::cast_precision_loss, reason = "a small count")]
            let rounds = rounds as f64;
            let (mean, rms) = (sum / rounds, (squares / rounds).sqrt());
            assert!(
                mean.abs() < 4.0 * STANDARD_ERROR / rounds.sqrt(),
                "{count}: mean {mean}"
            );
            assert!(rms < 1.6 * STANDARD_ERROR, "{count}: rms {rms}");
        }
    }

    #[test]
    fn millions_are_met_too() {
        // SURVEY_MOST=100000000 in the environment goes on to 10^8
        let most = std::env::var("SURVEY_MOST")
            .ok()
            .and_then(|most| most.parse().ok())
            .unwrap_or(3_000_000);
        let mut hll = Hll::default();
        let mut next = 1_000_000;
        for n in 0..most {
            hll.add(key(n, 77));
            if n + 1 == next || n + 1 == most {
                let error = error(hll.estimate(), n + 1);
                eprintln!("{}: {} ({:+.2} %)", n + 1, hll.estimate(), error * 100.0);
                assert!(error.abs() < 4.0 * STANDARD_ERROR, "{}: {error}", n + 1);
                next *= 10;
            }
        }
    }

    #[test]
    fn the_last_registers_value_is_reached_and_counted() {
        let mut hll = Hll::default();
        for place in 0..REGISTERS as u64 {
            hll.add(Fingerprint {
                high: 0,
                low: place << (64 - PRECISION),
            });
        }
        assert!(hll.registers.iter().all(|register| usize::from(*register) == MOST));
        assert!(hll.estimate() > 1 << 60);
    }
}
