//! The plans that come with the lab.

/// Names and texts, in the order in which they are listed.
pub const SHIPPED: [(&str, &str); 18] = [
    ("lan", include_str!("../../../../plans/lan.toml")),
    ("broadband", include_str!("../../../../plans/broadband.toml")),
    ("transatlantic", include_str!("../../../../plans/transatlantic.toml")),
    ("wifi", include_str!("../../../../plans/wifi.toml")),
    ("mobile", include_str!("../../../../plans/mobile.toml")),
    ("awful", include_str!("../../../../plans/awful.toml")),
    ("no-sync-lane", include_str!("../../../../plans/no-sync-lane.toml")),
    ("stalls", include_str!("../../../../plans/stalls.toml")),
    ("drift", include_str!("../../../../plans/drift.toml")),
    ("crowd", include_str!("../../../../plans/crowd.toml")),
    ("machines", include_str!("../../../../plans/machines.toml")),
    ("hz60", include_str!("../../../../plans/hz60.toml")),
    ("refresh", include_str!("../../../../plans/refresh.toml")),
    ("lossy-stream", include_str!("../../../../plans/lossy-stream.toml")),
    ("rockets", include_str!("../../../../plans/rockets.toml")),
    ("crates", include_str!("../../../../plans/crates.toml")),
    ("pusher", include_str!("../../../../plans/pusher.toml")),
    ("riders", include_str!("../../../../plans/riders.toml")),
];
