//! Abstract forms as Erlang text, one statement to a line. Terms keep the shape `{tag, Line, …}` of the abstract format.

use beamtalk_etf::Term;

/// A function of a module, or `None` for any other form.
pub(crate) fn function(form: &Term) -> Option<(String, String)> {
    let (tag, parts) = split(form);
    let [name, Term::Integer(arity), clauses] = parts else {
        return None;
    };
    (tag == "function").then(|| {
        let name = atom(name);
        let text = clauses_text(clauses, &name, 0, ";\n");
        (format!("{name}/{arity}"), format!("{text}.\n"))
    })
}

/// Statements, each on its line.
pub(crate) fn body(statements: &Term, depth: usize) -> String {
    let indent = "    ".repeat(depth);
    let lines: Vec<String> = list(statements)
        .iter()
        .map(|statement| format!("{indent}{}", expression(statement, depth)))
        .collect();
    lines.join(",\n")
}

fn split(node: &Term) -> (&str, &[Term]) {
    match node {
        Term::Tuple(elements) => match elements.as_slice() {
            [Term::Atom(tag), Term::Integer(_), rest @ ..] => (tag, rest),
            [Term::Atom(tag), rest @ ..] => (tag, rest),
            _ => panic!("not a form: {node:?}"),
        },
        _ => panic!("not a form: {node:?}"),
    }
}

fn list(term: &Term) -> &[Term] {
    match term {
        Term::List(elements) => elements,
        _ => panic!("not a list: {term:?}"),
    }
}

fn atom(term: &Term) -> String {
    let Term::Atom(name) = term else {
        panic!("not an atom: {term:?}")
    };
    beamtalk_compiler::erlang_atom(name)
}

fn joined(nodes: &Term, depth: usize) -> String {
    let texts: Vec<String> = list(nodes).iter().map(|node| expression(node, depth)).collect();
    texts.join(", ")
}

fn expression(node: &Term, depth: usize) -> String {
    let (tag, parts) = split(node);
    match (tag, parts) {
        ("var", [Term::Atom(name)]) => name.to_string(),
        ("atom", [name]) => atom(name),
        ("integer" | "float" | "value", [value]) => term(value),
        ("string", [value]) => format!("\"{}\"", String::from_utf8_lossy(&bytes(value))),
        ("nil", []) => "[]".into(),
        ("cons", _) => cons(node, depth),
        ("tuple", [elements]) => format!("{{{}}}", joined(elements, depth)),
        ("map", [fields]) => format!("#{{{}}}", joined(fields, depth)),
        ("map", [base, fields]) => format!("{}#{{{}}}", operand(base, depth), joined(fields, depth)),
        ("map_field_assoc", [key, value]) => {
            format!("{} => {}", expression(key, depth), expression(value, depth))
        }
        ("map_field_exact", [key, value]) => {
            format!("{} := {}", expression(key, depth), expression(value, depth))
        }
        ("bin", [elements]) => format!("<<{}>>", joined(elements, depth)),
        ("bin_element", [value, size, specifiers]) => segment(value, size, specifiers, depth),
        ("match", [left, right]) => {
            format!("{} = {}", expression(left, depth), expression(right, depth))
        }
        ("op", [operator, left, right]) => {
            let Term::Atom(operator) = operator else { panic!() };
            format!("{} {operator} {}", operand(left, depth), operand(right, depth))
        }
        ("remote", [module, function]) => {
            format!("{}:{}", expression(module, depth), expression(function, depth))
        }
        ("call", [function, arguments]) => {
            format!("{}({})", operand(function, depth), joined(arguments, depth))
        }
        ("block", [statements]) => {
            let indent = "    ".repeat(depth);
            format!("begin\n{}\n{indent}end", body(statements, depth + 1))
        }
        ("case", [value, clauses]) => format!(
            "case {} of\n{}\n{}end",
            expression(value, depth),
            clauses_text(clauses, "", depth + 1, ";\n"),
            "    ".repeat(depth)
        ),
        ("fun", [function]) => {
            let (_, [clauses]) = split(function) else {
                panic!("not a function: {function:?}")
            };
            fun(clauses, "", depth)
        }
        ("named_fun", [Term::Atom(name), clauses]) => fun(clauses, name, depth),
        _ => panic!("no text for {node:?}"),
    }
}

/// What would be read differently beside an operator or a parenthesis is put into parentheses.
fn operand(node: &Term, depth: usize) -> String {
    let text = expression(node, depth);
    if matches!(split(node).0, "op" | "match" | "fun" | "named_fun") {
        format!("({text})")
    } else {
        text
    }
}

fn fun(clauses: &Term, name: &str, depth: usize) -> String {
    let separator = format!(";\n{}", "    ".repeat(depth + 1));
    let name = if name.is_empty() { "" } else { &format!(" {name}") };
    let text = clauses_text(clauses, "", depth, &separator);
    format!("fun{name}{}\n{}end", text.trim_start(), "    ".repeat(depth))
}

fn clauses_text(clauses: &Term, name: &str, depth: usize, separator: &str) -> String {
    let indent = "    ".repeat(depth);
    // A clause of a case has its pattern bare, one of a function in parentheses.
    let is_case = separator == ";\n" && name.is_empty();
    let texts: Vec<String> = list(clauses)
        .iter()
        .map(|clause| {
            let (_, [patterns, guards, statements]) = split(clause) else {
                panic!("not a clause: {clause:?}")
            };
            let patterns = joined(patterns, depth);
            let patterns = if is_case {
                patterns
            } else {
                format!("{name}({patterns})")
            };
            let guards: Vec<String> = list(guards).iter().map(|guard| joined(guard, depth)).collect();
            let guards = if guards.is_empty() {
                String::new()
            } else {
                format!(" when {}", guards.join("; "))
            };
            format!("{indent}{patterns}{guards} ->\n{}", body(statements, depth + 1))
        })
        .collect();
    texts.join(separator)
}

fn cons(node: &Term, depth: usize) -> String {
    let mut elements = Vec::new();
    let mut rest = node;
    while let ("cons", [head, tail]) = split(rest) {
        elements.push(expression(head, depth));
        rest = tail;
    }
    let elements = elements.join(", ");
    match split(rest).0 {
        "nil" => format!("[{elements}]"),
        _ => format!("[{elements} | {}]", expression(rest, depth)),
    }
}

fn segment(value: &Term, size: &Term, specifiers: &Term, depth: usize) -> String {
    let mut text = expression(value, depth);
    if let Term::Tuple(_) = size {
        text += &format!(":{}", expression(size, depth));
    }
    if let Term::List(specifiers) = specifiers {
        let names: Vec<String> = specifiers
            .iter()
            .map(|specifier| match specifier {
                Term::Tuple(pair) => pair.iter().map(term).collect::<Vec<_>>().join(":"),
                _ => atom(specifier),
            })
            .collect();
        text += &format!("/{}", names.join("-"));
    }
    text
}

fn bytes(term: &Term) -> Vec<u8> {
    match term {
        Term::Binary(bytes) => bytes.clone(),
        _ => list(term)
            .iter()
            .map(|byte| match byte {
                Term::Integer(byte) => *byte as u8,
                _ => panic!("not a byte: {byte:?}"),
            })
            .collect(),
    }
}

/// Any term, as Erlang writes it.
fn term(value: &Term) -> String {
    let all = |terms: &[Term]| terms.iter().map(term).collect::<Vec<_>>().join(", ");
    match value {
        Term::Atom(_) => atom(value),
        Term::Integer(value) => value.to_string(),
        Term::BigInteger(value) => value.to_string(),
        Term::Float(value) => format!("{value:?}"),
        Term::Binary(bytes) => format!("<<{:?}>>", String::from_utf8_lossy(bytes)),
        Term::Tuple(elements) => format!("{{{}}}", all(elements)),
        Term::List(elements) => format!("[{}]", all(elements)),
        Term::ImproperList(elements, tail) => format!("[{} | {}]", all(elements), term(tail)),
        Term::Map(pairs) => {
            let pairs: Vec<String> = pairs
                .iter()
                .map(|(key, value)| format!("{} => {}", term(key), term(value)))
                .collect();
            format!("#{{{}}}", pairs.join(", "))
        }
    }
}
