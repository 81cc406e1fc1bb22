//! What is saved is loaded, to the bit; what no client could have saved is not.

use super::*;
use proptest::prelude::*;

fn round_trip<T: Exact + PartialEq + core::fmt::Debug>(value: &T) -> usize {
    let mut saver = Saver::default();
    value.save(&mut saver);
    let mut loader = Loader::new(saver.as_bytes());
    assert_eq!(T::load(&mut loader).as_ref(), Ok(value));
    assert_eq!(loader.finish(), Ok(()));
    for cut in 0..saver.as_bytes().len() {
        assert!(T::load(&mut Loader::new(&saver.as_bytes()[..cut])).is_err(), "cut at {cut}: {value:?}");
    }
    saver.as_bytes().len()
}

#[test]
fn small_numbers_are_short() {
    assert_eq!([0u64, 127, 128, 16_383, 16_384].map(|number| round_trip(&number)), [1, 1, 2, 2, 3]);
    assert_eq!([0i64, -1, 63, -64, 64].map(|number| round_trip(&number)), [1, 1, 1, 1, 2]);
    assert_eq!(round_trip(&-0.0f64), 8);
    assert_eq!(round_trip(&Duration::new(3, 1)), 2);
    assert_eq!(round_trip(&Some([1u32, 2, 3])), 4);
}

#[test]
fn what_no_client_comes_to_is_refused() {
    let load = |bytes: &[u8]| u64::load(&mut Loader::new(bytes));
    assert!(load(&[0xff; 10]).is_err(), "it does not end");
    assert!(load(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x10]).is_err(), "2^60 and more");
    assert_eq!(load(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]), Ok((1 << 60) - 1));
    let mut saver = Saver::default();
    saver.number(u64::MAX);
    assert_eq!(Loader::new(saver.as_bytes()).any_number(), Ok(u64::MAX));
    assert!(
        Vec::<u8>::load(&mut Loader::new(&[0xff, 0xff, 0xff, 0x7f, 1, 2])).is_err(),
        "so many are not there"
    );
    assert!(
        Duration::load(&mut Loader::new(&[1, 0x80, 0x94, 0xeb, 0xdc, 0x03])).is_err(),
        "a second in nanos"
    );
}

proptest! {
    #[test]
    fn values_survive(
        numbers in prop::collection::vec((0u64..1 << 60, any::<i32>(), any::<bool>()), 0..20),
        near in prop::collection::vec(-(1i64 << 56)..1 << 56, 0..40),
        float in prop::num::f64::NORMAL | prop::num::f64::ZERO,
    ) {
        let numbers: VecDeque<_> = numbers.into_iter().map(|(a, b, c)| ((a, b), c)).collect();
        round_trip(&numbers);
        round_trip(&float);
        let mut saver = Saver::default();
        save_near(near.iter(), &mut saver);
        prop_assert_eq!(load_near(&mut Loader::new(saver.as_bytes())), Ok(near.into()));
    }

    #[test]
    fn loading_is_total(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = Vec::<(Duration, Option<f64>)>::load(&mut Loader::new(&bytes));
        let _ = BTreeMap::<u16, [i64; 3]>::load(&mut Loader::new(&bytes));
        let _ = load_near(&mut Loader::new(&bytes));
    }
}
