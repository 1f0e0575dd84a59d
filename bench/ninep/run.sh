#!/bin/sh
# Build both programs and print the table.
set -e
cd "$(dirname "$0")/../.."
cargo build --release -p beamtalk-cli -p bench-ninep
exec "${CARGO_TARGET_DIR:-target}/release/bench-ninep"
