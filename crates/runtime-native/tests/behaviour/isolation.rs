//! A bare process is confined by nothing, and the result says so.

use prx_runtime_core::{ExecutionRequest, Exposure, IsolationLevel, RuntimeAdapter};

use crate::stage;

#[test]
fn what_is_open_is_said() {
    stage::on_both_runtimes(|| async {
        let output = stage::native()
            .run(ExecutionRequest::shell("true"))
            .await
            .unwrap();
        assert_eq!(output.isolation.level, IsolationLevel::None);
        for exposure in [
            Exposure::FileSystem,
            Exposure::Network,
            Exposure::HostEnvironment,
        ] {
            assert!(output.isolation.open.contains(&exposure), "{exposure:?}");
        }
    });
}
