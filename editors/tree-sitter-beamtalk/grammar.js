// Beamtalk for tree-sitter. Where lines end statements, members and classes is decided by
// src/scanner.c: it hands zero-width tokens to these rules, so nothing here knows about columns.

const LEVELS = [
  ["**", 50, "right"],
  ["*", 40], ["/", 40], ["%", 40],
  ["+", 30], ["-", 30], ["++", 30],
  ["<", 20], [">", 20], ["<=", 20], [">=", 20],
  ["==", 10], ["/=", 10], ["=:=", 10], ["=/=", 10],
  [">>", 5],
  ["->", 3],
];

const separated = (separator, rule) => seq(rule, repeat(seq(separator, rule)));
const list_of = (rule) => seq(separated(",", rule), optional(","));

module.exports = grammar({
  name: "beamtalk",

  externals: ($) => [
    $._newline,
    $._member_start,
    $._slot_start,
    $._member_end,
    $._class_start,
    $._protocol_start,
    $._alias_start,
    $._extension_start,
    $._class_end,
    $.string_content,
    // Never found: among the extras, it has the scanner asked at every token.
    $._always,
    $._error_sentinel,
  ],

  extras: ($) => [/\s|\uFEFF/, $.comment, $.doc_comment, $.expectation, $._always],

  word: ($) => $.identifier,

  supertypes: ($) => [$.expression, $.pattern, $.type],

  inline: ($) => [$._statement_end, $._unary, $._binary],

  conflicts: ($) => [
    // `#[a, b]` is a literal until `:=` follows.
    [$._primary, $.pattern],
    [$._primary, $._map_key],
    [$._primary, $._literal_pattern],
    [$._primary, $.result_pattern],
    [$.list, $.list_pattern],
    [$.array, $.array_pattern],
    [$.map, $.map_pattern],
    // `class -> other => …` is an operator method, `class -> Integer => …` a method named `class`.
    [$.modifier, $._contextual_word],
    // `at: i :: Integer` names a type, `at: i :: -> Integer` the result.
    [$.parameter],
  ],

  rules: {
    source_file: ($) => repeat(choice(
      ".",
      $.expect_directive,
      $.class_definition,
      $.protocol_definition,
      $.type_alias,
      $.extension_definition,
      seq($.expression, $._statement_end),
      $.cast,
    )),

    _statement_end: ($) => choice(".", $._newline),

    // Declarations

    class_definition: ($) => seq(
      $._class_start,
      repeat($.class_modifier),
      field("superclass", choice($.nil, $.class_reference, $.generic_type)),
      "subclass:",
      field("name", $.class_name),
      optional($.type_parameters),
      optional($.native_clause),
      optional($.handle_scope_clause),
      optional(field("body", $.class_body)),
      $._class_end,
    ),

    class_modifier: () => choice("abstract", "sealed", "typed", "internal"),

    native_clause: ($) => seq("native:", field("module", $.identifier)),

    handle_scope_clause: ($) => seq("handleScope:", field("scope", $.symbol)),

    type_parameters: ($) => seq("(", separated(",", $.type_parameter), ")"),

    type_parameter: ($) => seq(
      field("name", $.class_name),
      optional(seq("::", field("bound", $.class_name))),
    ),

    class_body: ($) => repeat1(choice(".", $.expect_directive, $.slot_definition, $.method_definition)),

    slot_definition: ($) => seq(
      $._slot_start,
      field("kind", choice("field:", "state:", "classState:")),
      field("name", choice($.identifier, alias($.class_name, $.identifier))),
      optional(seq("::", field("type", $.type))),
      optional(seq("=", field("default", $.expression))),
      repeat("."),
      $._member_end,
    ),

    method_definition: ($) => seq(
      $._member_start,
      repeat($.modifier),
      $._method,
      $._member_end,
    ),

    modifier: () => choice("class", "sealed", "internal"),

    _method: ($) => seq(
      field("head", $.method_head),
      optional(field("result", $.result_type)),
      "=>",
      optional(field("body", $.body)),
    ),

    method_head: ($) => choice(
      field("selector", choice($.identifier, alias($._contextual_word, $.identifier))),
      seq(field("selector", $.operator), $.parameter),
      prec.right(repeat1(seq(field("selector", $.keyword), $.parameter))),
    ),

    _contextual_word: () => choice("class", "sealed", "internal"),

    operator: () => choice(...LEVELS.map(([text]) => text)),

    parameter: ($) => seq(
      field("name", $.identifier),
      optional(seq("::", field("type", $.type))),
    ),

    result_type: ($) => seq(optional("::"), "->", $.type),

    body: ($) => $._statements,

    extension_definition: ($) => seq(
      $._extension_start,
      field("target", $.class_reference),
      optional(field("side", "class")),
      ">>",
      repeat($.modifier),
      $._method,
      $._member_end,
    ),

    protocol_definition: ($) => seq(
      $._protocol_start,
      "Protocol",
      "define:",
      field("name", $.class_name),
      optional($.type_parameters),
      optional(seq("extending:", field("extends", $.class_name))),
      optional(field("body", $.protocol_body)),
      $._class_end,
    ),

    protocol_body: ($) => repeat1(choice(".", $.signature)),

    signature: ($) => seq(
      $._member_start,
      repeat($.modifier),
      field("head", $.method_head),
      optional(field("result", $.result_type)),
      repeat("."),
      $._member_end,
    ),

    type_alias: ($) => seq(
      $._alias_start,
      optional(alias("internal", $.class_modifier)),
      "type",
      field("name", $.class_name),
      "=",
      field("type", $.type),
      $._statement_end,
    ),

    // Statements

    _statements: ($) => choice(
      seq(repeat1($._statement), optional($.expression)),
      $.expression,
    ),

    _statement: ($) => choice(
      ".",
      $.expect_directive,
      seq($.expression, $._statement_end),
      $.cast,
    ),

    cast: ($) => seq($._send, "!"),

    expect_directive: ($) => prec.right(seq(
      "@expect",
      field("category", $.identifier),
      optional(field("reason", $.string)),
    )),

    expression: ($) => choice($.return, $._assignment),

    return: ($) => seq("^", $._assignment),

    _assignment: ($) => choice($.assignment, $.cascade, $._send),

    assignment: ($) => seq(
      field("target", choice($.identifier, $.field_access, $.tuple_pattern, $.array_pattern, $.list_pattern, $.map_pattern)),
      optional(seq("::", field("type", $.type))),
      ":=",
      field("value", $._assignment),
    ),

    // Messages

    cascade: ($) => seq(
      field("first", $._send),
      repeat1(seq(";", choice($.unary_message, $.binary_message, $.keyword_message))),
    ),

    unary_message: ($) => field("selector", $.identifier),

    binary_message: ($) => seq(field("selector", $.operator), field("argument", $._unary)),

    keyword_message: ($) => repeat1(seq(field("selector", $._keyword), field("argument", $._binary))),

    _send: ($) => choice($._binary, $.keyword_send, $.match),

    keyword_send: ($) => prec.right(seq(
      field("receiver", $._binary),
      repeat1(seq(field("selector", $._keyword), field("argument", $._binary))),
    )),

    _keyword: ($) => choice($.keyword, alias($._plain_match, $.keyword)),

    // `match:` without arms is an ordinary message.
    _plain_match: () => prec(-1, choice("match:", "matchExhaustive:")),

    match: ($) => prec(1, seq(
      field("value", $._binary),
      field("selector", choice("match:", "matchExhaustive:")),
      "[",
      repeat(";"),
      $.arm,
      repeat(seq(choice(repeat1(";"), $._newline), $.arm)),
      repeat(";"),
      "]",
    )),

    arm: ($) => seq(
      field("pattern", $.pattern),
      optional(seq("when:", field("guard", $.guard))),
      "->",
      field("body", $._arm_body),
    ),

    guard: ($) => seq("[", $.expression, repeat("."), "]"),

    _arm_body: ($) => choice(
      alias($._arm_return, $.return),
      alias($._arm_assignment, $.assignment),
      $._send,
    ),

    _arm_return: ($) => seq("^", $._send),

    _arm_assignment: ($) => seq(
      field("target", choice($.identifier, $.field_access)),
      ":=",
      field("value", $._send),
    ),

    _binary: ($) => choice($._unary, $.binary_send),

    binary_send: ($) => choice(...LEVELS.map(([text, level, side]) => {
      const precedence = side === "right" ? prec.right : prec.left;
      return precedence(level, seq(
        field("receiver", $._binary),
        field("selector", alias(text, $.operator)),
        field("argument", $._binary),
      ));
    })),

    _unary: ($) => choice($._primary, $.unary_send),

    unary_send: ($) => prec.left(60, seq(field("receiver", $._unary), field("selector", $.identifier))),

    _primary: ($) => choice(
      $.number,
      $.character,
      $.string,
      $.symbol,
      $.list,
      $.array,
      $.map,
      $.block,
      $.identifier,
      $.class_reference,
      $.self,
      $.super,
      $.nil,
      $.true,
      $.false,
      $.field_access,
      $.parenthesized,
      $.primitive,
    ),

    parenthesized: ($) => seq("(", $.expression, ")"),

    field_access: ($) => seq(
      choice($.self, $.identifier, $.class_reference, $.field_access),
      field("field", alias(token.immediate(/\.[A-Za-z_][A-Za-z0-9_]*/), $.field)),
    ),

    class_reference: ($) => seq(
      optional(seq(field("package", $.identifier), token.immediate("@"))),
      field("name", $.class_name),
    ),

    primitive: ($) => prec.right(seq(
      choice("@primitive", "@intrinsic"),
      optional(choice($.string, $.identifier)),
    )),

    block: ($) => seq(
      "[",
      optional($.block_parameters),
      optional($._statements),
      "]",
    ),

    block_parameters: ($) => seq(repeat($.block_parameter), "|"),

    block_parameter: ($) => seq(
      ":",
      field("name", choice($.identifier, alias($.self, $.identifier))),
      optional(seq("::", field("type", $._type_atom))),
    ),

    list: ($) => seq("#(", optional(seq(list_of($._send), optional(seq("|", field("tail", $._unary))))), ")"),

    array: ($) => seq("#[", optional(list_of($._send)), "]"),

    map: ($) => seq("#{", optional(list_of($.pair)), "}"),

    pair: ($) => seq(field("key", $._unary), "=>", field("value", $._send)),

    // Patterns

    pattern: ($) => choice(
      $._literal_pattern,
      $.identifier,
      $.typed_pattern,
      $.tuple_pattern,
      $.array_pattern,
      $.list_pattern,
      $.map_pattern,
      $.result_pattern,
      $.binary_pattern,
    ),

    _literal_pattern: ($) => choice($.number, $.string, $.symbol, $.character, $.nil, $.true, $.false),

    typed_pattern: ($) => seq(field("name", $.identifier), "::", field("type", $.class_reference)),

    tuple_pattern: ($) => seq("{", optional(separated(",", $.pattern)), "}"),

    array_pattern: ($) => seq("#[", optional($._elements), "]"),

    list_pattern: ($) => seq("#(", optional($._elements), ")"),

    _elements: ($) => list_of(choice($.pattern, $.rest)),

    rest: ($) => seq("...", field("name", $.identifier)),

    map_pattern: ($) => seq("#{", optional(list_of($.pair_pattern)), "}"),

    pair_pattern: ($) => seq(field("key", $._map_key), "=>", field("value", $.pattern)),

    _map_key: ($) => choice($.symbol, $.string),

    result_pattern: ($) => seq(
      field("class", $.class_reference),
      field("selector", $.keyword),
      field("payload", $.pattern),
    ),

    binary_pattern: ($) => seq("<<", optional(separated(",", $.segment)), ">>"),

    segment: ($) => seq(
      field("name", $.identifier),
      optional(seq(":", field("size", choice($.number, $.identifier)))),
      optional(seq("/", separated("-", alias($.identifier, $.specifier)))),
    ),

    // Types

    type: ($) => choice($.union_type, $.intersection_type, $.difference_type, $._type_atom),

    union_type: ($) => prec.left(1, seq($.type, "|", $.type)),

    intersection_type: ($) => prec.left(2, seq($.type, "&", $.type)),

    difference_type: ($) => prec.left(2, seq($.type, "\\", $.type)),

    _type_atom: ($) => choice(
      $.parenthesized_type,
      $.symbol,
      $.nil,
      $.true,
      $.false,
      $.class_reference,
      $.generic_type,
      $.metaclass_type,
    ),

    parenthesized_type: ($) => seq("(", $.type, ")"),

    generic_type: ($) => seq($.class_reference, "(", separated(",", $.type), ")"),

    metaclass_type: ($) => seq($.class_reference, "class"),

    // Tokens

    self: () => "self",
    super: () => "super",
    nil: () => "nil",
    true: () => "true",
    false: () => "false",

    identifier: () => /[a-z_][A-Za-z0-9_]*/,

    class_name: () => /[A-Z][A-Za-z0-9_]*/,

    keyword: () => /[A-Za-z_][A-Za-z0-9_]*:/,

    number: () => token(seq(
      optional("-"),
      /[0-9](_?[0-9])*/,
      optional(choice(
        /r[0-9A-Za-z](_?[0-9A-Za-z])*/,
        /\.[0-9](_?[0-9])*([eE][+-]?[0-9](_?[0-9])*)?/,
        /[eE][+-]?[0-9](_?[0-9])*/,
      )),
    )),

    character: () => token(seq("$", choice(/\\(.|\n)/, /[^\\]/))),

    symbol: () => token(seq("#", choice(
      /[A-Za-z_][A-Za-z0-9_]*/,
      /([A-Za-z_][A-Za-z0-9_]*:)+/,
      /'([^'\n]|'')*'/,
      ...LEVELS.map(([text]) => text),
    ))),

    string: ($) => seq(
      '"',
      repeat(choice($.string_content, $.escape, $.interpolation)),
      token.immediate('"'),
    ),

    escape: () => token.immediate(choice('""', /\\(.|\n)/)),

    interpolation: ($) => seq(token.immediate("{"), $._send, "}"),

    // Of equally long tokens the first wins: these two before `comment`.
    doc_comment: () => token(seq("///", optional(/[^\/\r\n][^\r\n]*/))),

    // What a script or an example expects of the input above or before it.
    expectation: () => token(seq("//", / ?=>[^\r\n]*/)),

    comment: () => token(choice(
      seq("//", /[^\r\n]*/),
      seq("/*", /[^*]*\*+([^/*][^*]*\*+)*/, "/"),
    )),
  },
});
