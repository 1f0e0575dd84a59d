//! Heads of requests with their bodies, right and wrong.

use beamtalk_fuzz::Grammar;

pub const GRAMMAR: Grammar = Grammar(&[
    (
        "head",
        &[
            "POST /events/a HTTP/1.1\n<header><header>\n<body>",
            "<method> <path>\n<header><header><header><header>\n<body>",
        ],
    ),
    ("method", &["POST", "GET", "", "X Y", "PROPFIND"]),
    (
        "path",
        &[
            "/events/a",
            "/events/%61",
            "/events/%",
            "/events/%+1",
            "/events/a/b",
            "//",
            "*",
            "http://x/events/a",
            "/events/é",
        ],
    ),
    (
        "header",
        &[
            "Host: 127.0.0.1:4000\n",
            "Host: <value>\n",
            "Origin: <value>\n",
            "Authorization: Bearer <value>\n",
            "Authorization: <value>\n",
            "Content-Type: application/json\n",
            "Content-Type: <value>\n",
            "Sec-Fetch-Site: <value>\n",
            "Sec-WebSocket-Protocol: <value>, <value>\n",
            "Cookie: login=<value>; a=<value>\n",
            "<value>: <value>\n",
        ],
    ),
    (
        "value",
        &[
            "",
            "a",
            "localhost:4000",
            "127.0.0.1",
            "[::1]:4000",
            "[::1",
            "none",
            "same-origin",
            "cross-site",
            "http://localhost",
            "null",
            "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "beamtalk.v1",
            "beamtalk.secret.abc",
            "é",
            "bearer x",
            "application/json; charset=utf-8",
        ],
    ),
    (
        "body",
        &[
            r#"{"value":"x"}"#,
            "{}",
            "[1]",
            r#"{"value":1}"#,
            "token=abc&x=y",
            r#"{"type":"auth","cookie":"x"}"#,
            r#"{"type":"hello","client":"x"}"#,
            "",
        ],
    ),
]);
