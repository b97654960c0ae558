//! `wasm compile`, and WebAssembly at the command line, with the engines and without.

#[cfg(any(feature = "wasmtime", feature = "wasmer"))]
mod compiled_in {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use prx_fixtures::Guest;

    use crate::stage::{Outcome, outcome, prx};

    /// The engines of this build.
    const ENGINES: &[&str] = &[
        #[cfg(feature = "wasmtime")]
        "wasmtime",
        #[cfg(feature = "wasmer")]
        "wasmer",
    ];

    /// A configuration with a cache of its own.
    struct Place(tempfile::TempDir);

    impl Place {
        fn new(engine: &str) -> Self {
            Self::granting(engine, &[])
        }

        /// In which guests may write in these directories.
        fn granting(engine: &str, writable: &[&Path]) -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            let config = format!(
                "[runtime.wasm]\nengine = \"{engine}\"\nmodule_path = {:?}\ncache_path = {:?}\n\
                 capabilities.filesystem_write = {writable:?}\n",
                prx_fixtures::guests(),
                place.cache(),
            );
            std::fs::write(place.path("config.toml"), config).unwrap();
            place
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn cache(&self) -> PathBuf {
            self.path("cache")
        }

        fn command(&self, args: &[&str]) -> Command {
            let mut command = prx(args.iter().copied());
            command
                .env("PRX_CONFIG", self.path("config.toml"))
                .current_dir(self.0.path());
            command
        }

        fn compile(&self) -> Outcome {
            outcome(&mut self.command(&["wasm", "compile", Guest::HELLO.name()]))
        }

        fn entry(&self) -> PathBuf {
            let entries: Vec<_> = std::fs::read_dir(self.cache())
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .collect();
            assert_eq!(entries.len(), 1, "{entries:?}");
            entries[0].clone()
        }
    }

    fn names(text: &str, path: &Path) -> bool {
        text.contains(path.to_str().unwrap())
    }

    #[test]
    fn what_was_compiled_beforehand_is_not_compiled_again() {
        for engine in ENGINES {
            let place = Place::new(engine);
            let first = place.compile();
            assert_eq!(first.code, Some(0), "{}", first.stderr);
            assert!(first.stdout.contains("compiled in "), "{}", first.stdout);
            assert!(names(&first.stdout, &Guest::HELLO.path()));
            assert!(names(&first.stdout, &place.entry()), "{}", first.stdout);
            let second = place.compile();
            assert!(
                second.stdout.contains("was compiled already"),
                "{}",
                second.stdout
            );
            let run = ["run", "--backend", "wasm", "--", Guest::HELLO.name(), "x"];
            let run = outcome(&mut place.command(&run));
            assert_eq!((run.code, run.stdout.as_str()), (Some(0), "hello\n"));
        }
    }

    #[test]
    fn a_damaged_entry_is_told_to_the_log() {
        for engine in ENGINES {
            let place = Place::new(engine);
            assert_eq!(place.compile().code, Some(0));
            let entry = place.entry();
            let mut bytes = std::fs::read(&entry).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(&entry, bytes).unwrap();
            let run = ["run", "--backend", "wasm", "--", Guest::HELLO.name(), "x"];
            let run = outcome(place.command(&run).env("RUST_LOG", "warn"));
            assert_eq!((run.code, run.stdout.as_str()), (Some(0), "hello\n"));
            assert!(names(&run.stderr, &entry), "{}", run.stderr);
            assert!(run.stderr.contains("WARN"), "{}", run.stderr);
        }
    }

    #[test]
    fn nothing_is_kept_where_guests_may_write_and_the_log_says_so() {
        for engine in ENGINES {
            let place = Place::granting(engine, &[&std::env::temp_dir()]);
            let mut command = place.command(&["wasm", "compile", Guest::HELLO.name()]);
            let compiled = outcome(command.env("RUST_LOG", "warn"));
            assert_eq!(compiled.code, Some(0), "{}", compiled.stderr);
            assert!(compiled.stdout.contains("not kept"), "{}", compiled.stdout);
            assert!(
                names(&compiled.stderr, &place.cache()),
                "{}",
                compiled.stderr
            );
            let kept = std::fs::read_dir(place.cache()).unwrap().count();
            assert_eq!(kept, 0);
        }
    }

    #[test]
    fn what_cannot_be_compiled_is_named() {
        for engine in ENGINES {
            let place = Place::new(engine);
            std::fs::write(place.path("text.wasm"), "#!/bin/sh\n").unwrap();
            let outcome = outcome(&mut place.command(&["wasm", "compile", "./text.wasm"]));
            assert_eq!(outcome.code, Some(125));
            assert!(outcome.stderr.contains("text.wasm"), "{}", outcome.stderr);
            assert_eq!(outcome.stdout, "");
        }
    }

    /// With one engine alone, the other is named by its feature.
    #[cfg(not(all(feature = "wasmtime", feature = "wasmer")))]
    #[test]
    fn the_other_engine_is_told_its_feature() {
        let other = if ENGINES == ["wasmtime"] {
            "wasmer"
        } else {
            "wasmtime"
        };
        let run = ["run", "--backend", "wasm", "--", "hello", "x"];
        let run = outcome(&mut Place::new(other).command(&run));
        assert_eq!(run.code, Some(125));
        assert!(
            run.stderr.contains(&format!("--features {other}")),
            "{}",
            run.stderr
        );
    }
}

#[cfg(not(any(feature = "wasmtime", feature = "wasmer")))]
#[test]
fn without_an_engine_the_feature_is_named() {
    use crate::stage::{outcome, prx};

    for args in [
        &["run", "--backend", "wasm", "--", "x"][..],
        &["wasm", "compile", "x"],
    ] {
        let outcome = outcome(&mut prx(args.iter().copied()));
        assert_eq!(outcome.code, Some(125));
        assert!(
            outcome.stderr.contains("--features wasm-runtime"),
            "{}",
            outcome.stderr
        );
    }
}
