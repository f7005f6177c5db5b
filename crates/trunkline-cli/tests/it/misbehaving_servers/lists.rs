//! Servers with an endless or huge list of tools.

use super::{assert_fails, scripted};

#[test]
fn a_list_whose_next_page_is_always_the_same() {
    assert_fails(&scripted("same-cursor"), "its list of tools goes round in a circle", "");
}

#[test]
fn a_list_that_always_has_a_next_page() {
    assert_fails(&scripted("new-cursors"), "its list of tools has more than 100 pages", "");
}

#[test]
fn a_list_of_100_000_tools() {
    assert_fails(&scripted("crowd"), "it has more than 10000 tools", "");
}

#[test]
fn a_list_of_100_000_tools_in_pages() {
    assert_fails(&scripted("crowd-in-pages"), "it has more than 10000 tools", "");
}

#[test]
fn a_list_of_100_000_tools_that_is_too_long_to_be_read() {
    assert_fails(&scripted("fat-crowd"), "the answer is longer than 16 MiB", "");
}
