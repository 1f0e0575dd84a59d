//! Any bytes as frames of the control socket, as a first message and as a login form: no panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    beamtalk_workspace::gate::read_strange_bytes(bytes);
});
