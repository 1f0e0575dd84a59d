// What is checked and told of code: examples in documentation as tests, the tests of one class, what the linter says of one
// method, a comment as it is meant.

import assert from "node:assert/strict";
import type { Locator } from "playwright-core";
import { shot } from "../support/browser";
import { Stage } from "../support/stage";

const LAMP = `/// A lamp that can be **switched**, see [the guide](docs/guide.md) or [out](javascript:alert(1)).
///
/// - it is \`off\` at first
/// - <b>bold</b> is only text
///
/// \`\`\`beamtalk
/// Lamp spawn isOn   // => false
/// \`\`\`
Actor subclass: Lamp
  state: on = false

  /// Switch it.
  ///
  /// \`\`\`beamtalk
  /// lamp := Lamp spawn
  /// lamp toggle   // => false
  /// \`\`\`
  toggle => self.on := self.on not

  isOn => self.on

  slow => Timer sleep: 600000
`;
const stage = Stage.of({
  "src/Lamp.bt": LAMP,
  "docs/guide.md": "# Guide\n\n```beamtalk\nx := 3   // => 3\n```\n\n```beamtalk\nx + 1   // => 4\nx + 2   // => 5\n```\n",
  "test/SlowTest.bt": "TestCase subclass: SlowTest\n\n  testSlow => Timer sleep: 600000\n",
}, [], (one) => one.choose("Layout: Code"));
const pane = (name: string): Locator => stage.pane(name);
const option = (name: RegExp): Locator => pane("Tests").getByRole("option", { name });

stage.test("examples of documents are tests: listed with their files, run one by one or all, and a failure says what came", async () => {
  await stage.choose("Tests");
  await option(/^src\/Lamp\.bt/).waitFor();
  await option(/Lamp \(doc\)/).click();
  await pane("Tests").getByRole("button", { name: "Run", exact: true }).click();
  await option(/✓.*Lamp \(doc\).*pass/).waitFor();
  assert.equal(await option(/Lamp>>toggle \(doc\).*(pass|fail)/).count(), 0, "only the one that was chosen ran");
  await option(/^src\/Lamp\.bt/).click();
  await pane("Tests").getByRole("button", { name: "Run", exact: true }).click();
  await option(/✗.*Lamp>>toggle \(doc\).*fail/).click();
  await pane("Tests").locator(".failure .minus").getByText("false").waitFor();
  await pane("Tests").locator(".failure .plus").getByText("true").waitFor();
  await shot(stage.watched, "57-document-tests");
  await pane("Tests").getByRole("button", { name: "Open", exact: true }).click();
  await pane("Classes").locator(".cm-marked").getByText("lamp := Lamp spawn").waitFor();
  // All blocks of a document share their variables.
  await option(/docs\/guide\.md/).click();
  await pane("Tests").getByRole("button", { name: "Run", exact: true }).click();
  await option(/✓.*all blocks.*pass/).waitFor();
  // What an example names belongs to nobody else.
  await stage.evaluate("x", "ControlOrMeta+p").then((result) => result.getByText(/undefined/i).first().waitFor());
});

stage.test("an example is run as the image has it, and again when something changes", async () => {
  await stage.choose("Tests");
  await option(/^src\/Lamp\.bt/).click();
  await pane("Tests").getByRole("button", { name: "On change" }).click();
  await stage.house.beamtalk("repl", "-e", "/// Switch it.\n///\n/// ```beamtalk\n/// Lamp spawn toggle   // => true\n/// ```\nLamp >> toggle => self.on := self.on not");
  await option(/✓.*Lamp>>toggle \(doc\).*pass/).waitFor();
  await pane("Tests").getByRole("button", { name: "On change" }).click();
});

stage.test("the tests of a class run from where the class is, also those that were not loaded yet", async () => {
  await stage.goTo("#/class/Lamp");
  await pane("Classes").getByRole("button", { name: "Run tests" }).click();
  await option(/✓.*testToggle.*pass/).waitFor();
  await option(/✓.*Lamp \(doc\).*pass/).waitFor();
  assert.equal(await option(/testSlow/).count(), 0, "what is not about it is not shown");
  await shot(stage.watched, "58-tests-of-a-class");
  await stage.house.beamtalk("repl", "-e", "Value subclass: Untested");
  await stage.goTo("#/class/Untested");
  await pane("Classes").getByRole("button", { name: "Run tests" }).click();
  await pane("Tests").getByRole("alert").getByText("Untested has no tests").waitFor();
});

stage.test("tests that take too long are stopped", async () => {
  await pane("Tests").getByLabel("Filter tests").fill("Slow");
  await option(/testSlow/).click();
  await pane("Tests").getByRole("button", { name: "Run", exact: true }).click();
  await pane("Tests").getByText(/running SlowTest>>testSlow/).waitFor();
  await pane("Tests").getByRole("button", { name: "Stop" }).click();
  await pane("Tests").getByText(/running/).waitFor({ state: "detached" });
  await stage.page.getByRole("contentinfo").getByText("Stopped").waitFor();
  await pane("Tests").getByLabel("Filter tests").fill("");
});

stage.test("what the linter says of a method is at its place and mended there", async () => {
  await stage.goTo("#/class/Lamp/isOn");
  const source = pane("Classes").locator(".cm-content");
  await source.getByText("isOn => self.on").click();
  await stage.page.keyboard.press("ControlOrMeta+a");
  await stage.page.keyboard.insertText("isOn => ^self.on");
  const finding = pane("Classes").getByRole("list", { name: "Findings" }).getByRole("listitem").filter({ hasText: /\^/ });
  await finding.waitFor();
  await pane("Classes").locator(".cm-lintRange").first().waitFor();
  await finding.getByRole("button", { name: /^L\d{4}$/ }).click();
  await stage.page.getByRole("dialog").getByRole("heading", { name: "Wrong" }).waitFor();
  await stage.page.keyboard.press("Escape");
  await shot(stage.watched, "59-lint-of-a-method");
  await finding.getByRole("button", { name: /fix|remove/i }).click();
  await source.getByText("isOn => self.on").waitFor();
  await finding.waitFor({ state: "detached" });
});

stage.test("the comment of a class is Markdown of which no markup is made", async () => {
  await stage.goTo("#/class/Lamp");
  await pane("Classes").getByRole("tab", { name: "Comment" }).click();
  const prose = pane("Classes").locator(".prose");
  await prose.locator("strong").getByText("switched").waitFor();
  await prose.getByRole("listitem").filter({ hasText: "it is off at first" }).waitFor();
  assert.equal(await prose.locator("b").count(), 0, "a tag is text");
  await prose.locator("code").getByText("<b>").waitFor();
  assert.equal(await prose.locator("a").count(), 0, "a script is no link");
  await prose.getByText("javascript:alert(1)").waitFor();
  await shot(stage.watched, "60-comment");
  await prose.getByRole("button", { name: "the guide" }).click();
  await pane("Classes").locator(".cm-content").getByText("# Guide").waitFor();
});

stage.test("nothing of all this broke the policy", () => assert.deepEqual(stage.watched.faults, []));
