; What is inside stands one step to the right.
[
  (class_body)
  (protocol_body)
  (method_definition)
  (extension_definition)
  (block)
  (match)
  (guard)
  (list)
  (array)
  (map)
  (parenthesized)
  (keyword_send)
  (cascade)
] @indent.begin

; A closing bracket stands below the line that opened it.
["]" ")" "}"] @indent.branch @indent.end

[(string) (comment) (doc_comment)] @indent.ignore
