test:
	cargo test --workspace
repl:
	cargo build --release
