; Captures use the names that Neovim, Helix, Zed and tree-sitter's own tools share. Later patterns
; win over earlier ones where an editor takes the last, so the general ones come first.

(identifier) @variable
(class_name) @type

(comment) @comment
(expectation) @comment
(doc_comment) @comment.documentation

(number) @number
(character) @character
(string) @string
(string_content) @string
(escape) @string.escape
(symbol) @string.special.symbol
(interpolation "{" @punctuation.special "}" @punctuation.special)

(nil) @constant.builtin
(true) @boolean
(false) @boolean
(self) @variable.builtin
(super) @variable.builtin
((identifier) @variable.builtin (#eq? @variable.builtin "_"))

; Messages
(unary_send selector: (identifier) @function.method.call)
(unary_message selector: (identifier) @function.method.call)
(keyword) @function.method.call
(match selector: _ @keyword)
(operator) @operator
["->" "|" "&" "\\" "..." "^" ":=" "=" "=>" "::"] @operator
(cast "!" @operator)

; Names that are given
(parameter name: (identifier) @variable.parameter)
(block_parameter name: (identifier) @variable.parameter)
(field) @variable.member
(slot_definition name: (identifier) @variable.member)
(class_reference package: (identifier) @module)
(native_clause module: (identifier) @module)
(method_head selector: (identifier) @function.method)
(method_head selector: (keyword) @function.method)
(method_head selector: (operator) @function.method)
(class_definition name: (class_name) @type.definition)
(protocol_definition name: (class_name) @type.definition)
(type_alias name: (class_name) @type.definition)
(type_parameter name: (class_name) @type.definition)
(specifier) @attribute

; Words of declarations
(class_modifier) @keyword.modifier
(modifier) @keyword.modifier
(extension_definition side: "class" @keyword.modifier)
(metaclass_type "class" @keyword.modifier)
["subclass:" "native:" "handleScope:" "field:" "state:" "classState:" "define:" "extending:" "Protocol" "type" "when:"] @keyword
(return "^" @keyword.return)
["@primitive" "@intrinsic" "@expect"] @attribute
(expect_directive category: (identifier) @constant)

["(" ")" "[" "]" "{" "}" "#(" "#[" "#{" "<<" ">>"] @punctuation.bracket
["." "," ";" ":"] @punctuation.delimiter
