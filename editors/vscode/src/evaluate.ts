// Evaluate what is selected, or the line: the result stands behind it until the text changes.
import * as vscode from "vscode";
import type { Evaluation } from "./protocol";
import type { Server } from "./server";

const LONGEST = 200;

/** The text to evaluate and the place behind which its result stands. */
export function chosen(document: vscode.TextDocument, selection: vscode.Selection): { text: string; end: vscode.Position } {
  if (!selection.isEmpty) return { text: document.getText(selection), end: selection.end };
  const line = document.lineAt(selection.active.line);
  return { text: line.text, end: line.range.end };
}

/** One line for behind the code, all of it for the hover. */
export function shown(evaluation: Evaluation): { line: string; hover: string } {
  const text = evaluation.ok ? (evaluation.value ?? "") : `${evaluation.error?.kind ?? "error"}: ${evaluation.error?.message ?? ""}`;
  const first = text.split("\n", 1)[0] ?? "";
  const cut = first.length > LONGEST || first !== text;
  return {
    line: ` ${evaluation.ok ? "=>" : "!"} ${first.slice(0, LONGEST)}${cut ? " …" : ""}`,
    hover: evaluation.output ? `${evaluation.output}\n${text}` : text,
  };
}

export class Results implements vscode.Disposable {
  private readonly value = decoration("editorCodeLens.foreground");
  private readonly failure = decoration("editorError.foreground");
  private readonly of = new Map<string, { failed: boolean; options: vscode.DecorationOptions }[]>();
  private readonly subscription: vscode.Disposable;

  constructor(private readonly server: Server) {
    this.subscription = vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
      if (contentChanges.length > 0) this.clear(document.uri);
    });
  }

  async evaluate(editor: vscode.TextEditor): Promise<Evaluation | undefined> {
    const { text, end } = chosen(editor.document, editor.selection);
    if (text.trim() === "") return undefined;
    const version = editor.document.version;
    const evaluation = await vscode.window.withProgress(
      { location: vscode.ProgressLocation.Window, title: "Evaluating", cancellable: true },
      (_, token) => this.server.call("beamtalk.evaluate", { uri: editor.document.uri.toString(), text }, token),
    );
    // A result beside text that it was not computed from would lie.
    if (editor.document.version === version) this.show(editor, end, evaluation);
    return evaluation;
  }

  private show(editor: vscode.TextEditor, end: vscode.Position, evaluation: Evaluation): void {
    const { line, hover } = shown(evaluation);
    const key = editor.document.uri.toString();
    const others = (this.of.get(key) ?? []).filter((result) => result.options.range.end.line !== end.line);
    const hoverMessage = new vscode.MarkdownString().appendCodeblock(hover, "beamtalk");
    const options = { range: new vscode.Range(end, end), hoverMessage, renderOptions: { after: { contentText: line } } };
    this.of.set(key, [...others, { failed: !evaluation.ok, options }]);
    this.paint(key);
  }

  clear(uri: vscode.Uri): void {
    if (this.of.delete(uri.toString())) this.paint(uri.toString());
  }

  clearAll(): void {
    for (const key of [...this.of.keys()]) {
      this.of.delete(key);
      this.paint(key);
    }
  }

  private paint(key: string): void {
    const results = this.of.get(key) ?? [];
    for (const editor of vscode.window.visibleTextEditors.filter((editor) => editor.document.uri.toString() === key)) {
      editor.setDecorations(this.value, results.filter((result) => !result.failed).map((result) => result.options));
      editor.setDecorations(this.failure, results.filter((result) => result.failed).map((result) => result.options));
    }
    void vscode.commands.executeCommand("setContext", "beamtalk.hasResults", this.of.size > 0);
  }

  dispose(): void {
    this.subscription.dispose();
    this.value.dispose();
    this.failure.dispose();
  }
}

function decoration(color: string): vscode.TextEditorDecorationType {
  return vscode.window.createTextEditorDecorationType({
    after: { color: new vscode.ThemeColor(color), fontStyle: "italic", margin: "0 0 0 1em" },
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedOpen,
  });
}
