; Names live in methods, blocks and arms; a first assignment declares a name where it stands.
[
  (method_definition)
  (extension_definition)
  (block)
  (arm)
] @local.scope

(parameter name: (identifier) @local.definition.parameter)
(block_parameter name: (identifier) @local.definition.parameter)
(assignment target: (identifier) @local.definition.var)
(typed_pattern name: (identifier) @local.definition.var)
(rest name: (identifier) @local.definition.var)
(segment name: (identifier) @local.definition.var)
(arm pattern: (pattern/identifier) @local.definition.var)
(tuple_pattern (pattern/identifier) @local.definition.var)
(array_pattern (pattern/identifier) @local.definition.var)
(list_pattern (pattern/identifier) @local.definition.var)
(pair_pattern value: (pattern/identifier) @local.definition.var)
(result_pattern payload: (pattern/identifier) @local.definition.var)

(slot_definition name: (identifier) @local.definition.field)
(method_head selector: (identifier) @local.definition.method)
(class_definition name: (class_name) @local.definition.type)
(protocol_definition name: (class_name) @local.definition.type)
(type_alias name: (class_name) @local.definition.type)

(identifier) @local.reference
(class_reference name: (class_name) @local.reference)
