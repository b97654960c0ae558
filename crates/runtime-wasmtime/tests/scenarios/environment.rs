//! A guest sees the variables that were granted, and the clocks that tell nothing of the host.

use crate::common::place;

#[tokio::test]
async fn nothing_of_the_host_is_there_unasked() {
    let place = place();
    assert_eq!(place.run(&["env"]).await.stdout.to_text(), "");
}

#[tokio::test]
async fn a_variable_of_the_host_has_to_be_on_both_lists() {
    let mut place = place();
    place.config.runtime.env_whitelist = vec!["PATH".into(), "HOME".into()];
    place.config.runtime.wasm.capabilities.env_vars = vec!["HOME".into(), "USER".into()];
    place
        .config
        .runtime
        .wasm
        .env
        .insert("MODE".into(), "fast".into());
    let output = place.run(&["env"]).await;
    let home = std::env::var("HOME").unwrap();
    assert_eq!(output.stdout.to_text(), format!("HOME={home}\nMODE=fast\n"));
}

#[tokio::test]
async fn what_a_call_asks_for_in_vain_is_listed() {
    let mut place = place();
    place.config.runtime.env_whitelist = vec!["LANG".into()];
    let request = place.boxed(&["env"]).env("LANG", "C").env("OTHER", "x");
    let output = place.runtime().run(request).await.unwrap();
    assert_eq!(output.stdout.to_text(), "LANG=C\n");
    assert_eq!(output.refused_env, ["OTHER"]);
}

#[tokio::test]
async fn the_hosts_time_on_the_processor_is_not_told() {
    let place = place();
    let text = place.run(&["clocks"]).await.stdout.to_text().into_owned();
    let told = |clock: &str| {
        let line = text.lines().find(|line| line.starts_with(clock)).unwrap();
        line.ends_with(" ok")
    };
    assert!(told("realtime") && told("monotonic"), "{text}");
    assert!(!told("process") && !told("thread"), "{text}");
}
