//! How long to wait before another try.
//!
//! Pure: the attempt and the dice are given. Full jitter: everything from nothing to the ceiling is equally
//! likely, so that callers who failed together do not come back together.

use std::time::Duration;

/// The ceiling of the first wait; each one after it is twice as high.
const FIRST: Duration = Duration::from_millis(500);
/// No ceiling is higher.
pub const CAP: Duration = Duration::from_secs(30);

/// The wait after `failures` failures in a row (from 1 on), for `dice` in 0..1.
#[must_use]
pub fn delay(failures: u32, dice: f64) -> Duration {
    ceiling(failures).mul_f64(dice.clamp(0.0, 1.0))
}

/// The longest that [`delay`] can be.
#[must_use]
pub fn ceiling(failures: u32) -> Duration {
    // Past a handful of doublings the cap holds, so the shift can't overflow.
    FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(CAP)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn doubles_up_to_the_cap() {
        let ceilings = [1, 2, 3, 4, 5, 6, 7, 8].map(|failures| ceiling(failures).as_millis());
        assert_eq!(ceilings, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        assert_eq!(ceiling(0), FIRST);
        assert_eq!(ceiling(u32::MAX), CAP);
    }

    proptest! {
        #[test]
        fn the_dice_choose_any_wait_up_to_the_ceiling(failures: u32, dice in 0.0..1.0) {
            let wait = delay(failures, dice).as_secs_f64();
            prop_assert!((wait - ceiling(failures).as_secs_f64() * dice).abs() < 1e-6);
        }
    }
}
