//! Find a workspace, connect, authenticate, send requests, receive events.
