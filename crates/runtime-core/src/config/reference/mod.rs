//! What the documentation of the configuration is generated from.
//!
//! One source: the types. Their JSON schema says which keys there are and what they mean, their
//! `Default` what holds where a key is left out. From the two come the schema for editors
//! ([`json_schema`]), the commented file of defaults ([`default_file`]) and the page of the manual
//! ([`reference_markdown`]). No list of keys is kept by hand.

mod default_file;
mod page;
mod schema;
mod section;

#[cfg(test)]
mod tests;

pub use default_file::default_file;
pub use page::reference_markdown;
pub use schema::json_schema;
