//! Which pages were met: one bit each.

/// Words by which the bits grow: 8 MiB.
const GROW_WORDS: usize = 1 << 20;

/// A set of pages.
#[derive(Default)]
pub(super) struct Met {
    bits: Vec<u64>,
    /// Pages noted.
    pub(super) len: u64,
}

impl Met {
    /// Notes a page. Tells whether it is new.
    pub(super) fn add(&mut self, page: u64) -> bool {
        let Ok(word) = usize::try_from(page / 64) else {
            return false;
        };
        if word >= self.bits.len() {
            self.bits.resize((word + 1).next_multiple_of(GROW_WORDS), 0);
        }
        let Some(word) = self.bits.get_mut(word) else {
            return false;
        };
        let bit = 1 << (page % 64);
        let new = *word & bit == 0;
        *word |= bit;
        self.len += u64::from(new);
        new
    }

    /// Was a page noted?
    pub(super) fn has(&self, page: u64) -> bool {
        let word = usize::try_from(page / 64).ok().and_then(|word| self.bits.get(word));
        word.is_some_and(|word| word & (1 << (page % 64)) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_set() {
        let mut met = Met::default();
        for page in [0, 63, 64, 1 << 26, (1 << 26) - 1] {
            assert!(!met.has(page));
            assert!(met.add(page) && !met.add(page) && met.has(page), "{page}");
        }
        assert_eq!(met.len, 5);
        assert!(!met.has(1 << 40));
    }
}
