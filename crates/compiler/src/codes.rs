//! The compiler's diagnostic codes. A code belongs to one condition for ever.

/// Sources that show a finding, and how they are right: `== code`, `-- wrong`, `-- right`.
const EXAMPLES: &str = include_str!("codes/examples.txt");

/// A source with the finding, and one without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    pub code: &'static str,
    pub wrong: &'static str,
    pub right: &'static str,
}

/// The examples, in the order of the file.
pub fn examples() -> impl Iterator<Item = Example> {
    EXAMPLES.split("\n== ").filter_map(|part| {
        let part = part.strip_prefix("== ").unwrap_or(part);
        let (code, rest) = part.split_once("\n-- wrong\n")?;
        let (wrong, right) = rest.split_once("\n-- right\n")?;
        Some(Example {
            code,
            wrong,
            right: right.trim_end(),
        })
    })
}

macro_rules! codes {
    ($($name:ident = $code:literal, $about:literal;)*) => {
        $(pub(crate) const $name: &str = $code;)*

        /// Every code with one line about it.
        pub const ALL: &[(&str, &str)] = &[$(($code, $about)),*];
    };
}

codes! {
    UNDEFINED_VARIABLE = "E0201", "A name is read that was never assigned.";
    UNDECLARED_SLOT = "E0202", "`self.name` names a slot that the class does not declare.";
    VALUE_SLOT_ASSIGNMENT = "E0203", "A slot of a Value is assigned; values do not change.";
    SELF_OUTSIDE = "E0204", "`self` is used outside a method.";
    SUPER_OUTSIDE = "E0205", "`super` is used outside a method.";
    FOREIGN_FIELD = "E0206", "Another object's state is read with a point instead of a message.";
    INSTANCE_FIELD_IN_CLASS_METHOD = "E0207", "A class method mentions an instance slot.";
    CAST_ON_VALUE = "E0208", "A cast is sent to a value, which has no mailbox.";
    NON_EXHAUSTIVE = "E0209", "A match on Result, or one that must be exhaustive, leaves a case out.";
    ACTOR_NEW = "E0210", "An actor class is sent `new`; actors are made with `spawn`.";
    OBJECT_NEW = "E0211", "An Object class without `class new` is sent `new`.";
    ABSTRACT_NEW = "E0212", "An abstract class is instantiated.";
    SEALED_CLASS = "E0213", "A sealed class is subclassed.";
    SEALED_METHOD = "E0214", "A sealed method is overridden.";
    STATE_IN_VALUE = "E0215", "A Value class declares `state:`.";
    FIELD_IN_ACTOR = "E0216", "An Actor class declares `field:`.";
    DATA_IN_OBJECT = "E0217", "An Object class declares instance data.";
    DUPLICATE_SLOT = "E0218", "Two slots have one name, or differ only in the case of the first letter.";
    INHERITS_FROM_ITSELF = "E0219", "The superclass chain comes back to the class.";
    EQUALITY_METHOD = "E0220", "A method is named like an equality operator, which is never dispatched.";
    PRIMITIVE_OUTSIDE_LIBRARY = "E0221", "A primitive is declared outside the standard library.";
    CHARACTER_PATTERN = "E0223", "A pattern tests for Character, which is an Integer at run time.";
    SUPERVISION_POLICY = "E0224", "`supervisionPolicy` answers an unknown policy.";
    NATIVE_ACTOR_STATE = "E0225", "A native actor declares state.";
    EXTENSION_CONFLICT = "E0451", "A method is defined twice: by two extensions, or by an extension and the class.";
    DUPLICATE_NAME = "E0228", "A class, protocol or alias has a name that is taken.";
    UNKNOWN_PROTOCOL = "E0229", "`extending:` names an unknown protocol.";
    ALIAS_NAME = "E0230", "A type alias has a single letter as its name.";
    ALIAS_CYCLE = "E0231", "Type aliases refer to each other in a circle.";
    RESERVED_CLASS_NAME = "E0232", "A class has a name that is reserved.";
    NATIVE_RESERVED_WORD = "E0233", "A native method's function is an Erlang reserved word.";
    NATIVE_NEW = "E0234", "A native class without fields is sent `new`.";
    ROOT_CLASS = "E0235", "A class has no superclass.";
    HANDLE_SCOPE = "E0237", "`handleScope:` stands in the header of a Value or an Actor; only Object classes wrap handles.";
    DUPLICATE_PARAMETER = "E0238", "Two parameters of one block or method have the same name.";
    COMPUTED_IN_PLACE = "E0239", "A method of the library whose sends are computed where they stand is given another body.";
    SELF_PARAMETER = "E0236", "A parameter has the type `Self`.";
    FFI_DISABLED = "E0501", "Erlang is called, or a class has a backing module, where that is switched off.";
    WRONG_SELECTOR = "E0701", "The source given for a method defines another one.";
    AMBIGUOUS_CLASS = "E0301", "A class name is exported by two dependencies; write it with its package: `units@Parser`.";
    UNKNOWN_PACKAGE = "E0304", "A qualified name has a package that is no dependency.";
    INTERNAL_CLASS = "E0401", "A class is named that another package keeps to itself.";
    INTERNAL_IN_SIGNATURE = "E0402", "The signature or slot of a public class, or a public alias, names a class or alias that is internal; who uses it could not name that one.";
    INTERNAL_METHOD = "E0403", "A method is called that another package keeps to itself.";
    HIDDEN_METHOD = "W0306", "A method has the selector of one that the superclass's package keeps to itself; that package's own sends now reach it.";
    INTERNAL_IN_PROTOCOL = "W0307", "A class would conform to a protocol, but a method it needs for that is internal; other packages, which know the protocol, could not send it.";
    UNRESOLVED_CLASS = "W0201", "A class name is not known.";
    UNUSED = "W0202", "A variable or parameter is never read.";
    SHADOWED = "W0203", "A variable hides an outer one (rule shadowed-block-param for the parameter of a block).";
    UNREACHABLE = "W0204", "Statements follow a return.";
    REDUNDANT_ASSIGNMENT = "W0205", "A variable is assigned to itself.";
    SUPER_INITIALIZE = "W0206", "`super initialize` runs a second time what already ran.";
    CONSTANT_CONDITION = "W0207", "A condition is a literal.";
    STALE_EXPECT = "W0208", "An `@expect` suppressed nothing.";
    STDLIB_NAME = "W0209", "A class is named like a standard class; loading it will be refused.";
    UNKNOWN_FIELD_KEY = "W0210", "A literal map for `new:` or `spawnWith:` has a key that is no slot.";
    UNANNOTATED_DELEGATE = "W0211", "`self delegate` stands in a method without return annotation.";
    UNKNOWN_TYPE = "W0212", "An annotation names an unknown type.";
    MISSING_ANNOTATION = "W0213", "A typed class leaves out an annotation.";
    IMPROPER_LIST = "W0214", "The tail of a list is no List.";
    NIL_ON_VALUE = "W0215", "A method of a Value answers nothing.";
    DIRECT_ASSIGNMENT = "W0216", "An actor assigns a slot past the method that sets it.";
    TIMER_SELF_SEND = "W0217", "The block of a timer waits for an answer of its own actor (rule sync-send-in-timer-block).";
    UNKNOWN_SELECTOR = "H0401", "A message is sent to a receiver whose class is certain and does not understand it.";
    UNKNOWN_TO_ALL = "W0401", "A message is sent to a value that may be of several classes, none of which understands it.";
    WRONG_ARGUMENT = "W0402", "An argument or operand is of a class that the method cannot take.";
    WRONG_RESULT = "W0403", "A method answers something else than it declares.";
    WRONG_LOCAL = "W0404", "A variable with a declared type is assigned something else.";
    WRONG_SLOT = "W0405", "A slot with a declared type is given something else: by its default, an assignment, `new:` or `spawnWith:`.";
    WRONG_BLOCK_CALL = "W0406", "A block is evaluated with more or fewer arguments than it has parameters.";
    OVERRIDING_PARAMETER = "W0407", "A method takes something else than the one it overrides, whose senders reach it too.";
    OUTSIDE_BOUND = "W0408", "The argument of a generic type does not conform to the protocol its parameter asks for.";
    NOT_SENDABLE = "W0409", "A handle that works only in the process that made it is taken to another.";
    DYNAMIC_EXPRESSION = "W0410", "Nothing is known about an expression in a typed class.";
    TYPE_ARGUMENTS = "W0413", "A type is written with more or fewer arguments than it has parameters.";
    WRONG_SIDE = "W0414", "The value of a Result is read where it is known to be an error, or the reason where it is known to be a success.";
    UNRESOLVED_FFI = "W0411", "An Erlang module or function is called that is not there.";
    FFI_ARITY = "W0412", "An Erlang function is called with a number of arguments it does not take.";
    CONSTANT_COMPARISON = "H0402", "A comparison with a symbol is always true, or never.";
    INDIRECT_CLASS = "W0302", "A class comes from a dependency of a dependency, which the manifest does not name; with `strict-deps = true` this is an error.";
    HIDDEN_CLASS = "W0305", "A class of the package hides one of a dependency; write the other with its package: `units@Parser`.";
    UNHANDLED_CASE = "W0218", "A match on a closed union leaves a case out.";
    TRAILING_CARET = "L0101", "`^` stands before the last expression of a method, whose value is answered anyway (rule trailing-caret; `lint --fix` removes it).";
    UNNECESSARY_PARENS = "L0102", "Parentheses change nothing (rule unnecessary-parens; `lint --fix` removes them).";
    NEEDLESS_SEPARATOR = "L0103", "A point stands before a line end or a closing bracket, which separate statements themselves (rule needless-separator).";
    CASCADE_CANDIDATE = "L0201", "Three or more messages in a row go to one receiver; a cascade names it once (rule cascade-candidate).";
    EFFECT_FREE_STATEMENT = "L0202", "A statement has no effect and its value is dropped (rule effect-free-statement).";
    DEAD_BLOCK_ASSIGNMENT = "L0203", "A block assigns a variable that nobody reads afterwards (rule dead-block-assignment).";
    INSPECT_AS_STRING = "L0204", "`inspect` answers an Inspector where a String is needed; `printString` answers the text (rule inspect-in-string-position).";
    VALUE_LIKE_OBJECT = "L0205", "An Object class has instance methods but nothing that only an Object class can have; as a Value it could be instantiated (rule value-like-object).";
    NO_SUPERVISION_POLICY = "L0206", "A supervised actor class does not say when it is restarted (rule supervision-policy).";
    DEAD_ASSIGNMENT = "L0207", "A value is assigned and replaced before anybody reads it (rule dead-assignment).";
    NATIVE_PREFIX = "L0301", "A native module's name does not start with the name of its package (rule native-prefix).";
    REDUNDANT_ANNOTATION = "L0401", "A local's annotation says what its value shows (rule redundant-annotation).";
    NATIVE_HARDCODED_MODULE = "L0501", "Erlang code names the module of a Beamtalk class; module names belong to the compiler (rule native-hardcoded-module).";
}
