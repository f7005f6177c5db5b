//! Tests of the library through its public interface.

mod dialects;
mod mistakes;
mod layers;
mod secrets;
mod robustness;
mod schema;
