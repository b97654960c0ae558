//! The backend on a real engine, one scenario to a file.
//!
//! Where no engine answers they are skipped and say so, unless `PRX_REQUIRE_BACKENDS` has `docker`
//! in it.

mod support;

mod smoke;
