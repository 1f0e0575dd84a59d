//! Every diagnostic code of this crate, with one line on its condition.
//!
//! A code belongs to one condition for ever. The words of a message live beside the check that
//! raises it; this table only names the condition, so that documentation can walk all codes.

macro_rules! codes {
    ($($name:ident = $code:literal, $explanation:literal;)*) => {
        $(pub(crate) const $name: &str = $code;)*

        /// Code and explanation, in code order.
        pub const ALL: &[(&str, &str)] = &[$(($code, $explanation)),*];
    };
}

codes! {
    EXPECTED_EXPRESSION = "E0101", "an expression is missing";
    EXPECTED_STATEMENT_END = "E0102", "two statements on one line without a separator";
    UNCLOSED_BRACKET = "E0103", "an opening bracket has no closing one";
    BLOCK_PARAMETERS = "E0104", "block parameters are not followed by `|`, or a parameter has no name";
    NESTING_TOO_DEEP = "E0105", "an expression nests deeper than 64 levels";
    CHAIN_TOO_LONG = "E0106", "an expression chains too many messages";
    UNTERMINATED_STRING = "E0107", "a string has no closing quote";
    UNTERMINATED_COMMENT = "E0108", "a block comment has no `*/`";
    EMPTY_INTERPOLATION = "E0109", "`{}` in a string";
    DOUBLED_BRACE = "E0110", "`{{` in a string";
    UNESCAPED_BRACE = "E0111", "`{` in a string that no `}` closes";
    SINGLE_QUOTE = "E0112", "a string in single quotes";
    INVALID_CHARACTER = "E0113", "a character that starts no token";
    LONE_HASH = "E0114", "`#` that begins no symbol or collection";
    INVALID_RADIX = "E0115", "a radix outside 2 to 36";
    INVALID_DIGIT = "E0116", "a digit that the radix does not have";
    FLOAT_RANGE = "E0117", "a float literal too large for a Float";
    MISSING_CHARACTER = "E0118", "`$` at the end of the text";
    RESERVED_PREFIX = "E0119", "a name that starts with `__`";
    UNKNOWN_DIRECTIVE = "E0120", "a directive other than `@primitive`, `@intrinsic` and `@expect`";
    MISSING_PACKAGE = "E0121", "`@Name` without a package name before it";
    UNKNOWN_OPERATOR = "E0122", "a run of operator characters that is no operator";
    EQUALS_OPERATOR = "E0123", "`=` used as an operator";
    TUPLE_LITERAL = "E0124", "a tuple literal used as an expression";
    BARE_MAP_KEY = "E0125", "a bare word as map key";
    MAP_ARROW = "E0126", "`=>` is missing after a map key";
    COLLECTION_ELEMENT = "E0127", "a collection literal has something else than elements and commas";
    ASSIGNMENT_TARGET = "E0128", "an assignment to something that is no name, field or pattern";
    ASSIGN_RESERVED = "E0129", "an assignment to `self`, `super`, `nil`, `true` or `false`";
    ASSIGN_FOREIGN_FIELD = "E0130", "an assignment to a field of another object";
    MISSING_ASSIGN = "E0131", "a typed name without `:=`";
    CASCADE_SELECTOR = "E0132", "a cascade part that is no message";
    CASCADE_RECEIVER = "E0133", "a cascade after something that is no send";
    MISPLACED_CAST = "E0134", "a cast that is not a statement of its own";
    CAST_WITHOUT_SEND = "E0135", "`!` after something that is no send";
    LONE_SUPER = "E0136", "`super` that receives no message";
    WILDCARD_READ = "E0137", "`_` read as a value";
    RESERVED_NAME = "E0138", "a reserved word as parameter or slot name";
    MISPLACED_PRIMITIVE = "E0139", "`@primitive` or `@intrinsic` that is not a whole method body";
    BARE_INTRINSIC = "E0140", "`@intrinsic` without a name";
    UNKNOWN_EXPECT_CATEGORY = "E0141", "`@expect` with an unknown category";
    MISPLACED_EXPECT = "E0142", "`@expect` that precedes nothing it could apply to";
    EXPECTED_METHOD_ARROW = "E0143", "`=>` is missing after a method selector";
    EXPECTED_MEMBER = "E0144", "a line in a class body that is no member";
    EXPECTED_PARAMETER = "E0145", "a parameter name is missing";
    EMPTY_BODY = "E0146", "a method without statements";
    DUPLICATE_METHOD = "E0147", "a selector defined twice on one side of a class";
    CLASS_HEADER = "E0148", "a class header with a part missing or out of order";
    HANDLE_SCOPE = "E0149", "`handleScope:` without a symbol";
    MULTIPLE_CLASSES = "E0150", "two classes in one package file";
    MULTIPLE_PROTOCOLS = "E0151", "two protocols in one package file";
    CLASS_AND_PROTOCOL = "E0152", "a class and a protocol in one package file";
    TOP_LEVEL_STATEMENT = "E0153", "a statement at the top level of a package file";
    PROTOCOL_HEADER = "E0154", "a protocol header with a part missing";
    PROTOCOL_SIGNATURE = "E0155", "a line in a protocol that is no signature";
    SIGNATURE_BODY = "E0156", "a protocol signature with `=>`";
    TRAILING_TOKENS = "E0157", "more than one method where one is wanted";
    EXPECTED_TYPE = "E0158", "a type is missing or malformed";
    SINGLE_COLON = "E0159", "`:` where `::` is meant";
    MIXED_TYPE_OPERATORS = "E0160", "`&` and `\\` in one type without parentheses";
    DOUBLE_BACKSLASH = "E0161", "`\\\\` in a type";
    TYPE_ALIAS = "E0162", "a malformed type alias";
    EXPECTED_PATTERN = "E0163", "a pattern is missing or malformed";
    ARM_ARROW = "E0164", "`->` is missing after a pattern";
    GUARD_BRACKET = "E0165", "`when:` without `[`";
    REST_NOT_LAST = "E0166", "`...` that is not the last element";
    CLASS_PATTERN = "E0167", "a class name alone as a pattern";
    GENERIC_PATTERN = "E0168", "generic arguments in a type pattern";
    CONS_PATTERN = "E0169", "`|` in a list pattern";
    ANNOTATED_DESTRUCTURING = "E0170", "a type annotation on a destructuring";
    UNKNOWN_SEGMENT_SPECIFIER = "E0171", "an unknown binary segment specifier";
    CONFLICTING_SEGMENT = "E0172", "two binary segment specifiers of one group";
    SEGMENT_TRAILING_COMMA = "E0173", "a comma before `>>`";
    SEGMENT_SIZE = "E0174", "a binary segment size that is no integer or name";
    SEGMENT_NOT_LAST = "E0175", "a `binary` segment without size that is not the last";
    SOURCE_TOO_LONG = "E0176", "a source text over four gigabytes";
    NAME_TOO_LONG = "E0177", "a name over 255 characters";
    DETACHED_DOC_COMMENT = "W0101", "a doc comment above nothing that can be documented";
}

#[cfg(test)]
mod tests {
    use super::ALL;

    #[test]
    fn codes_are_unique_and_ordered() {
        let codes: Vec<&str> = ALL.iter().map(|(code, _)| *code).collect();
        let mut sorted = codes.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(codes, sorted);
    }
}
