//! Nothing: the tests are in `tests/`, and what they run in `src/bin/`.
