// The test explorer: classes of tests and their methods, run by the server.
import * as vscode from "vscode";
import type { TestCase, TestResult } from "./protocol";
import type { Server } from "./server";

export class Tests implements vscode.Disposable {
  readonly controller = vscode.tests.createTestController("beamtalk", "Beamtalk");

  private readonly subscription: vscode.Disposable;

  constructor(private readonly server: Server) {
    this.controller.resolveHandler = async (item) => {
      if (!item) await this.refresh();
    };
    this.controller.refreshHandler = () => this.refresh();
    this.subscription = server.onTested((results) => this.show(results));
    this.controller.createRunProfile("Run", vscode.TestRunProfileKind.Run, (request, token) => this.run(request, token), true);
  }

  async refresh(): Promise<void> {
    if (!this.server.can("beamtalk.tests")) return this.controller.items.replace([]);
    const { tests } = await this.server.call("beamtalk.tests", {});
    this.controller.items.replace(this.grouped(tests ?? []));
  }

  private grouped(tests: TestCase[]): vscode.TestItem[] {
    const classes = new Map<string, vscode.TestItem>();
    for (const test of tests) {
      const uri = vscode.Uri.parse(test.uri);
      let group = classes.get(test.class);
      if (!group) {
        group = this.controller.createTestItem(`class ${test.class}`, test.class, uri);
        classes.set(test.class, group);
      }
      const item = this.controller.createTestItem(test.id, test.selector, uri);
      const { start, end } = test.range;
      item.range = new vscode.Range(start.line, start.character, end.line, end.character);
      group.children.add(item);
    }
    return [...classes.values()];
  }

  /** The cases below the chosen items, without those left out. */
  private cases(request: Pick<vscode.TestRunRequest, "include" | "exclude"> | Record<string, never>): vscode.TestItem[] {
    const excluded = new Set(request.exclude?.map((item) => item.id));
    const found: vscode.TestItem[] = [];
    const visit = (item: vscode.TestItem): void => {
      if (excluded.has(item.id)) return;
      if (item.children.size > 0) item.children.forEach(visit);
      else found.push(item);
    };
    if (request.include) request.include.forEach(visit);
    else this.controller.items.forEach(visit);
    return found;
  }

  async run(request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> {
    const run = this.controller.createTestRun(request);
    const cases = this.cases(request);
    for (const item of cases) run.started(item);
    try {
      const { results } = await this.server.call("beamtalk.runTest", { ids: cases.map((item) => item.id) }, token);
      const byId = new Map(results.map((result) => [result.id, result]));
      for (const item of cases) report(run, item, byId.get(item.id));
    } catch (error) {
      const message = new vscode.TestMessage(error instanceof Error ? error.message : String(error));
      for (const item of cases) {
        if (token.isCancellationRequested) run.skipped(item);
        else run.errored(item, message);
      }
    } finally {
      run.end();
    }
  }

  /** Results that came without a run of ours. */
  private show(results: TestResult[]): void {
    const run = this.controller.createTestRun(new vscode.TestRunRequest());
    const byId = new Map(results.map((result) => [result.id, result]));
    for (const item of this.cases({})) {
      if (byId.has(item.id)) report(run, item, byId.get(item.id));
    }
    run.end();
    const failed = results.filter((result) => result.outcome === "failed" || result.outcome === "errored");
    void vscode.window.showInformationMessage(
      failed.length === 0 ? `${results.length} ${results.length === 1 ? "test" : "tests"} passed.` : `${failed.length} of ${results.length} failed: ${failed.map((result) => result.id).join(", ")}`,
    );
  }

  dispose(): void {
    this.subscription.dispose();
    this.controller.dispose();
  }
}

function report(run: vscode.TestRun, item: vscode.TestItem, result: TestResult | undefined): void {
  const message = (): vscode.TestMessage => {
    const made = new vscode.TestMessage(result?.message ?? "no reason was given");
    if (item.uri && item.range) made.location = new vscode.Location(item.uri, item.range);
    return made;
  };
  switch (result?.outcome) {
    case "passed":
      return run.passed(item, result.ms);
    case "failed":
      return run.failed(item, message(), result.ms);
    case "errored":
      return run.errored(item, message(), result.ms);
    default:
      return run.skipped(item);
  }
}
