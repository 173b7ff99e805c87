//! A count-min sketch: about how often each of any number of keys was counted, in fixed memory, never too few.

use serde::{Deserialize, Serialize};

/// Counters in a row.
pub(super) const WIDTH: usize = 256;
/// Rows. A count is too high by more than e/[`WIDTH`] of all counts with a chance of e^-4.
pub(super) const ROWS: usize = 4;

/// The counters; empty until something is counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sketch {
    cells: Vec<u32>,
}

impl Sketch {
    /// Counts a key (a hash) once and tells how often it has been counted now, at least.
    pub(super) fn add(&mut self, key: u64) -> u32 {
        if self.cells.len() != WIDTH * ROWS {
            self.cells = vec![0; WIDTH * ROWS];
        }
        let now = self.count(key).saturating_add(1);
        for place in places(key) {
            if let Some(cell) = self.cells.get_mut(place) {
                // only the least are raised: the others were raised by other keys
                *cell = (*cell).max(now);
            }
        }
        now
    }

    /// Was nothing counted yet?
    pub(super) fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// How often a key was counted; perhaps more, never less.
    pub(super) fn count(&self, key: u64) -> u32 {
        let cells = places(key).filter_map(|place| self.cells.get(place));
        cells.min().copied().unwrap_or(0)
    }
}

fn places(key: u64) -> impl Iterator<Item = usize> {
    (0..ROWS).map(move |row| {
        let bits = (key >> (16 * row)) & 0xffff;
        row * WIDTH + usize::try_from(bits).unwrap_or(0) % WIDTH
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn no_count_is_too_low_and_few_are_too_high(keys in prop::collection::vec(0..64_u8, 0..3_000)) {
            let mut sketch = Sketch::default();
            let mut model: HashMap<u64, u32> = HashMap::new();
            let hash = |key: u8| super::super::shape::hash(&[key]);
            for key in &keys {
                let model = model.entry(hash(*key)).or_default();
                *model += 1;
                prop_assert!(sketch.add(hash(*key)) >= *model);
            }
            let wrong = model.iter().filter(|(key, count)| sketch.count(**key) > **count).count();
            prop_assert!(wrong <= 3, "{wrong} of {}", model.len());
            prop_assert!(sketch.cells.len() <= WIDTH * ROWS);
        }
    }
}
