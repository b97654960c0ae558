//! What the system takes in arguments and environment is limited, and the limit is named.

use std::fmt::Write;

use prx_runtime_core::{ErrorKind, ExecutionRequest, RuntimeAdapter};

use crate::stage;

#[test]
fn an_argument_of_128_kib_is_too_large_and_one_byte_less_is_not() {
    stage::on_both_runtimes(|| async {
        let run = |length| {
            let request = ExecutionRequest::program("echo")
                .arg("-n")
                .arg("x".repeat(length));
            async { stage::native().run(request).await }
        };
        let limit = 128 * 1024;
        let output = run(limit - 1).await.unwrap();
        assert_eq!(output.stdout.total_bytes(), limit as u64 - 1);
        let error = run(limit).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert_eq!(
            error.message(),
            "argument 2 has 131072 bytes; the system takes at most 131071 in one"
        );
    });
}

#[test]
fn a_line_and_a_variable_have_the_same_limit() {
    stage::on_both_runtimes(|| async {
        let long = "x".repeat(128 * 1024);
        let error = stage::native()
            .run(ExecutionRequest::shell(format!(": {long}")))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert!(
            error
                .message()
                .starts_with("the command line has 131074 bytes")
        );
        let error = stage::native()
            .run(ExecutionRequest::shell("true").env("LANG", &long))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert!(
            error.message().starts_with("the variable `LANG` has"),
            "{error}"
        );
        assert!(!error.to_string().contains("xxx"));
    });
}

#[test]
fn an_environment_beyond_every_limit_of_the_system_is_refused_by_its_size() {
    let mut config = "[runtime.native.env]\n".to_owned();
    for number in 0..70 {
        writeln!(config, "V{number} = \"{}\"", "x".repeat(100 * 1024)).unwrap();
    }
    stage::on_both_runtimes(|| async {
        let error = stage::native_by(&config)
            .run(ExecutionRequest::shell("true"))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        let message = error.to_string();
        assert!(message.contains("more than the system takes"), "{message}");
        assert!(message.contains("at most 6 MiB"), "{message}");
        assert!(!message.contains("xxx"));
    });
}
