// One item in the status bar: what the workspace of this folder does.
import * as vscode from "vscode";
import type { State } from "./protocol";
import type { Server } from "./server";

export function label(state: State | undefined): { text: string; tooltip: string } {
  if (!state) return { text: "$(circle-slash) Beamtalk", tooltip: "The language server does not run." };
  if (state.state === "none") return { text: "$(circle-outline) Beamtalk", tooltip: "No workspace runs here; answers come from the files." };
  const unflushed = state.unflushed ?? 0;
  const counts = [
    state.classes === undefined ? "" : `${state.classes} classes`,
    state.actors === undefined ? "" : `${state.actors} actors`,
    `${unflushed} unflushed ${unflushed === 1 ? "change" : "changes"}`,
    state.conflicts ? `${state.conflicts} in conflict with the files` : "",
  ];
  return {
    text: `$(circle-filled) Beamtalk${unflushed > 0 ? ` ${unflushed}↑` : ""}${state.conflicts ? " $(warning)" : ""}`,
    tooltip: `Workspace ${state.id ?? ""} runs: ${counts.filter(Boolean).join(", ")}.`,
  };
}

export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("beamtalk.status", vscode.StatusBarAlignment.Left);
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly server: Server) {
    this.item.name = "Beamtalk";
    this.item.command = "beamtalk.showTranscript";
    this.show(undefined);
    this.item.show();
    this.subscriptions = [
      server.onStatus((state) => this.show(state)),
      server.onConnection((ready) => void (ready ? this.refresh().catch(() => this.show(undefined)) : this.show(undefined))),
    ];
  }

  async refresh(): Promise<void> {
    // A server without live knowledge still answers from files.
    const state: State = this.server.can("beamtalk.status") ? await this.server.call("beamtalk.status", {}) : { state: "none" };
    this.show(state);
  }

  private show(state: State | undefined): void {
    const { text, tooltip } = label(state);
    this.item.text = text;
    this.item.tooltip = tooltip;
    void vscode.commands.executeCommand("setContext", "beamtalk.running", state?.state === "running");
  }

  dispose(): void {
    this.item.dispose();
    for (const subscription of this.subscriptions) subscription.dispose();
  }
}
