//! Tests of the program as a user runs it.

mod run;
mod check;
mod config;
mod general;
mod schema;
mod demo;
