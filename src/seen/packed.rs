//! Fields of a few bits each, one after the other in the words of a filter.

/// Field `index` of fields that are `width` bits wide (1 to 64); 0 beyond the end.
#[inline]
pub(super) fn get(words: &[u64], width: u32, index: usize) -> u64 {
    let (word, offset) = place(width, index);
    let low = words.get(word).copied().unwrap_or(0);
    let value = if offset + width > 64 {
        let high = words.get(word + 1).copied().unwrap_or(0);
        low >> offset | high << (64 - offset)
    } else {
        low >> offset
    };
    value & mask(width)
}

/// Sets field `index`; bits of `value` beyond its width are left out, and so is a field beyond the end.
#[inline]
pub(super) fn set(words: &mut [u64], width: u32, index: usize, value: u64) {
    let (word, offset) = place(width, index);
    let (mask, value) = (mask(width), value & mask(width));
    if let Some(low) = words.get_mut(word) {
        *low = *low & !(mask << offset) | value << offset;
    }
    if offset + width > 64
        && let Some(high) = words.get_mut(word + 1)
    {
        *high = *high & !(mask >> (64 - offset)) | value >> (64 - offset);
    }
}

/// The lowest `width` bits.
#[inline]
pub(super) fn mask(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "less than 64")]
fn place(width: u32, index: usize) -> (usize, u32) {
    let bit = index * width as usize;
    (bit / 64, (bit % 64) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fields_are_kept_apart(width in 1_u32..=64, sets in proptest::collection::vec((0_usize..20, any::<u64>()), 0..60)) {
            let mut words = vec![0; 20];
            let mut model = [0; 20];
            for (index, value) in sets {
                set(&mut words, width, index, value);
                model[index] = value & mask(width);
                for (index, value) in model.iter().enumerate() {
                    prop_assert_eq!(get(&words, width, index), *value);
                }
            }
        }
    }

    #[test]
    fn what_lies_beyond_the_end_is_nothing() {
        let mut words = [u64::MAX];
        set(&mut words, 48, 1, 0);
        assert_eq!(words, [(1 << 48) - 1]);
        assert_eq!(get(&words, 48, 1), 0);
        assert_eq!(get(&words, 64, 3), 0);
        set(&mut words, 64, 3, 7);
    }
}
