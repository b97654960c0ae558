//! Nothing outside is reached while another process swaps a directory for a link.

use std::time::Duration;

use prx_wasm_trials::Race;

use crate::common::{engine, place};

#[tokio::test(flavor = "multi_thread")]
async fn nothing_outside_is_reached_while_directories_become_links() {
    let mut place = place();
    let race = Race::new();
    place.config = race.config(place.config.clone());
    let raced = race
        .run(&engine(&place), Duration::from_secs(12), 25_000)
        .await;
    assert_eq!(raced.escaped, 0, "{raced:?}");
    // It was a race: the guest met both, and often.
    assert!(raced.inside > 100 && raced.swaps > 1000, "{raced:?}");
    assert!(raced.inside < raced.tries / 2, "{raced:?}");
}
