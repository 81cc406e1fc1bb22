//! A million ticks of tank motion, in one number. It changes only when the rules do, and then on purpose.

use tanks::golden::{self, Golden};

#[test]
fn a_million_ticks_give_the_golden_hash() {
    let golden = golden::play(1_000_000);
    // Three tanks each: these shares say that the number is about walls and hulls, not about an empty field.
    assert!(golden.touched > 50_000 && golden.at_walls > 300_000, "{golden:?}");
    assert_eq!(golden, Golden { digest: 0x4b08_cad3_282b_02c1, touched: 92_973, at_walls: 522_288 });
}
