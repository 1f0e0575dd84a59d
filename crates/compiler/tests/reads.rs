//! What findings rest on: a file that a change cannot have reached is not looked at again.

#![expect(clippy::disallowed_methods, reason = "the library is files")]

#[path = "support/corpus.rs"]
#[expect(dead_code, reason = "only the library is looked at")]
mod corpus;

use std::collections::BTreeMap;
use std::sync::Arc;

use beamtalk_compiler::reads::{Checked, Key, Outline, check_noting};
use beamtalk_compiler::{ClassTable, Dependencies, Later, Origin, Packages, SourceFile, module_name};
use corpus::library;

/// Texts of each file, one of which it has at a time. They reach into each other in every way there is: superclasses,
/// slots, promised and unpromised answers, overriding, protocols, aliases, extensions, names that are taken or missing.
const FILES: &[(&str, &[&str])] = &[
    (
        "Base",
        &[
            "Value subclass: Base\n  field: size :: Integer = 0\n  label => \"a\"\n  next -> Integer => self.size + 1\n",
            "Value subclass: Base\n  field: size :: Integer = 0\n  label => 3\n  next -> Integer => self.size + 1\n",
            "Value subclass: Base\n  field: size :: Integer = 0\n  label => \"a\"\n  next -> Integer => self.size + 2\n",
            "Value subclass: Base\n  field: size :: String = \"\"\n  label => \"a\"\n  next -> String => self.size\n",
            "sealed Value subclass: Base\n  field: size :: Integer = 0\n  label => \"a\"\n",
            "Object subclass: Base\n  label => \"a\"\n  isNil -> Boolean => false\n  doesNotUnderstand: s args: a => nil\n",
        ],
    ),
    (
        "Kid",
        &[
            "Base subclass: Kid\n  twice -> Integer => self next + self next\n",
            "Base subclass: Kid\n  label => #(1)\n  twice -> Integer => self next + self next\n",
            "Value subclass: Kid\n  twice -> Integer => self next\n",
            "Middle subclass: Kid\n  twice => self label size\n",
        ],
    ),
    (
        "Middle",
        &[
            "Base subclass: Middle\n  middle -> Integer => 1\n",
            "internal Base subclass: Middle\n  middle => self label\n",
        ],
    ),
    (
        "User",
        &[
            "Object subclass: User\n  class a: b :: Base => b label size\n  class c: k :: Kid -> Integer => k twice + k next\n",
            "Object subclass: User\n  class a: b :: Base => b frob\n  class c: k :: Size => k isNil ifTrue: [1] ifFalse: [k foo]\n",
        ],
    ),
    (
        "Other",
        &[
            "Object subclass: Other\n  class a: b :: Sized -> Integer => b size\n  class b => self a: (Base new: #{#size => 3})\n",
            "Object subclass: Other\n  class a: b :: Sized => b grow\n  class b => (Kid new) twice + (User a: Kid new)\n",
            "Object subclass: Other\n  class b => Bases new frob\n  class c: m :: Middle => m middle + 1\n",
        ],
    ),
    (
        "Parts",
        &[
            "Protocol define: Sized\n  size -> Integer\n",
            "Protocol define: Sized\n  size -> Integer\n  grow -> Self\n",
            "type Size = Base | Nil\n",
            "type Size = Integer\nProtocol define: Sized\n  length -> Integer\n",
            "Base >> frob => 1\n",
            "Base >> frob -> String => \"x\"\nObject >> foo => 3\n",
            "Base >> label => 1\n",
        ],
    ),
    (
        "Twin",
        &[
            "Object subclass: Twin\n",
            "Object subclass: Base\n  frob => 1\n",
            "Value subclass: Kids\n",
        ],
    ),
];

fn parsed(name: &str, text: &str) -> SourceFile {
    SourceFile {
        path: format!("src/{name}.bt").into(),
        text: text.into(),
        unit: beamtalk_syntax::parse_file(text).unit,
        package: Some("demo".into()),
        module: module_name(Some("demo"), name).into(),
        origin: Origin::Package,
    }
}

/// The files, each declared at once or when it is asked for.
fn table(
    library: &ClassTable,
    files: &BTreeMap<&str, SourceFile>,
    waits: impl Fn(&str) -> bool,
) -> ClassTable {
    let mut packages = Packages::default();
    packages.add("demo", std::iter::empty(), Dependencies::Lenient);
    let mut table = library.clone();
    files.values().for_each(|file| packages.declare(file));
    table.set_packages(packages);
    for (name, file) in files {
        let outline = Outline::of(file);
        let parse = {
            let (name, text) = ((*name).to_owned(), file.text.clone());
            move || parsed(&name, &text)
        };
        let later = Later::new(file.path.clone(), file.package.clone(), file.origin, parse);
        if !waits(name) || !table.declare_later(&outline, &Arc::new(later)) {
            table.declare(file);
        }
    }
    table
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// After any sequence of edits the findings that were kept are those of a run from nothing.
#[test]
fn what_a_change_cannot_have_reached_stays_true() {
    let library = library();
    let (mut kept_count, mut looked_count) = (0, 0);
    for seed in 0..12 {
        let mut random = Random(seed);
        let mut files: BTreeMap<&str, SourceFile> = BTreeMap::new();
        let mut results: BTreeMap<&str, (Outline, Checked)> = BTreeMap::new();
        for step in 0..40 {
            let (name, texts) = FILES[random.below(FILES.len())];
            let is_gone = step > 10 && random.below(8) == 0;
            let text = (!is_gone).then(|| texts[random.below(texts.len())]);
            let before = files
                .remove(name)
                .map_or_else(Outline::default, |file| Outline::of(&file));
            let after = text.map_or_else(Outline::default, |text| {
                let file = parsed(name, text);
                let outline = Outline::of(&file);
                files.insert(name, file);
                outline
            });
            let changed: Vec<Key> = before.changed(&after);
            results.remove(name);
            let mask = random.below(1 << FILES.len());
            let place = |name: &str| FILES.iter().position(|(known, _)| *known == name).unwrap();
            let waits = |name: &str| mask & (1 << place(name)) != 0;
            let now = table(&library, &files, waits);
            for (name, file) in &files {
                let fresh = check_noting(file, &now);
                let kept = results
                    .get(name)
                    .filter(|(_, checked)| !checked.rests_on(&changed));
                if let Some((_, kept)) = kept {
                    kept_count += 1;
                    assert_eq!(
                        kept.diagnostics,
                        fresh.diagnostics,
                        "seed {seed}, step {step}: {name} after a change of {:?}",
                        files.get(name).map(|file| &file.text)
                    );
                } else {
                    looked_count += 1;
                    results.insert(name, (Outline::of(file), fresh));
                }
            }
        }
    }
    // Both happen, or nothing was shown.
    assert!(
        kept_count > 300 && looked_count > 300,
        "{kept_count} kept, {looked_count} looked at"
    );
}

/// A body behind a promise is nobody else's business; a promise is everybody's who sends the message, and only theirs.
#[test]
fn only_who_uses_what_changed_is_looked_at() {
    let library = library();
    let base = "Value subclass: Base\n  field: size :: Integer = 0\n  label => \"a\"\n  next -> Integer => self.size + 1\n";
    let mut files: BTreeMap<&str, SourceFile> = BTreeMap::new();
    files.insert("Base", parsed("Base", base));
    files.insert(
        "Next",
        parsed(
            "Next",
            "Object subclass: Next\n  class a: b :: Base => b next + 1\n",
        ),
    );
    files.insert(
        "Label",
        parsed(
            "Label",
            "Object subclass: Label\n  class a: b :: Base => b label size\n",
        ),
    );
    files.insert(
        "Alone",
        parsed("Alone", "Object subclass: Alone\n  class a => 3 + 4\n"),
    );
    let now = table(&library, &files, |_| true);
    let results: BTreeMap<&str, Checked> = files
        .iter()
        .map(|(name, file)| (*name, check_noting(file, &now)))
        .collect();
    let reached = |text: &str| -> Vec<&str> {
        let changed = Outline::of(&files["Base"]).changed(&Outline::of(&parsed("Base", text)));
        let reached = results
            .iter()
            .filter(|(name, checked)| **name != "Base" && checked.rests_on(&changed));
        reached.map(|(name, _)| *name).collect()
    };
    assert_eq!(reached(&base.replace("+ 1", "+ 2")), [] as [&str; 0]);
    assert_eq!(reached(&base.replace("\"a\"", "\"b\"")), ["Label"]);
    assert_eq!(
        reached(&base.replace("next -> Integer", "next -> Number")),
        ["Next"]
    );
    assert_eq!(
        reached(&base.replace("Integer = 0", "Integer = 1")),
        ["Label", "Next"]
    );
    assert_eq!(reached(&format!("// a comment\n\n{base}")), [] as [&str; 0]);
}
