//! Erlang external term format.
