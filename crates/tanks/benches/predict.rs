//! One predicted frame, and reconciling with 1, 10, 20 and 60 pending ticks: `cargo bench -p tanks`.

mod scene;

use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use scene::{Place, Scene};

fn frame(c: &mut Criterion) {
    let mut group = c.benchmark_group("frame");
    for place in [Place::Open, Place::Walls, Place::Pillar, Place::Group] {
        let scene = Scene::new(place, 10);
        // A display at 60 Hz, in the middle of a tick.
        let next = scene.now + Duration::from_millis(16);
        group.bench_function(format!("{place:?}"), |b| {
            b.iter_batched_ref(|| scene.clone(), |scene| scene.reconciler.frame(next), BatchSize::SmallInput);
        });
    }
}

fn reconcile(c: &mut Criterion) {
    let mut group = c.benchmark_group("reconcile");
    for place in [Place::Open, Place::Walls, Place::Pillar, Place::Group] {
        for pending in [1, 10, 20, 60] {
            let scene = Scene::new(place, pending);
            group.bench_function(BenchmarkId::new(format!("{place:?}"), pending), |b| {
                b.iter_batched_ref(|| scene.clone(), |scene| scene.reconcile(), BatchSize::SmallInput);
            });
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(3)).warm_up_time(Duration::from_secs(1));
    targets = frame, reconcile
}
criterion_main!(benches);
