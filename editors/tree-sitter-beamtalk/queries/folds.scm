[
  (class_definition)
  (protocol_definition)
  (method_definition)
  (extension_definition)
  (block)
  (match)
  (list)
  (array)
  (map)
  (comment)
] @fold

(doc_comment)+ @fold
